"""What a specialty's users declare, as it may be shown."""

from dataclasses import replace

import numpy as np

from telic.specialty.discovery.result import Specialty
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import SMALL_CELL, cells

NONE_DECLARED = "none declared"
SMALL_CODES = f"other codes, fewer than {SMALL_CELL} users each"
OTHER_CODES = "other codes"


def declared_codes(log: AccessLog, one: Specialty) -> dict[str, int | str]:
    """What a specialty's users declare, and how many, as it may be shown.

    The code that names the specialty comes first, then the frequent ones, the rest and none. A code
    that is named has at least `SMALL_CELL` users. Where that is all that would be told of it, none
    but the specialty's own is: with the total it could tell a small count.
    """
    declared = log.taxonomy[one.users]
    codes, counts = np.unique(declared[declared != ""], return_counts=True)
    size = {str(codes[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable")}
    listed = one.listed_code
    numbers = {listed: size.pop(listed, 0)} if listed else {}
    numbers |= {code: n for code, n in size.items() if n >= SMALL_CELL}
    numbers[SMALL_CODES] = sum(n for n in size.values() if n < SMALL_CELL)
    numbers[NONE_DECLARED] = int((declared == "").sum())
    shown = cells(list(numbers.values()))
    if "withheld" in shown and not any(isinstance(count, int) and count for count in shown):
        own = numbers.get(listed, 0) if listed else 0
        others = sum(numbers.values()) - own - numbers[NONE_DECLARED]
        kept = {listed: own} if listed else {}
        numbers = {**kept, OTHER_CODES: others, NONE_DECLARED: numbers[NONE_DECLARED]}
        shown = cells(list(numbers.values()))
    return dict(zip(numbers, shown, strict=True))


def declaration(log: AccessLog, one: Specialty) -> str:
    """Say how many declared members declare a specialty's code, with Wilson's 95 % interval.

    No number here tells more than `declared_codes` shows, so where that withholds one, this does.
    """
    if one.evidence is None:
        return "The findings do not tell which code its members declare"
    if one.evidence.code is None:
        return "No member declares a code"
    code, numbers = one.evidence.code, declared_codes(log, one)
    unnamed = "withheld" if OTHER_CODES in numbers else f"<{SMALL_CELL}"
    declaring, none = numbers.get(code, unnamed), numbers[NONE_DECLARED]
    if declaring == "withheld":
        return f"Withheld: how many declared members declare {code}"
    if isinstance(declaring, str) or isinstance(none, str) or len(one.users) < SMALL_CELL:
        return f"{declaring} declared members declare {code}"
    declared = len(one.users) - none  # in this log, which may be later than the evidence
    here = replace(one.evidence, declaring=declaring, declared=declared)
    low, high = (f"{bound:.0%}" for bound in here.interval())
    return f"{declaring} of {declared} declared members declare {code} (95 %: {low} to {high})"
