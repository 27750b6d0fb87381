"""The numbers that make a simulated typist, each with its source, and the named settings.

No public log holds dwell times and suggestion lists, so typists are made up, openly: `calibrated`
comes from published marginals alone (`docs/data-card-typists.md` shows them beside what is reached)
and two more settings bracket it, one in which lists are never looked at and one in which a link
between dwell and reading is planted.
"""

import dataclasses
from dataclasses import dataclass


def _value(default, source, unit=""):
    return dataclasses.field(default=default, metadata={"source": source, "unit": unit})


FREE = "not published: swept in studies, never tuned for gain"
DHAKAL = "Dhakal et al. 2018"


@dataclass(frozen=True, kw_only=True)
class TypistParameters:
    """How simulated people want, type, look and choose; the defaults are `calibrated`.

    Each field carries its source in ``field.metadata["source"]``.
    """

    popularity_exponent: float = _value(0.5, FREE)
    habit_share: float = _value(
        0.33, "a third of queries repeat the user's own, Teevan et al. 2007"
    )
    unlisted_share: float = _value(
        0.25, "set so that about 60 % skip the wanted query (Li et al. 2014)"
    )
    trend_share: float = _value(0.10, FREE)
    trends: int = _value(60, FREE)
    trend_days: tuple[float, float] = _value((2.0, 28.0), "days to weeks; " + FREE, "days")
    edit_share: float = _value(0.04, FREE)
    days: float = _value(150.0, "Feb 28 to Jul 28 (seed 2.4.1)", "days")

    key_seconds: tuple[float, float] = _value(
        (0.16, 0.30), "median 0.13 to 0.19 (Aalto), mean 0.24 (Dhakal et al. 2018)", "s"
    )
    slow_share: float = _value(0.2, "2 of 10 users in the slow peak (seed, Figure 2.2a)")
    key_spread_users: float = _value(0.15, "spread of the peaks (seed, Figure 2.2b); " + FREE)
    key_spread: float = _value(0.45, "long tail (seed, Figure 2.2a); " + FREE)
    word_pause: float = _value(1.6, "words are typed in bursts; factor: " + FREE)
    hesitation_share: float = _value(0.03, "long tail (seed, Figure 2.2a); " + FREE)
    hesitation_seconds: float = _value(0.9, "long tail (seed, Figure 2.2a); " + FREE, "s")
    typo_rate: float = _value(0.03, "corrections are about 6 % of keystrokes, " + DHAKAL)

    attention: float = _value(
        0.5, "set so that the final prefix has about 8.5 characters (seed 2.4.1)"
    )
    attention_spread: float = _value(0.7, "users differ (Li et al. 2014); size: " + FREE)
    look_word_end: float = _value(0.7, "sign from Li et al. 2014; size: " + FREE, "logit")
    look_hesitation: float = _value(1.5, "sign from Li et al. 2014; size: " + FREE, "logit")
    look_length: float = _value(0.08, "sign from Li et al. 2014; size: " + FREE, "logit/char")
    middle_length: float = _value(8.5, "the mean final prefix (seed 2.4.1)", "characters")
    depth: tuple[float, ...] = _value(
        (0.0, *(0.75**i for i in range(10))),
        "lower positions are read less (Li et al. 2014); shape: " + FREE,
        "odds of reading 0, 1, … lines",
    )
    accept: float = _value(0.85, "reading without choosing exists (seed 2.2.1); size: " + FREE)
    read_seconds: float = _value(0.12, FREE, "s per line read")
    choose_seconds: float = _value(0.4, FREE, "s")
    blind_length: float | None = _value(None, "only in the setting inattentive", "characters")
    max_dwell: float = _value(6.0, "the model caps a dwell at 3 s (seed, Table 2.2)", "s")


SETTINGS: dict[str, TypistParameters] = {
    "calibrated": TypistParameters(),
    "inattentive": TypistParameters(
        attention=0.0,
        blind_length=8.5,
        word_pause=1.0,
    ),
    "readers": TypistParameters(
        attention=1.0,
        depth=(0.6, 0.05, 0.05, 0.05, *(0.25 / 7,) * 7),
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
              keystroke (six in ten not at all, one in four four lines or more); dwell grows by a
              fixed time per line; a wanted query that is read is chosen. So a long dwell says
              "read and not wanted".
============  =====================================================================================
"""
