"""Feedback as a group of the one ranker: adaQAC's features, fit and order on one log."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from telic.completion import PAPER, Lesson, Relevance, Replay, Saturation, fold
from telic.completion.fit.from_searches import completer_of_searches
from telic.completion.fit.sources import joined_logs
from telic.completion.learning.adaqac import FeedbackDesign, training_choices, unpersonalised
from telic.completion.learning.replayed_log import TEST, TRAIN
from telic.completion.signals import (
    FEATURES,
    STATIC,
    Lessons,
    choosing_moments,
    learn,
    lessons_of,
    measured,
)
from telic.completion.signals.compositions import Compositions, joined_submissions
from telic.completion.signals.groups import GROUPS, WIDTH
from telic.completion.signals.log_split import COUNTED, TESTED
from telic.completion.signals.pool import POPULAR
from telic.completion.signals.sweep import every_prefix, state_before, walk
from telic.completion.signals.weights import static_score
from telic.data.compositions import read_compositions
from telic.data.queries import QueryLog
from telic.errors import InputError
from telic.evaluate import reciprocal_ranks
from telic.simulate import Catalogue, simulate_typists

PRINTED = Relevance.named("mpc")
"""Popularity as adaQAC ranks by it, on the scale of its logarithm, which is the static order."""


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (60, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    table = simulate_typists(catalogue, setting="readers", users=12, compositions=40, seed=1)
    return read_compositions(table)


@pytest.fixture(scope="module")
def searches(log):
    return Compositions(log, joined_submissions(log), min_users=1)


@pytest.fixture(scope="module")
def replay(log):
    return Replay(log, min_compositions=4, min_users=1)


def whole(replay, part):
    """Last keystrokes whose candidates are so few that both rank all of them."""
    moments = replay.moments(PRINTED, replay.last_keystrokes(part), n=POPULAR)
    return moments.where((moments.candidates < 0).any(axis=1) & (moments.position >= 0))


def pieces_at(searches, log, compositions):
    """The signals' moments at the last keystrokes of some compositions."""
    event = np.empty(len(log), int)
    event[searches.composition[searches.asked]] = np.flatnonzero(searches.asked)
    events = np.sort(event[compositions])
    return list(walk(searches, events, searches.prefixes[events]))


def test_features_are_those_of_adaqac(searches, replay, log):
    """At every keystroke, of every candidate that both have."""
    moments = replay.moments(PRINTED, replay.every_keystroke(TRAIN, TEST), n=POPULAR)
    expected = {
        (int(k), fold(replay.index.phrase(int(q)))): row[:16]
        for k, own, rows in zip(
            moments.keystroke, moments.candidates, replay.features(moments), strict=True
        )
        for q, row in zip(own, rows, strict=True)
        if q >= 0
    }
    event = np.flatnonzero(searches.asked)
    compared = fed_back = 0
    for piece in walk(searches, *every_prefix(searches, event)):
        assert piece.features.shape[2] == len(FEATURES)
        place = {int(e): 0 for e in np.unique(piece.event)}
        for t in range(len(piece)):
            e = int(piece.event[t])
            k = int(log.keystroke_start[searches.composition[e]]) + place[e]
            place[e] += 1
            for q, row in zip(piece.candidates[t], piece.features[t], strict=True):
                key = k, fold(searches.index.phrase(int(q))) if q >= 0 else None
                if key in expected:
                    assert row[WIDTH:] == pytest.approx(expected[key]), key
                    compared, fed_back = compared + 1, fed_back + bool(row[WIDTH:].any())
    assert compared > 5000
    assert fed_back > 500


@pytest.mark.parametrize("l2", [0.1, 10.0])
def test_with_feedback_alone_the_fit_is_adaqac(searches, replay, log, l2):
    """Its own estimator on the same compositions: one optimum, and the same order in the test."""
    moments = whole(replay, TRAIN)
    assert len(moments) > 100
    design = FeedbackDesign.of(
        replace(PAPER, saturation=None), [(moments, replay.features(moments))]
    )
    choices, _ = training_choices(
        replay,
        moments,
        replay.features(moments),
        design,
        relevance=PRINTED,
        keep_unlisted=False,
    )
    everyone, _ = unpersonalised(choices, l2=l2, variant="pooled")
    lessons = Lessons(pieces_at(searches, log, moments.composition), saturation=None)
    found = lessons.fit({"feedback": l2})
    assert found.choices == len(choices)
    assert found.objective == pytest.approx(choices.loss(everyone, l2=l2), rel=1e-9)
    assert found.deviations[WIDTH:] == pytest.approx(design.deviations)
    fitted = found.weights[WIDTH:] * found.deviations[WIDTH:]
    # Both are within their gaps of one optimum: l2 / 2 |w - w*|^2 is at most the gap.
    assert np.abs(fitted - everyone).max() <= 2 * np.sqrt(2 * max(found.gap, 1e-12) / l2)
    # And at every keystroke that is tested, every query has the rank that adaQAC gives it.
    tested = whole(replay, TEST)
    scores = design.scores(replay.features(tested), tested.relevance, everyone)
    expected = dict(
        zip(tested.composition.tolist(), reciprocal_ranks(scores, tested.position), strict=True)
    )
    for piece in pieces_at(searches, log, tested.composition):
        ranks = reciprocal_ranks(found.scores(piece), piece.position)
        for e, rank in zip(piece.event, ranks, strict=True):
            assert rank == pytest.approx(expected[int(searches.composition[e])])
    assert found.weights[WIDTH:].any()


def test_bounds_hold_for_every_candidate(searches):
    saturation = Saturation(0.5, 0.3)
    rng = np.random.default_rng(0)
    events = np.flatnonzero(searches.asked)
    moments = list(walk(searches, events, searches.prefixes[events]))
    found = Lessons(moments, saturation).fit({"feedback": 0.01})
    free = Lessons(moments, None).fit({"feedback": 0.01})
    assert found.bound == 0.3
    for piece in moments:
        fed_back = (found.scores(piece) - static_score(piece))[piece.known]
        assert np.abs(fed_back).max() <= 0.3 + 1e-12
        assert np.abs((free.scores(piece) - static_score(piece))[piece.known]).max() > 0.3
        # What is beyond the caps counts for nothing more.
        more = piece.features.copy()
        more[..., WIDTH:] += found.caps * rng.integers(1, 9)
        at_cap = piece.features.copy()
        at_cap[..., WIDTH:] = found.caps
        assert found.scores(replace(piece, features=more)) == pytest.approx(
            found.scores(replace(piece, features=at_cap))
        )


def test_every_group_has_a_penalty_and_a_gate(searches):
    lessons, chosen_by = lessons_of(searches), choosing_moments(searches)
    found = learn(searches, lessons, chosen_by)
    assert set(found.gates) == {*GROUPS, "pairs", "feedback"}
    assert [group for group, _ in searches.controls] == ["session", "pairs", "apps"]
    assert found.gap <= 1e-4 * (1 + found.objective)
    assert found.objective <= found.static
    with pytest.raises(InputError, match="tells nothing of 'apps'"):
        learn(searches, lessons, chosen_by, ("apps",))


def test_a_query_log_tells_nothing_of_feedback(make_log):
    from telic.completion.signals import Searches

    searches = Searches(make_log(0, rows=400, users=20), min_users=1)
    lessons = lessons_of(searches)
    with pytest.raises(InputError, match="penalty of 'feedback'"):
        lessons.fit({"feedback": 1.0})
    with pytest.raises(InputError, match="tells nothing of 'feedback'"):
        learn(searches, lessons, choosing_moments(searches), ("feedback",))


def test_caps_hold_for_what_is_learned(searches):
    """A fit with caps is one without them on features that were cut off before."""
    events = np.flatnonzero(searches.asked)
    moments = list(walk(searches, events, searches.prefixes[events]))
    found = Lessons(moments, Saturation(0.5, 1e9)).fit({"feedback": 1.0})
    cut = [
        replace(
            piece,
            features=np.concatenate(
                [piece.features[..., :WIDTH], np.minimum(piece.features[..., WIDTH:], found.caps)],
                axis=2,
            ),
        )
        for piece in moments
    ]
    assert any(
        (one.features != other.features).any() for one, other in zip(cut, moments, strict=True)
    )
    assert found.weights == pytest.approx(Lessons(cut, None).fit({"feedback": 1.0}).weights)


MINUTE = 60 * 1_000_000


def composed(*rows):
    """A log of (user, begun, submitted, query), in minutes; each is typed by one keystroke."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def at(minute):
        return start + dt.timedelta(minutes=minute)

    return read_compositions(
        pa.table(
            {
                "user": [row[0] for row in rows],
                "composition": [str(i) for i in range(len(rows))],
                "query": [row[3] for row in rows],
                "submitted_at": [at(row[2]) for row in rows],
                "selected": pa.nulls(len(rows), pa.int16()),
                "keystrokes": [
                    [{"at": at(row[1]), "prefix": row[3][0], "suggestions": ["tea", "pear"]}]
                    for row in rows
                ],
            }
        )
    )


def test_everything_is_as_of_the_first_keystroke():
    log = composed(
        ("ann", 0, 1, "tea"),
        ("ben", 0, 2, "tea"),
        ("ann", 30, 40, "toast"),  # begun 29 minutes after the one before, submitted 39 after
        ("ann", 31, 45, "tart"),  # begun before that was submitted
        ("ann", 60, 61, "tea"),
        ("ben", 59, 62, "tea"),  # begun before ann's was submitted
    )
    searches = Compositions(log, joined_submissions(log), min_users=1)
    assert searches.before.tolist() == [-1, -1, 0, 0, 3, -1]
    (moments,) = walk(searches, np.arange(6), np.ones(6, int))
    row = {int(e): t for t, e in enumerate(moments.event)}
    tea = searches.query[0]
    counts = []
    for e in range(6):
        found = moments.candidates[row[e]].tolist()
        counts.append(
            np.expm1(moments.features[row[e], found.index(tea), 0]) if tea in found else 0
        )
    assert counts == pytest.approx([0, 0, 2, 2, 2, 2])
    own = moments.features[row[4], moments.candidates[row[4]].tolist().index(tea)]
    assert own[FEATURES.index("how lately")] == pytest.approx(1 / (1 + 59 / (24 * 60)))
    # Feedback has the query before, however long ago it was: of the same user, and submitted.
    assert searches._previous.tolist() == [-1, -1, tea, tea, searches.query[3], tea]
    # The box that is taught goes by the beginnings, too; of what overlapped it knows all.
    box = completer_of_searches(searches, STATIC, at=int(searches.begin[0]))
    ann = box.user("ann")
    for c in (0, 2, 3):
        began, at = int(searches.begin[c]), int(searches.at[c])
        lesson = Lesson(log.phrases[log.query[c]], at=at, began=began)
        box.teach(ann, lesson)
    assert ann.session == ["tart", "toast", "tea"]
    assert ann.latest_session(int(searches.at[3]) + 31 * MINUTE, 30.0) == []


def test_other_logs_count_and_are_not_learned_from(log, searches):
    rng = np.random.default_rng(0)
    m = 200
    other = QueryLog(
        ["aa bb", log.phrases[0]],
        rng.integers(0, 2, m).astype(np.int32),
        np.sort(rng.integers(log.submitted_at[0], log.submitted_at[-1], m)),
        [log.users[0], None],
        rng.integers(0, 2, m).astype(np.int32),
        np.ones(m),
    )
    both = Compositions(log, joined_logs([joined_submissions(log), other]), min_users=1)
    assert both.asked.sum() == len(log)
    assert (both.part[~both.asked] == COUNTED).all()
    assert (both.part[both.asked] == searches.part).all()
    assert (both.prefixes[~both.asked] == 0).all()
    popular = state_before(both, 10**18).popular
    assert popular[both.number[len(log.phrases)]] == (other.query == 0).sum()
    assert popular[both.number[0]] == (other.query == 1).sum() + (log.query == 0).sum()


def test_a_list_in_another_spelling_feeds_back_all_the_same(searches):
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("DwellT")] = -1.0
    box = completer_of_searches(
        searches, replace(STATIC, weights=weights, penalties={"feedback": 1})
    )
    text = box.index.phrase(int(box.index.top("a")[0]))
    composition = box.compose(box.user())
    composition.suggest(text[:1], at=0.0)
    composition.shown([text.upper()])
    found = {each.text: each.feedback for each in composition.suggest(text[:2], at=2.0)}
    assert found.pop(text) == pytest.approx(-2.0)
    assert not any(found.values())


@pytest.mark.parametrize("saturation", [None, Saturation(0.9, 0.5)], ids=["printed", "bounded"])
def test_the_evaluation_reports_what_is_served(searches, log, saturation):
    """Users are taught by their submissions alone, and say which lists they really saw."""
    events = np.flatnonzero(searches.part != COUNTED)
    lessons = Lessons(walk(searches, events, searches.prefixes[events]), saturation)
    weights = lessons.fit({"popularity": 10.0, "personal": 10.0, "session": 10.0, "feedback": 0.1})
    found = measured(searches, {"model": weights})
    users, served = {}, []
    for e in dict.fromkeys(found.event.tolist()):
        name, c = searches.names[searches.user[e]], int(searches.composition[e])
        begin = int(searches.begin[e])
        completer = completer_of_searches(searches, weights, at=begin)
        known = completer.user(name)
        user = users.setdefault(name, known)
        for part in ("history", "last", "session", "previous"):
            assert getattr(user, part) == getattr(known, part)
        composition = completer.compose(user, at=begin)
        query = fold(log.phrases[log.query[c]])
        for k in range(log.keystroke_start[c], log.keystroke_start[c + 1]):
            at = (int(log.at[k]) - begin) / 1e6
            shown = composition.suggest(log.prefixes[log.prefix[k]], at=at)
            texts = [fold(each.text) for each in shown]
            served.append(1 / (texts.index(query) + 1) if query in texts else 0.0)
            listed = log.shown[log.list_start[k] : log.list_start[k + 1]]
            composition.shown([log.phrases[q] for q in listed])
            for each in shown:
                assert abs(each.feedback) <= weights.bound + 1e-9
                assert sum(each.explain().signals.values()) == pytest.approx(each.signals)
        lesson = composition.lesson(log.phrases[log.query[c]])
        completer.teach(user, replace(lesson, at=int(searches.at[e])))
    assert found.ranks["model"].tolist() == served
    assert completer.simulated
    assert (searches.part[found.event] == TESTED).all()
