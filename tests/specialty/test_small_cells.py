import itertools
from collections import defaultdict

import pytest

from telic.specialty.small_cells import cells


def parts(total, n):
    """Every list of n counts that add up to a total."""
    if n == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in parts(total - first, n - 1)]


@pytest.mark.parametrize(("n", "largest"), [(2, 60), (3, 45), (4, 38)])
def test_no_small_count_is_had_by_who_knows_the_total_and_the_rule(n, largest):
    for total in range(11, largest + 1):
        alike = defaultdict(list)
        for counts in parts(total, n):
            alike[tuple(cells(counts))].append(counts)
        for texts, possible in alike.items():
            for place in range(n):
                values = {counts[place] for counts in possible}
                if len(values) == 1:
                    assert not 0 < values.pop() < 11, (total, texts)


def test_who_can_add_up_does_not_learn_the_largest_small_count():
    """If 13 of 47 were shown, two counts from 11 to 12 and a small one would make 34: it is 10."""
    assert cells([10, 12, 12, 13]) == ["withheld"] * 4
    assert cells([9, 12, 12, 14]) == ["<11", "withheld", "withheld", 14]


def test_what_is_shown_is_true():
    for counts in itertools.product([0, 1, 10, 11, 12, 29, 80], repeat=4):
        for count, text in zip(counts, cells(counts), strict=True):
            if text == "<11":
                assert 0 < count < 11
            elif text != "withheld":
                assert text == count


def test_where_nothing_is_small_everything_is_shown():
    assert cells([36, 16, 0]) == [36, 16, 0]
    assert cells([3, 2, 0]) == ["<11", "<11", 0]  # the total is a small cell itself


def test_a_table_keeps_what_tells_nothing():
    assert cells([90, 36, 16, 3]) == [90, "withheld", "withheld", "<11"]
    assert cells([90, 36, 36, 16, 3, 2]) == [90, *["withheld"] * 3, "<11", "<11"]
    assert cells([50, 11, 11, 1]) == ["withheld"] * 4  # 23 - 2 * 11 would tell the 1
