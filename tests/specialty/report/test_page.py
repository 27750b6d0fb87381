import numpy as np
import pytest

from telic.specialty.discovery.declared_codes import (
    NONE_DECLARED,
    OTHER_CODES,
    SMALL_CODES,
    declaration,
    declared_codes,
)
from telic.specialty.discovery.result import Evidence
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
    assert found == dict.fromkeys(("Urology", OTHER_CODES, NONE_DECLARED), "withheld")


def test_no_list_of_declared_codes_pins_a_small_count():
    """Whoever knows the total, the rule and that a named code has at least 11 users finds two."""
    told = {}
    for total in range(11, 27):
        for listed in range(total + 1):
            for named in range(total - listed + 1):
                for other in range(min(10, total - listed - named) + 1):
                    none = total - listed - named - other
                    sizes = (("Urology", listed), ("Surgery", named), ("Other", other), ("", none))
                    log = Log(*sizes)
                    for own in (None, "Urology"):
                        shown = declared_codes(log, One(log, own))
                        key = total, own, tuple(shown.items())
                        counts = dict(sizes) | {NONE_DECLARED: none}
                        rows = [counts[name] for name in shown if name in counts]
                        told.setdefault(key, set()).add(tuple(rows))
    assert len(told) > 400
    for (_, _, shown), possible in told.items():
        names = [name for name, _ in shown if name not in (SMALL_CODES, OTHER_CODES)]
        for place, name in enumerate(names):
            values = {rows[place] for rows in possible}
            if not isinstance(dict(shown)[name], int):
                assert len(values) > 1 or min(values) >= 11, (shown, possible)


def test_a_code_of_all_but_one_is_not_named():
    log = Log(("Surgery", 11), ("", 1))
    found = declared_codes(log, One(log))
    assert found == {OTHER_CODES: "withheld", NONE_DECLARED: "withheld"}
    one = One(log)
    one.evidence = Evidence("Surgery", 11, 11, 0.5, 0.1, 3.0)
    assert declaration(log, one) == "Withheld: how many declared members declare Surgery"
    one.evidence = None
    assert declaration(log, one) == "The findings do not tell which code its members declare"


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
