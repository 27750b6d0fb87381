"""Apps opened before a query as a group of the one ranker."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.signals import Oracle

from telic.completion import Completer, Phone, fold
from telic.completion.evaluation.compare import walk as typed_again
from telic.completion.fit.from_searches import completer_of_searches
from telic.completion.learning.phone_ranker import phone_of
from telic.completion.signals import FEATURES, STATIC, controls, learn, lessons_of, measured
from telic.completion.signals.compositions import Compositions, joined_submissions
from telic.completion.signals.groups import APPS, GROUPS
from telic.completion.signals.opened_apps import MOST_OPENED
from telic.completion.signals.ranker import opened_of
from telic.completion.signals.sweep import every_prefix, walk
from telic.completion.signals.weights import choosing_moments
from telic.data.compositions import read_compositions
from telic.simulate import Catalogue, made_up_affinity, simulate_phones

PHRASES = ("tea", "teapot", "green tea", "green", "Tea", "house", "house of tea", "paris")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
COLUMNS = [FEATURES.index(name) for name in FEATURES if name.startswith("goes with")]


def log_of(rows):
    """A log of (user, minute, query, openings); an opening is an app and minutes before."""
    opened = [
        [{"app": app, "at": START + dt.timedelta(minutes=row[1] - back)} for app, back in row[3]]
        for row in rows
    ]
    kind = pa.list_(pa.struct([("app", pa.string()), ("at", pa.timestamp("us", tz="UTC"))]))
    at = [START + dt.timedelta(minutes=row[1]) for row in rows]
    return read_compositions(
        pa.table(
            {
                "user": [row[0] for row in rows],
                "composition": [str(i) for i in range(len(rows))],
                "query": [row[2] for row in rows],
                "submitted_at": [moment + dt.timedelta(seconds=40) for moment in at],
                "keystrokes": [
                    [{"at": moment, "prefix": row[2][:1], "suggestions": []}]
                    for moment, row in zip(at, rows, strict=True)
                ],
                "opened": pa.array(opened, kind),
            }
        )
    )


def random_log(seed, rows=120, users=5, apps=14):
    """Few rows with none, some with more apps than are looked at; some opened over and over."""
    rng = np.random.default_rng(seed)
    minute = np.cumsum(rng.choice([0, 1, 60], rows))
    return log_of(
        [
            (
                f"user {rng.integers(users)}",
                float(minute[i]),
                PHRASES[rng.integers(len(PHRASES))],
                [
                    (f"app {rng.integers(apps)}", float(rng.integers(1, 40)) + j / 100)
                    for j in range(rng.choice([0, 1, 3, 25]))
                ],
            )
            for i in range(rows)
        ]
    )


def prepared(log, **given):
    return Compositions(log, joined_submissions(log), **given)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shuffle", [False, True])
def test_apps_say_what_they_are_defined_to_say(seed, shuffle):
    searches = prepared(random_log(seed), min_users=2, seed=seed)
    searches = searches.shuffled_apps() if shuffle else searches
    told = 0
    for piece in walk(searches, *every_prefix(searches, np.arange(0, len(searches), 3))):
        for t, event in enumerate(piece.event.tolist()):
            oracle = Oracle(searches, event)
            prefix = fold(searches.log.prefixes[searches.log.prefix[searches.composition[event]]])
            for q, row in zip(piece.candidates[t].tolist(), piece.features[t], strict=True):
                if q >= 0:
                    assert row[:24] == pytest.approx(oracle.row(q, prefix), abs=1e-12), FEATURES
                    told += bool(row[COLUMNS].any())
    assert told > 25


def test_what_is_opened_lately_counts_once_and_the_last_first():
    openings = [("far", 31.0), ("b", 20.0), ("a", 29.0), ("a", 3.0), ("b", 9.0)]
    many = [(f"app {i}", 1.0 + i) for i in range(MOST_OPENED + 3)]
    searches = prepared(log_of([("ann", 0.0, "tea", openings), ("ben", 90.0, "tea", many)]))
    opened = searches.opened
    names = [
        [searches.apps[a] for a in opened.app[first:last]]
        for first, last in zip(opened.first, opened.last, strict=True)
    ]
    assert names == [["a", "b"], [f"app {i}" for i in range(MOST_OPENED)]]
    nearer = prepared(searches.log, minutes=5.0)
    assert (nearer.opened.last - nearer.opened.first).tolist() == [1, 4]


def test_apps_of_one_moment_come_by_name_in_a_log_as_in_a_service():
    given = [("b", 3.0), ("é", 3.0), ("a", 3.0), ("c", 1.0)]
    searches = prepared(log_of([("ann", 0.0, "tea", given), ("ben", 90.0, "tea", given[::-1])]))
    apps = [searches.apps[a] for a in searches.opened.app]
    assert apps == ["c", "a", "b", "é"] * 2
    served = phone_of({app: i for i, app in enumerate(apps[:4])}, {}, given, minutes=30.0)
    assert served.order.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("others", [0, 1])
def test_an_app_that_one_user_alone_has_tells_nothing(others):
    """What ann searched after it is hers; with ben's, two had it."""
    rows = [(f"user {i}", float(i), text, []) for i in range(4) for text in ("tea", "toast")]
    rows += [("ann", 10.0 + i, "toast", [("rare", 1.0)]) for i in range(3)]
    rows += [("ben", 20.0, "toast", [("rare", 1.0)] if others else [])]
    rows += [("ann", 30.0, "tea", [("rare", 1.0)])]
    searches = prepared(log_of(rows), min_users=2)
    (moments,) = walk(searches, np.array([len(rows) - 1]), np.array([1]))
    toast = searches.number[searches.log.phrases.index("toast")]
    row = moments.features[0, moments.candidates[0].tolist().index(toast)]
    assert (row[COLUMNS] > 0.01).tolist() == [bool(others)] * 3


def test_exchanged_apps_are_other_peoples_and_keep_their_number():
    searches = prepared(random_log(0, rows=1000, users=20), min_users=2)
    other = searches.shuffled_apps()

    def apps(of):
        return [
            of.opened.app[a:b].tolist()
            for a, b in zip(of.opened.first, of.opened.last, strict=True)
        ]

    given, exchanged = apps(searches), apps(other)
    assert [bool(own) for own in given] == [bool(own) for own in exchanged]
    for part in np.unique(searches.part):
        rows = np.flatnonzero(searches.part == part)
        one, two = (sorted(each[e] for e in rows) for each in (given, exchanged))
        assert one == two
    first, whose = searches.opened.first, {}
    for e in np.flatnonzero(searches.opened.last > first):
        whose[int(first[e])] = searches.user[e]
    told = np.flatnonzero(other.opened.last > other.opened.first)
    assert all(whose[int(other.opened.first[e])] != other.user[e] for e in told)
    assert (other.query == searches.query).all()
    assert (other.before == searches.before).all()


@pytest.fixture(scope="module")
def caused():
    """Simulated people of whom many search for what an app that they just opened is about."""
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (300, 6))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    table = simulate_phones(
        catalogue,
        affinity=made_up_affinity(catalogue, apps=60),
        strength=0.8,
        users=120,
        compositions=40,
        seed=2,
    )
    return prepared(read_compositions(table))


def test_apps_that_cause_queries_are_found_and_exchanged_ones_are_worth_nothing(caused):
    assert caused.groups == (*GROUPS, "pairs", APPS, "feedback")
    real, control = controls(caused, (APPS,), most=1000)
    assert (real["group"], real["exchanged"], control["exchanged"]) == (APPS, False, True)
    assert real["low"] > 0.01
    assert control["low"] < 0 < control["high"] < real["low"]


def test_the_group_has_a_gate(caused):
    lessons, chosen_by = lessons_of(caused), choosing_moments(caused)
    found = learn(caused, lessons, chosen_by, ("popularity", APPS))
    assert found.gates[APPS].startswith("on")
    assert found.weights[COLUMNS].any()
    other = caused.shuffled_apps()
    found = learn(other, lessons_of(other), choosing_moments(other), (APPS,))
    assert found.gates[APPS].startswith("off")
    assert not found.weights.any()


def test_a_log_without_apps_has_no_such_group():
    searches = prepared(log_of([("ann", 0.0, "tea", []), ("ben", 1.0, "tea", [("a", 31.0)])]))
    assert APPS not in searches.groups


def phone_at(box, log, c):
    """What a phone would send at the first keystroke of a composition."""
    begin, own = log.at[log.keystroke_start[c]], slice(*log.opened_start[c : c + 2])
    opened = zip(log.opened_app[own], log.opened_at[own], strict=True)
    return box.phone({}, [(log.apps[app], int(begin - at) / 60e6) for app, at in opened])


def test_the_evaluation_reports_what_is_served(caused):
    """Each composition by a box as of then; every explanation adds up."""
    log = caused.log
    weights = lessons_of(caused).fit({"popularity": 10.0, APPS: 1.0})
    found = measured(caused, {"model": weights, "static": STATIC}, most=60)
    served, moved = [], 0
    for e in dict.fromkeys(found.event.tolist()):
        c, begin = int(caused.composition[e]), int(caused.begin[e])
        box = completer_of_searches(caused, weights, at=begin)
        user = box.user(caused.names[caused.user[e]])
        typing = box.compose(user, phone_at(box, log, c), at=begin)
        query = fold(log.phrases[log.query[c]])
        for k in range(log.keystroke_start[c], log.keystroke_start[c + 1]):
            shown = typing.suggest(log.prefixes[log.prefix[k]], at=0.0)
            texts = [fold(each.text) for each in shown]
            served.append(1 / (texts.index(query) + 1) if query in texts else 0.0)
            for each in shown:
                why = each.explain().signals
                assert set(why) == {"popularity", APPS}
                assert sum(why.values()) == pytest.approx(each.signals)
                moved += abs(why[APPS]) > 0.1
    assert found.ranks["model"].tolist() == served
    assert moved > 100
    assert (found.ranks["model"] != found.ranks["static"]).mean() > 0.05


@pytest.fixture(scope="module")
def box(caused):
    return completer_of_searches(caused, lessons_of(caused).fit({"popularity": 10.0, APPS: 1.0}))


def test_a_box_that_was_saved_has_the_same_apps(box, tmp_path):
    box.save(tmp_path / "box")
    again = Completer.load(tmp_path / "box")
    assert again.telling_apps() == box.telling_apps() != []
    without = box.suggest("a")
    moved = 0
    for app in box.telling_apps():
        first, other = (
            each.compose(each.user(), each.phone({}, [(app, 2.0)])).suggest("a", at=0.0)
            for each in (box, again)
        )
        assert first == other
        assert [one.signals for one in first] == [one.signals for one in other]
        if first[0].text == without[0].text:
            continue
        # A log that is typed again brings its apps.
        moved += 1
        for openings in ([], [(app, 2.0)]):
            log = log_of([("ann", 0.0, first[0].text, openings)])
            assert (typed_again(box, log).rank[0] == 1) == bool(openings)
    assert moved


def test_only_apps_that_enough_people_had_are_in_the_model():
    rows = [("ann", float(i), "tea", [("rare", 1.0), ("usual", 2.0)]) for i in range(3)]
    rows += [("ben", 5.0, "tea", [("usual", 2.0)])]
    box = completer_of_searches(prepared(log_of(rows), min_users=2), STATIC)
    assert list(box.signals.apps) == ["usual"]
    assert box.signals.state.apps.total.tolist() == [4.0]
    assert box.phone({}, [("usual", 1.0)]) is None  # the group is off


def test_an_unknown_app_keeps_its_place():
    order = np.full(5, -1)
    order[[3, 0]] = 1, 2
    assert opened_of(Phone(np.zeros(5), order, 4)).tolist() == [-1, 3, 0, -1]
    order[4] = MOST_OPENED
    phone = Phone(np.zeros(5), order, MOST_OPENED + 1)
    assert opened_of(phone).tolist() == [-1, 3, 0, *[-1] * (MOST_OPENED - 3)]


def test_an_unknown_app_opened_before_the_others_counts_in_the_mean_as_in_a_log(box):
    """What it says is 0, wherever it stands among them."""
    app = box.telling_apps()[0]
    opened = box.phone({}, [(app, 2.0), ("unheard of", 3.0), (app, 4.0), ("unheard of", 40.0)])
    known = list(box.signals.apps).index(app)
    assert opened_of(opened).tolist() == [known, -1]
    assert opened_of(None).tolist() == []
