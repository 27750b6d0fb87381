"""The Python client against a service."""

import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from operator import itemgetter

import pytest

from telic.completion import fit_files
from telic.serve import Settings, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user
from telic.serve.client import Client, ServiceError


@pytest.fixture(scope="module")
def locked(completer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    key = add_key(folder / "keys.toml", "shop")
    settings = Settings.beside(folder / "model", port=0, keys=str(folder / "keys.toml"))
    with serving(completer, replace(settings, keep_seconds=0.2)) as address:
        yield address, key


def test_a_search_from_its_first_key_to_its_end(locked):
    address, key = locked
    client = Client(address, key=key)
    assert client.suggest("sal")[0] == {"text": "salmon", "url": f"{address}/search?q=salmon"}
    first = client.suggest("s", user="bob", composition="1", t=0.0)
    assert len(first) == 10
    answer = client.submit("salad", user="bob", composition="1")
    assert answer == {"learned": True, "updates": 1}
    assert client.submit("salad", user="bob", composition="1") == answer
    client.close()
    own = Client(address, key=sign_user(key, "bob"))
    assert own.submit("salad", composition="1") == answer
    with pytest.raises(ServiceError, match=r"another user's") as refused:
        own.suggest("s", user="ada", composition="1")
    assert refused.value.status == 403
    own.close()


def test_an_editor_changes_phrases_and_an_admin_forgets_a_user(make_completer, tmp_path):
    key = add_key(tmp_path / "keys.toml", "desk", editor=True, admin=True)
    settings = Settings.beside(tmp_path / "model", port=0, keys=str(tmp_path / "keys.toml"))
    with serving(make_completer(), settings) as address:
        client = Client(address, key=key)
        changes = ({"phrase": "sorbet", "popularity": 1e6}, {"phrase": "salmon", "delete": True})
        assert client.change("1", changes) == client.change("1", changes) == 1
        assert client.change("2", changes[1:]) == 2
        assert client.suggest("s")[0]["text"] == "sorbet"
        client.submit("soup", user="bob", composition="1")
        assert client.forget("desk:bob") == {"rows": 2, "records": 0, "model": False}
        client.close()


def test_ids_and_payloads_come_with_the_suggestions(tmp_path):
    (tmp_path / "titles.csv").write_text("title,views,id,url\nTea,9,1,/tea\nTee,8,2,/tee\n")
    settings = Settings.beside(tmp_path / "model", port=0)
    with serving(fit_files(tmp_path / "titles.csv"), settings) as address:
        client = Client(address)
        found = client.suggest("te")
        client.close()
    assert found == [
        {"text": name, "id": id, "payload": {"url": f"/{name.lower()}"},
         "url": f"{address}/search?q={name}"}
        for id, name in (("1", "Tea"), ("2", "Tee"))
    ]  # fmt: skip


def test_requests_are_padded_to_a_few_sizes(locked, monkeypatch):
    address, key = locked
    sizes, request = set(), HTTPConnection.request
    monkeypatch.setattr(
        HTTPConnection, "request", lambda *given: sizes.add(len(given[3])) or request(*given)
    )
    client = Client(address, key=key, pad=300)
    for typed in ("s", "sä", "salmon", "鮭" * 60):
        client.suggest(typed, user="ada", composition="padded")
    client.submit("salmon", user="ada", composition="padded")
    client.close()
    assert sizes == {300, 600}


def test_a_boost_is_sent_and_may_be_refused(tmp_path):
    (tmp_path / "titles.csv").write_text("title,views,language\nTea,9,en\nTee,8,de\n")
    settings = Settings.beside(tmp_path / "model", port=0)
    with serving(fit_files(tmp_path / "titles.csv"), settings) as address:
        client = Client(address)
        found = client.suggest("te", boost={"language": {"de": 2.0}})
        with pytest.raises(ServiceError, match=r"has 11.0, expected a number from 0.1 to 10"):
            client.suggest("te", boost={"language": {"de": 11.0}})
        client.close()
    assert [each["text"] for each in found] == ["Tee", "Tea"]


def test_thirty_ids_that_submit_one_query_move_no_suggestion_of_anybody_else(locked):
    """What a query is worth to all changes only where a model is fitted, which counts people."""
    address, key = locked
    client = Client(address, key=key)

    def seen(user, composition):
        """All of the lists at the prefixes of the query: scores, reasons and observations, too."""
        asked = {"composition": composition, "explain": True, "t": 0}
        return [
            client._post("/suggest", asked | {"user": user, "q": "sausage"[:end]}, itemgetter(4))
            for end in range(1, 8)
        ]

    # Two who were there before, one of them in the middle of a query, and one who comes later.
    client.submit("sage", user="regular", composition="0")
    before = seen("regular", "1")
    assert seen("typing", "1") == (newcomer := seen("nobody", "1"))
    for attacker in range(30):
        who = {"user": f"attacker{attacker}", "composition": "1"}
        shown = client.suggest("sa", **who, t=0.0)
        assert "sausage" in [each["text"] for each in shown]
        assert client.submit("sausage", **who) == {"learned": True, "updates": 1}
    assert seen("attacker0", "2") != newcomer  # to themselves it is worth more
    assert seen("regular", "2") == before
    assert seen("typing", "2") == newcomer
    assert seen("somebody-new", "1") == newcomer
    client.close()


def test_errors_say_what_is_wrong(locked):
    client = Client(locked[0])
    with pytest.raises(ServiceError, match="A key or a user's token is needed") as refused:
        client.suggest("s")
    assert refused.value.status == 401
    client.close()
    with pytest.raises(ServiceError, match="is no address"):
        Client("search.example")
    with pytest.raises(ServiceError, match="does not answer") as refused:
        Client("http://127.0.0.1:9").suggest("s")
    assert refused.value.status == 0


def test_a_connection_that_was_ended_is_made_again(locked):
    client = Client(*locked[:1], key=locked[1])
    client.suggest("s")
    client._connection.sock.shutdown(2)
    assert client.suggest("s")
    client.close()


@pytest.mark.parametrize(
    "address",
    [
        "box.example",
        "ftp://box",
        "http://box:port",
        "http://box:99999",
        "http://[::1",
        "http://a b",
    ],
)
def test_what_is_no_address_is_said(address):
    with pytest.raises(ServiceError, match="is no address, expected https://NAME"):
        Client(address)


@pytest.mark.parametrize("key", ["telic_secret\n", "telic_secr\u00e9t"])
def test_what_is_no_key_is_said_and_not_quoted(key):
    with pytest.raises(ServiceError, match=r"^the key has") as failed:
        Client("http://127.0.0.1:9", key=key).suggest("s")
    assert "telic_secr" not in str(failed.value)


ASKED = {
    "suggest": lambda client: client.suggest("s"),
    "submit": lambda client: client.submit("soup", composition="1"),
    "change": lambda client: client.change("1", []),
    "forget": lambda client: client.forget("ada"),
}


@contextmanager
def answering(status, content):
    """A client of something else, that answers each request alike once it has read it whole.

    An answer before that, and a connection that ends with it, would be taken for one that is lost.
    """

    class Other(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with closing(Client(f"http://127.0.0.1:{other.server_port}")) as client:
                yield client
        finally:
            other.shutdown()
            thread.join()


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("content", [b'{"status": "ok"}', b"[]", b"null", b"[" * 100_000])
def test_an_answer_of_another_shape_is_none_of_the_service(content, asked):
    with (
        answering(200, content) as client,
        pytest.raises(ServiceError, match="a 200 of something else"),
    ):
        ASKED[asked](client)


@pytest.mark.parametrize("content", [b"<html>bad gateway", b'{"message": "none"}', b"[]"])
def test_what_a_proxy_answers_is_no_answer_of_the_service(content):
    with (
        answering(502, content) as client,
        pytest.raises(ServiceError, match="a 502 of something else") as failed,
    ):
        client.suggest("s")
    assert failed.value.status == 0  # so that a batch of changes is sent again
