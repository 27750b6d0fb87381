"""The study of signals: real logs in contract 2's form, simulated worlds, and the page."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.study.outline import left_out

from telic.completion.signals import Searches
from telic.completion.signals.report import SignalFindings
from telic.errors import InputError
from telic.simulate import Catalogue, made_up_affinity
from telic.simulate.searchers import Causes, searchers
from telic.study import signals
from telic.study.signals import experiments
from telic.study.signals.experiments import PHONES, WITHOUT
from telic.study.signals.real_logs import BING, UNIMOBILE, bing_by_country, real_file, unimobile
from telic.study.steps import Steps


@pytest.fixture
def data(tmp_path):
    """Made-up rows with the real files' columns."""
    rng = np.random.default_rng(0)
    names = [f"{a}{b}" for a in ("mask ", "map ", "sars ", "news ") for b in "abcdefgh"]
    bing = [
        {
            "Date": dt.datetime(2020, 1, 1 + day),
            "Query": names[rng.integers(len(names))],
            "IsImplicitIntent": True,
            "Country": f"country {c}",
            "PopularityScore": int(rng.integers(1, 101)),
        }
        for day in range(30)
        for c in range(12)
    ]
    mobile = [
        {"index": i, "TaskId": 0, "WorkerId": int(rng.integers(40)), "Query": names[i % 20]}
        for i in range(300)
    ]
    (tmp_path / "qac").mkdir()
    for name, rows in ((BING, bing), (UNIMOBILE, mobile)):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "qac" / f"{name}.parquet")
    return tmp_path


def test_countries_stand_for_users_and_scores_for_counts(data):
    log = bing_by_country(real_file(BING, data))
    assert len(log.query) == 360
    assert sorted(log.users)[0] == "country 0"
    assert log.count.min() >= 1
    assert (np.diff(np.unique(log.at)) == 24 * 3600 * 1_000_000).all()


def test_workers_without_times_come_one_after_the_other(data):
    log = unimobile(real_file(UNIMOBILE, data), seed=1)
    order = np.argsort(log.at)
    assert (np.diff(log.user[order]) != 0).sum() == len(log.users) - 1
    searches = Searches(log, min_users=1)
    assert (searches.before < 0).sum() == len(log.users)
    other = unimobile(real_file(UNIMOBILE, data), seed=2)
    assert log.user[order].tolist() != other.user[np.argsort(other.at)].tolist()


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match=r"unimobile_queries.parquet not found. Set TELIC_DATA"):
        real_file(UNIMOBILE, tmp_path)
    with pytest.raises(InputError, match="seeds is 1"):
        signals.study(Steps(), seeds=1)


def test_causes_do_what_they_say():
    whole, alone = searchers(users=60), searchers(Causes(**WITHOUT["popularity alone"]), users=60)
    for log, repeats in ((whole, True), (alone, False)):
        searches = Searches(log)
        had = searches.before >= 0
        same = (searches.query[had] == searches.query[searches.before[had]]).mean()
        assert (same > 0.05) == repeats
    assert len(searchers(users=2, sessions=3, seed=1).users) == 2
    first, again = (searchers(users=3, sessions=3, seed=1) for _ in range(2))
    assert first.queries == again.queries
    assert (first.at == again.at).all()


@pytest.mark.slow
def test_the_page_opens_with_real_logs_and_says_what_is_simulated(data, monkeypatch):
    monkeypatch.setattr(signals, "GROWING", (12,))
    report = signals.study(Steps(), users=16, sessions=12, compositions=20, seeds=2, data=data)
    page = report.markdown()
    first, second = page.split("\n\n")[1:3]
    assert first.startswith("Bing, by country (real): The test is on")
    assert "countries, which stand for users" in first
    assert second.startswith("UniMobile (real): The test is on")
    before, _, after = page.partition("## Simulated searchers")
    assert "Simulated:" in after.split("\n\n")[1]
    assert "simulated" not in before.lower().replace("what follows is simulated", "")
    assert not left_out("signals", page)
    worlds = next(t for t in report.tables if "without a cause" in t.title)
    assert [row[0] for row in worlds.rows] == list(WITHOUT)
    apps = next(t for t in report.tables if "apps are a cause" in t.title)
    assert [row[0] for row in apps.rows] == list(PHONES)


def test_each_log_is_evaluated_with_what_it_can_tell(data, monkeypatch):
    asked = []

    def evaluated(log, groups=None, *, min_users=3, seed):
        asked.append((len(log.users), groups, min_users, seed))

    monkeypatch.setattr(experiments, "evaluated", evaluated)
    experiments.real(name=BING, file=real_file(BING, data), seed=4)
    experiments.real(name=UNIMOBILE, file=real_file(UNIMOBILE, data), seed=4)
    workers = len(unimobile(real_file(UNIMOBILE, data)).users)
    assert asked == [
        (12, ("popularity", "time", "personal", "match"), 1, 4),
        (workers, ("popularity", "personal", "session", "match", "pairs"), 2, 4),
    ]
    simulated = [
        searchers(Causes(**WITHOUT["no habits"]), users=3, sessions=5, seed=2),
        searchers(users=3, sessions=5, seed=2),
    ]
    monkeypatch.setattr(experiments, "evaluated", lambda log, *, seed: (log.queries, seed))
    for world, log in zip(("no habits", "all causes"), simulated, strict=True):
        found = experiments.simulated(world=world, users=3, sessions=5, seed=2)
        assert found == (log.queries, 2)


def test_apps_are_evaluated_with_their_control(monkeypatch):
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (60, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    monkeypatch.setattr(experiments, "read_catalogue", lambda: catalogue)
    given = {"strength": 1.0, "affinity": made_up_affinity(catalogue, apps=30)}
    monkeypatch.setitem(experiments.PHONES, "apps cause half of the queries", given)
    worlds = {
        world: [
            SignalFindings.from_json(
                experiments.phones(world=world, users=60, compositions=30, seed=1)
            )
        ]
        for world in experiments.PHONES
    }
    table = signals._apps_table(worlds)
    assert [row[0] for row in table.rows] == list(PHONES)
    assert table.rows[0][2][0] > 0.01
    assert table.rows[0][2][0] > table.rows[2][2][0]
    for row, (one,) in zip(table.rows, worlds.values(), strict=True):
        (control,) = (c for c in one.controls if c["group"] == "apps" and c["exchanged"])
        assert row[5] == [control["difference"]] * 3
        assert row[3] == [one.row("+ apps", "1–3 characters")["difference"]] * 3
