"""The marginals of a composition log that are published for real ones."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from telic.data.compositions import read_compositions


class Published(NamedTuple):
    """What a publication says of one marginal."""

    value: str
    source: str
    reached: tuple[float, float] | None
    """Range that `calibrated` must meet; None: shown for comparison only."""


PUBLISHED = {
    "shown_but_skipped": Published("about 0.60", "Li et al. 2014", (0.55, 0.65)),
    "final_prefix": Published("8.53", "adaQAC, section 2.4.1", (8.0, 9.1)),
    "keystrokes_saved": Published("> 0.50", "adaQAC, section 2.1", (0.5, 0.6)),
    "inter_key_median": Published(
        "0.13 to 0.24", "Aalto 136M; Dhakal et al. 2018, from memory", (0.13, 0.24)
    ),
    "backspaces": Published("0.06 (any text)", "Dhakal et al. 2018, from memory", None),
    # Of MPC on a log whose users saw another, better completer; here they saw MPC itself.
    "mrr_last": Published("0.506", "adaQAC, Table 2.3", None),
    "mrr_all": Published("0.382", "adaQAC, Table 2.5", None),
}


def marginals(source: str | Path | pa.Table) -> dict[str, float]:
    """Compute from any composition log the marginals that publications report.

    Parameters
    ----------
    source : path or pyarrow.Table
        A composition log (contract 1).

    Returns
    -------
    dict of str to float
        ``shown_but_skipped``
            Share of compositions in which the submitted query was in a list before the last.
        ``final_prefix``
            Mean length of the last prefix, in characters.
        ``keystrokes_saved``
            1 - characters of all last prefixes / characters of all queries; what is typed and
            deleted again does not count.
        ``selected``
            Share of compositions that end with a selected suggestion.
        ``inter_key_median``
            Median seconds between keystrokes; the time from the last keystroke to the submission
            is not one.
        ``dwell_p50``, ``dwell_p90``, ``dwell_p99``
            Quantiles of the dwell on a list, in seconds, last lists included.
        ``dwell_over_3s``
            Share of dwells above 3 seconds.
        ``with_backspace``
            Share of compositions with a prefix shorter than the one before, or that begin by
            shortening or extending the previous query.
        ``backspaces``
            Backspaces as a share of keystrokes.
        ``mrr_last``, ``mrr_all``
            Mean reciprocal rank of the submitted query in the list shown at the last keystroke,
            and at every keystroke; 0 where it was not shown.

    Raises
    ------
    InputError
        If a row breaks the contract.

    Examples
    --------
    >>> from telic.simulate import Catalogue, simulate_typists
    >>> log = simulate_typists(Catalogue(["tea"], np.ones(1)), users=2, compositions=5)
    >>> 0 < marginals(log)["inter_key_median"] < 1
    True
    """
    log = read_compositions(source)
    count = np.diff(log.keystroke_start)
    first, last = log.keystroke_start[:-1], log.keystroke_start[1:] - 1
    of = np.repeat(np.arange(len(log)), count)
    is_last = np.zeros(len(of), dtype=bool)
    is_last[last] = True

    dwell = np.diff(log.at, append=0)
    dwell[last] = log.submitted_at - log.at[last]
    seconds = dwell / 1e6
    typed = np.array([len(text) for text in log.prefixes])[log.prefix]
    wished = np.array([len(text) for text in log.phrases])[log.query]

    shown_in = np.repeat(np.arange(len(of)), np.diff(log.list_start))
    position = 1 + np.arange(len(shown_in)) - log.list_start[shown_in]
    hit = np.flatnonzero(log.shown == log.query[of[shown_in]])
    reciprocal = np.zeros(len(of))
    np.maximum.at(reciprocal, shown_in[hit], 1.0 / position[hit])

    shorter = np.diff(typed, prepend=0) < 0
    shorter[first] = typed[first] > 1
    skipped = np.bincount(of, weights=(reciprocal > 0) & ~is_last) > 0
    inter_key = seconds[~is_last]
    p50, p90, p99 = np.quantile(seconds, [0.5, 0.9, 0.99])
    result = {
        "shown_but_skipped": skipped.mean(),
        "final_prefix": typed[last].mean(),
        "keystrokes_saved": 1 - typed[last].sum() / wished.sum(),
        "selected": (log.selected > 0).mean(),
        "inter_key_median": np.median(inter_key) if inter_key.size else np.nan,
        "dwell_p50": p50,
        "dwell_p90": p90,
        "dwell_p99": p99,
        "dwell_over_3s": (seconds > 3).mean(),
        "with_backspace": (np.bincount(of, weights=shorter) > 0).mean(),
        "backspaces": shorter.mean(),
        "mrr_last": reciprocal[last].mean(),
        "mrr_all": reciprocal.mean(),
    }
    return {name: float(value) for name, value in result.items()}
