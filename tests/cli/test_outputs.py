"""No command writes over what it read, or over what telic did not write."""

import sys

import pytest
import typer.main

from telic import cli
from telic.data import save_model
from telic.data.own_outputs import remember

# Each command with an output: OUT is where it writes, IN what it reads; both are checked before
# anything is read, so IN need not be what the command expects.
COMMANDS = {
    "completion simulate": ["OUT", "--catalogue", "IN"],
    "completion simulate --queries": ["new.parquet", "--queries", "OUT", "--catalogue", "IN"],
    "completion fit": ["IN", "OUT"],
    "completion fit --queries": ["other", "OUT", "--queries", "IN"],
    "completion evaluate": ["IN", "--report", "OUT"],
    "completion export-log": ["IN", "OUT"],
    "completion signals": ["IN", "--report", "OUT"],
    "completion signals --model": ["IN", "--model", "OUT"],
    "auc fit": ["IN", "--model", "OUT", "--label", "y"],
    "auc fit --report": ["IN", "--model", "new", "--report", "OUT"],
    "auc rank": ["IN", "--model", "other", "--output", "OUT"],
    "auc rank --model": ["other", "--model", "IN", "--output", "OUT"],
    "auc evaluate": ["IN", "--model", "other", "--report", "OUT"],
    "auc compare": ["IN", "--report", "OUT"],
    "auc diagnose": ["IN", "--report", "OUT"],
    "specialty simulate": ["OUT"],
    "specialty import": ["IN", "OUT", "--kind", "omop"],
    "specialty discover": ["IN", "--out", "OUT"],
    "specialty explain": ["IN", "--audit-events", "OUT"],
    "specialty explain --found": ["other", "--found", "IN", "--audit-events", "OUT"],
    "specialty patient": ["IN", "p1", "--out", "OUT"],
    "specialty report": ["IN", "--out", "OUT"],
    "specialty report --found": ["other", "--found", "IN", "--out", "OUT"],
    "privacy simulate": ["OUT"],
    "privacy convert": ["IN", "OUT"],
    "privacy anonymise": ["IN", "OUT"],
    "privacy anonymise --key": ["IN", "new", "--key", "OUT"],
    "privacy anonymise --steps": ["other", "OUT", "--steps", "IN"],
    "privacy attack": ["IN", "other", "--candidates", "OUT"],
    "privacy attack --target": ["other", "IN", "--candidates", "OUT"],
    "privacy attack --truth": ["other", "other", "--truth", "IN", "--candidates", "OUT"],
    "privacy advise": ["IN", "--max-risk", "0.5", "--out", "OUT"],
    "privacy report": ["IN", "OUT"],
    "privacy report --auxiliary": ["other", "OUT", "--auxiliary", "IN"],
    "study chapter-2": ["--out", "OUT", "--catalogue", "IN"],
    "study chapter-3": ["--out", "OUT", "--pairs", "IN"],
    "study chapter-3 --catalogue": ["--out", "OUT", "--catalogue", "IN"],
    "study do-no-harm": ["--out", "OUT"],
    "study top-of-list": ["--out", "OUT"],
    "study signals": ["--out", "OUT"],
    "study saturation": ["--out", "OUT"],
    "study shoppers": ["--out", "OUT"],
    "study drift": ["--out", "OUT"],
    "study session-pairs": ["--out", "OUT"],
    "study amazonqac": ["--out", "OUT", "--data", "IN"],
    **{f"study chapter-{n}": ["--out", "OUT"] for n in (4, 5, 6, 7)},
    "study all": ["--out", "OUT"],
    "study paper-001": ["--out", "OUT", "--results", "IN"],
    "study paper-002": ["--out", "OUT"],
}


@pytest.fixture
def telic(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(name, **places):
        words = [part for part in name.split() if not part.startswith("--")]
        words += [places.get(word, word) for word in COMMANDS[name]]
        monkeypatch.setattr(sys, "argv", ["telic", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        error = capsys.readouterr().err.strip()
        assert end.value.code == 2, error
        assert len(error.splitlines()) == 1
        return error

    return run


def kept(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_telic_did_not_write_stays(telic, tmp_path, monkeypatch, name, overwrite):
    once = name.startswith(("specialty simulate", "specialty import"))
    if once and overwrite:
        pytest.skip("this command writes to a new folder only")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years")
    (tmp_path / "notes").write_text("years")
    (tmp_path / "in").write_text("x")
    monkeypatch.setitem(COMMANDS, name, [*COMMANDS[name], *overwrite])
    # It is said before the work, not after it.
    monkeypatch.setattr("telic.simulate.hospital.simulate_hospital", None)
    monkeypatch.setattr("telic.specialty.log.other_systems.import_log", None)
    for out in ("thesis", "notes"):
        before = kept(tmp_path)
        message = "telic did not write" if overwrite else "exists already"
        said = telic(name, OUT=out, IN="in")
        assert message in said
        assert ("--overwrite" in said) != bool(once or overwrite)  # no advice that nobody can take
        assert kept(tmp_path) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_what_another_command_wrote_stays(telic, tmp_path, monkeypatch, name):
    if name.startswith(("specialty simulate", "specialty import")):
        pytest.skip("this command writes to a new folder only")
    (tmp_path / "in").write_text("x")
    save_model(tmp_path / "box.csv", kind="toy", meta={}, arrays={})
    monkeypatch.setitem(COMMANDS, name, [*COMMANDS[name], "--overwrite"])
    before = kept(tmp_path)
    refused = telic(name, OUT="box.csv", IN="in")
    assert "box.csv: holds output of another kind (toy, expected " in refused
    assert kept(tmp_path) == before


@pytest.mark.parametrize("name", [name for name, words in COMMANDS.items() if "IN" in words])
def test_what_is_read_stays(telic, tmp_path, monkeypatch, name):
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "schema.json").write_text("{}")
    (tmp_path / "table.csv").write_text("a")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "hard").hardlink_to(folder / "schema.json")
    before = kept(tmp_path)
    for read, out in [
        ("net", "net"),
        ("net", "./net/../net"),
        ("link", "net"),
        ("net", "link"),
        ("net", "net/inside"),
        ("net", "hard"),
        ("table.csv", "table.csv"),
        ("table.csv", tmp_path / "table.csv"),
    ]:
        assert "is read by this command" in telic(name, IN=read, OUT=out)
        assert kept(tmp_path) == before


def test_findings_are_kept_over_nothing_of_somebody_elses(telic, tmp_path, monkeypatch):
    for folder in ("found", "thesis"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "content").write_text("years")
    before = kept(tmp_path)
    for out, overwrite, why in (
        ("thesis", [], "exists already"),
        ("thesis", ["--overwrite"], "telic did not write"),
        ("found", ["--overwrite"], "is read by this command"),
        ("other/kept", ["--overwrite"], "does not exist"),
    ):
        words = ["log", "--found", "found", "--keep", out, *overwrite]
        monkeypatch.setitem(COMMANDS, "specialty explain --keep", words)
        assert why in telic("specialty explain --keep")
        assert kept(tmp_path) == before


def test_what_was_judged_is_kept_where_it_was_and_not_in_the_network(telic, tmp_path, monkeypatch):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "schema.json").write_text("{}")
    (tmp_path / "kept").write_text("{}")
    remember(tmp_path / "kept")
    before = kept(tmp_path)
    for out, resume, why in (
        ("kept", "kept", "is read by this command"),
        ("new", "new", "where the steps go"),
        ("new", "./new", "where the steps go"),
        ("new", "net/judged.json", "is read by this command"),
        ("new", "nowhere/judged.json", "does not exist"),
    ):
        words = ["net", "--max-risk", "0.5", "--out", out, "--resume", resume, "--overwrite"]
        monkeypatch.setitem(COMMANDS, "privacy advise --resume", words)
        assert why in telic("privacy advise --resume")
        assert kept(tmp_path) == before


def test_every_command_that_writes_is_looked_at():
    tree = typer.main.get_command(cli.app)
    named = {" ".join(name.split()[:2]) for name in COMMANDS}
    for group, commands in tree.commands.items():
        for name, command in getattr(commands, "commands", {}).items():
            if any(part.name == "overwrite" for part in command.params):
                assert f"{group} {name}" in named


def test_a_report_is_written_again_if_asked_for(tmp_path, monkeypatch, capsys):
    net = tmp_path / "net"
    net.mkdir()
    (net / "schema.json").write_text('{"nodes": {"user": {"attributes": {}}}, "links": []}')
    (net / "nodes_user.csv").write_text("id\n1\n2\n")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["telic", "privacy", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err

    page, release, key = tmp_path / "page.html", tmp_path / "release", tmp_path / "key.parquet"
    for words in (["report", net, page], ["anonymise", net, release, "--key", key]):
        assert run(*words)[0] == 0
        assert run(*words)[0] == 2
        assert run(*words, "--overwrite")[0] == 0
    (release / "README").write_text("mine")
    code, error = run("anonymise", net, release, "--key", key, "--overwrite")
    assert code == 2
    assert "telic did not write this folder" in error
    code, error = run("anonymise", net, tmp_path / "a", "--key", tmp_path / "a" / "key.parquet")
    assert (code, (tmp_path / "a").exists()) == (2, False)


def test_finished_runs_are_added_to_no_other_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "ml").mkdir()
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys,
        "argv",
        ["telic", "study", "paper-001", "--data", str(tmp_path), "--results", str(notes)],
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "is not a file of finished runs" in capsys.readouterr().err
    assert notes.read_text() == "mine\n"
