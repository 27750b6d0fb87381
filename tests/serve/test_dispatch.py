"""Answers that are kept, and what each of them needs."""

from starlette.testclient import TestClient

from telic.completion import DenyList
from telic.serve import create_app
from telic.serve.requests import dispatch


def of_desk(client, **given):
    """What a service answers to a keystroke; the answers that it keeps."""
    answer = client.get("/suggest", params=given)
    return answer.json(), client.app.desk._kept.bodies


def test_answers_to_nobody_in_particular_are_kept_while_the_list_stays(
    make_completer, settings, monkeypatch
):
    completer = make_completer()
    app, worked, written = create_app(completer, settings), [], dispatch._written
    monkeypatch.setattr(dispatch, "_written", lambda *made: worked.append(made) or written(*made))
    with TestClient(app, "http://127.0.0.1:8000") as client:
        first, kept = of_desk(client, q="sa")
        assert of_desk(client, q="sa") == (first, kept)
        assert (len(worked), len(kept)) == (1, 1)
        explained, kept = of_desk(client, q="sa", explain=1)
        assert (len(explained), len(kept)) == (5, 2)
        assert client.post("/suggest", json={"q": "sa"}).json() == first
        wrong = client.post("/suggest", json={"q": "sa", "installed": []})
        assert wrong.json()["error"]["code"] == "bad_apps"
        assert len(worked) == 3
        typed = {"user": "ada", "composition": "1"}
        for _ in range(2):
            of_desk(client, q="sa", **typed)
        assert (len(worked), len(app.desk._kept.bodies)) == (5, 3)
        app.changes.completer.live.put("sago", 1e6)
        assert of_desk(client, q="sa")[0][1] == ["sago", *first[1][:9]]


def test_what_is_denied_is_answered_to_nobody(make_completer, settings):
    app = create_app(make_completer().denying(DenyList(("soup", "*sal*"))), settings)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        for given in ({}, {"user": "ada", "composition": "1"}, {"explain": 1}):
            listed = client.get("/suggest", params={"q": "s"} | given).json()[1]
            assert "samosa" in listed
            assert not [text for text in listed if text == "soup" or "sal" in text]


def test_kept_answers_have_a_bound(client, monkeypatch):
    monkeypatch.setattr(dispatch, "KEPT_BYTES", 10_000)
    for number in range(50):
        answer, kept = of_desk(client, q=f"{number:04}")
        assert answer[0] == f"{number:04}"
        assert len(kept) == number % 18 + 1
        took = sum(
            len(body) + sum(len(name) + len(value) for name, value in asked[2:]) + dispatch._ENTRY
            for asked, body in kept.items()
        )
        assert took <= 10_000
