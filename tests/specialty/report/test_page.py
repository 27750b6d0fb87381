import numpy as np
import pytest

from telic.specialty.discovery.declared_codes import NONE_DECLARED, SMALL_CODES, declared_codes
from telic.specialty.report.page import _added


class Log:
    def __init__(self, *sizes):
        self.taxonomy = np.repeat([name for name, _ in sizes], [n for _, n in sizes])


class One:
    def __init__(self, log, listed_code=None):
        self.users, self.listed_code = np.arange(len(log.taxonomy)), listed_code


def test_the_two_tables_of_declared_codes_agree_on_what_is_hidden():
    # 49 users, 29 of the code: beside it there is no other large count to withhold.
    log = Log(("Urology", 29), ("Surgery", 10), ("", 10))
    found = declared_codes(log, One(log, "Urology"))
    assert found == dict.fromkeys(("Urology", SMALL_CODES, NONE_DECLARED), "withheld")


def test_frequent_codes_are_named_and_the_rest_are_one_row():
    log = Log(("Urology", 20), ("Surgery", 15), ("Nursing", 8), ("Family", 7), ("", 12))
    found = declared_codes(log, One(log))
    assert found == {"Urology": 20, "Surgery": 15, SMALL_CODES: 15, NONE_DECLARED: 12}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1200, 15], 1215),
        ([0, "<11"], "<11"),
        ([15, "<11"], "withheld"),
        (["withheld", 0], "withheld"),
        ([0], 0),
        ([], 0),
    ],
)
def test_a_sum_tells_no_more_than_its_parts(cells, expected):
    assert _added(cells) == expected
