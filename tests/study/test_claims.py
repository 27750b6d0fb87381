from math import inf, nan, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.report import Table
from telic.study.claims import (
    TOO_WIDE,
    Cases,
    Claim,
    Effect,
    Found,
    NotInRun,
    NotTestable,
    Printed,
    Tables,
    Value,
    Verdict,
    cases,
    judge,
)

HOLDS, DIRECTION, NOT, UNTESTED = Verdict
numbers = st.floats(-1e6, 1e6)


BIT = 2.0**-20
"""Small, and exact beside the other numbers."""


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (BIT, 0.5, HOLDS),  # reaches the published size
        (BIT, 0.5 - BIT, DIRECTION),
        (0.75, 1.0, HOLDS),  # more than published
        (0.0, 0.5 - BIT, NOT),  # no effect is not ruled out, the size is
        (0.0, 0.5, UNTESTED),  # neither is
        (-0.25, 1.0, UNTESTED),
        (-0.25, -0.125, NOT),
    ],
)
@pytest.mark.parametrize("none", [0.0, 1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_by_its_interval(low, high, verdict, none, sign):
    ends = sorted([none + sign * low, none + sign * high])
    found = Found(sum(ends) / 2, *ends)
    assert Effect(none + sign * 0.5, none=none).verdict(found) == verdict


def test_a_difference_without_interval_is_its_own_interval():
    rule = Effect(-2.0)
    assert [rule.verdict(Found(v)) for v in (-2.0, -1.9, 0.0)] == [HOLDS, DIRECTION, NOT]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.5, 9.0, HOLDS),
        (nextafter(1.5, inf), 9.0, NOT),
        (-9.0, 0.5, HOLDS),
        (-9.0, nextafter(0.5, -inf), NOT),
        (-9.0, 9.0, HOLDS),
    ],
)
def test_a_value_holds_where_the_intervals_meet(low, high, verdict):
    assert Value(1.0, 0.5).verdict(Found(0.0, low, high)) == verdict


@pytest.mark.parametrize(
    ("true", "of", "verdict"),
    [(4, 4, HOLDS), (6, 8, HOLDS), (5, 8, DIRECTION), (4, 8, NOT), (3, 4, HOLDS), (0, 4, NOT)],
)
def test_cases_by_the_published_share_and_by_half(true, of, verdict):
    found = cases([True] * true + [False] * (of - true))
    assert Cases(3, 4).verdict(found) == verdict


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 50), st.integers(1, 50))
def test_the_verdict_on_cases_by_definition(published, of, true, ours):
    found = cases([True] * min(true, ours) + [False] * (ours - min(true, ours)))
    share, wanted = min(true, ours) / ours, min(published, of) / of
    expected = HOLDS if share >= wanted - 1e-12 else DIRECTION if share > 0.5 else NOT
    assert Cases(min(published, of), of).verdict(found) == expected


@given(numbers, numbers, numbers, st.floats(0, 1e6))
def test_more_never_makes_a_positive_difference_worse(value, wide, more, size):
    rule = Effect(size + 1.0)
    order = [NOT, UNTESTED, DIRECTION, HOLDS]
    before = rule.verdict(Found(value, value - abs(wide), value + abs(wide)))
    raised = value + abs(more)
    after = rule.verdict(Found(raised, raised - abs(wide), raised + abs(wide)))
    assert order.index(after) >= order.index(before)


def test_cases_that_nobody_counted_are_a_mistake_of_ours():
    with pytest.raises(ValueError, match="are counted by"):
        Cases(3, 4).verdict(Found(3))


def test_no_case_is_no_verdict():
    with pytest.raises(NotInRun):
        cases([])


def test_numbers_are_shown_as_the_rule_says():
    effect = Effect(0.1071, "100 +.2f")
    assert effect.published_words() == "+10.71"
    assert effect.found_words(Found(-0.02, -0.03, 0.01)) == "−2.00 [−3.00, +1.00]"
    assert Value(0.95, 0.0022, ".4f").published_words() == "0.9500 ± 0.0022"
    assert Cases(3, 4).published_words() == "3 of 4"
    assert Cases(3, 4).found_words(cases([True, False])) == "1 of 2"


TABLES = Tables(
    [
        Table(
            "Gains: points", {"model": "", "top of": "", "gain": ""}, [["a", 1, 2.0], ["b", 1, 3]]
        ),
        Table("Gains: percent", {"model": ""}, [["a"]]),
    ]
)


def test_a_row_is_found_by_title_and_columns():
    assert TABLES.row("Gains: points", model="a", top_of=1)["gain"] == 2.0
    assert len(TABLES.rows("Gains: po", top_of=1)) == 2
    assert TABLES.has("Gains")
    assert not TABLES.has("Losses")


def test_a_row_that_a_small_run_has_not_is_no_mistake():
    with pytest.raises(NotInRun, match="model c"):
        TABLES.rows("Gains: points", model="c")


@pytest.mark.parametrize(
    ("title", "equal"),
    [("Gains", {}), ("Losses", {}), ("Gains: points", {"method": "a"}), ("Gains: points", {})],
)
def test_a_wrong_name_is_a_mistake(title, equal):
    with pytest.raises(LookupError) as error:
        TABLES.row(title, **equal)
    assert not isinstance(error.value, NotInRun)


def claim(ours, rule=None, **options):
    return Claim("Table 2.3", "it rises", rule or Effect(1.0), ours, **options)


def test_a_claim_that_is_tried(tmp_path):
    found = judge(
        claim(lambda t: Found(t.row("Gains: points", model="a")["gain"])), TABLES, tmp_path
    )
    assert (found.verdict, found.found.value, found.why, found.broken) == (HOLDS, 2.0, "", False)
    assert found.as_json() | {"ours": 2.0, "verdict": "holds", "published": 1.0} == found.as_json()


def test_an_interval_that_tells_nothing_says_so(tmp_path):
    found = judge(claim(lambda tables: Found(0.5, -1.0, 2.0)), TABLES, tmp_path)
    assert (found.verdict, found.why, found.broken) == (UNTESTED, TOO_WIDE, False)
    assert found.found_words() == "0.5 [-1.0, 2.0]".replace("-", "−")


@pytest.mark.parametrize("rule", [Effect(1.0), Value(1.0, 0.5)])
@pytest.mark.parametrize("ours", [Found(nan), Found(2.0, nan, nan), Found(None)])
def test_no_number_is_no_verdict(rule, ours, tmp_path):
    judged = judge(Claim("Table 1", "", rule, lambda tables: ours), TABLES, tmp_path)
    assert judged.verdict == UNTESTED
    assert judged.found_words() == ""
    assert "no number" in judged.why


def test_a_claim_that_cannot_be_tried_says_why(tmp_path):
    (tmp_path / "there.npz").touch()

    def too_small(tables):
        raise NotInRun("only two sets")

    def tried(*arguments, **options):
        found = judge(*arguments, tmp_path, **options)
        assert found.verdict == UNTESTED
        assert found.found is None
        return found.why, found.broken

    private = claim(None, NotTestable("24 %", "the log is private"))
    assert tried(private, TABLES) == ("the log is private", False)
    away = claim(too_small, needs=("there.npz", "away.npz"))
    assert tried(away, TABLES) == ("no data: away.npz", False)
    assert tried(claim(too_small), TABLES) == ("only two sets", False)
    assert tried(claim(too_small), None, why="no data: ml") == ("no data: ml", False)
    assert tried(claim(too_small), None, why="it broke", failed=True) == ("it broke", True)
    why, broken = tried(claim(lambda tables: tables.row("Losses")), TABLES)
    assert broken
    assert "Losses" in why


def test_published_numbers_stand_beside_ours():
    def ours(tables, row, column):
        return tables.row("Gains: points", model=row)[column]

    cells = {("a", "gain"): 1.5, ("c", "gain"): 0.5, ("b", "gain"): 3.0, ("b", "top of"): 1.0}
    printed = Printed(("Table 2.3",), "Table 2.3", "model", ".1f", cells, ours)
    assert printed.table(TABLES).cells() == [
        ["a", "1.5 / 2.0", "—"],
        ["c", "0.5 / —", "—"],
        ["b", "3.0 / 3.0", "1.0 / 1.0"],
    ]
    assert printed.table(None).cells()[0] == ["a", "1.5 / —", "—"]
    wrong = Printed(("Table 2.3",), "", "", "", cells, lambda tables, row, column: tables.row("x"))
    with pytest.raises(LookupError, match="0 tables"):
        wrong.table(TABLES)
