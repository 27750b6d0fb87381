import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from telic import errors
from telic.errors import (
    InputError,
    JobError,
    ModelError,
    TelicError,
    expect_above,
    expect_at_least,
    expect_one_of,
    expect_whole,
    warn_unconverged,
)


@pytest.mark.parametrize("kind", [InputError, ModelError, JobError])
def test_a_message_is_one_line_even_where_it_quotes_a_library(kind):
    quoted = kind("x.csv cannot be read (line 3:\n  too few  values\n).")
    assert isinstance(quoted, TelicError)
    assert str(quoted) == "x.csv cannot be read (line 3: too few values)."
    # What has one line already stays as it is, and so does a name with two spaces in it.
    assert str(kind("a  b.csv ( ) is missing")) == "a  b.csv ( ) is missing"


def test_the_tree_shows_every_error():
    found = {"TelicError": ""}
    for file in Path(errors.__file__).parent.rglob("*.py"):
        classes = re.findall(r"^class (\w+)\((\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        found |= {name: base for name, base in classes if base.endswith(("Error", "Lost"))}
    shown = {*re.findall(r"(\w+)  ", errors.__doc__), "TelicError"}
    assert {name for name, base in found.items() if base in ("", *found)} == shown


def test_what_is_not_among_the_names_known_is_refused():
    expect_one_of(("raise", "skip"), first="raise", second="skip")
    for known in (("raise", "skip"), {"raise": 1, "skip": 2}):
        with pytest.raises(InputError, match=r"^how is 'add', expected one of raise, skip\.$"):
            expect_one_of(known, first="raise", how="add")
        with pytest.raises(InputError, match=r"^how is \['raise'\], expected one of"):
            expect_one_of(known, how=["raise"])


def test_numbers_below_a_bound_or_that_are_none_are_refused():
    expect_at_least(1, first=1, second=np.int64(3), third=2.5)
    expect_above(0, first=1e-300)
    expect_at_least(1, of_any_size=10**400)
    for value in (0, 0.5, np.nan, np.inf, "3", None):
        with pytest.raises(InputError, match=rf"^k is {value!r}, expected a finite number >= 1\.$"):
            expect_at_least(1, first=1, k=value)
    expect_whole(1, first=1, second=np.int64(3), of_any_size=10**400)
    for value in (0, 2.5, 2.0, True, np.nan, np.inf, "3", None):
        with pytest.raises(InputError, match=rf"^k is {value!r}, expected a whole number >= 1\.$"):
            expect_whole(1, first=1, k=value)
    for value in (0, -1.0, np.nan, np.inf, "3", None):
        with pytest.raises(InputError, match=rf"^C is {value!r}, expected a finite number > 0\.$"):
            expect_above(0, first=1, C=value)


def test_a_warning_of_a_fit_points_at_the_line_that_the_caller_means():
    def inner(level):
        warn_unconverged("stopped early", stacklevel=level)  # level 1: this line

    def outer(level):
        inner(level)  # level 2: this line

    begin = outer.__code__.co_firstlineno
    for level, line in ((1, begin - 2), (2, begin + 1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outer(level)
        assert [(w.filename, w.lineno, str(w.message)) for w in caught] == [
            (__file__, line, "stopped early")
        ]
