"""What the service learned survives it, and belongs to the model that learned it."""

import os
import sqlite3
import stat
import traceback
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError
from starlette.testclient import TestClient

from telic.completion import Relevance
from telic.completion.adaqac import Design
from telic.completion.feedback import FEATURES
from telic.errors import InputError
from telic.serve import Settings, create_app
from telic.serve.events import Events, fingerprint


@pytest.fixture
def events(completer, settings):
    events = Events(settings.database, completer)
    yield events
    events.close()


def search(app, composition):
    """Search as bob; return the answer to the submission and the texts shown first."""
    with TestClient(app, "http://localhost") as client:
        keys = {"user": "bob", "composition": composition}
        texts = client.get("/suggest", params=keys | {"q": "sa"}).json()[1]
        return client.post("/submit", json=keys | {"query": "samosa"}).json(), texts


def test_what_was_learned_survives_a_restart(completer, settings):
    places = []
    for n in (1, 2, 3):
        answer, texts = search(create_app(completer, settings), f"c{n}")
        assert answer == {"learned": True, "updates": n}
        places.append(texts.index("samosa"))
    assert places[-1] < places[0]  # an own search, so it is more relevant


def test_another_models_weights_are_not_taken_over(completer, make_completer, settings):
    search(create_app(completer, settings), "c1")
    other = make_completer(everyone=completer.everyone * 2)
    assert fingerprint(other) != fingerprint(completer)
    answer, _ = search(create_app(other, settings), "c2")
    assert answer["updates"] == 1
    answer, _ = search(create_app(completer, settings), "c3")
    assert answer["updates"] == 2


def test_a_submission_and_its_state_are_written_together(completer, events):
    state = completer.user("ada").as_json()
    events.record("ada", "c", "soup", learned=True, state=state)
    assert events.has("ada", "c")
    assert not events.has("ada", "d")
    assert events.state("ada").history == {"saffron": 40.0}
    assert events.state("nobody") is None


def test_a_submission_whose_state_cannot_be_written_is_not_written_either(events):
    with pytest.raises(StatementError):
        events.record("ada", "c", "soup", learned=True, state={"weights": object()})
    assert not events.has("ada", "c")
    events.record("ada", "c", "soup", learned=True, state={})
    assert events.has("ada", "c")


def test_an_error_of_the_database_says_nothing_of_what_was_searched_for(events):
    events.record("ada", "c", "soup", learned=True, state={})
    with pytest.raises(IntegrityError) as error:
        events.record("ada", "c", "secret illness", learned=True, state={})
    text = f"{error.value!r} {error.value} {error.value.__cause__}"
    assert "INSERT" in text
    assert "illness" not in text


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://bob:hunter2@host/x",
        "postgresql+psycopg://host/x?user=bob&password=hunter2",
        "nosuch://bob:hunter2@host/x",
        "postgresql+psycopg://bob:hunter2@host:port/x",
        "sqlite://bob:hunter2@host/x",
    ],
)
def test_no_error_shows_the_databases_password(completer, url):
    with pytest.raises(InputError) as error:
        Events(url, completer)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_server_that_refuses_is_named_without_the_password(completer, monkeypatch):
    def refuse(engine):
        raise OperationalError(None, None, Exception("the server is down"))

    monkeypatch.setattr("telic.serve.events._TABLES.create_all", refuse)
    monkeypatch.setattr("telic.serve.events.create_engine", lambda url, **options: Mock())
    with pytest.raises(InputError, match=r"host/x: cannot be opened.*the server is down") as error:
        Events("postgresql+psycopg://bob:hunter2@host/x?sslpassword=hunter2", completer)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "adaqac-batch"},
        {"protocol": "paper"},
        {"everyone": np.ones(len(FEATURES))},
        {"design": Design(np.full(len(FEATURES), 2.0), False)},
        {"relevance": Relevance("personal-s", popular=1.0, personal=1.0)},
        {"relevance": Relevance("personal", popular=2.0, personal=1.0)},
        {"relevance": Relevance("personal", popular=1.0, personal=2.0)},
        {"relevance": Relevance("personal", 1.0, 1.0, deviations=(1.0, 2.0, 1.0))},
    ],
    ids=str,
)
def test_weights_are_kept_apart_by_all_that_gives_them_their_meaning(
    completer, make_completer, change
):
    assert fingerprint(make_completer()) == fingerprint(completer)
    assert fingerprint(make_completer(**change)) != fingerprint(completer)


def holds_open(folder):
    """Whether a descriptor of this process leads to a file in a folder."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("needs Linux's /proc")
    files = [os.path.realpath(descriptor) for descriptor in descriptors.iterdir()]
    return any(file.startswith(f"{folder}/") for file in files)


def test_an_application_that_is_never_started_holds_no_connection(completer, settings, tmp_path):
    app = create_app(completer, settings)
    assert not holds_open(tmp_path)
    with TestClient(app, "http://localhost") as client:
        client.get("/healthz")
        assert holds_open(tmp_path)
    assert not holds_open(tmp_path)


def test_sqlite_runs_in_wal_mode_and_is_its_owners_alone(completer, tmp_path):
    settings = Settings.beside(tmp_path / "places.model")
    Events(settings.database, completer).close()
    file = tmp_path / "places.model.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "no SQLAlchemy URL"),
        ("nosuch://x", "no SQLAlchemy URL"),
        ("postgresql+psycopg://bob@host:port/x", "no SQLAlchemy URL"),
        ("sqlite://", "in memory"),
        ("sqlite:////nowhere/at/all.sqlite", "cannot be opened"),
    ],
)
def test_a_database_that_cannot_be_used(completer, url, says):
    with pytest.raises(InputError, match=says) as error:
        Events(url, completer)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_database(completer, tmp_path):
    (tmp_path / "x.sqlite").write_text("not a database, but long enough to be looked at " * 99)
    with pytest.raises(InputError, match="cannot be opened"):
        Events(f"sqlite:///{tmp_path}/x.sqlite", completer)
