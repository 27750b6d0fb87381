"""The numbers that make a simulated typist, each with its source, and the named settings.

No public log holds dwell times and suggestion lists, so typists are made up, openly: `calibrated`
comes from published marginals alone (`docs/measured/data-card-typists.md` shows them beside what is
reached) and two more settings bracket it, one in which lists are never looked at and one in which a
link between dwell and reading is planted.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from telic.errors import InputError

FREE = "free"
"""Not published as a number: to be swept, never tuned for gain."""

LI = "Li et al. 2014"


def _value(default: Any, source: str, unit: str = "") -> Any:
    return field(default=default, metadata={"source": source, "unit": unit})


@dataclass(frozen=True, kw_only=True)
class TypistParameters:
    """How simulated people want, type, look and choose; the defaults are `calibrated`.

    Each field's ``metadata`` hold its ``source`` and ``unit``. Sections and figures are those of
    the adaQAC chapter. Raises `InputError` where a share is not between 0 and 1.

    Examples
    --------
    >>> TypistParameters().accept
    0.85
    """

    # What is wanted
    popularity_exponent: float = _value(0.75, "with attention: the final prefix; " + FREE)
    unlisted_share: float = _value(0.19, f"set so that about 60 % skip the wanted query ({LI})")
    habit_share: float = _value(
        0.33, "a third repeat an own query (Teevan et al. 2007, from memory)"
    )
    trend_share: float = _value(0.1, FREE)
    trends: int = _value(60, FREE)
    trend_days: tuple[float, float] = _value((2.0, 28.0), FREE, "days")
    edit_share: float = _value(0.04, FREE)
    days: float = _value(150.0, "28 February to 28 July (section 2.4.1)", "days")

    # How it is typed
    key_seconds: tuple[float, float] = _value(
        (0.13, 0.25),
        "medians 0.13 to 0.19 (Aalto), mean 0.24 (Dhakal et al. 2018, from memory)",
        "s",
    )
    slow_share: float = _value(0.2, "2 of 10 users are slow (Figure 2.2a)")
    key_spread_users: float = _value(0.15, f"users differ (Figure 2.2b); size: {FREE}", "log s")
    key_spread: float = _value(0.45, f"long tail (Figure 2.2a); size: {FREE}", "log s")
    word_pause: float = _value(1.6, FREE, "times")
    hesitation_share: float = _value(0.03, f"long tail (Figure 2.2a); size: {FREE}")
    hesitation_seconds: float = _value(0.9, f"long tail (Figure 2.2a); size: {FREE}", "s")
    typo_rate: float = _value(
        0.03, "6 % of keystrokes correct others (Dhakal et al. 2018, from memory)", "per character"
    )

    # Whether and how deep a list is read, and what follows
    attention: float = _value(
        0.7, "set so that the final prefix has 8.5 characters (section 2.4.1)"
    )
    attention_spread: float = _value(1.0, f"users differ ({LI}); size: {FREE}", "logit")
    look_word_end: float = _value(0.7, f"named in {LI}, from memory; size: {FREE}", "logit")
    look_hesitation: float = _value(1.5, f"named in {LI}, from memory; size: {FREE}", "logit")
    look_length: float = _value(
        0.08, f"named in {LI}, from memory; size: {FREE}", "logit per character"
    )
    middle_length: float = _value(8.5, "where look_length counts from", "characters")
    depth: tuple[float, ...] = _value(
        (0.0, *(0.75**i for i in range(10))),
        f"lower positions are read less ({LI}); shape: {FREE}",
        "odds of reading 0, 1, … lines",
    )
    accept: float = _value(0.85, f"reading without choosing exists (section 2.2.1); size: {FREE}")
    read_seconds: float = _value(
        0.08, "with key_seconds: the inter-key median; " + FREE, "s per line"
    )
    choose_seconds: float = _value(0.4, FREE, "s")
    blind_length: float | None = _value(None, "only in `inattentive`: mean length", "characters")
    max_dwell: float = _value(6.0, "twice the 3 s at which the model cuts (Table 2.2)", "s")

    def __post_init__(self) -> None:
        shares = [each.name for each in fields(self) if each.name.endswith("_share")]
        for name in ("attention", "accept", "typo_rate", *shares):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected a number from 0 to 1.")
        if min(self.depth) < 0 or not sum(self.depth) > 0:
            raise InputError(f"depth is {self.depth}, expected odds >= 0, not all of them 0.")


SETTINGS: dict[str, TypistParameters] = {
    "calibrated": TypistParameters(),
    "inattentive": TypistParameters(attention=0.0, blind_length=8.5, word_pause=1.0),
    "readers": TypistParameters(
        attention=1.0,
        depth=(0.4, 0.05, 0.05, 0.05, *(0.45 / 7,) * 7),
        accept=1.0,
        word_pause=1.0,
        hesitation_share=0.0,
        read_seconds=0.25,
        choose_seconds=0.0,
    ),
}
"""
============  =====================================================================================
calibrated    From published marginals only. Users look at some lists, more at word ends, when they
              hesitate and when they have typed more, and read from the top to a drawn depth.
inattentive   Control. Nobody looks. The length at which a query is submitted is drawn before any
              list is shown, and all dwells of a user are independent draws from one distribution:
              lists and dwells say nothing about the wanted query beyond its prefix. `selected` is
              the position of the query in the last list, null where it is not there.
readers       Planted effect. Lists are read from the top down to a depth that is drawn anew at each
              keystroke (40 % none, 15 % one to three lines, 45 % four to ten); dwell grows by a
              fixed time per line; a wanted query that is read is chosen. So a long dwell says
              "read and not wanted".
============  =====================================================================================
"""
