"""`telic demo` on people who type little."""

import json
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from telic import cli, serve, simulate
from telic.completion import Completer


def test_a_demo_writes_what_it_measured_says_it_and_opens_the_box(monkeypatch, capfd, tmp_path):
    few = {"users": 4, "compositions": 12}
    phrases = [f"{a}{b} street" for a in "abc" for b in "aeiou"]
    catalogue = simulate.Catalogue(phrases, np.arange(1.0, 1 + len(phrases)))
    monkeypatch.setattr(simulate, "geonames_catalogue", lambda: catalogue)
    for name in ("simulate_typists", "dwell_control"):
        made = getattr(simulate, name)
        monkeypatch.setattr(
            simulate, name, lambda *given, made=made, **options: made(*given, **options | few)
        )
    monkeypatch.setattr(sys.modules["telic.cli.demo"], "SEEDS", 2)
    served = []
    monkeypatch.setattr(serve, "run", lambda *given, **options: served.append(given))
    out = tmp_path / "new" / "demo"

    def demo(*words):
        monkeypatch.setattr(sys, "argv", ["telic", "demo", "--out", str(out), *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capfd.readouterr()

    code, printed, err = demo("--json", "--port", "8123")
    assert code == 0, err
    ((box, settings),) = served
    assert settings.port == 8123
    assert settings.database == f"sqlite:///{out / 'model.sqlite'}"
    assert Completer.load(out / "model").model == box.model == "adaqac-online"
    assert len(pq.read_table(out / "log.parquet")) == 4 * 12
    facts = json.loads(printed)
    assert 0 < facts["seconds"] < 600
    assert [row["typists"] for row in facts["controls"]] == ["inattentive", "readers"]
    page = (out / "report.html").read_text(encoding="utf-8")
    for said in (
        "SIMULATED",
        ">Controls: do dwell times carry anything?<",
        "Each simulated log is compared with its dwell twin",
        ">inattentive<",
    ):
        assert said in page
    folder = f"{facts['seconds']:.0f} s; log, model and report are in {out}/ (open {out}/report"
    assert folder.replace(" ", "") in "".join(err.split())
    code, _, err = demo("--no-overwrite")
    assert code == 2
    assert "log.parquet: is a file that exists already" in err
    (out / "report.html").write_text("a thesis")
    code, _, err = demo()
    assert code == 2
    assert "report.html: telic did not write this file" in err
    assert len(served) == 1


def test_a_demo_of_phones_says_where_two_of_them_are(monkeypatch, capfd, tmp_path):
    phrases = [f"{a}{b} street" for a in "abc" for b in "aeiou"]
    catalogue = simulate.Catalogue(phrases, np.arange(1.0, 1 + len(phrases)))
    affinity = simulate.made_up_affinity(catalogue, apps=4)
    made, few = simulate.simulate_phones, {"users": 4, "compositions": 12}
    monkeypatch.setattr(simulate, "example_phones", lambda: (catalogue, affinity))
    asked, served = [], []

    def phones(of, **options):
        asked.append((of, options))
        return made(of, **options | few)

    monkeypatch.setattr(simulate, "simulate_phones", phones)
    monkeypatch.setattr(serve, "run", lambda *given, **options: served.append(given))
    words = ["telic", "demo", "--phone", "--out", str(tmp_path), "--json", "--seed", "5"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        cli.main()
    printed, err = capfd.readouterr()
    assert not end.value.code, err
    assert asked == [
        (catalogue, {"affinity": affinity, "users": 100, "compositions": 120, "seed": 5})
    ]
    ((box, _),) = served
    assert Completer.load(tmp_path / "phone-model").model == box.model == "appaware"
    assert len(pq.read_table(tmp_path / "phones.parquet")) == 4 * 12
    assert {row["relevance"] for row in json.loads(printed)["rows"]} == {"mpc"}
    page = (tmp_path / "phones.html").read_text(encoding="utf-8")
    assert "SIMULATED people and phones" in page
    assert "Two phones side by side: add /phones to the address." in " ".join(err.split())


def test_a_file_is_no_folder_to_write_to(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = CliRunner().invoke(
        cli.app, ["demo", "--no-serve", "--out", str(tmp_path / "notes.txt")]
    )
    assert "notes.txt: is a file, expected a folder" in str(result.exception)
    assert (tmp_path / "notes.txt").read_text() == "mine"
