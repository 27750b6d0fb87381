"""Replies padded to a few sizes: what who sees only their sizes finds out of what is typed."""

import socket
from collections import defaultdict
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from starlette.testclient import TestClient

from telic.completion import fit_files
from telic.serve import create_app, serving
from telic.serve.http.padding import padded
from telic.serve.state.store import Store

PAD = 8192
LETTERS = 8
"""Characters of the queries among which is guessed: how many are typed cannot be hidden."""


@pytest.fixture(scope="module")
def names():
    """Names of several lengths, a few of them with letters of several bytes."""
    rng = np.random.default_rng(16)
    syllables = ["ba", "bel", "da", "dor", "fa", "gri", "ka", "lum", "mo", "ner", "ran", "ü", "é"]
    made = ["".join(rng.choice(syllables, size)) for size in rng.integers(2, 7, 800)]
    return sorted(set(made))


@pytest.fixture(scope="module")
def box(names, tmp_path_factory):
    """A box of them, with payloads, typos and words in any place."""
    file = tmp_path_factory.mktemp("padding") / "titles.csv"
    rows = [f"{name},{i % 97 + 1},/{'x' * (i % 13)}{i}" for i, name in enumerate(names)]
    file.write_text("\n".join(["title,views,url", *rows]) + "\n", encoding="utf-8")
    return fit_files(file)


def eavesdropped(connection, request):
    """Send a request; return how many bytes come back.

    TLS encrypts without compressing, and adds as many bytes to each record: what is of one size
    here is of one size encrypted.
    """
    connection.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(1 << 16) or pytest.fail("hung up")
    head, _, body = got.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields[b"content-length"]):
        body += connection.recv(1 << 16)
    return len(head) + 4 + len(body)


def typing(method, host, prefix):
    if method == "GET":
        return f"GET /suggest?q={quote(prefix)} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    body = b'{"q": "%s"}' % prefix.encode()
    head = f"POST /suggest HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def guessed(box, settings, names, method):
    """Share of queries that who knows all replies' sizes, keystroke by keystroke, guesses."""
    queries = [name for name in names if len(name) == LETTERS]
    with serving(box, replace(settings, port=0)) as address:
        at = urlsplit(address)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            seen = defaultdict(list)
            for query in queries:
                asked = [typing(method, at.netloc, query[: i + 1]) for i in range(LETTERS)]
                seen[tuple(eavesdropped(connection, each) for each in asked)].append(query)
    # Of queries with the same sizes all are as likely: who guesses names any one of them.
    right = sum(len(alike) / len(alike) for alike in seen.values())
    return right / len(queries), 1 / len(queries)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_sizes_of_replies_tell_nothing_of_a_query_once_they_are_padded(
    box, names, settings, method
):
    share, chance = guessed(box, replace(settings, pad_replies=PAD), names, method)
    assert share <= 1.2 * chance
    share, chance = guessed(box, settings, names, method)
    assert share > 0.5 > 20 * chance  # the same eavesdropper, without padding


def test_errors_have_the_size_of_answers(box, settings):
    settings = replace(settings, port=0, pad_replies=PAD, max_query=4)
    with serving(box, settings) as address:
        at = urlsplit(address)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            asked = [typing("GET", at.netloc, "b" * length) for length in range(7)]
            assert len({eavesdropped(connection, each) for each in asked}) == 1


def submitting(host, query, composition="1"):
    body = b'{"user": "ada", "composition": "%s", "query": "%s"}' % (composition.encode(), query)
    head = f"POST /submit HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_answers_to_submissions_have_the_size_of_answers_to_keystrokes(box, settings, monkeypatch):
    settings = replace(settings, port=0, pad_replies=PAD, max_query=20)
    sizes = set()
    with serving(box, settings) as address:
        at = urlsplit(address)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            sizes.add(eavesdropped(connection, typing("GET", at.netloc, "ba")))
            for query in (b"ba", b"balumner", b" ", b"b" * 21):  # taken, and refused
                sizes.add(eavesdropped(connection, submitting(at.netloc, query)))
            with monkeypatch.context() as broken:
                broken.setattr(Store, "record", lambda *given: 1 / 0)  # 500
                sizes.add(eavesdropped(connection, submitting(at.netloc, b"ba", "2")))
    assert len(sizes) == 1
    unlike = set()
    with serving(box, replace(settings, pad_replies=0, port=0)) as address:
        at = urlsplit(address)
        with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
            for query in (b"ba", b" "):
                unlike.add(eavesdropped(connection, submitting(at.netloc, query, "3")))
    assert len(unlike) == 2  # the same eavesdropper, without padding


def test_starlettes_route_gives_errors_the_size_of_answers_too(box, settings):
    """Under an address of another application the raw route does not answer."""
    sizes, statuses = set(), set()
    app = create_app(box, replace(settings, pad_replies=PAD, max_body=1_000))
    with TestClient(app, base_url="http://127.0.0.1:8000", root_path="/box") as client:
        for each in ("q=ba", "q=zz", "q=" + "b" * 257, "q=" + "b" * 1_100):
            answer = client.get(f"/box/suggest?{each}", headers={"origin": "http://a.example"})
            fields = sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
            sizes.add(len(HTTPStatus(answer.status_code).phrase) + fields + len(answer.content))
            statuses.add(answer.status_code)
    assert statuses == {200, 413, 422}
    assert len(sizes) == 1


@pytest.mark.parametrize("least", [1, 7, 100, 1003, 4096])
def test_a_padded_reply_has_one_of_a_few_sizes(least):
    """Also where one more byte would make the body's length a digit longer."""
    for length in range(0, 3000, 7):
        body = padded(b"x" * length, 200, [(b"name", b"value")], least)
        size = len(b"OKname: value\r\n") + len(str(len(body))) + len(body)
        assert body.rstrip(b" ") == b"x" * length
        assert size % least == 0
        assert (size // least).bit_count() == 1
    assert padded(b"xyz", 200, [], 0) == b"xyz"


def test_the_least_size_is_taken_wherever_a_body_fits():
    def size(least):
        body = padded(b"", 200, [], least)
        return len(b"OK") + len(str(len(body))) + len(body)

    larger = [least for least in range(3, 1_200) if size(least) != least]
    assert larger == [13, 104, 1005]  # 9 and 10, 99 and 100, 999 and 1000: two bytes apart
