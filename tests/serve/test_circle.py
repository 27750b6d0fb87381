"""The whole circle: serve, type, export, fit, evaluate, and serve what was learned."""

import time
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient
from typer.testing import CliRunner

from telic.cli import app
from telic.completion import Completer, fit_files
from telic.data import read_compositions
from telic.data.ubi import read_ubi
from telic.serve import Settings, create_app, serving

BASE = "http://127.0.0.1:8000"


@pytest.fixture
def telic():
    def run(*arguments):
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    return run


def type_and_submit(client, user, composition, query, *, consent="1"):
    who = {"user": user, "composition": composition}
    for i in range(1, 4):
        given = who | {"q": query[:i], "t": i * 400} | ({"consent": consent} if consent else {})
        assert client.get("/suggest", params=given).status_code == 200
    answer = client.post("/submit", json=who | {"query": query})
    assert answer.status_code == 200, answer.text


def test_what_is_typed_in_a_box_of_titles_makes_a_box_with_feedback(telic, tmp_path):
    titles = ["teapot", "teacup", "tealight", "teak table", "tennis ball", "tent"]
    catalogue = tmp_path / "titles.csv"
    rows = [f"{title},{100 - i}" for i, title in enumerate(titles)]
    catalogue.write_text("\n".join(["title,weight", *rows]))
    settings = replace(Settings.beside(tmp_path / "box"), record=str(tmp_path / "recorded"))
    rng = np.random.default_rng(0)
    with TestClient(create_app(fit_files(catalogue), settings), base_url=BASE) as client:
        assert client.get("/about").json()["records"] == "who consents"
        for u in range(6):
            for c in range(12):
                wanted = titles[rng.choice(6, p=[0.1, 0.1, 0.1, 0.1, 0.1, 0.5])]
                type_and_submit(client, f"user{u}", f"c{c}", wanted)
        type_and_submit(client, "silent", "c", "tent", consent=None)
        client.get("/suggest", params={"q": "te", "user": "u", "composition": "open", "consent": 1})
    log = tmp_path / "log.parquet"
    said = telic("completion", "export-log", tmp_path / "recorded", log)
    assert "compositions: 72" in said
    assert "users: 6" in said
    found = read_compositions(log)
    assert "silent" not in found.users
    assert (found.at[1] - found.at[0]) / 1e6 == pytest.approx(0.4)
    assert found.selected.max() > 0  # three characters, then the rest from the list
    again = tmp_path / "again"
    telic("completion", "fit", log, catalogue, again, "--min-compositions", 4)
    assert "MRR" in telic("completion", "evaluate", log, "--min-compositions", 4)
    learned = Completer.load(again)
    assert learned.model == "adaqac-online"
    settings = Settings.beside(again)
    with TestClient(create_app(learned, settings), base_url=BASE) as client:
        about = client.get("/about").json()
        assert (about["records"], about["trained_on"]) == ("nobody", "a log of real searches")
        first = client.get("/suggest", params={"q": "te"}).json()[1][0]
    assert first == "tent"  # the last of the list of titles


@pytest.fixture
def address(completer, tmp_path):
    settings = Settings.beside(tmp_path / "model", port=0, record=str(tmp_path / "recorded"))
    with serving(completer, settings) as address:
        yield address


@pytest.mark.browser
def test_only_what_is_typed_with_consent_is_recorded(visit, tmp_path):
    page = visit()
    page.locator("#q").wait_for()
    for consents in (False, True):
        page.locator("#consents").set_checked(consents)
        page.locator("#q").fill("")
        for character in "sa":
            page.locator("#q").press(character)
            page.wait_for_timeout(300)
            expect(page.locator("#list")).to_have_attribute("aria-busy", "false", timeout=15_000)
        page.locator("#list [role=option]").nth(1).click()
        expect(page.locator("#outcome")).to_contain_text("You searched for", timeout=15_000)
    page.reload()
    expect(page.locator("#consents")).to_be_checked(timeout=15_000)
    deadline = time.monotonic() + 15  # the records are written beside the answers
    while not list((tmp_path / "recorded").glob("events-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    table, left_out = read_ubi(tmp_path / "recorded")
    assert left_out == {}
    (row,) = table.to_pylist()
    assert (row["query"], row["selected"]) == (row["keystrokes"][-1]["suggestions"][1], 2)
    assert [stroke["prefix"] for stroke in row["keystrokes"]][-2:] == ["s", "sa"]
    first, second = (stroke["at"] for stroke in row["keystrokes"][-2:])
    assert 0.3 <= (second - first).total_seconds() < 15
