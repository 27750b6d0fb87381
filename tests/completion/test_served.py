"""What the evaluation reports is what a served completer does: one replayed against the other."""

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from telic.choice import Elastic
from telic.completion import CAREFUL, PAPER, Replay, evaluate
from telic.completion.evaluation.adaqac_evaluation import evaluate_models
from telic.completion.evaluation.appaware_evaluation import try_phone_models
from telic.completion.fit.from_compositions import completer_of
from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.fit.phone_models import fit_phone_models
from telic.completion.learning.replayed_log import TEST
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.simulate import Affinity, Catalogue, simulate_phones, simulate_typists

UNGATED = replace(CAREFUL, do_no_harm=False)


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 3, (60, 9))
    phrases = sorted({"".join("abc"[i] for i in row) for row in letters})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


def replayed(catalogue, log):
    """A log whose lists know more than the completer: of some phrases it was told nothing."""
    half = pa.table(
        {"query": catalogue.phrases[::2], "count": np.ones(len(catalogue.phrases[::2]))}
    )
    early = [log["submitted_at"][0].as_py().replace(year=2020)] * len(half)
    queries = read_queries(half.append_column("at", pa.array(early)))
    return Replay(read_compositions(log), queries=queries)


@pytest.fixture(scope="module")
def typed(catalogue):
    log = simulate_typists(catalogue, setting="readers", users=8, compositions=16, seed=1)
    return replayed(catalogue, log)


def walk(replay, models, model, *, phone=None):
    """Serve every test composition in time order; return reciprocal ranks by keystroke.

    Each begins at the completer of that moment. Users are those whom the completer itself knew when
    they began; from then on they are taught by their submissions alone.
    """
    log, users, found = replay.log, {}, {}
    chosen = np.flatnonzero(replay.part == TEST)
    order = chosen[np.argsort(replay.start_at[chosen], kind="stable")]
    for c in order:
        name = log.users[log.user[c]]
        completer = completer_of(replay, models, model, at=int(replay.start_at[c]))
        known = completer.user(name)
        user = users.setdefault(name, known)
        assert user.history == known.history
        assert user.previous == known.previous
        assert user.updates == known.updates
        assert user.check.recent == pytest.approx(known.check.recent, abs=1e-12)
        assert user.check.drawdown == pytest.approx(known.check.drawdown, abs=1e-12)
        np.testing.assert_allclose(user.weights, known.weights, rtol=1e-9, atol=1e-12)
        composition = completer.compose(user, phone(completer, c) if phone else None)
        begin, query = int(replay.start_at[c]), log.phrases[log.query[c]]
        for k in range(log.keystroke_start[c], log.keystroke_start[c + 1]):
            prefix, at = log.prefixes[log.prefix[k]], (int(log.at[k]) - begin) / 1e6
            texts = [s.text for s in composition.suggest(prefix, at=at)]
            found[k] = 1 / (texts.index(query) + 1) if query in texts else 0.0
            listed = log.shown[log.list_start[k] : log.list_start[k + 1]]
            composition.shown([log.phrases[q] for q in listed])
        composition.submit(query)
    return found


@pytest.mark.parametrize("protocol", [CAREFUL, UNGATED, PAPER], ids=["gated", "ungated", "paper"])
@pytest.mark.parametrize("name", ["personal", "timesense"])
def test_the_evaluation_reports_what_is_served(typed, name, protocol):
    models = fit_models(typed, fit_relevance(typed, name, protocol, n=5), protocol, n=5)
    if protocol is CAREFUL:  # some users and lengths open, some closed, whatever was found
        bins, users = np.arange(5) % 2 == 0, np.arange(8) % 3 > 0
        gates = {
            m: replace(g, anywhere=True, bins=bins, users=users) for m, g in models.gates.items()
        }
        models = replace(models, gates=gates)
    result = evaluate_models(typed, models)
    for model in ("static", "adaqac-unp", "adaqac-batch", "adaqac-online"):
        served = walk(typed, models, model)
        ranks = [served[k] for k in result.moments.keystroke]
        np.testing.assert_allclose(result.ranks[model], ranks, err_msg=model)
        rows = {r["prefixes"]: r for r in result.rows() if r["model"] == model}
        for prefixes in ("last", "all"):
            own = np.array(ranks)[result.slices[prefixes]]
            assert rows[prefixes]["mrr"] == pytest.approx(own.mean(), abs=1e-12)
            for k in (1, 2, 3):
                assert rows[prefixes][f"sr@{k}"] == pytest.approx((own >= 1 / k).mean(), abs=1e-12)
    assert (result.ranks["adaqac-unp"] != result.ranks["static"]).any()  # feedback was at work


@pytest.fixture(scope="module")
def carried(catalogue):
    apps = 120
    affinity = Affinity(
        [f"app {i}" for i in range(apps)],
        np.ones(apps),
        np.arange(apps + 1),
        np.arange(apps) % len(catalogue.phrases),
        np.ones(apps),
    )
    log = simulate_phones(
        catalogue, affinity=affinity, users=8, compositions=16, strength=0.9, seed=1
    )
    return replayed(catalogue, log)


def phone_of(replay):
    log = replay.log

    def phone(completer, c):
        own = slice(log.installed_start[c], log.installed_start[c + 1])
        installed = {
            log.apps[a]: float(opens)
            for a, opens in zip(log.installed_app[own], log.daily_opens[own], strict=True)
        }
        own = slice(log.opened_start[c], log.opened_start[c + 1])
        opened = [
            (log.apps[a], int(replay.start_at[c] - at) / 60e6)
            for a, at in zip(log.opened_app[own], log.opened_at[own], strict=True)
        ]
        return completer.phones.phone(installed, opened)

    return phone


@pytest.mark.parametrize("protocol", [CAREFUL, UNGATED], ids=["gated", "ungated"])
@pytest.mark.parametrize("together", [False, True])
def test_the_evaluation_reports_what_is_served_with_apps(carried, together, protocol):
    models = fit_phone_models(
        carried,
        fit_relevance(carried, "personal", protocol),
        protocol,
        variants=("appaware",),
        penalty=Elastic(1e-3, 1e-3),
        together=together,
    )
    if protocol is CAREFUL:
        gate = models.gates["appaware"]
        bins, users = np.arange(5) % 2 == 0, np.arange(8) % 3 > 0
        models.gates["appaware"] = replace(gate, anywhere=True, bins=bins, users=users)
    result = try_phone_models(carried, models)
    moments = carried.moments(models.relevance, carried.every_keystroke(TEST))
    model = "appaware-adaqac" if together else "appaware"
    served = walk(carried, models, model, phone=phone_of(carried))
    np.testing.assert_allclose(result.ranks["appaware"], [served[k] for k in moments.keystroke])
    if protocol is UNGATED and not together:  # a phone without signals
        without = walk(carried, models, model)
        standard = [without[k] for k in moments.keystroke]
        np.testing.assert_allclose(result.ranks["standard"], standard)
    assert (result.ranks["appaware"] != result.ranks["standard"]).any()


def micros(moment):
    return (moment - dt.datetime(1970, 1, 1, tzinfo=moment.tzinfo)) // dt.timedelta(microseconds=1)


def counted_ranks(table, queries, *, n):
    """Reciprocal ranks of most popular completion, counted from the raw rows: (user, at) → rank.

    What had been submitted before a composition began, by how many people, and what of that begins
    with the prefix.
    """
    rows = table.to_pylist()
    events = [(row["submitted_at"], row["query"], row["user"], 1.0) for row in rows]
    events += [(row["at"], row["query"], None, row["count"]) for row in queries.to_pylist()]
    found = {}
    for row in rows:
        count, people = Counter(), defaultdict(set)
        for at, query, user, times in events:
            if at < row["keystrokes"][0]["at"]:
                count[query] += times
                people[query].add(user)
        able = [q for q in count if len(people[q]) >= 3 or None in people[q]]
        for stroke in row["keystrokes"]:
            typed = [q for q in able if q.startswith(stroke["prefix"])]
            best = sorted(typed, key=lambda q: (-count[q], q))[:n]
            rank = 1 / (best.index(row["query"]) + 1) if row["query"] in best else 0.0
            found[row["user"], micros(stroke["at"])] = rank
    return found


@pytest.mark.parametrize("told", [0, 20])
def test_what_the_logged_lists_know_does_not_reach_a_completers_row(catalogue, told):
    """Lists by the true popularity; a completer that has next to nothing to count."""
    log = simulate_typists(catalogue, setting="readers", users=8, compositions=24, seed=1)
    kind = log.schema.field("submitted_at").type
    early = [log["submitted_at"][0].as_py().replace(year=2020)] * told
    queries = pa.table(
        {
            "query": pa.array(catalogue.phrases[:told], pa.string()),
            "at": pa.array(early, kind),
            "count": np.arange(1.0, told + 1),
        }
    )
    read = read_compositions(log)
    replay = Replay(read, queries=read_queries(queries) if told else None)
    counted, mrr = counted_ranks(log, queries, n=10), {}
    results = evaluate(replay, relevances=("mpc",))
    assert [result.lists for result in results] == ["own", "shown"]
    for result in results:
        for row in result.rows():
            if "static" in row["model"] and row["prefixes"] == "last":
                mrr[row["model"]] = row["mrr"]
    own = results[0]
    keys = zip(read.user[own.moments.composition], read.at[own.moments.keystroke], strict=True)
    expected = np.array([counted[read.users[u], int(at)] for u, at in keys])
    np.testing.assert_allclose(own.ranks["static"], expected)
    assert mrr["static"] == pytest.approx(expected[own.slices["last"]].mean())
    # This is what another system's lists know, and what would not come again.
    assert mrr["re-rank the shown list: static"] > mrr["static"] + 0.05
