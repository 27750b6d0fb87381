"""Weights for pairs of queries: the study finds what is there, and nothing where nothing is."""

from pathlib import Path

import pytest
from tests.held import hold, page
from tests.reference.signals import sessions_of

from telic.completion.signals import GROUPS, Searches
from telic.completion.signals.pair_weights import PAIR_PENALTIES
from telic.errors import InputError
from telic.study import session_pairs
from telic.study.session_pairs import BASES, with_pairs
from telic.study.steps import Steps


@pytest.mark.parametrize("caused", [True, False])
def test_weights_gain_where_a_query_causes_the_next_and_only_there(caused):
    found = with_pairs(Searches(sessions_of(60, 12, caused=caused), min_users=2), list(GROUPS))
    assert [row["model"] for row in found] == list(BASES)
    assert all(row["penalty"] in PAIR_PENALTIES for row in found)
    alone = found[0]
    assert alone["choices"] > 0
    if caused:
        assert alone["low"] > 0
        assert alone["difference"] > 0.05
        assert alone["weights"] > 0
        assert alone["gate"] == "on"
    else:
        assert alone["low"] <= 0
        assert abs(alone["difference"]) < 0.05
        assert alone["gate"] == "off"


def test_the_page_says_what_is_gained_on_logs_of_each_size(tmp_path):
    (tmp_path / "qac").mkdir()
    (tmp_path / "qac" / "unimobile_queries.parquet").touch()

    def steps(name, made, *, seed, **options):
        gain = -0.001 if made is session_pairs.real else 1e-6 * options["users"] + 1e-4 * seed
        fitted = {
            "choices": 9,
            "weights": 4,
            "penalty": 10.0,
            "mrr": 0.4,
            "gate": "on" if seed % 2 else "off",
        }
        gained = {"difference": gain, "low": gain - 0.001, "high": gain + 0.001}
        return [{"model": base} | fitted | gained for base in BASES]

    report = session_pairs.study(steps, data=tmp_path)
    hold(Path(__file__).parent / "pages" / "session-pairs.jsonl", page(report))
    text = report.markdown()
    assert "+0.07 and +0.02 (simulated, all causes, 400 users)" in text
    assert "+0.83 and +0.28 (simulated, all causes, 8,000 users)" in text
    assert "its submissions to learn from with such a pair number 9." in text


def test_at_least_one_log_of_each_kind_is_asked_for():
    with pytest.raises(InputError, match="at least 1"):
        session_pairs.study(Steps(), seeds=0)
