from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.held import hold, page
from tests.study.outline import left_out

from telic.choice import Elastic
from telic.completion import Replay
from telic.data.compositions import read_compositions
from telic.data.query_app_pairs import read_pairs
from telic.errors import InputError
from telic.report import Report
from telic.simulate import Affinity, Catalogue, simulate_phones
from telic.study import chapter3
from telic.study.chapter3 import experiments, tables
from telic.study.chapter3.experiments import abundance, control, convergence, top_queries
from telic.study.chapter3.real_pairs import _accuracy, _instances, _Ranking, pairs_study
from telic.study.chapter3.tables import controls_table
from telic.study.steps import Steps


@pytest.fixture(scope="module")
def table():
    """Thirty people in whom the app decides which of two words is typed."""
    rng = np.random.default_rng(0)
    rows = []
    for worker in range(30):
        for task in range(8):
            app = ["mail", "maps"][rng.integers(2)]
            word = {"mail": "pack", "maps": "park"}[app]
            rows.append({"WorkerId": worker, "TaskId": task, "q": f"{word} {task}", "app": app})
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def pairs(table):
    return read_pairs(table)


@pytest.fixture(scope="module")
def of_words(pairs):
    return pairs_study(pairs, unit="word")


def test_apps_that_decide_the_word_help_people_held_out(pairs, of_words):
    own = of_words[0]
    assert own["appaware"] > own["standard"] + 0.1
    assert own["p_value"] < 1e-6
    shuffled = pairs_study(pairs, unit="word", shuffled=True)[0]
    assert shuffled["standard"] == own["standard"]
    assert abs(shuffled["difference"]) < 0.05


@pytest.fixture
def files(tmp_path, table):
    """A catalogue and real pairs, in files."""
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abc"[k] for k in row) for row in rng.integers(0, 3, (80, 10))})
    (tmp_path / "catalogue.csv").write_text("\n".join(["query", *phrases]))
    pq.write_table(table.slice(0, 80), tmp_path / "pairs.parquet")  # ten people
    return {"catalogue": tmp_path / "catalogue.csv", "pairs": tmp_path / "pairs.parquet"}


@pytest.mark.slow
def test_the_whole_chapter_is_one_page(tmp_path, files, monkeypatch):
    monkeypatch.setattr(chapter3, "NAMES", ("mpc", "timesense-s"))
    monkeypatch.setattr(chapter3, "SETTINGS", chapter3.SETTINGS[:1] + chapter3.SETTINGS[-1:])
    sweeps = {name: (values[:1], *said) for name, (values, *said) in chapter3.SWEEPS.items()}
    monkeypatch.setattr(chapter3, "SWEEPS", sweeps | {"n": ((2, 5), *sweeps["n"][1:])})
    monkeypatch.setattr(chapter3, "convergence", few_passes)
    report = chapter3.study(Steps(), **files, users=8, compositions=12, seeds=2)
    report.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.count("![") == len(list((tmp_path / "page").iterdir())) == 8
    # The words are the world's places; their table is of the catalogue that is built in.
    assert {words for _, words in left_out("chapter-3", page)} <= {"top queries beginning with"}
    variants = report.tables[0].records()
    own = {row["model"] for row in variants if not row["model"].startswith("re-rank")}
    assert own == {"standard", "appaware-i", "appaware-o", "appaware-c", "appaware"}
    for row in variants:
        is_fitted = "standard" not in row["model"]
        assert (row["gap"] is not None and row["gap"] >= 0) == is_fitted
        assert (row["relative change"] is not None) == is_fitted
    tables = {table.title: table.records() for table in report.tables}
    (published,) = (rows for title, rows in tables.items() if "beside Table 3.5" in title)
    standard = [row["MRR"] for row in variants if row["model"] == "standard"]
    assert [row["Standard"] for row in published] == standard
    assert published[0]["published, relative change"] == pytest.approx(41.55 / 35.13 - 1)
    (real,) = (rows for title, rows in tables.items() if "0 where the query is not" in title)
    assert len(real) == 24
    (both,) = (rows for title, rows in tables.items() if title.startswith("One fit with both"))
    assert {row["model"] for row in both} == {"standard", "feedback", "appaware", "together"}
    (swept,) = (rows for rows in tables.values() if "pre-indexed queries" in rows[0])
    assert [row["pre-indexed queries"] for row in swept] == [2, 5]


@cache
def few_passes(**settings):
    return convergence(replications=1, passes=4)


def test_real_pairs_that_cannot_be_read_are_refused_before_the_work(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv"):
        chapter3.study(Steps(progress=pytest.fail), pairs=tmp_path / "none.csv")


def test_real_pairs_are_left_out_by_default_where_they_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TELIC_DATA", str(tmp_path))
    report = Report("t")
    chapter3._real_pairs(report, Steps(), None)
    assert "are left out" in report.markdown()
    assert not report.tables


@pytest.mark.parametrize("opened", [False, True])
def test_shares_of_top_queries_are_of_those_with_the_app_and_of_those_without(opened):
    phrases = [f"par{letter}" for letter in "abcdef"]
    affinity = Affinity(
        [f"app {i}" for i in range(90)], np.ones(90), np.arange(91), np.arange(90) % 6, np.ones(90)
    )
    catalogue = Catalogue(phrases, np.ones(6))
    log = simulate_phones(
        catalogue, affinity=affinity, users=30, compositions=30, strength=0.9, seed=1
    )
    found = top_queries(Replay(read_compositions(log)), opened=opened, top=1000)
    assert (found["prefix"], found["opened"]) == ("par", opened)
    assert found["app"] in affinity.apps
    for side in ("with", "without"):
        shares = [share for _, share in found[side]]
        assert sum(shares) == pytest.approx(1)
        assert shares == sorted(shares, reverse=True)


def test_a_control_knows_what_it_compares():
    letters = np.random.default_rng(0).integers(0, 3, (80, 10))
    known = Catalogue(sorted({"".join("abc"[k] for k in row) for row in letters}), np.ones(80))
    phones = {"users": 6, "compositions": 12, "independent": True, "seed": 0, "relevance": "mpc"}
    careful = control(known, protocol="careful", **phones)
    assert "counts" in careful
    assert "counts" not in control(known, protocol="paper", **phones)
    older = control(known, protocol="careful", told="older", **phones)
    assert older.keys() - careful.keys() == {"re-ranked lists"}
    (first, *_) = controls_table([("s", "mpc", [careful, older])]).records()
    gain, low, high = first["gain over Standard"]
    assert gain == pytest.approx((careful["counts"] + older["counts"]) / 2)
    assert low < gain < high


def test_the_convergence_study_has_a_gap_for_every_method():
    last = {row["method"]: row["gap"] for row in few_passes()}
    assert last["SAGA on touched coordinates, |B| = 10"] < 0.1
    assert all(np.isfinite(gap) or "printed" in method for method, gap in last.items())


def test_tables_are_what_they_were(pairs, of_words):
    letters = np.random.default_rng(0).integers(0, 3, (80, 10))
    known = Catalogue(sorted({"".join("abc"[k] for k in row) for row in letters}), np.ones(80))
    replay = Replay(read_compositions(simulate_phones(known, users=8, compositions=40, seed=1)))
    ways = [("all", "own"), ("last", "own"), ("all", "shown")]
    rows = [
        {"prefixes": prefixes, "lists": lists, "relevance": "mpc", "model": model, "mrr": mrr}
        for prefixes, lists in ways
        for model, mrr in (("standard", 0.2 + len(prefixes) / 100), ("appaware", 0.3))
    ]
    sweep = [dict.fromkeys(tables.MEASURES, value) | {"l1": value} for value in (0.1, 0.2)]
    both = [
        {"prefixes": "all", "model": "together", "mrr": 0.4}
        | {f"{what} {model}": len(what + model) / 100 for what in WHAT for model in MODELS}
    ]
    report = Report("Tables")
    for table in (
        tables.published_table(rows),
        controls_table([("s", "mpc", [{"counts": 0.1}, {"counts": 0.3}, {"counts": 0.4}])]),
        tables.abundance_table(abundance(replay, minutes=(10, 30))),
        tables.top_queries_table(top_queries(replay, opened=False, length=1)),
        tables.pairs_table([{"query": "q", "app": "a", "weight": 0.5}]),
        tables.sweep_table("l1", "λ₁", sweep),
        tables.convergence_table([row for row in few_passes() if "printed" not in row["method"]]),
        tables.together_table(both),
        tables.real_pairs_table(of_words + pairs_study(pairs, unit="query", shuffled=True)),
    ):
        report.table(table)
    hold(Path(__file__).parent / "pages" / "chapter-3.jsonl", page(report))


WHAT, MODELS = ("over", "p over"), ("feedback", "appaware")


def test_what_people_type_is_grouped_and_counted_once_for_each_task():
    rows = [(7, 1, "Pack it", "mail"), (7, 1, "Pack it", "maps"), (7, 1, "Pack it", "mail")]
    rows += [(7, 2, "pack pack", "maps"), (8, 1, "park", "maps")]
    names = ("WorkerId", "TaskId", "q", "app")
    pairs = read_pairs(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))
    both, one = sorted(set(pairs.app[:2].tolist())), pairs.app[3].item()
    group, worker, texts, apps = _instances(pairs, "word", "worker")
    assert texts == ["pack", "it", "pack", "park"]
    assert (group[0], group[0]) == (group[2], worker[0])
    assert group[3] != group[0]
    assert [sorted(own) for own in apps] == [both, both, [one], [one]]
    group, worker, texts, apps = _instances(pairs, "query", "task")
    assert texts == ["pack it", "pack pack", "park"]
    assert group[0] == group[2] != group[1]
    assert worker[0] == worker[1] != worker[2]


def test_candidates_are_the_most_popular_without_those_of_the_own_group():
    words = np.array(["pa", "pb", "pc", "qa"])
    text = np.array([0, 0, 0, 1, 1, 2, 3, 1, 2])
    group = np.array([0, 0, 1, 0, 1, 1, 0, 2, 2])
    train = np.array([True] * 7 + [False] * 2)
    made = _Ranking(words, text, group, [[0]] * 9, 1, train, 2)
    assert made.candidates(7, 1) == [(0, 3), (1, 2)]  # of all in training
    assert made.candidates(7, 2) == [(1, 2)]
    assert made.candidates(0, 1) == [(0, 1), (1, 1)]  # of group 1 alone
    assert made.candidates(6, 1) == []
    assert made.candidates(4, 1) == [(0, 2), (1, 1)]  # of group 0 alone
    learned = np.array([0.0, 0.5, 0.0, 0.0])
    made = _Ranking(words, text, group, [[0]] * 9, 1, train, 2, learned)
    choices, kept = made.choices(np.array([7, 8]), np.array([1, 1]))
    assert kept == [7]  # the other one's text is no candidate
    assert choices.offset == pytest.approx([np.log(4), np.log(3) + 0.5])
    assert (choices.outcome.tolist(), choices.chosen.tolist()) == ([0, 1], [1])
    standard, own = made.ranks(np.array([8, 7]), 1, np.zeros(5))
    assert standard.tolist() == own.tolist() == [0.0, 1.0]
    against = np.array([0.0, -9.0, 0.0, 0.0, 0.0])
    assert made.ranks(np.array([8, 7]), 1, against)[1].tolist() == [0.0, 0.5]


def test_experiments_find_what_they_found(table):
    letters = np.random.default_rng(0).integers(0, 3, (80, 10))
    known = Catalogue(sorted({"".join("abc"[k] for k in row) for row in letters}), np.ones(80))
    replay = Replay(read_compositions(simulate_phones(known, users=8, compositions=30, seed=1)))
    found = [
        [name, {key: value for key, value in row.items() if not key.startswith("p ")}]
        for name, rows in (
            ("pairs", pairs_study(read_pairs(table.slice(0, 96)), unit="word", held_out="task")),
            ("abundance", abundance(replay, minutes=(5, 30))),
            ("top", [top_queries(replay, opened=True, length=1)]),
            ("convergence", [row for row in few_passes() if row["gap"] < 10][::3]),
        )
        for row in rows
    ]
    hold(Path(__file__).parent / "pages" / "chapter-3-experiments.jsonl", found)


def test_what_a_penalty_is_chosen_by_is_the_models_accuracy_and_not_popularitys():
    class Ranking:
        size = 3

        def ranks(self, items, length, weights):
            assert weights.shape == (3,)
            return np.full(len(items), 0.25), np.full(len(items), 1.0)

    items = np.arange(2)
    assert _accuracy(Ranking(), items) == 0.25
    assert _accuracy(Ranking(), items, np.zeros(3)) == 1.0


def test_experiments_are_run_on_one_log_and_controls_on_their_own(monkeypatch):
    monkeypatch.setattr(experiments, "main_log", lambda *given: ("log", given))
    monkeypatch.setattr(experiments, "phrases", lambda catalogue: ("phrases", catalogue))
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"a": lambda replay, **more: (replay, more)})
    monkeypatch.setattr(experiments, "CONTROLS", {"b": lambda known, **more: (known, more)})
    size = {"catalogue": "file", "users": 3, "compositions": 4}
    assert experiments.run(experiment="a", x=1, **size) == (("log", ("file", 3, 4)), {"x": 1})
    expected = {"users": 3, "compositions": 4, "x": 1}
    assert experiments.run(experiment="b", x=1, **size) == (("phrases", "file"), expected)


@pytest.mark.parametrize(
    ("parameter", "value", "settings"),
    [
        ("l1", 0.5, {"penalty": Elastic(0.5, 1e-4)}),
        ("l2", 0.5, {"penalty": Elastic(1e-4, 0.5)}),
        ("n", 5.0, {"penalty": Elastic(1e-4, 1e-4), "n": 5}),
        ("minutes", 45, {"penalty": Elastic(1e-4, 1e-4), "minutes": 45}),
    ],
)
def test_one_parameter_is_changed_and_all_else_is_as_printed(
    parameter, value, settings, monkeypatch
):
    asked = []

    def fitted(replay, **given):
        asked.append(given)
        rows = [
            {"prefixes": prefixes, "model": model, "mrr": len(prefixes + model)}
            for prefixes in ("last", "all")
            for model in ("standard", "appaware")
        ]
        return SimpleNamespace(rows=lambda: rows)

    monkeypatch.setattr(experiments, "fitted", fitted)
    found = experiments.swept(None, parameter=parameter, value=value)
    assert asked == [settings]
    assert type(asked[0].get("n", 0)) is int
    assert found == {"prefixes": "all", "model": "appaware", "mrr": 11, parameter: value}


def test_the_strongest_pairs_are_those_of_largest_weight_either_way():
    weights = SimpleNamespace(
        start=np.array([0, 2, 2, 5]),
        app=np.array([1, 0, 2, 0, 1]),
        value=np.array([0.5, -2.0, 0.1, 1.0, -0.3]),
    )
    models = SimpleNamespace(models={"appaware": SimpleNamespace(weights=weights)})
    replay = SimpleNamespace(
        index=SimpleNamespace(phrases=lambda rows: [["tea", "rye", "milk"][k] for k in rows]),
        log=SimpleNamespace(apps=["mail", "maps", "news"]),
    )
    found = experiments.strongest_pairs(replay, models, top=3)
    assert [(row["query"], row["app"], row["weight"]) for row in found] == [
        ("tea", "mail", -2.0),
        ("milk", "mail", 1.0),
        ("tea", "maps", 0.5),
    ]


def test_feedback_and_apps_are_compared_alone_and_in_one_fit(monkeypatch):
    user = np.repeat(np.arange(4), 3)
    standard, feedback, appaware, both = np.random.default_rng(0).random((4, 12))

    def fit(replay, score, way, *, variants, together=False):
        return together

    def test(replay, together):
        ranks = {"standard": standard, "appaware": both if together else appaware}
        ranks |= {"feedback": feedback} if together else {}
        slices = {"all": np.ones(12, bool), "last": np.arange(12) % 3 == 2}
        return SimpleNamespace(ranks=ranks, slices=slices, user=user)

    monkeypatch.setattr(experiments, "fit_relevance", lambda *_: "score")
    monkeypatch.setattr(experiments, "fit_phone_models", fit)
    monkeypatch.setattr(experiments, "try_phone_models", test)
    rows = experiments.together(None)
    assert [(row["prefixes"], row["model"]) for row in rows] == [
        (prefixes, model)
        for prefixes in ("last", "all")
        for model in ("standard", "feedback", "appaware", "together")
    ]
    own = {"standard": standard, "feedback": feedback, "appaware": appaware, "together": both}
    for row in rows:
        inside = slice(2, None, 3) if row["prefixes"] == "last" else slice(None)
        ranks = {name: values[inside] for name, values in own.items()}
        assert row["mrr"] == pytest.approx(ranks[row["model"]].mean())
        for other in ("standard", "appaware", "feedback"):
            # Everybody types as much, so that the mean over people is the mean.
            gain = ranks[row["model"]].mean() - ranks[other].mean()
            assert row[f"over {other}"] == pytest.approx(gain, abs=1e-12)
            assert 0 <= row[f"p over {other}"] <= 1
