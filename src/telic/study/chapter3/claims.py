"""What chapter 3 says, and how it is tried on simulated phones."""

from functools import partial
from itertools import pairwise

from telic.completion.learning.relevance import NAMES
from telic.study.chapter3.published import (
    PUBLISHED,
    PUBLISHED_ACCURACY,
    PUBLISHED_DISTINCT,
    PUBLISHED_GAP,
    PUBLISHED_SHARE,
)
from telic.study.chapter3.tables import REAL_PAIRS
from telic.study.claims import (
    REAL,
    Cases,
    Claim,
    Effect,
    Found,
    NotInRun,
    NotTestable,
    Printed,
    Tables,
    Value,
    by_row,
    cases,
)

EVERY = "SIMULATED people. Accuracy in percent at every keystroke"
MODELS = ("standard", "appaware")
UNIMOBILE = "qac/unimobile_query_app_pairs.parquet"
MINUTES = 30


def _gain(tables: Tables, relevance: str) -> Found:
    row = tables.row(EVERY, relevance=relevance, model="appaware")
    return Found(row["change"], *row["95 % interval"])


def _gains(tables: Tables) -> Found:
    return cases([_gain(tables, relevance).interval[0] > 0 for relevance in NAMES])


def _opened(tables: Tables, column: str) -> Found:
    row = tables.row("Apps opened before a query", minutes_before_the_query=MINUTES)
    return Found(row[column])


def _gap(tables: Tables) -> Found:
    """Take the printed method at its batch of 100, with the step that is safe there."""
    rows = tables.rows("Gap of the objective after some passes")
    printed = [row["15 passes"] for row in rows if row["method"].endswith("step, |B| = 100")]
    return cases([min(printed) <= PUBLISHED_GAP])


def _shorter(tables: Tables) -> Found:
    """Compare neighbouring ranges of length, of MPC."""
    gains = tables.row("By prefix length", relevance="mpc", model="appaware")
    points = [gains[at][1] for at in ("1-3", "4-6", "7-9", "10-12", "13+") if gains[at]]
    return cases([short > long for short, long in pairwise(points)])


def _variants(tables: Tables) -> Found:
    order = ("appaware", "appaware-c", "appaware-o", "appaware-i", "standard")
    mrr = [tables.row(EVERY, relevance="mpc", model=model)["MRR"] for model in order]
    return cases([better > worse for better, worse in pairwise(mrr)])


def _swept(tables: Tables, label: str) -> dict[float, float]:
    return {row[label]: row["MRR"] for row in tables.rows(f"AppAware (MPC) against {label},")}


def _best_at(tables: Tables) -> Found:
    swept = [_swept(tables, label) for label in ("λ₁", "λ₂")]
    return cases([max(one, key=one.__getitem__) == 1e-4 for one in swept])


def _without_l1(tables: Tables) -> Found:
    swept = _swept(tables, "λ₁")
    return cases([swept[0.0] < swept[1e-4]])


def _more_queries(tables: Tables) -> Found:
    mrr = [*_swept(tables, "pre-indexed queries").values()]
    return cases([after > before for before, after in pairwise(mrr)])


def _window(tables: Tables) -> Found:
    swept = _swept(tables, "minutes")
    return cases([swept[MINUTES] > value for at, value in swept.items() if at < MINUTES])


def _real_words(tables: Tables) -> Found:
    """Count prefix lengths at which apps help people held out, on words."""
    if not tables.has(REAL_PAIRS):
        raise NotInRun("a quick run leaves real pairs out")
    rows = tables.rows(REAL_PAIRS, ranked="word", held_out="worker", apps="own")
    return cases([row["95 % interval"][0] > 0 for row in rows])


_PRIVATE = "shares in a private log; a simulated log has other queries, apps and people"
_STANDARD, _OWN = PUBLISHED["mpc"]
CLAIMS = (
    Claim(
        "Table 3.1",
        "people with the NBA app ask for Chicago's teams (24 % “chicago bulls”)",
        NotTestable("24 % and at most 8 %", _PRIVATE),
    ),
    Claim(
        "Table 3.2",
        "after Spotify people ask for the song “Sugar” (22 % its lyrics)",
        NotTestable("22 % and 10 %", _PRIVATE),
    ),
    Claim(
        "Table 3.3",
        "a phone has 95 apps, and opens 100 a day, 35 of them distinct",
        NotTestable("95, 100, 35", "the simulated phones were made with these numbers"),
    ),
    Claim(
        "Figure 3.2",
        "queries with an app opened within 30 minutes before, percent",
        Value(PUBLISHED_SHARE, 0.01, "100 .1f"),
        partial(_opened, column="queries with an app opened, %"),
        note="the data card says which of these figures the simulated phones were fitted to",
    ),
    Claim(
        "Figure 3.2",
        "distinct apps opened in these 30 minutes",
        Value(PUBLISHED_DISTINCT, 0.1, ".1f"),
        partial(_opened, column="distinct apps where any"),
        note="the data card says which of these figures the simulated phones were fitted to",
    ),
    Claim(
        "Table 3.5",
        "AppAware raises the MRR of MPC at every keystroke, points",
        Effect((_OWN - _STANDARD) / 100, "100 +.2f"),
        partial(_gain, relevance="mpc"),
        note="our Standard has learned a weight for each query",
    ),
    Claim(
        "Table 3.5",
        "AppAware raises the MRR of every relevance score significantly",
        Cases(len(NAMES), len(NAMES)),
        _gains,
    ),
    Claim(
        "Table 3.5",
        "apps help to rank, on real pairs of queries and apps: prefix lengths with a gain",
        Cases(3, 3),
        _real_words,
        on=REAL,
        needs=(UNIMOBILE,),
        note="UniMobile's words, people held out; the dissertation's pairs are not public",
    ),
    Claim(
        "Figure 3.3",
        "after 15 passes in batches of 100 the gap is near to 1e-4",
        Cases(1, 1),
        _gap,
        note="500 choices, 80 weights; the better of the printed and the corrected step",
    ),
    Claim(
        "Figure 3.4",
        "the gain falls with each longer range of prefix length",
        Cases(4, 4),
        _shorter,
    ),
    Claim(
        "Figure 3.5",
        "AppAware is above case-by-case, this above opened, this above installed, this above "
        "Standard",
        Cases(4, 4),
        _variants,
    ),
    Claim("Figure 3.6", "MRR is highest at λ₁ = 1e-4 and at λ₂ = 1e-4", Cases(2, 2), _best_at),
    Claim("Figure 3.6", "MRR is lower without the ℓ₁ penalty", Cases(1, 1), _without_l1),
    Claim("Figure 3.7", "MRR rises with more pre-indexed queries", Cases(4, 4), _more_queries),
    Claim("Figure 3.7", "windows under 30 minutes have a lower MRR", Cases(3, 3), _window),
)


def _accuracy(measure: str) -> Printed:
    def ours(tables: Tables, relevance: str, model: str) -> float | None:
        return tables.row(EVERY, relevance=relevance, model=model)[measure]

    cells = by_row(PUBLISHED_ACCURACY[measure], MODELS)
    title = f"Table 3.5: {measure} at every keystroke in percent (ours simulated)"
    return Printed(("Table 3.5",), title, "relevance", "100 .2f", cells, ours)


PRINTED = tuple(map(_accuracy, PUBLISHED_ACCURACY))
