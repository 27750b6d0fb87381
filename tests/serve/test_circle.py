"""The whole circle: serve, type, export, fit, evaluate, and serve what was learned."""

import json
import time
from dataclasses import replace
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient
from typer.testing import CliRunner

from telic.cli import app
from telic.completion import Completer, fit_files
from telic.data import read_compositions
from telic.data.ubi import of_tenant, read_ubi
from telic.errors import InputError
from telic.serve import Settings, create_app, serving
from telic.serve.callers.tenant_keys import add_key

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
    records = tmp_path / "recorded"
    telic("completion", "fit", records, catalogue, again, "--min-compositions", 4)
    assert "MRR" in telic("completion", "evaluate", records, "--min-compositions", 4)
    learned = Completer.load(again)
    telic("completion", "fit", log, catalogue, tmp_path / "of-log", "--min-compositions", 4)
    of_log = Completer.load(tmp_path / "of-log").suggest("te", user="user0")
    assert [(one.text, one.relevance) for one in learned.suggest("te", user="user0")] == [
        (one.text, one.relevance) for one in of_log
    ]
    assert learned.model == "adaqac-online"
    settings = Settings.beside(again)
    with TestClient(create_app(learned, settings), base_url=BASE) as client:
        about = client.get("/about").json()
        assert (about["records"], about["trained_on"]) == ("nobody", "a log of real searches")
        first = client.get("/suggest", params={"q": "te"}).json()[1][0]
    assert first == "tent"  # the last of the list of titles


def test_tenants_are_told_apart_and_networks_counted_in_what_is_recorded(
    completer, telic, tmp_path
):
    recorded, log = tmp_path / "recorded", tmp_path / "log.parquet"
    file = tmp_path / "keys.toml"
    keys = {name: add_key(file, name) for name in ("shop", "club")}
    settings = replace(
        Settings.beside(tmp_path / "box"),
        port=0,
        record=str(recorded),
        record_networks=True,
        proxies=("127.0.0.1",),
        keys=str(file),
    )
    typed = (("shop", "sorbet", 3), ("shop", "spam", 1), ("club", "salt", 3))
    with serving(completer, settings) as address:

        def ask(path, key, network, body=None):
            headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": f"192.0.2.{network}"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            request = Request(address + path, body and json.dumps(body).encode(), headers)
            with urlopen(request, timeout=30) as answer:
                assert answer.status == 200

        for tenant, query, networks in typed:
            for n in range(3):
                who = {"user": f"u{n}", "composition": query}
                for length in (1, 2, 3):
                    given = urlencode(who | {"q": query[:length], "consent": 1})
                    ask(f"/suggest?{given}", keys[tenant], n % networks)
                ask("/submit", keys[tenant], n % networks, who | {"query": query})
    telic("completion", "export-log", recorded, log)
    whole = fit_files(log)

    def suggested(box, **where):
        found = box.compose(box.user(), where=where).suggest("s", at=0.0)
        return {one.text for one in found}

    assert suggested(whole, tenant="shop") == {"sorbet"}  # spam came from one network
    assert suggested(whole, tenant="club") == {"salt"}
    telic("completion", "export-log", recorded, log, "--tenant", "shop", "--overwrite")
    assert set(read_compositions(log).users) == {f"shop:u{n}" for n in range(3)}
    assert suggested(fit_files(log)) == {"sorbet"}
    with pytest.raises(InputError, match="of tenant 'pub', but of club, shop"):
        of_tenant(read_ubi(recorded)[0], "pub", recorded)


@pytest.fixture
def address(completer, tmp_path):
    settings = Settings.beside(tmp_path / "model", port=0, record=str(tmp_path / "recorded"))
    with serving(completer, settings) as address:
        yield address


@pytest.mark.browser
def test_what_is_typed_in_a_browser_with_consent_makes_the_next_box(
    visit, open_page, telic, tmp_path
):
    page = visit()

    def search(wanted, *, pause=0):
        page.locator("#q").fill("")
        for character in "sa":
            page.locator("#q").press(character)
            page.wait_for_timeout(pause)
            expect(page.locator("#list")).to_have_attribute("aria-busy", "false", timeout=15_000)
        page.locator("#list [role=option]", has_text=wanted).click()
        expect(page.locator("#outcome")).to_contain_text(f"“{wanted}”", timeout=15_000)

    search("salmon")
    page.locator("#consents").check()
    search("sausage", pause=300)
    for wanted in ("salsify", "sausage", "sausage", "sausage"):
        search(wanted)
    page.reload()
    expect(page.locator("#consents")).to_be_checked(timeout=15_000)
    recorded, again = tmp_path / "recorded", tmp_path / "again"
    rows = []
    deadline = time.monotonic() + 15  # the records are written beside the answers
    while len(rows) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
        if list(recorded.glob("events-*")):
            table, left_out = read_ubi(recorded)
            rows = table.to_pylist()
    assert left_out == {}
    typed = ["sausage", "salsify", "sausage", "sausage", "sausage"]
    assert [row["query"] for row in rows] == typed  # salmon came before consent
    for row in rows:
        assert [stroke["prefix"] for stroke in row["keystrokes"]][-2:] == ["s", "sa"]
        assert row["query"] == row["keystrokes"][-1]["suggestions"][row["selected"] - 1]
    first, second = (stroke["at"] for stroke in rows[0]["keystrokes"][-2:])
    assert 0.3 <= (second - first).total_seconds() < 15
    telic("completion", "fit", recorded, again, "--min-users", 1, "--min-compositions", 4)
    learned = Completer.load(again)
    with serving(learned, Settings.beside(again, port=0)) as address:
        page = open_page()
        page.goto(address)
        expect(page.locator("#about")).to_contain_text("a log of real searches")
        page.locator("#q").press("s")
        expect(page.locator("#list .text")).to_have_text(["sausage", "salsify"], timeout=15_000)
