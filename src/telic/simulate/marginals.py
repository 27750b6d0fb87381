"""The marginals of a composition log that are published for real ones."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def marginals(table: pa.Table) -> dict[str, float]:
    """Compute from any composition log the marginals that publications report.

    Parameters
    ----------
    table : pyarrow.Table
        A composition log (contract 1) with at least one keystroke in each composition.

    Returns
    -------
    dict of str to float
        ``shown_but_skipped``
            Share of compositions in which the submitted query was in a list before the last.
        ``final_prefix``
            Mean length of the last prefix, in characters.
        ``keystrokes_saved``
            1 - characters of all last prefixes / characters of all queries.
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

    Examples
    --------
    >>> from telic.simulate import Catalogue, simulate_typists
    >>> catalogue = Catalogue(["tea"], np.ones(1))
    >>> marginals(simulate_typists(catalogue, users=1, compositions=2))["mrr_all"]
    1.0
    """
    lists = table["keystrokes"].combine_chunks()
    keystrokes = lists.flatten()
    count = pc.list_value_length(lists).to_numpy()
    ends = np.cumsum(count)
    first, last = ends - count, ends - 1
    of = np.repeat(np.arange(len(count)), count)
    is_last = np.zeros(len(of), dtype=bool)
    is_last[last] = True

    at = pc.struct_field(keystrokes, "at").cast(pa.int64()).to_numpy()
    dwell = np.diff(at, append=0)
    dwell[last] = table["submitted_at"].cast(pa.int64()).to_numpy() - at[last]
    seconds = dwell / 1e6
    typed = pc.utf8_length(pc.struct_field(keystrokes, "prefix")).to_numpy()
    wished = pc.utf8_length(table["query"]).to_numpy()

    shown = pc.struct_field(keystrokes, "suggestions")
    n_shown = pc.list_value_length(shown).to_numpy()
    parent = np.repeat(np.arange(len(of)), n_shown)
    place = np.arange(len(parent)) - (np.cumsum(n_shown) - n_shown)[parent]
    query = table["query"].combine_chunks().take(pa.array(of[parent]))
    hit = np.flatnonzero(pc.equal(shown.flatten(), query).to_numpy(zero_copy_only=False))
    reciprocal = np.zeros(len(of))
    # Best position last, so that it stays where a list holds the query twice.
    reciprocal[parent[hit][::-1]] = 1.0 / (1 + place[hit][::-1])

    shorter = np.diff(typed, prepend=0) < 0
    shorter[first] = typed[first] > 1
    skipped = np.bincount(of, weights=(reciprocal > 0) & ~is_last) > 0
    p50, p90, p99 = np.quantile(seconds, [0.5, 0.9, 0.99])
    result = {
        "shown_but_skipped": skipped.mean(),
        "final_prefix": typed[last].mean(),
        "keystrokes_saved": 1 - typed[last].sum() / wished.sum(),
        "selected": 1 - table["selected"].null_count / len(table),
        "inter_key_median": np.median(seconds[~is_last]) if not is_last.all() else np.nan,
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
