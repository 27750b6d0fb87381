"""The addresses of the service: what they answer, what they refuse, and in which shape."""

import json
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock
from xml.etree import ElementTree

import anyio
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from telic.completion import fit_files
from telic.errors import InputError
from telic.serve import create_app
from telic.serve.callers import hosts_and_origins
from telic.serve.state.dashboard_figures import MAX_DAYS
from telic.serve.state.open_compositions import OpenCompositions, warm
from telic.serve.state.store import Store

ADA = {"user": "ada", "composition": "c1"}


def error_of(response, status, code):
    """Check the shape that every error has, and return its message."""
    assert response.status_code == status, response.text
    assert list(response.json()) == ["error"]
    error = response.json()["error"]
    assert list(error) == ["code", "message", "hint"]
    assert error["code"] == code
    assert error["message"]
    assert error["hint"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    return error["message"]


def allowed(response):
    """The sources that a page's policy allows for each kind of thing."""
    directives = response.headers["content-security-policy"].split(";")
    return {name: sources for name, *sources in (line.split() for line in directives)}


def submit(client, query, **changes):
    return client.post("/submit", json=ADA | {"query": query} | changes)


def test_a_list_carries_nothing_that_nobody_asked_for(client):
    typed = {"q": "s", "user": "ada", "composition": "c"}
    for asked in ({"q": "s"}, typed):
        assert len(client.get("/suggest", params=asked).json()) == 4
        assert len(client.get("/suggest", params=asked | {"explain": 1}).json()) == 5


def test_suggest_answers_in_the_opensearch_form(client):
    response = client.get("/suggest", params={"q": "sal"})
    assert response.headers["content-type"] == "application/x-suggestions+json"
    query, texts, descriptions, urls = response.json()
    assert query == "sal"
    assert texts == ["salmon", "salad", "salsify"]
    assert descriptions == ["", "", ""]
    assert urls[0] == "http://127.0.0.1:8000/search?q=salmon"


def test_without_user_or_composition_nothing_is_fed_back(client):
    for _ in range(2):
        response = client.get("/suggest", params={"q": "sa", "user": "ada", "explain": "1"})
        details = response.json()[4]["suggestions"]
        assert [detail["static_position"] for detail in details] == list(range(1, 9))
        assert all(detail["feedback"] == 0 for detail in details)
    assert response.json()[1][0] == "salmon"


def test_a_list_that_was_passed_over_sinks_and_says_why(client):
    first = client.get("/suggest", params=ADA | {"q": "sa", "t": "1000", "explain": "1"}).json()
    assert first[1][0] == "saffron"  # ada searched for it often
    second = client.get("/suggest", params=ADA | {"q": "saf", "t": "3000", "explain": "1"}).json()
    (saffron,) = second[4]["suggestions"]
    assert saffron["observed"] == {"DwellT-M": 2.0, "DwellT": 2.0, "Pos@1": 1.0}
    assert saffron["feedback"] == pytest.approx(-2.0 * 2.0 - 0.2)
    assert saffron["reasons"] == {"DwellT": pytest.approx(-4.0), "Pos@1": pytest.approx(-0.2)}
    third = client.get("/suggest", params=ADA | {"q": "sa", "t": "4000", "explain": "1"}).json()
    details = {detail["text"]: detail for detail in third[4]["suggestions"]}
    assert third[1].index("saffron") > 0
    assert details["saffron"]["static_position"] == 1


def test_submit_learns_once(client):
    for t, query in enumerate(["s", "sa", "sal"]):
        client.get("/suggest", params=ADA | {"q": query, "t": str(1000 * t)})
    first = {"learned": True, "updates": 1}
    assert submit(client, "salad").json() == first
    assert submit(client, "salad").json() == first  # the same again answers the same
    assert submit(client, "sage").json() == first  # a composition ends once
    assert submit(client, "new words", composition="c2").json() == {"learned": False, "updates": 1}


def test_the_page_and_its_files_come_from_here(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    addresses = re.findall(r'(?:href|src)="([^"]+)"', page.text)
    assert {"/static/app.js", "/static/style.css", "/opensearch.xml"} <= set(addresses)
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200
        assert response.headers["x-content-type-options"] == "nosniff"
    assert "javascript" in client.get("/static/app.js").headers["content-type"]


@pytest.mark.parametrize("address", ["/", "/phones", "/search?q=s", "/suggest?q=s", "/nowhere"])
def test_a_page_loads_from_here_alone_and_stands_in_nobodys_frame(client, address):
    response = client.get(address)
    sources = allowed(response)
    for name in ("default-src", "base-uri", "frame-ancestors"):
        assert sources.pop(name) == ["'none'"]
    assert "script-src" in sources
    assert set(chain.from_iterable(sources.values())) == {"'self'"}
    assert response.headers["cross-origin-resource-policy"] == "same-origin"
    assert response.headers["referrer-policy"] == "no-referrer"


def test_what_a_user_is_suggested_is_kept_by_no_cache(client):
    for response in (
        client.get("/suggest", params=ADA | {"q": "s"}),
        client.post("/suggest", json=ADA | {"q": "s"}),
    ):
        assert response.headers["cache-control"] == "no-store"


def test_search_fills_the_box_and_quotes_what_it_fills_in(client):
    assert 'value="salmon"' in client.get("/search", params={"q": "salmon"}).text
    text = client.get("/search", params={"q": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_opensearch_description(client):
    response = client.get("/opensearch.xml")
    assert response.headers["content-type"].startswith("application/opensearchdescription+xml")
    space = "{http://a9.com/-/spec/opensearch/1.1/}"
    root = ElementTree.fromstring(response.text)
    assert root.tag == f"{space}OpenSearchDescription"
    templates = {url.get("type"): url.get("template") for url in root.iter(f"{space}Url")}
    address = templates["application/x-suggestions+json"].replace("{searchTerms}", "soup")
    assert client.get(address).json()[1] == ["soup"]


def test_about_and_health(client):
    about = client.get("/about").json()
    assert about["model"] == "adaqac-online"
    assert about["simulated"] is True
    assert about["running_check"] is True
    assert about["trained_on"] == "simulated people, not real ones"
    assert about["feedback"] == "re-ranks everywhere"
    client.get("/suggest", params=ADA | {"q": "s"})
    assert client.get("/healthz").json() == {"status": "ok", "open_compositions": 1}


def test_a_box_that_nothing_reranks_has_no_running_check(make_completer, settings):
    app = create_app(make_completer(model="static"), settings)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert client.get("/about").json()["running_check"] is False


@pytest.mark.parametrize(
    ("method", "address", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/suggest/", 404, "not_found"),
        ("GET", "/static/../app.py", 404, "not_found"),
        ("GET", "/submit", 405, "method_not_allowed"),
        ("POST", "/search", 405, "method_not_allowed"),
        ("GET", "/suggest?q=" + "s" * 257, 422, "too_long"),
        ("GET", "/suggest?q=s&user=" + "u" * 129, 422, "too_long"),
        ("GET", "/search?q=" + "s" * 257, 422, "too_long"),
        ("GET", "/suggest?user=u&composition=c&t=soon", 422, "bad_time"),
        ("GET", "/suggest?user=u&composition=c&t=-1", 422, "bad_time"),
        ("GET", "/suggest?user=u&composition=c&t=inf", 422, "bad_time"),
    ],
)
def test_errors_have_one_shape(client, method, address, status, code):
    error_of(client.request(method, address), status, code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "not_json"),
        (b"[1]", 422, "not_json"),
        (b"\xff", 422, "not_json"),
        (b"[" * 16_000, 422, "not_json"),
        (b" " * 65_537, 413, "too_large"),
        (b"{}", 422, "missing"),
        (json.dumps(ADA | {"query": " "}).encode(), 422, "missing"),
        (json.dumps(ADA | {"query": 7}).encode(), 422, "missing"),
        (json.dumps(ADA | {"query": "s" * 257}).encode(), 422, "too_long"),
        (json.dumps(ADA | {"query": "s\0"}).encode(), 422, "bad_text"),
        (json.dumps(ADA | {"query": "\ud800"}).encode(), 422, "bad_text"),
        (json.dumps(ADA | {"query": "soup", "user": ""}).encode(), 422, "missing"),
    ],
)
def test_submit_refuses_what_it_cannot_use(client, body, status, code):
    response = client.post("/submit", content=body, headers={"content-type": "application/json"})
    error_of(response, status, code)


def test_submit_takes_json_from_its_own_page_alone(client):
    body = json.dumps(ADA | {"query": "soup"})
    error_of(client.post("/submit", content=body), 415, "not_json")
    kind = {"content-type": "Application/JSON; charset=utf-8"}
    assert client.post("/submit", content=body, headers=kind).status_code == 200
    for headers in (
        {"origin": "http://elsewhere.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        response = client.post("/submit", json=json.loads(body), headers=headers)
        error_of(response, 403, "cross_origin")
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert client.post("/submit", json=json.loads(body), headers=own).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "box.example"])
def test_our_own_names_are_answered(completer, settings, host):
    app = create_app(completer, replace(settings, names=("box.example",)))
    with TestClient(app) as client:
        assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("name", "host"),
    [("Box.example", "box.EXAMPLE:8443"), ("[::2]", "[::2]:8000"), ("::2", "[::2]")],
)
def test_a_name_of_the_service_is_one_that_requests_have(completer, settings, name, host):
    app = create_app(completer, replace(settings, names=(name,)))
    with TestClient(app, "http://127.0.0.1:8000") as client:
        assert client.get("/livez", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "name", ["box.example:8443", "https://box.example", "*.example", "bücher.example", "a:80", " "]
)
def test_a_name_that_no_request_has_is_refused(completer, settings, name):
    with pytest.raises(InputError, match="is no host name, expected one such as"):
        create_app(completer, replace(settings, names=(name,)))


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "a@127.0.0.1", ""])
def test_other_names_are_refused(client, host):
    for path in ("/suggest?q=s", "/about", "/", "/static/search.js", "/nowhere"):
        error_of(client.get(path, headers={"host": host}), 400, "unknown_host")
    post = client.post("/submit", json=ADA | {"query": "soup"}, headers={"host": host})
    error_of(post, 400, "unknown_host")


def test_our_own_errors_say_nothing_of_the_request(completer, settings, monkeypatch, caplog):
    def crash(self, query):
        raise RuntimeError("broken")

    def no_database(*arguments):
        raise OperationalError("SELECT 'secret'", {"query": "secret"}, Exception("disk"))

    monkeypatch.setattr(OpenCompositions, "static", crash)
    app = create_app(completer, settings)
    monkeypatch.setattr(Store, "_record", no_database)
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        error_of(client.get("/suggest?q=secret"), 500, "internal")
        (logged,) = (each for each in caplog.records if each.exc_info)
        assert logged.getMessage() == "a keystroke went unanswered"
        message = error_of(submit(client, "secret"), 503, "no_store")
        hint = submit(client, "secret").json()["error"]["hint"]
        assert "It may have been kept all the same: send it again, it counts once." in hint
        assert "disk" in message
        assert "secret" not in message
    assert "secret" not in caplog.text


def test_ten_megabytes_are_refused(completer, settings):
    sent = []

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/suggest", "raw_path": b"/suggest", "root_path": "",
        "query_string": b"q=" + b"s" * 10_000_000, "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    anyio.run(create_app(completer, settings), scope, receive, send)
    assert sent[0]["status"] == 413
    assert json.loads(sent[1]["body"])["error"]["code"] == "too_large"


text = st.text(max_size=40) | st.text(
    st.sampled_from("sa л鮭é\u0301한\u202e\0\n😀👩\u200d👧"), max_size=12
)


@examples(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parameters=st.dictionaries(
        st.sampled_from(["q", "user", "composition", "t", "explain", "x"]), text
    ),
    raw=st.binary(max_size=12),
)
def test_suggest_answers_anything(client, parameters, raw):
    encoded = "".join(f"%{byte:02X}" for byte in raw)
    for response in (
        client.get("/suggest", params=parameters),
        client.get(f"/suggest?user=u&composition=c&q={encoded}"),
        client.get("/suggest?q=%ED%A0%80s"),  # a lone surrogate
    ):
        if response.status_code == 200:
            query, texts, *_ = response.json()
            assert isinstance(query, str)
            assert len(texts) <= 10
        else:
            error_of(response, 422, response.json()["error"]["code"])


def test_every_address_is_documented(completer, settings):
    text = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(
        encoding="utf-8"
    )
    for route in create_app(completer, settings).routes:
        assert re.search(rf"(GET|POST) {re.escape(route.path)}[^a-z]", text), route.path


def test_ids_payloads_and_filters(tmp_path, settings):
    (tmp_path / "titles.csv").write_text(
        "title,views,id,url,language\nTea,9,1,/tea,en\nTee,8,2,/tee,de\n"
    )
    app = create_app(fit_files(tmp_path / "titles.csv"), settings)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for more in ("", "&user=ada&composition=1"):
            answer = client.get(f"/suggest?q=te&language=de{more}").json()
            assert answer[1] == ["Tee"]
            assert answer[4] == {
                "suggestions": [{"text": "Tee", "id": "2", "payload": {"url": "/tee"}}]
            }
        first = client.get("/suggest?q=te&explain=1").json()[4]["suggestions"][0]
        assert first["id"] == "1"
        assert first["static_position"] == 1
        assert client.get("/suggest?q=te&language=fr").json()[1] == []
        answer = client.get(f"/suggest?q=te&language={'x' * 200}")
        assert answer.status_code == 422


def test_a_filter_by_nothing_is_one_and_what_is_no_text_is_written_as_in_json(tmp_path, settings):
    rows = [{"title": "Tea", "in_stock": True}, {"title": "Tee", "in_stock": False}]
    rows += [{"title": "Ted"}, {"title": "Teak", "in_stock": 7}]
    (tmp_path / "titles.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = fit_files(tmp_path / "titles.jsonl", columns={"in_stock": "in_stock"})
    with TestClient(create_app(made, settings), base_url="http://127.0.0.1:8000") as client:
        for value, text, found in (
            (True, "true", {"Tea", "Ted"}),
            (False, "false", {"Tee", "Ted"}),
            (7, "7", {"Teak", "Ted"}),
            ("", "", {"Ted"}),
        ):
            posted = client.post("/suggest", json={"q": "te", "in_stock": value}).json()
            got = client.get("/suggest", params={"q": "te", "in_stock": text}).json()
            assert set(posted[1]) == set(got[1]) == found


@pytest.fixture
def shops(tmp_path, settings):
    """A client of a service whose phrases have two contexts."""
    (tmp_path / "titles.csv").write_text(
        "title,views,language,category\nTea,9,en,drink\nTee,8,de,drink\nTeak,7,de,wood\n"
    )
    app = create_app(fit_files(tmp_path / "titles.csv"), replace(settings, max_boosts=2))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


BOOSTED = [
    ({"language": {"de": 2}}, ["Tee", "Teak", "Tea"]),
    ({"category": {"wood": 1.5}, "language": {"en": 0.1}}, ["Teak", "Tee", "Tea"]),
    ({"language": {"fr": 10}}, ["Tea", "Tee", "Teak"]),
    ({"language": {}}, ["Tea", "Tee", "Teak"]),
    ({}, ["Tea", "Tee", "Teak"]),
    (None, ["Tea", "Tee", "Teak"]),
]


@pytest.mark.parametrize(("boost", "found"), BOOSTED)
@pytest.mark.parametrize("who", [{}, {"user": "ada", "composition": "1"}])
def test_a_request_boosts_values_of_contexts(shops, boost, found, who):
    asked = who | {"q": "te"}
    assert shops.post("/suggest", json=asked | {"boost": boost}).json()[1] == found
    address = asked | {"composition": "2", "boost": json.dumps(boost or {})}
    assert shops.get("/suggest", params=address).json()[1] == found


def test_a_boost_holds_for_a_composition_and_passes_no_filter(shops):
    typed = {"user": "ada", "composition": "1"}
    first = {"q": "t", "t": 1000, "boost": {"language": {"de": 2}}, "category": "drink"}
    asked = [first, {"q": "te", "t": 2000}, {"q": "t", "t": 500}]  # the last one was overtaken
    for each in asked:
        assert shops.post("/suggest", json=typed | each).json()[1] == ["Tee", "Tea"]


REFUSED = [
    ([["language", "de"]], "no JSON object of objects"),
    ({"language": 2}, "no JSON object of objects"),
    ({"colour": {"red": 2}}, "no context of the phrases: 'colour'. Only language, category."),
    ({"language": {"de": 10.01}}, "has 10.01, expected a number from 0.1 to 10"),
    ({"language": {"de": 0.099}}, "has 0.099, expected a number from 0.1 to 10"),
    ({"language": {"de": -1}}, "has -1, expected"),
    ({"language": {"de": True}}, "has true, expected"),
    ({"language": {"de": "2"}}, 'has "2", expected'),
    ({"language": {"de": None}}, "has null, expected"),
    ({"language": {"de": 2, "en": 2, "fr": 2}}, "has 3 values, over 2"),
]


@pytest.mark.parametrize(("boost", "said"), REFUSED)
def test_a_boost_beyond_the_bounds_is_refused_in_one_line(shops, boost, said):
    answers = [
        shops.post("/suggest", json={"q": "te", "boost": boost}),
        shops.get("/suggest", params={"q": "te", "boost": json.dumps(boost)}),
    ]
    for answer in answers:
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert error["code"] == "bad_boost"
        assert said in f"{error['message']} {error['hint']}"
        assert "\n" not in error["message"]


@pytest.mark.parametrize("boost", ["{", "[" * 10_000, '{"language": {"de": NaN}}', "2", '"x"'])
def test_what_is_no_boost_is_refused(shops, boost):
    answer = shops.get("/suggest", params={"q": "te", "boost": boost})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_boost")


def test_more_combinations_than_a_keystroke_looks_up_are_refused(tmp_path, settings):
    (tmp_path / "titles.csv").write_text("title,views,language,category\nTea,9,en,drink\n")
    app = create_app(fit_files(tmp_path / "titles.csv"), replace(settings, max_boosts=100))
    some = {str(value): 2 for value in range(15)}
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for category, status in ((some, 200), (some | {"15": 2}, 422)):
            boost = {"language": some, "category": category}
            answer = client.post("/suggest", json={"q": "te", "boost": boost})
            assert answer.status_code == status
    assert "272 combinations of values, over 256" in answer.text


def test_a_model_without_contexts_takes_no_boosts(client):
    error = client.post("/suggest", json={"q": "s", "boost": {"language": {"de": 2}}}).json()
    assert error["error"]["hint"] == "This model has none."


def test_without_records_and_contexts_the_answer_has_four_parts(client):
    assert len(client.get("/suggest?q=sa").json()) == 4


@pytest.mark.parametrize("who", [{}, {"user": "ada", "composition": "1"}])
def test_a_filter_that_the_phrases_do_not_have_is_refused(shops, who):
    asked = who | {"q": "te", "langauge": "de"}
    for answer in (shops.get("/suggest", params=asked), shops.post("/suggest", json=asked)):
        assert error_of(answer, 422, "unknown_name") == "Nothing here is named 'langauge'."
        assert answer.json()["error"]["hint"].endswith("boost, language, category.")
    assert shops.post("/suggest", json=asked | {"langauge": None}).status_code == 200
    assert shops.get("/suggest?q=te&").status_code == 200


@pytest.mark.parametrize("value", [["de"], {"de": 1}])
def test_a_filter_by_what_is_no_single_value_is_refused(shops, value):
    asked = {"q": "te", "language": value}
    assert "'language'" in error_of(shops.post("/suggest", json=asked), 422, "bad_text")


def test_figures_of_a_span_that_is_mistyped_are_refused(client):
    error_of(client.get("/figures?day=7"), 422, "unknown_name")


TYPED = "/suggest?user=u&composition=c"


@pytest.mark.parametrize(
    ("taken", "refused", "said"),
    [
        ("/suggest?q=ssss", "/suggest?q=sssss", "'q' has 5 characters, over 4"),
        ("/search?q=ssss", "/search?q=sssss", "'q' has 5 characters, over 4"),
        ("/suggest?user=uuuuu", "/suggest?user=uuuuuu", "'user' has 6 characters, over 5"),
        (f"{TYPED}cccc", f"{TYPED}ccccc", "'composition' has 6 characters, over 5"),
        (f"{TYPED}&t=1e15", f"{TYPED}&t=1.1e15", "'t' must be milliseconds"),
        (
            f"/figures?days={MAX_DAYS}",
            "/figures?days=367",
            "'days' must be a whole number from 1 to 366",
        ),
        ("/figures?days=1", "/figures?days=0", "'days' must be a whole number from 1 to 366"),
        ("/search?" + "x" * 60, "/search?" + "x" * 61, "The address has over 60 bytes"),
        ("/suggest?" + "&" * 60, "/suggest?" + "&" * 61, "The address has over 60 bytes"),
    ],
)
def test_what_is_as_long_as_may_be_is_taken(completer, settings, taken, refused, said):
    limits = replace(settings, max_query=4, max_id=5, max_body=60)
    with TestClient(create_app(completer, limits), base_url="http://127.0.0.1:8000") as client:
        assert client.get(taken).status_code == 200
        answer = client.get(refused)
        assert answer.status_code in (413, 422)
        assert said in answer.json()["error"]["message"]


def test_a_body_as_long_as_may_be_is_read(completer, settings):
    headers = {"content-type": "application/json"}
    limits = replace(settings, max_query=4, max_id=4, max_body=60)
    with TestClient(create_app(completer, limits), base_url="http://127.0.0.1:8000") as client:
        body = json.dumps({"user": "uuuu", "composition": "cccc", "query": "soup"}).encode()
        for length, status in ((60, 200), (61, 413)):
            answer = client.post("/submit", content=body.ljust(length), headers=headers)
            assert answer.status_code == status, answer.text
        for name, over in (("user", "uuuuu"), ("composition", "ccccc"), ("query", "soups")):
            long = json.loads(body) | {name: over}
            error_of(client.post("/submit", json=long), 422, "too_long")


def test_names_that_were_seen_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(hosts_and_origins, "MAX_KNOWN", 2)
    hosts = hosts_and_origins.Hosts(["box.example"])
    for _ in range(2):
        for port in range(3):
            hosts.named({b"host": f"box.example:{port}".encode()})
    assert len(hosts._known) == 2


def test_health_says_what_is_wrong_though_the_store_takes_writes(client):
    client.app.journal._outages._problems["read"] = "it is slow"
    assert "it is slow" in error_of(client.get("/healthz"), 503, "no_store")
    assert client.get("/readyz").json() == {"status": "ok", "store": "it is slow"}
    assert client.get("/livez").json() == {"status": "ok"}


@pytest.mark.parametrize("found", [[], [SimpleNamespace(text="anders"), None]])
def test_a_model_is_warmed_by_typing_and_submitting_twice(found):
    completer = MagicMock()
    composition = completer.compose.return_value
    composition.suggest.return_value = found
    warm(completer)
    searched = [*5 * ["suggest"], "submit"]
    assert [name for name, *_ in composition.mock_calls] == 2 * searched
    composition.submit.assert_called_with("anders" if found else "and")
    completer.compose.assert_called_with(completer.user())
    completer.index.top_phrases.assert_called_once()  # what a service asks where nobody is known


@pytest.mark.parametrize("family", ["👩\u200d👧", "re\u00adcipe", "café noir"])
def test_joiners_and_soft_hyphens_are_text(client, family):
    assert submit(client, family, composition=family).status_code == 200
    error_of(submit(client, f"{family}\x07"), 422, "bad_text")
