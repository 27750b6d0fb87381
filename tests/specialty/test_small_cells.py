import itertools

from telic.specialty.small_cells import cells


def possible(texts, total):
    """Every list of counts that a reader who knows the total can make the texts mean."""
    least = 11 if "<11" in texts else 1
    ranges = [
        range(1, 11)
        if text == "<11"
        else range(least, total)
        if text == "withheld"
        else [int(text)]
        for text in texts
    ]
    return [counts for counts in itertools.product(*ranges) if sum(counts) == total]


def test_no_small_cell_is_had_by_subtraction():
    for counts in itertools.product([0, 1, 2, 9, 10, 11, 12, 29], repeat=3):
        if sum(counts) < 11:
            continue
        texts = cells(counts)
        found = possible(texts, sum(counts))
        assert counts in found
        for i, count in enumerate(counts):
            if 0 < count < 11:
                assert len({one[i] for one in found}) > 1, (counts, texts)


def test_two_cells_of_ten_withhold_the_count_beside_them():
    assert cells([29, 10, 10]) == ["withheld", "<11", "<11"]
    assert cells([29, 10, 9]) == [29, "<11", "<11"]
