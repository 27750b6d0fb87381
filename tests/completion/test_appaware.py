from copy import copy
from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from telic.choice import Elastic
from telic.completion import CAREFUL, Completer, Replay, fit_completer
from telic.completion.evaluation.appaware_evaluation import try_phone_models
from telic.completion.evaluation.compare import walk
from telic.completion.fit import phone_models
from telic.completion.fit.from_compositions import completer_of
from telic.completion.fit.models import fit_relevance, recounted
from telic.completion.fit.phone_models import VARIANTS, fit_phone_models
from telic.completion.learning.adaqac import PAPER, FeedbackDesign
from telic.completion.learning.app_features import MOST_RECENT, OpenedShares, Signals
from telic.completion.learning.appaware import _score_moments, score_candidates
from telic.completion.learning.appaware_weights import PRINTED, _Problem, fit_penalties
from telic.completion.learning.feedback import FEATURES
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID
from telic.data.composition_rows import MAX_APPS
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.errors import InputError
from telic.evaluate import reciprocal_ranks
from telic.simulate import Affinity, Catalogue, simulate_phones

MINUTE = 60_000_000


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 3, (60, 12))
    phrases = sorted({"".join("abc"[i] for i in row) for row in letters})
    return Catalogue(phrases, np.ones(len(phrases)))


@pytest.fixture(scope="module")
def logged(catalogue):
    # Each app makes people want one phrase: something to be found in a small log.
    apps = 120
    affinity = Affinity(
        [f"app {i}" for i in range(apps)],
        np.ones(apps),
        np.arange(apps + 1),
        np.arange(apps) % 60,
        np.ones(apps),
    )
    log = simulate_phones(
        catalogue, affinity=affinity, users=40, compositions=40, strength=0.9, seed=1
    )
    return log


@pytest.fixture(scope="module")
def phones(logged):
    return Replay(read_compositions(logged))


@pytest.fixture(scope="module")
def fitted(phones):
    relevance = fit_relevance(phones, "mpc", CAREFUL)
    return fit_phone_models(
        phones, relevance, replace(CAREFUL, do_no_harm=False), penalty=Elastic(3e-3, 1e-3)
    )


def slow_scores(replay, moments, signals, model):
    """(3.3.1) read from the log, one candidate at a time."""
    log, out = replay.log, moments.relevance.copy()

    @cache
    def queries(app):
        """What was submitted in the training part after the app was opened."""
        start, of = signals.recent_start, signals.recent_app
        training = np.flatnonzero(replay.part == TRAIN)
        return [replay.query[d] for d in training if app in of[start[d] : start[d + 1]]]

    for t, c in enumerate(moments.composition):
        begin = log.at[log.keystroke_start[c]]
        installed = {}
        for e in range(log.installed_start[c], log.installed_start[c + 1]):
            installed[log.installed_app[e]] = np.log(1 + float(log.daily_opens[e]))
        recent = []
        for e in range(log.opened_start[c], log.opened_start[c + 1]):
            near = begin - log.opened_at[e] < 30 * MINUTE
            if near and log.opened_app[e] not in recent:
                recent.append(log.opened_app[e])
        for j, q in enumerate(moments.candidates[t]):
            if q < 0:
                continue
            total = 0.0
            own = slice(model.weights.start[q], model.weights.start[q + 1])
            for a, w in zip(model.weights.app[own], model.weights.value[own], strict=True):
                total += w * installed.get(a, 0.0)
            for k, a in enumerate(recent):
                among, opened = queries(a).count(q), len(queries(a))
                total += model.recency[k] * (among / opened if opened else 0.0)
            out[t, j] += total / model.relevance_weight
    return out


def test_scores_follow_the_definition(phones, fitted):
    signals = Signals.of(phones.log)
    moments = phones.moments(fitted.relevance, phones.last_keystrokes(TEST)[::40])
    model = fitted.models["appaware"]
    expected = slow_scores(phones, moments, signals, model)
    np.testing.assert_allclose(model.scores(moments, signals), expected, rtol=1e-5)


def test_apps_that_cause_queries_help_and_the_weights_are_found(phones, fitted):
    rows = {(r["model"], r["prefixes"]): r for r in try_phone_models(phones, fitted).rows()}
    assert rows["standard", "all"]["p_value"] is None
    assert {model for model, _ in rows} == {"standard", *VARIANTS}
    for model in ("appaware-o", "appaware-c", "appaware"):
        assert rows[model, "all"]["difference"] > 0
        assert rows[model, "all"]["p_value"] < 0.05
    assert len(fitted.models["appaware-o"].weights.value) == 0
    assert not fitted.models["appaware-i"].recency.any()


@pytest.fixture(scope="module")
def rare(logged):
    """A log in which one user opens an app that nobody else has, and the others share one."""
    rows = logged.to_pylist()
    whose = rows[0]["user"]
    for row in rows:
        at = row["keystrokes"][0]["at"] - timedelta(minutes=1)
        app = "nobody else's" if row["user"] == whose else "everybody's"
        row["opened"] = [{"app": app, "at": at}, *(row["opened"] or [])]
        row["installed"] = [{"app": app, "daily_opens": 9.0}, *(row["installed"] or [])]
    return Replay(read_compositions(pa.Table.from_pylist(rows, schema=logged.schema)))


def test_an_app_that_few_users_had_tells_nobody_anything(rare):
    protocol = replace(CAREFUL, do_no_harm=False)
    models = fit_phone_models(
        *(rare, fit_relevance(rare, "mpc", protocol), protocol),
        variants=("appaware",),
        penalty=Elastic(1e-4, 1e-4),
    )
    signals, model = models.signals["appaware"], models.models["appaware"]
    for a, app in enumerate(rare.log.apps):
        having = np.repeat(np.arange(len(rare.log)), np.diff(rare.log.installed_start))
        having = having[rare.log.installed_app == a]
        opening = np.repeat(np.arange(len(rare.log)), np.diff(signals.recent_start))
        opening = opening[signals.recent_app == a]
        both = np.concatenate([having, opening])
        users = {rare.log.user[c] for c in both if rare.part[c] == TRAIN}
        assert signals.known[a] == (len(users) >= 3), app
    private, common = map(rare.log.apps.index, ("nobody else's", "everybody's"))
    assert not signals.known[private]
    assert signals.known[common]
    for table in (model.weights, model.shares):
        assert private not in table.app
        assert common in table.app
    completer = completer_of(rare, models, "appaware")
    ranker = completer.phones
    assert "nobody else's" not in ranker.apps
    assert ranker.apps == [rare.log.apps[a] for a in np.flatnonzero(signals.known)]
    everything = np.arange(len(completer.index))
    phone = ranker.phone({"nobody else's": 9.0}, [("nobody else's", 1.0)])
    assert not ranker.added(everything, phone).any()
    after = ranker.phone({}, [("nobody else's", 1.0), ("everybody's", 2.0)])
    assert after.order[ranker.apps.index("everybody's")] == 1


def test_users_of_one_network_are_not_enough_for_an_app(rare):
    log = rare.log
    composition = np.arange(len(log))
    app = np.zeros(len(log), int)
    assert rare.apps_of_many(composition, app)[0]
    few = log.user < 2
    assert not rare.apps_of_many(composition[few], app[few]).any()
    assert rare.apps_of_many(composition[log.user < 3], app[log.user < 3])[0]
    assert not rare.apps_of_many(composition[rare.part != TRAIN], app[rare.part != TRAIN]).any()
    networked = copy(rare)
    networked.log = replace(log, groups={"network": (["one"], np.zeros(len(log), np.int32))})
    assert not networked.apps_of_many(composition, app).any()


def test_a_log_without_apps_is_refused(logged):
    table = logged.drop_columns(["installed", "opened"])
    replay = Replay(read_compositions(table))
    for model in ("appaware", "appaware-adaqac"):
        with pytest.raises(InputError, match=f"names no apps, so {model} has nothing to learn"):
            fit_completer(replay, model=model, relevance="mpc")
    few = Replay(read_compositions(logged), min_users=41)
    with pytest.raises(InputError, match="no app that 41 users of the training part had"):
        fit_completer(few, model="appaware", relevance="mpc")


def test_independent_apps_are_not_used(catalogue):
    log = simulate_phones(
        catalogue, users=30, compositions=40, strength=0.9, independent=True, seed=2
    )
    replay = Replay(read_compositions(log))
    models = fit_phone_models(replay, fit_relevance(replay, "mpc", CAREFUL), CAREFUL)
    for row in try_phone_models(replay, models).rows():
        if row["model"] != "standard" and row["prefixes"] == "all":
            assert row["difference"] < 0.01


@pytest.fixture(scope="module")
def misled(catalogue):
    """Counts mislead and apps know nothing: all there is to learn is a weight for each query."""
    rng = np.random.default_rng(0)
    wanted, counted = rng.lognormal(0, 2, (2, len(catalogue.phrases)))
    log = simulate_phones(
        replace(catalogue, weights=wanted),
        users=40,
        compositions=80,
        strength=0.5,
        independent=True,
        seed=2,
    )
    misleading = replace(catalogue, weights=100 * counted).as_queries(log)
    return Replay(read_compositions(log), queries=read_queries(misleading))


@pytest.mark.slow
def test_counting_popularity_anew_is_no_gain_of_apps(misled, monkeypatch):
    def gains() -> list[float]:
        counts = fit_relevance(misled, "mpc", CAREFUL)
        models = fit_phone_models(misled, counts, replace(CAREFUL, do_no_harm=False))
        rows = try_phone_models(misled, models).rows()
        return [r["difference"] for r in rows if r["prefixes"] == "all" and r["difference"]]

    assert max(gains()) < 0.01
    monkeypatch.setattr(phone_models, "recounted", lambda replay, relevance, n: relevance)
    assert min(gains()) > 0.02


def test_what_is_served_has_learned_the_same_popularity(misled, tmp_path, monkeypatch):
    # Which penalty is chosen does not matter here, and the largest is fitted soonest.
    monkeypatch.setattr(phone_models, "PENALTIES", phone_models.PENALTIES[-1:])
    relevance = recounted(misled, fit_relevance(misled, "personal", CAREFUL))
    assert relevance.learned is not None
    completer = fit_completer(misled, model="appaware", relevance="personal")
    completer.save(tmp_path / "model")
    log, c = misled.log, np.array([5])
    start_at, misled.start_at = misled.start_at, np.full(len(log), log.submitted_at.max() + 1)
    expected = misled.relevance_of(relevance, misled.query[c], c)[0]
    misled.start_at = start_at
    query, name = log.phrases[log.query[5]], log.users[log.user[5]]
    for box in (completer, Completer.load(tmp_path / "model")):
        found = box.compose(box.user(name)).suggest(query[:6], at=0.0)
        assert {s.text: s.relevance for s in found}[query] == pytest.approx(expected)
        assert [s.static_position for s in found] == list(range(1, len(found) + 1))
        user = box.user(name)
        user.history["abcabc, mine alone"] = 1.0
        own = box.compose(user).suggest("abcabc, m", at=0.0)[0]
        alone = relevance.unlearned + relevance.factors[1] * np.log(2)
        assert own.relevance == pytest.approx(alone)


def test_recounting_is_left_out_where_validation_shows_no_gain(phones):
    counts = fit_relevance(phones, "mpc", CAREFUL)
    found = recounted(phones, counts)
    moments = phones.moments(found, phones.every_keystroke(VALID))
    plain = phones.moments(counts, phones.every_keystroke(VALID))
    assert (
        reciprocal_ranks(moments.relevance, moments.position).mean()
        >= reciprocal_ranks(plain.relevance, plain.position).mean()
    )
    if found.learned is not None:
        assert found.learned.min() == 0
        assert found.unlearned is not None


def test_without_signals_the_scores_are_those_of_standard_exactly(phones, fitted):
    moments = phones.moments(fitted.relevance, phones.every_keystroke(TEST))
    nothing = Signals.of(phones.log).variant("s")
    for model in fitted.models.values():
        np.testing.assert_array_equal(model.scores(moments, nothing), moments.relevance)
    # and a model that saw no signals is Standard whatever the phone says
    (blind,) = fit_penalties(phones, fitted.relevance, nothing, CAREFUL, [PRINTED])
    scores = blind.scores(moments, Signals.of(phones.log))
    np.testing.assert_array_equal(scores, moments.relevance)


@pytest.mark.parametrize("protocol", [CAREFUL, PAPER])
def test_the_default_fit_is_at_the_optimum_and_every_fit_says_its_gap(phones, protocol, tmp_path):
    """A few hundred compositions: plain dual ascent stops far away, and the text's passes do."""
    relevance = fit_relevance(phones, "mpc", protocol)
    signals = Signals.of(phones.log)
    best = fit_penalties(phones, relevance, signals, protocol, [PRINTED])[0].fit
    assert best.converged
    assert best.gap <= 1e-3 * best.objective
    printed = fit_phone_models(
        phones, relevance, PAPER, variants=("appaware",), penalty=Elastic(1e-4, 1e-4)
    )
    assert printed.models["appaware"].fit.gap > 0.01
    rows = try_phone_models(phones, printed).rows()
    assert {r["gap"] for r in rows} == {None, printed.models["appaware"].fit.gap}
    fit_completer(phones, model="appaware", protocol=protocol).save(tmp_path / "model")
    fit = Completer.load(tmp_path / "model").phones.fit
    assert fit["method"] == ("saga" if protocol is PAPER else "sdca")
    assert fit["gap"] > 0
    assert (fit["gap"] <= 1e-3 * fit["objective"]) == (protocol is CAREFUL)


CHOSEN = Elastic(2e-5, 7e-5)


@pytest.mark.parametrize(
    ("protocol", "penalty", "tried"),
    [
        (CAREFUL, None, [phone_models.PENALTIES, [CHOSEN]]),
        (CAREFUL, Elastic(3e-3, 1e-3), [[Elastic(3e-3, 1e-3)]] * 2),
        (PAPER, None, [[phone_models.PRINTED]] * 2),
    ],
)
def test_penalties_are_tried_where_none_is_given_or_printed(
    phones, fitted, monkeypatch, protocol, penalty, tried
):
    asked = []
    made = replace(fitted.models["appaware"], penalty=CHOSEN)

    def fit(replay, relevance, signals, protocol, penalties, **options):
        asked.append(penalties)
        return [made for _ in penalties]

    monkeypatch.setattr(phone_models, "fit_penalties", fit)
    relevance = fit_relevance(phones, "mpc", protocol)
    variants = ("appaware", "appaware-i")
    fit_phone_models(phones, relevance, protocol, variants=variants, penalty=penalty)
    assert [list(each) for each in asked] == [list(each) for each in tried]


def test_a_solver_that_there_is_not_is_named(phones):
    with pytest.raises(InputError, match="solver is 'guess', expected one of auto, sdca"):
        fit_penalties(
            phones, Relevance.named("mpc"), Signals.of(phones.log), PAPER, [PRINTED], solver="guess"
        )


def test_variants_see_what_they_may(phones):
    signals = Signals.of(phones.log)
    opened = np.diff(signals.recent_start) > 0
    assert 0 < opened.mean() < 1
    case = signals.variant("c")
    assert ((np.diff(case.recent_start) > 0) == opened).all()
    assert ((np.diff(case.installed_start) > 0) == ~opened).all()
    assert len(signals.variant("i").recent_app) == 0
    assert len(signals.variant("o").installed_app) == 0
    assert len(Signals.of(phones.log, minutes=0).recent_app) == 0
    with pytest.raises(InputError, match="window is -1"):
        Signals.of(phones.log, minutes=-1)


def test_an_app_opened_fifty_times_counts_once_and_48_orders_are_kept(phones):
    log = phones.log
    many = replace(
        log,
        apps=[f"a{i}" for i in range(100)],
        opened_start=np.r_[0, 50, 150, np.full(len(log) - 2, 150)],
        opened_app=np.r_[np.zeros(50, np.int32), np.arange(100, dtype=np.int32)],
        opened_at=np.r_[
            np.repeat(log.at[log.keystroke_start[0]], 50) - np.arange(1, 51),
            np.repeat(log.at[log.keystroke_start[1]], 100) - np.arange(1, 101),
        ],
    )
    signals = Signals.of(many)
    assert signals.recent_start[:3].tolist() == [0, 1, 1 + MOST_RECENT]
    assert signals.recent_app[1:].tolist() == list(range(MOST_RECENT))


def test_a_training_composition_is_not_in_its_own_share():
    # app 0 was opened in compositions 0, 1, 2, which submitted queries 5, 5, 6; app 1 in 2 alone
    signals = Signals(
        2,
        np.zeros(4, int),
        np.zeros(0, int),
        np.zeros(0),
        np.array([0, 1, 2, 4]),
        np.array([0, 0, 0, 1]),
        np.ones(2, bool),
    )
    shares = OpenedShares.counted(signals, np.array([5, 5, 6]), np.arange(3))
    np.testing.assert_allclose(shares.values, [2 / 3, 1 / 3, 1.0])
    query, app = np.array([5, 5, 6, 6]), np.array([0, 0, 0, 1])
    own = np.array([True, False, False, True])
    np.testing.assert_allclose(shares.of(query, app, own), [1 / 2, 2 / 2, 1 / 2, 0.0])
    nobodys = np.zeros(3, bool)
    found = shares.of(np.array([6, 7, 4]), np.array([1, 1, 0]), nobodys)
    np.testing.assert_allclose(found, [1.0, 0.0, 0.0])
    nothing = OpenedShares(2, np.zeros(0, int), np.zeros(0), np.zeros(2))
    assert nothing.of(query[:3], app[:3], nobodys).tolist() == [0.0, 0.0, 0.0]


def test_what_is_learned_from_are_shares_among_the_other_compositions(phones):
    signals, relevance = Signals.of(phones.log), fit_relevance(phones, "mpc", PAPER)
    training = np.flatnonzero(phones.part == TRAIN)
    moments = phones.moments(relevance, phones.last_keystrokes(TRAIN), n=10)
    moments = moments.where(moments.position >= 0)
    shares = OpenedShares.counted(signals, phones.query, training)
    design = FeedbackDesign.of(CAREFUL, [(moments, phones.features(moments))])
    scaled = design.scaled(phones.features(moments)[..., : len(FEATURES)])
    problem = _Problem.of(phones, moments, signals, shares, PAPER, None)
    joint = _Problem.of(phones, moments, signals, shares, CAREFUL, scaled)
    relevance = moments.relevance - moments.relevance.max(axis=1, keepdims=True)
    start, queries = signals.recent_start, phones.query
    opened = {c: signals.recent_app[start[c] : start[c + 1]].tolist() for c in training.tolist()}
    row = 0

    def shared(choices, row):
        own = slice(*choices.shared_start[row : row + 2])
        features, values = choices.shared_feature[own], choices.shared_value[own]
        return dict(zip(features.tolist(), values.tolist(), strict=True))

    for t, c in enumerate(moments.composition[:80].tolist()):
        installed = slice(signals.installed_start[c], signals.installed_start[c + 1])
        for one in (problem, joint):
            own = slice(*one.choices.context_start[t : t + 2])
            apps = one.choices.context_entry[own], one.choices.context_value[own] * one.scales[0]
            expected = signals.installed_app[installed], signals.installed_value[installed]
            assert [each.tolist() for each in apps] == [pytest.approx(e) for e in expected]
        for j in np.flatnonzero(moments.candidates[t] >= 0):
            q, expected = moments.candidates[t, j], {}
            for order, app in enumerate(opened[c]):
                others = [d for d in training.tolist() if d != c and app in opened[d]]
                if y := np.mean(queries[others] == q) if others else 0.0:
                    expected[order] = y / problem.scales[1]
            assert shared(problem.choices, row) == pytest.approx(expected)
            # Beside them, where that is learned too: the relevance, and each feature of feedback.
            more = {MOST_RECENT: relevance[t, j]} | {
                MOST_RECENT + 1 + k: value for k, value in enumerate(scaled[t, j])
            }
            expected |= {feature: value for feature, value in more.items() if value != 0}
            assert shared(joint.choices, row) == pytest.approx(expected)
            row += 1
    assert row > 200


def test_feedback_and_apps_are_learned_together(phones):
    relevance = fit_relevance(phones, "mpc", CAREFUL)
    models = fit_phone_models(
        phones, relevance, CAREFUL, variants=("appaware",), penalty=Elastic(1e-3), together=True
    )
    assert isinstance(models.design, FeedbackDesign)
    assert models.models["appaware"].feedback.any()
    result = try_phone_models(phones, models)
    assert {row["model"] for row in result.rows()} == {"standard", "appaware"}


def test_a_log_that_is_typed_again_tells_of_the_phone_as_it_was(logged, phones, fitted):
    completer = completer_of(phones, fitted, "appaware")
    table = logged.take(pc.sort_indices(logged, [("submitted_at", "ascending")])).slice(0, 60)
    found = walk(completer, read_compositions(table)).rank.tolist()
    users, expected, blind = {}, [], []
    for row in table.to_pylist():
        first = row["keystrokes"][0]["at"]
        phone = completer.phones.phone(
            {one["app"]: one["daily_opens"] for one in row["installed"]},
            [(one["app"], (first - one["at"]).total_seconds() / 60) for one in row["opened"]],
        )
        user = users.setdefault(row["user"], completer.user(row["user"]))
        typing = completer.compose(user, phone)
        nothing = completer.compose(completer.user("nobody"), completer.phones.phone({}, []))
        for key in row["keystrokes"]:
            at = (key["at"] - first).total_seconds()
            for box, places in ((typing, expected), (nothing, blind)):
                texts = box.listed(key["prefix"], at=at).texts()
                places.append(texts.index(row["query"]) + 1 if row["query"] in texts else 0)
                box.shown(key["suggestions"])
        typing.submit(row["query"])
    assert found == expected
    assert expected != blind, "the phones say nothing that could be lost"


def test_an_app_is_recent_for_less_than_the_window_in_fits_and_when_served(phones, fitted):
    log = phones.log
    begin, n = log.at[log.keystroke_start[0]], len(log)
    back = np.array([0, 5, 12, 12, 30 * 60 * 1_000_000 - 1, 30 * 60 * 1_000_000])
    one = replace(
        log,
        opened_start=np.r_[0, np.full(n, len(back))],
        opened_at=begin - back,
        opened_app=np.array([3, 7, 7, 2, 9, 4], np.int32),
    )
    signals = Signals.of(one)
    recent = [log.apps[a] for a in signals.recent_app[: signals.recent_start[1]]]
    assert recent == [log.apps[a] for a in (3, 7, 2, 9)]
    ranker = completer_of(phones, fitted, "appaware").phones
    opened = [(log.apps[a], b / 60e6) for a, b in zip([3, 7, 7, 2, 9, 4], back, strict=True)]
    served = ranker.phone({}, [opened[i] for i in (5, 2, 0, 4, 1, 3)])
    order = np.flatnonzero(served.order >= 0)
    # Openings at the very same moment have no order of their own.
    assert {ranker.apps[a] for a in order} == set(recent)
    assert served.order[[3, 7, 9]].tolist() == [0, 1, 3]


def test_a_phone_counts_logarithms_and_keeps_the_place_of_apps_it_does_not_know(phones, fitted):
    ranker = completer_of(phones, fitted, "appaware").phones
    one, two = ranker.apps[:2]
    phone = ranker.phone({one: 3.0, "unheard of": 9.0}, [(two, 7.0), ("unheard of", 2.0), (one, 1)])
    assert phone.value[:2].tolist() == pytest.approx([np.log(4), 0.0])
    assert phone.order[:2].tolist() == [0, 2]
    assert (phone.order[2:] == -1).all()
    again = ranker.phone({}, [(two, 7.0), (one, 5.0), (two, 1.0)])  # the last opening counts
    assert again.order[:2].tolist() == [1, 0]


def test_a_phone_of_too_many_apps_or_openings_is_refused(phones, fitted):
    ranker = completer_of(phones, fitted, "appaware").phones
    many = {f"app {i}": 1.0 for i in range(MAX_APPS + 1)}
    most = dict(list(many.items())[:-1])
    ranker.phone(most, list(most.items()))
    for too_many in ((many, []), ({}, list(many.items()))):
        with pytest.raises(InputError, match="over 2000 apps or openings"):
            ranker.phone(*too_many)


def test_the_apps_of_a_composition_are_forgotten_at_the_next():
    def one_of(value):  # the first of two has app 0, the second none
        return np.array([0, 1, 1]), np.array([0]), np.array([value])

    installed, weights, shares = one_of(2.0), one_of(3.0), one_of(0.5)
    scores, query = np.zeros((2, 1)), np.zeros((2, 1), int)
    _score_moments(
        *(np.array([0, 1]), query, 1, installed, installed[:2], weights, shares),
        *(np.array([0.25]), scores),
    )
    assert scores.ravel().tolist() == [2.0 * 3.0 + 0.5 * 0.25, 0.0]


@pytest.mark.parametrize("query", [-1, 2])
def test_a_query_that_no_app_was_learned_for_gets_nothing_of_them(query):
    table = np.array([0, 1, 2]), np.array([0, 0]), np.array([3.0, 5.0])
    scores = np.zeros(1)
    score_candidates(
        np.array([query]), np.ones(1), np.zeros(1, int), table, table, np.ones(1), scores
    )
    assert scores.tolist() == [0.0]
