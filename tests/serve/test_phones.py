import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

from telic.completion import PhoneRanker, PrefixIndex
from telic.completion.learning.appaware import AppTable
from telic.errors import InputError
from telic.serve import Settings, create_app, serving


@pytest.fixture(scope="module")
def ranker(make_completer):
    index = make_completer().index
    soup, sage = index.find("soup"), index.find("sage")
    weights = AppTable.of(np.array([sage]), np.array([0]), np.array([3.0]), len(index))
    shares = AppTable.of(np.array([soup]), np.array([1]), np.array([0.5]), len(index))
    return PhoneRanker(["garden", "recipes"], weights, shares, np.r_[8.0, 4.0, np.zeros(46)])


@pytest.fixture
def phone_client(make_completer, ranker, tmp_path):
    completer = make_completer(model="appaware", phones=ranker)
    settings = Settings.beside(tmp_path / "model")
    with TestClient(create_app(completer, settings), base_url="http://127.0.0.1:8000") as client:
        yield client


def suggestions(client, **sent):
    answer = client.post("/suggest", json={"q": "s", "explain": "1"} | sent)
    assert answer.status_code == 200, answer.text
    return answer.json()[4]["suggestions"]


def test_installed_and_opened_apps_change_the_order_and_say_why(phone_client):
    plain = suggestions(phone_client)
    assert plain == phone_client.get("/suggest?q=s&explain=1").json()[4]["suggestions"]
    gardener = suggestions(phone_client, installed={"garden": 9.0, "unknown": 3.0})
    assert gardener[0]["text"] == "sage"
    assert gardener[0]["app_reasons"] == {"installed: garden": pytest.approx(3 * np.log(10))}
    cook = suggestions(phone_client, opened=[["recipes", 4.0], ["unknown", 2.0]])
    assert cook[0]["text"] == "soup"
    # the second most recent: 0.5 * 4
    assert cook[0]["app_reasons"] == {"opened: recipes": pytest.approx(2.0)}


def test_a_composition_keeps_its_first_signals(phone_client):
    one = {"user": "u", "composition": "c"}
    first = suggestions(phone_client, installed={"garden": 9.0}, **one)
    later = suggestions(phone_client, q="sa", **one)
    assert first[0]["text"] == later[0]["text"] == "sage"


@pytest.mark.parametrize(
    "apps",
    [
        {"installed": ["garden"]},
        {"installed": {"garden": -1}},
        {"installed": {"garden": "many"}},
        {"installed": {"garden": 1e300}},
        {"installed": {"garden": 10**400}},
        {"opened": [["recipes"]]},
        {"opened": [["recipes", -3]]},
        {"opened": [["recipes", None]]},
        {"opened": "recipes"},
    ],
)
def test_bad_apps_are_refused(phone_client, apps):
    answer = phone_client.post("/suggest", json={"q": "s"} | apps)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "bad_apps"


def test_null_is_absent_and_text_must_be_text(phone_client):
    nobody = {"user": None, "composition": None}
    cold = suggestions(phone_client, **nobody)
    assert suggestions(phone_client, installed={"garden": 9.0}, **nobody)[0]["text"] == "sage"
    assert suggestions(phone_client, **nobody) == cold  # no session was shared
    for sent in ({"q": ["s"]}, {"q": "s", "user": 7, "composition": "c"}):
        answer = phone_client.post("/suggest", json=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_text")
    half = phone_client.post("/suggest", content=b'{"q": "\\ud83d", "explain": true}',
                             headers={"content-type": "application/json"})  # fmt: skip
    assert half.status_code == 200
    assert half.json()[0] == "\ud83d"


def test_other_sites_may_not_post_and_a_model_without_apps_ignores_them(phone_client, client):
    foreign = {"origin": "https://elsewhere.example"}
    assert phone_client.post("/suggest", json={"q": "s"}, headers=foreign).status_code == 403
    plain = client.get("/suggest?q=s&explain=1").json()[4]["suggestions"]
    assert suggestions(client, installed={"garden": 9.0}) == plain


def test_the_page_of_two_phones_is_there(phone_client):
    assert "two phones" in phone_client.get("/phones").text
    assert phone_client.get("/about").json()["apps"] == ["garden", "recipes"]


def test_a_phone_counts_an_app_once_and_minds_the_window(ranker):
    often = ranker.phone({}, [("recipes", m / 2) for m in range(50)])
    assert often.order.tolist() == [-1, 0]
    assert ranker.phone({}, [("recipes", 30.0)]).order.tolist() == [-1, -1]
    with pytest.raises(InputError, match="over 2000 apps"):
        ranker.phone({f"a{i}": 1.0 for i in range(2001)})


def test_a_model_with_apps_is_saved_and_loaded(make_completer, ranker, tmp_path):
    completer = make_completer(model="appaware", phones=ranker)
    completer.save(tmp_path / "model")
    again = type(completer).load(tmp_path / "model")
    phone = again.phones.phone({"garden": 9.0})
    one, two = (c.compose(c.user(), phone).suggest("s", at=0.0) for c in (completer, again))
    assert one == two
    assert isinstance(again.index, PrefixIndex)


@pytest.fixture
def address(make_completer, ranker, tmp_path):
    completer = make_completer(model="appaware", phones=ranker)
    with serving(completer, Settings.beside(tmp_path / "model", port=0)) as address:
        yield address


@pytest.mark.browser
def test_two_phones_on_the_page_differ_by_their_apps(visit):
    page = visit("/phones", viewport={"width": 360, "height": 800})
    page.locator("#q").fill("s")
    lists = [page.locator(f"#{side} ol li") for side in ("left", "right")]
    for shown in lists:
        expect(shown.first).to_contain_text("1. soup")
    garden = page.locator("#left").get_by_role("group", name="Installed").get_by_text("garden")
    garden.click()
    expect(garden).to_have_attribute("aria-pressed", "true")
    expect(lists[0].first).to_contain_text("1. sage")
    expect(lists[0].first).to_contain_text("installed: garden")
    expect(lists[1].first).to_contain_text("1. soup")
    garden.click()
    expect(lists[0].first).to_contain_text("1. soup")
    held = []

    def hold(route):
        if "garden" in route.request.post_data and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/suggest", hold)
    garden.click()
    with page.expect_response("**/suggest") as in_time:
        garden.click()
    in_time.value.finished()
    with page.expect_response("**/suggest") as late:
        held[0].continue_()
    assert "garden" in late.value.request.post_data
    late.value.finished()
    page.wait_for_timeout(100)
    expect(lists[0].first).to_contain_text("1. soup")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
