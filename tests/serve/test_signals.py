"""A box with signals behind HTTP: fitted by the command line, served, kept, forgotten."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient
from typer.testing import CliRunner

from telic.cli import app
from telic.completion import Completer
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.signals.groups import FEATURES, GROUP_OF, WIDTH
from telic.serve import Settings, create_app, serving
from telic.serve.state.store import Store
from telic.simulate import Catalogue, made_up_affinity, simulate_phones, simulate_typists
from telic.simulate.searchers import searchers

ON = ("popularity", "personal", "session", "match")
BASE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    made = searchers(users=60, sessions=12, nouns=30)
    table = pa.table(
        {
            "user": np.array(made.users, object)[made.user],
            "query": np.array(made.queries, object)[made.query],
            "at": pa.array(made.at, pa.timestamp("us", tz="UTC")).cast(pa.string()),
        }
    )
    path = tmp_path_factory.mktemp("log") / "log.csv"
    pa.csv.write_csv(table, path)
    return path


def telic(*arguments):
    result = CliRunner().invoke(app, ["completion", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def fitted(log, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "model"
    assert "signals" in telic("fit", log, out, "--signals", ",".join(ON))
    return out


@pytest.fixture
def model(fitted, tmp_path):
    """A folder with four groups on, whatever helped."""
    box = Completer.load(fitted)
    on = [group in ON for group in GROUP_OF]
    weights = replace(
        box.signals.weights,
        weights=np.where(on, np.linspace(0.1, 0.5, len(on)), 0.0),
        penalties=dict.fromkeys(ON, 10.0),
    )
    signals = replace(box.signals, weights=weights)
    replace(box, signals=signals, found=box.found).save(tmp_path / "model")
    return tmp_path / "model"


def served(model):
    """Without words from elsewhere in the phrases, which no list would be plain with."""
    box = replace(Completer.load(model), words=None)
    return TestClient(create_app(box, Settings.beside(model)), base_url=BASE)


def suggested(client, query, user="", composition="", **more):
    given = {"q": query, "explain": "1", "user": user, "composition": composition} | more
    answer = client.get("/suggest", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()[4]["suggestions"]


def submitted(client, query, user, composition):
    body = {"query": query, "user": user, "composition": composition}
    assert client.post("/submit", json=body).status_code == 200


def test_inspect_says_gates_penalties_and_weights(fitted):
    said = telic("inspect", fitted)
    for part in (
        "session:",
        "gate:",
        "penalty:",
        "at most above its optimum",
        "time:",
        "asked for",
    ):
        assert part in said
    assert "phrases, " in telic("inspect", fitted, "--k")


def test_answers_say_what_each_group_adds(model):
    with served(model) as client:
        plain = client.get("/suggest", params={"q": "b"}).json()[1]
        assert plain == [each["text"] for each in suggested(client, "b")]
        assert plain != Completer.load(model).index.phrases(Completer.load(model).index.top("b"))
        about = client.get("/about").json()
        assert about["model"] == "signals"
        assert about["feedback"] == "signals of popularity, personal, session, match"
        for who in (("", ""), ("ann", "1")):
            for each in suggested(client, "b", *who):
                assert sum(each["signal_reasons"].values()) == pytest.approx(each["signals"])
                assert set(each["signal_reasons"]) == set(ON)
                assert ":" in each["signals_said"]


def test_a_submission_is_the_users_own_at_once_after_a_restart_and_until_forgotten(model):
    with served(model) as client:
        assert suggested(client, "my own", "ann", "0") == []
        submitted(client, "my own words", "ann", "0")
        submitted(client, "my own words", "ann", "0")  # sent twice, counts once
        (shown,) = suggested(client, "my own", "ann", "1")
        assert shown["text"] == "my own words"
        assert shown["signal_reasons"]["personal"] > 0
        assert shown["signal_reasons"]["session"] > 0
        assert suggested(client, "my own", "ben", "1") == []
    with served(model) as client:
        (again,) = suggested(client, "my own", "ann", "2")
        assert again["signal_reasons"] == pytest.approx(shown["signal_reasons"], rel=1e-3)
    assert "erased" in telic("forget", model, "ann").lower()
    with served(model) as client:
        assert suggested(client, "my own", "ann", "3") == []


def test_what_the_store_keeps_of_a_user_stays_bounded(model):
    settings = replace(Settings.beside(model), max_history=3)
    with TestClient(create_app(Completer.load(model), settings), base_url=BASE) as client:
        for i in range(6):
            submitted(client, f"words {i}", "ann", str(i))
        texts = {each["text"] for each in suggested(client, "words", "ann", "last")}
    assert texts == {"words 3", "words 4", "words 5"}
    store = Store(settings.database, Completer.load(model))
    state = store.read("ann").state
    store.close()
    assert list(state.last) == list(state.history) == ["words 3", "words 4", "words 5"]


def test_apps_that_a_phone_names_move_suggestions_and_are_checked(tmp_path):
    """The command line's box on simulated phones, with the group on whatever helped."""
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("ab"[i] for i in row) for row in rng.integers(0, 2, (40, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    affinity = made_up_affinity(catalogue, apps=20)
    phones = simulate_phones(
        catalogue, affinity=affinity, strength=0.9, users=12, compositions=20, seed=1
    )
    pyarrow.parquet.write_table(phones, tmp_path / "phones.parquet")
    telic("fit", tmp_path / "phones.parquet", tmp_path / "box", "--signals", "apps")
    box = Completer.load(tmp_path / "box")
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("goes with the apps")] = 2.0
    learned = replace(box.signals.weights, weights=weights, penalties={"apps": 10.0})
    replace(box, signals=replace(box.signals, weights=learned)).save(tmp_path / "box")
    with served(tmp_path / "box") as client:
        known = client.get("/about").json()["apps"]
        asked = {"q": "a", "explain": True, "user": "ann"}
        lists = {}
        for number, opened in enumerate([[], *([[app, 2.0]] for app in known), [["new", 1.0]]]):
            body = asked | {"opened": opened, "composition": str(number)}
            answer = client.post("/suggest", json=body)
            assert answer.status_code == 200, answer.text
            (shown,) = answer.json()[4:]
            for each in shown["suggestions"]:
                assert each["signal_reasons"] == {"apps": pytest.approx(each["signals"])}
            lists[number] = [each["text"] for each in shown["suggestions"]]
        assert lists[0] == lists[len(known) + 1]  # without an app, and with one that nobody knows
        assert sum(lists[i + 1] != lists[0] for i in range(len(known))) > len(known) / 2
        wrong = client.post("/suggest", json=asked | {"opened": [[known[0], -1]]})
        assert wrong.status_code == 422
        assert "minutes since must be a number >= 0" in wrong.json()["error"]["message"]


def test_lists_that_were_passed_over_move_suggestions_where_the_log_had_lists(tmp_path):
    """The command line's box, with a weight set by hand that what was shown for long sinks by."""
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("ab"[i] for i in row) for row in rng.integers(0, 2, (40, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    typed = simulate_typists(catalogue, setting="readers", users=12, compositions=20, seed=1)
    pyarrow.parquet.write_table(typed, tmp_path / "typed.parquet")
    asked = ("--signals", "feedback", "--session-gap", 12)
    telic("fit", tmp_path / "typed.parquet", tmp_path / "box", *asked)
    box = Completer.load(tmp_path / "box")
    assert box.signals.session_minutes == 12
    assert set(box.signals.weights.gates) == {"feedback"}
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("DwellT")] = -1.0
    fitted = replace(box.signals.weights, weights=weights, penalties={"feedback": 1.0}, bound=0.5)
    design = FeedbackDesign(np.ones(16), False, np.full(16, 2.0), 0.5)
    box = replace(
        box,
        signals=replace(box.signals, weights=fitted),
        design=design,
        everyone=weights[WIDTH:],
        users={},
        words=None,
    )
    box.save(tmp_path / "by hand")
    with served(tmp_path / "by hand") as client:
        first = suggested(client, "a", "ann", "1", t=0)
        later = suggested(client, "ab", "ann", "1", t=1500)
    shown = {each["text"] for each in first}
    assert shown & {each["text"] for each in later}
    for each in later:
        assert each["feedback"] == pytest.approx(-0.5 if each["text"] in shown else 0.0)
        if each["text"] in shown:  # by more than the bound, if it were not for the bound
            assert "feedback: DwellT -0.5" in each["signals_said"]
            assert each["reasons"] == {"DwellT": pytest.approx(-0.5)}
    assert telic("inspect", tmp_path / "by hand").count("feedback") > 1


def test_the_page_says_what_signals_do(model, open_page):
    with serving(Completer.load(model), Settings.beside(model)) as address:
        page = open_page()
        page.goto(address)
        page.wait_for_selector("#about:not(:empty)")
        page.locator("#q").press_sequentially("b")
        expect(page.locator("#reasons li").first).to_contain_text("opularity")
        expect(page.locator("#about")).to_contain_text("Signals of popularity")


def test_what_signals_order_is_not_kept_for_the_next_who_asks(model):
    """They look at the time."""
    with served(model) as service:
        first, again = (service.get("/suggest?q=b").json() for _ in range(2))
        assert first[1]
        assert again[1] == first[1]
        assert service.app.desk._kept.bodies == {}


@pytest.mark.browser
def test_the_page_says_whether_what_is_passed_over_sinks(model, tmp_path, open_page):
    box = Completer.load(model)
    penalties = box.signals.weights.penalties | {"feedback": 1.0}
    learned = replace(box.signals.weights, penalties=penalties)
    fed_back = replace(box, signals=replace(box.signals, weights=learned))
    for number, (each, told) in enumerate([(box, "moves nothing"), (fed_back, "sinks in the")]):
        with serving(each, Settings.beside(tmp_path / f"{number}", port=0)) as address:
            page = open_page()
            page.goto(address)
            expect(page.locator("#hint")).to_contain_text(f"What you pass over {told}")
