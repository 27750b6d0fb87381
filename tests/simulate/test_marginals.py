from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from telic.data.contracts import COMPOSITIONS, OPTIONAL
from telic.simulate import marginals

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def composition(number, query, selected, *keys, dwells):
    at, keystrokes = BEGIN + timedelta(hours=number), []
    for (prefix, suggestions), dwell in zip(keys, dwells, strict=True):
        keystrokes.append({"at": at, "prefix": prefix, "suggestions": suggestions})
        at += timedelta(seconds=dwell)
    return {
        "user": "u",
        "composition": str(number),
        "query": query,
        "submitted_at": at,
        "selected": selected,
        "keystrokes": keystrokes,
    }


def test_marginals_by_hand():
    schema = pa.schema([f for f in COMPOSITIONS if f.name not in OPTIONAL[1:]])
    table = pa.Table.from_pylist(
        [
            # Shown second at "f", skipped, selected first at "fa".
            composition(
                1,
                "facetime",
                1,
                ("f", ["facebook", "facetime"]),
                ("fa", ["facetime", "facebook"]),
                dwells=[0.2, 4.0],
            ),
            # Begins by a backspace, never shown, typed in full.
            composition(
                2,
                "tea",
                None,
                ("to", ["toy"]),
                ("t", ["toy"]),
                ("te", []),
                ("tea", []),
                dwells=[0.1, 0.3, 0.4, 1.0],
            ),
        ],
        schema=schema,
    )
    found = marginals(table)
    assert found["shown_but_skipped"] == 0.5
    assert found["final_prefix"] == 2.5
    assert found["keystrokes_saved"] == pytest.approx(1 - 5 / 11)
    assert found["selected"] == 0.5
    assert found["inter_key_median"] == pytest.approx(0.25)
    assert found["dwell_p50"] == pytest.approx(0.35)
    assert found["dwell_p90"] == pytest.approx(2.5)
    assert found["dwell_p99"] == pytest.approx(3.85)
    assert found["dwell_over_3s"] == pytest.approx(1 / 6)
    assert found["with_backspace"] == 0.5
    assert found["backspaces"] == pytest.approx(2 / 6)
    assert found["mrr_last"] == 0.5
    assert found["mrr_all"] == pytest.approx(1.5 / 6)
