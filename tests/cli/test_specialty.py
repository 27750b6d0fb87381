import csv
import json
import shutil
import sys
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.reference.small_hospital import shrink
from typer.testing import CliRunner

from telic.cli import app, main
from telic.report import Report
from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.access_reasons import find_reasons
from telic.specialty.alarms.colleagues import care_of
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.alarms.fhir_audit_events import audit_events
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.log_files import read_log
from telic.specialty.pseudonyms import Pseudonyms


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    run = CliRunner().invoke(
        app, ["specialty", "simulate", str(folder / "log"), "--scale", "0.012"]
    )
    assert run.exit_code == 0
    shrink(folder / "log")
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, ["specialty", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def file(folder):
    found = run("discover", folder / "log", "--restarts", 1, "--out", folder / "found", "--json")
    file = folder / "found.json"
    file.write_text(found.stdout)
    return file


@pytest.fixture(scope="module")
def recognition(folder, file):
    scores = run("recognise", folder / "log", "--found", file, "--classifier", "Naive", "--json")
    return json.loads(scores.stdout)["recognition"]


def test_inspect_says_what_findings_are_of_and_names_nobody(folder, file):
    content, card = json.loads(file.read_text()), run("inspect", folder / "found", "--json").stdout
    specialties = content["specialties"]
    listed = sum(one["listed_code"] is not None for one in specialties)
    said = json.loads(card)
    assert said["specialties"] == f"{len(specialties)}, {listed} of them with a listed code"
    assert said["fitted on"].startswith("a simulated log of 1,185 users and ")
    assert said["written by"].startswith("telic ")
    assert specialties[0]["users"][0] not in card


def test_discover_then_recognise_explain_and_report(folder, file, recognition):
    content = json.loads(file.read_text())
    assert content["simulated"] is True
    assert any(one["listed_code"] is None for one in content["specialties"])
    assert recognition[0]["f1"] > 0.5
    assert recognition[0]["shuffled_f1"] < 0.7
    queue = json.loads(
        run("explain", folder / "log", "--found", file, "--limit", 3, "--json").stdout
    )
    assert len(queue["queue"]) == 3
    assert queue["queue"][0]["user"].startswith("user-")
    given = ["specialty", "explain", str(folder / "log"), "--found", str(file), "--method", "lda"]
    refused = CliRunner().invoke(app, given)
    assert "--method changes nothing beside --found" in str(refused.exception)
    explained = run("explain", folder / "log", "--found", file, "--status", "explained")
    assert "because" in explained.stdout
    assert "lift" not in explained.stdout  # which open alarms have
    assert "random topic" in explained.stdout
    specialties = content["specialties"]  # each is drawn; those without a code stand first
    few = [*specialties[1:2], *specialties[-2:]]
    (folder / "few.json").write_text(json.dumps(content | {"specialties": few}))
    options = ("--found", folder / "few.json", "--pipeline", "columns in [0, 1], Gaussian, C = 10")
    run("report", folder / "log", *options, "--out", folder / "r.html")
    page = (folder / "r.html").read_text()
    assert "De facto specialties" in page
    assert "users would be needed to know it within ±0.1" in page
    assert ">columns in [0, 1], Gaussian, C = 10</td>" in page


@pytest.mark.slow
def test_recognise_shows_every_pipeline_and_where_it_was_chosen(folder, file, recognition):
    options = ("recognise", folder / "log", "--found", file, "--classifier", "Naive")
    row, *_ = recognition
    chosen_in = [half for one in row["pipelines"] for half in one["chosen_in"]]
    assert sorted(chosen_in) == [f"{r}.{half}" for r in range(1, 6) for half in (1, 2)]
    shown = run(*options).stdout.splitlines()
    console = [[cell.strip() for cell in line.split("│")] for line in shown]
    assert shown[0].strip() == "F1 of each specialty without a code"
    assert f"{row['f1']:.3f}" in next(each for each in console if "Naive" in each)
    for one in row["pipelines"]:
        cells = [one["pipeline"], f"{one['f1']:.3f}", f"{one['core_f1']:.3f}"]
        assert ["", *cells, ", ".join(one["chosen_in"]) or "—", ""] in console
    printed, *_ = json.loads(run(*options, "--pipeline", "printed", "--json").stdout)["recognition"]
    (only,) = printed["pipelines"]
    assert only == {**row["pipelines"][0], "chosen_in": sorted(chosen_in)}
    assert printed["f1"] == only["f1"]


def test_it_is_said_where_nothing_was_found(folder, file, tmp_path, monkeypatch):
    from telic.specialty.discovery.result import read_discovery

    content = json.loads(file.read_text())
    coded = [one for one in content["specialties"] if one["listed_code"] is not None]
    (tmp_path / "coded.json").write_text(json.dumps(content | {"specialties": coded}))
    shown = run("recognise", folder / "log", "--found", tmp_path / "coded.json")
    assert "no specialty without a code was found: nothing to recognise" in shown.stderr
    assert shown.stdout == ""
    (tmp_path / "none.json").write_text(json.dumps(content | {"specialties": []}))
    nothing = read_discovery(tmp_path / "none.json", read_log(folder / "log"))
    monkeypatch.setattr(
        "telic.specialty.discovery.discover.discover", lambda *given, **options: nothing
    )
    shown = run("discover", folder / "log")
    assert "no group of users with a practice of its own was found" in shown.stderr
    assert "Specialties" in shown.stdout


def test_a_class_of_three_users_is_dropped_and_counted(folder, file, tmp_path):
    log = tmp_path / "log"
    shutil.copytree(folder / "log", log)
    providers = pq.read_table(log / "providers.parquet")
    urologists = pc.index_in(providers["user"], _declaring(providers, "Urology")[3:])
    pq.write_table(providers.filter(pc.is_null(urologists)), log / "providers.parquet")
    scores = run("recognise", log, "--found", file, "--classifier", "Naive", "--json")
    assert "1 core classes have fewer than 20 users and are dropped: Urology (<11" in scores.stderr
    assert json.loads(scores.stdout)["recognition"]


def _declaring(providers, code):
    return providers.filter(pc.equal(providers["taxonomy"], code))["user"].combine_chunks()


def test_an_error_is_one_line_and_exit_code_2(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["telic", "specialty", "discover", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("telic: ")
    assert "meta.json: not found" in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recognise", "--classifier", "oracle"], "'oracle' is not a classifier"),
        (["recognise", "--pipeline", "best"], "'best' is not a pipeline of SVM; choose chosen, "),
        (["report", "--out", "no/such/folder/r.html"], "does not exist"),
        (["report", "--out", "."], "is a folder"),
        (["explain", "--status", "closed"], "status is 'closed'"),
        (["discover", "--method", "pathselclus", "--paths", "U-X"], "paths names 'U-X'"),
    ],
)
def test_wrong_options_are_said_in_one_line(folder, capsys, monkeypatch, arguments, message):
    command, *options = arguments
    line = ["telic", "specialty", command, str(folder / "log"), *options]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_negative_seed_is_refused(folder):
    result = CliRunner().invoke(app, ["specialty", "discover", str(folder / "log"), "--seed", "-1"])
    assert result.exit_code == 2
    assert not isinstance(result.exception, ValueError)
    assert "--seed" in result.output + result.stderr


def test_findings_go_to_a_later_log_and_the_queue_of_alarms_to_people(
    folder, file, tmp_path, monkeypatch
):
    log, later = folder / "log", tmp_path / "later"
    shutil.copytree(log, later)
    accesses = pq.read_table(later / "accesses.parquet")
    accesses = accesses.set_column(3, "at", pc.add(accesses["at"], timedelta(days=400)))
    pq.write_table(accesses, later / "accesses.parquet")
    options = ("--found", file.with_name("found"))
    shown = run("explain", later, *options, "--limit", 3, "--keep", tmp_path / "kept")
    assert "holds" in shown.stdout
    assert f"{tmp_path / 'kept'}: written" in "".join(shown.stderr.splitlines())
    content = json.loads(run("explain", later, *options, "--limit", 3, "--json").stdout)
    assert all(one["verdict"] == "holds" for one in content["carried"]["specialties"])
    again = run("explain", later, "--found", tmp_path / "kept", "--limit", 0)
    assert "they are counted there already" in again.stderr
    store = ("--store", f"sqlite:///{tmp_path}/review.sqlite")
    absent = CliRunner().invoke(app, ["specialty", "review", "list", *store]).exception
    assert "review.sqlite: no such database. `telic specialty review add` makes" in str(absent)
    assert not (tmp_path / "review.sqlite").exists()
    monkeypatch.chdir(later)
    brought = run("review", "add", ".", *options, *store, "--limit", 5)
    assert "5 alarms are new" in brought.stdout
    listed = json.loads(run("review", "list", *store, "--json").stdout)
    first = listed["alarms"][0]
    alarm = first["alarm"]
    assert first["log"] == later.name
    shown = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in run("review", "list", *store).stdout.splitlines()
        if "│" in line
    ]
    names = ("alarm", "state", "user")
    assert [first[name] for name in names] in [row[:3] for row in shown]
    moved = run("review", "set", alarm, "closed", *store, "--by", "ann")
    assert moved.stdout == f"{alarm}: closed\n"
    assert "4 open, 0 explained, 0 confirmed, 1 closed" in run("review", "list", *store).stdout


def test_keep_needs_findings_of_an_earlier_log(folder, file, monkeypatch, capsys):
    line = ["telic", "specialty", "explain", str(folder / "log"), "--found", str(file)]
    monkeypatch.setattr("sys.argv", [*line, "--keep", str(folder / "kept")])
    with pytest.raises(SystemExit):
        main()
    assert "--keep needs --found with a folder" in capsys.readouterr().err


def test_a_patient_gets_the_own_log_in_three_forms(folder, file, tmp_path, capsys, monkeypatch):
    accesses = pq.read_table(folder / "log" / "accesses.parquet")
    patient = accesses["patient"][0].as_py()
    options = ("patient", folder / "log", patient, "--found", file)
    shown = run(*options, "--json")
    content = json.loads(shown.stdout)
    mine = accesses.filter(pc.equal(accesses["patient"].cast("string"), patient))
    assert len(content["accesses"]) == mine.num_rows
    assert "the log lacks origin of the data" in shown.stderr
    for suffix in ("csv", "json", "html"):
        run(*options, "--out", tmp_path / f"own.{suffix}")
    assert json.loads((tmp_path / "own.json").read_text()) == content
    with (tmp_path / "own.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == mine.num_rows
    printed = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in run(*options).stdout.splitlines()
        if line.startswith("│")
    ]
    assert [row[1] for row in printed if row[1]] == [row["user"] for row in rows]
    times = [row["at"][:19].replace("T", " ") for row in rows]
    assert [row[0] for row in printed if row[0]] == times  # whole, to the second
    assert "Who opened your record" in (tmp_path / "own.html").read_text()
    monkeypatch.setattr("sys.argv", ["telic", "specialty", *map(str, options), "--out", "own.pdf"])
    with pytest.raises(SystemExit):
        main()
    assert "ends in .csv, .json or .html" in capsys.readouterr().err


def test_without_findings_a_command_discovers_and_every_access_is_written_with_its_reason(
    tmp_path, monkeypatch
):
    log, asked = simulate_family("wards", 0).log, []
    columns = ("access_user", "access_encounter", "access_at", "access_row")
    log = replace(log, **{name: getattr(log, name)[::4] for name in columns})
    monkeypatch.setattr(sys.modules["telic.cli.specialty.explain"], "read", lambda *_: log)

    def discover(log, *, progress, **options):
        progress("runs")
        asked.append(options)
        return Discovery("residuals", [], np.full(len(log.users), -1))

    monkeypatch.setattr("telic.specialty.discovery.discover.discover", discover)
    events = tmp_path / "events.ndjson"
    options = ("--method", "lda", "--seed", 7, "--threads", 2, "--audit-events", events)
    done = run("explain", tmp_path / "log", *options, "--json")
    assert asked == [{"method": "lda", "seed": 7, "threads": 2}]
    assert f"{events}: written" in "".join(done.stderr.splitlines())
    nothing = discover(log, progress=str)
    care = care_of(log, nothing, seed=7)
    alerts, reasons = judge(log, nothing, care=care), find_reasons(log, nothing, seed=7)
    written = [json.loads(line) for line in events.read_text().splitlines()]
    assert written == list(audit_events(log, nothing, alerts, reasons))
    queue = json.loads(done.stdout)["queue"]
    assert [one["row"] for one in queue] == log.access_row[alerts.queue("all")[:20]].tolist()


def test_the_review_queue_says_which_package_it_lacks(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "telic.specialty.alarms.review_queue", None)
    line = ["telic", "specialty", "review", "list", "--store", f"sqlite:///{folder}/r.sqlite"]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = "".join(capsys.readouterr().err.split())
    assert "pipinstall'telic[serve]'" in said


def test_a_report_says_what_it_leaves_out_and_where_it_is(tmp_path, monkeypatch):
    log, nothing = simulate_family("wards", 0).log, Discovery("residuals", [], np.empty(0))
    asked = []

    def full_report(*given, **options):
        asked.append((given, options))
        return Report("Specialties of a hospital"), ["one class is dropped"]

    command = sys.modules["telic.cli.specialty.report"]
    monkeypatch.setattr(command, "read", lambda *_: log)
    monkeypatch.setattr(command, "known", lambda *_: (log, nothing, "before", None))
    monkeypatch.setattr("telic.specialty.report.page.full_report", full_report)
    page = tmp_path / "page.md"
    options = ("--out", page, "--pipeline", "printed", "--seed", 3, "--threads", 2)
    done = run("report", tmp_path / "log", *options, "--show-ids")
    assert "note: one class is dropped\n" in done.stderr
    assert f"{page}: written" in "".join(done.stderr.splitlines())
    assert page.read_text().startswith("# Specialties of a hospital")
    (given, told), *_ = asked
    assert given == (log, nothing)
    assert told == {
        "before": "before", "snooping": None, "pipeline": "printed", "pseudonyms": None,
        "seed": 3, "threads": 2,
    }  # fmt: skip
    run("report", tmp_path / "log", "--out", tmp_path / "other.md")
    assert isinstance(asked[1][1]["pseudonyms"], Pseudonyms)
