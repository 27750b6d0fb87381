"""Figures of submissions against their definitions, on both stores; and who may see whose."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from telic.completion import DenyList, Lesson
from telic.serve import create_app
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user
from telic.serve.operation.metrics import Seen
from telic.serve.state import dashboard_figures
from telic.serve.state.store import SUBMISSIONS, Store, Submission, _now


def test_figures_are_what_they_are_defined_as(completer, any_settings):
    rng = np.random.default_rng(0)
    store = Store(any_settings.database, completer)
    made = []
    for i in range(120):
        rank, typed = int(rng.integers(4)), int(rng.integers(8))
        query = ["tea", "coffee", "water"][int(rng.integers(3))]
        seen = Seen(typed, rank, 3 * (query != "water"), rank > 0) if rng.random() < 0.8 else None
        user = f"u{int(rng.integers(9 if query == 'tea' else 4))}"
        made.append(Submission(user, f"c{i}", Lesson(query), "ab"[i % 2], seen))
    store.record(made)
    found = store.figures(None, 7)
    for each in found["tenants"]:
        own = [one for one in made if one.tenant == each["tenant"]]
        listed = [one for one in own if one.seen]
        assert (each["submissions"], each["users"]) == (len(own), len({one.user for one in own}))
        accepted = np.mean([one.seen.accepted for one in listed])
        assert each["acceptance"] == pytest.approx(accepted)
        mrr = np.mean([1 / one.seen.rank if one.seen.rank else 0 for one in listed])
        assert each["mrr"] == pytest.approx(mrr)
        saved = sum(one.seen.saved(one.lesson.query) for one in listed)
        characters = sum(len(one.lesson.query) for one in listed)
        assert each["keystrokes_saved"] == pytest.approx(saved / characters)
    assert [each["tenant"] for each in found["tenants"]] == ["a", "b"]
    teas = [one for one in made if one.lesson.query == "tea"]
    # The others had too few users to be shown.
    users = len({one.user for one in teas})
    assert found["popular"] == [{"query": "tea", "submissions": len(teas), "users": users}]
    assert found["no_hit"] == []
    assert [each["tenant"] for each in store.figures("b", 7)["tenants"]] == ["b"]
    with store._writes.begin() as connection:
        connection.execute(update(SUBMISSIONS).values(at=_now() - timedelta(days=8)))
    assert store.figures(None, 7)["tenants"] == []
    store.close()


def test_queries_without_a_suggestion_are_named(store):
    store.record(
        [Submission(f"u{i}", "c", Lesson("quince"), "", Seen(3, 0, 0, False)) for i in range(5)]
    )
    expected = [{"query": "quince", "submissions": 5, "users": 5}]
    assert store.figures(None, 1)["no_hit"] == expected


def test_lists_hold_so_many_queries_and_none_of_fewer_than_five_users(store, monkeypatch):
    monkeypatch.setattr(dashboard_figures, "MOST", 2)
    users = {"a": 4, "b": 5, "c": 6, "d": 7}
    lessons = [(query, i) for query, many in users.items() for i in range(many)]
    store.record([Submission(f"u{i}", query, Lesson(query)) for query, i in lessons])
    assert [each["query"] for each in store.figures(None, 1)["popular"]] == ["d", "c"]
    monkeypatch.setattr(dashboard_figures, "MOST", 9)
    assert [each["query"] for each in store.figures(None, 1)["popular"]] == ["d", "c", "b"]


def test_what_is_denied_is_in_no_list(make_completer, any_settings, monkeypatch):
    monkeypatch.setattr(dashboard_figures, "MOST", 2)
    denying = make_completer().denying(DenyList(("*nasty*",)))
    store = Store(any_settings.database, denying)
    for query, users in (("nasty tea", 9), ("tea", 8), ("so nasty", 7), ("coffee", 6), ("milk", 5)):
        store.record(
            [
                Submission(f"u{i}", query, Lesson(query), "", Seen(3, 0, 0, False))
                for i in range(users)
            ]
        )
    found = store.figures(None, 1)
    for name in ("popular", "no_hit"):
        assert [each["query"] for each in found[name]] == ["tea", "coffee"]
    store.close()


def test_a_tenant_sees_its_own_and_an_admin_all(completer, settings, tmp_path):
    file = tmp_path / "keys.toml"
    keys = {name: add_key(file, name, admin=name == "ops") for name in ("shop", "forum", "ops")}
    app = create_app(completer, replace(settings, keys=str(file)))
    with TestClient(app, "http://127.0.0.1:8000") as client:

        def ask(proof, path="/figures"):
            return client.get(path, headers={"authorization": f"Bearer {proof}"})

        for name in ("shop", "forum"):
            client.post(
                "/submit",
                json={"user": "ada", "composition": "c", "query": "soup"},
                headers={"authorization": f"Bearer {keys[name]}"},
            )
        seen = {
            name: [each["tenant"] for each in ask(key).json()["tenants"]]
            for name, key in keys.items()
        }
        assert seen == {"shop": ["shop"], "forum": ["forum"], "ops": ["forum", "shop"]}
        for name, tenant, shown in (
            ("ops", "shop", ["shop"]), ("shop", "shop", ["shop"]), ("ops", "", ["forum", "shop"])
        ):  # fmt: skip
            found = ask(keys[name], f"/figures?tenant={tenant}").json()
            assert [each["tenant"] for each in found["tenants"]] == shown
        assert ask(keys["shop"], "/figures?tenant=forum").status_code == 403
        assert ask(keys["ops"], "/figures?tenant=%00").status_code == 422
        assert ask(sign_user(keys["shop"], "ada")).status_code == 403
        assert client.get("/figures").status_code == 401
        found = ask(keys["ops"]).json()
        assert (found["days"], found["min_users"]) == (28, 5)
        for days in ("0", "367", "1e2", "²", ""):
            assert ask(keys["ops"], f"/figures?days={days}").status_code == 422
        (latency,) = [
            each for each in ask(keys["ops"]).json()["latency"] if each["address"] == "/submit"
        ]
        assert latency["answers"] == 2
        assert client.get("/dashboard").status_code == 200
