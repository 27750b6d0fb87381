import os
from pathlib import Path

import numpy as np
import pytest

from telic.simulate.hospital import simulate_hospital
from telic.specialty.access import read_log
from telic.specialty.discover import discover
from telic.study.chapter6 import _alarms, _approaches, _summary, _truth, dblp_held_out

DATA = Path(os.environ.get("TELIC_DATA", Path(__file__).parents[2] / "../shared/data")) / "hin"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chapter6") / "log"
    simulate_hospital(folder, scale=0.02)
    return read_log(folder)


def test_summary_and_topics_have_the_tables_shape(log):
    assert [row[0] for row in _summary(log).rows][:2] == ["accesses", "patients"]
    table = _approaches(log, 30, 0, 1)
    assert len(table.rows) == 10
    assert table.columns == ["user documents", "patient documents"]


def test_truth_and_alarms_count_what_they_say(log):
    found = discover(log, n_topics=30, restarts=1)
    practice = np.full(len(log.users), "none", dtype=object)
    practice[found.specialties[0].users] = "Obesity"
    rows = {row[1]: row for row in _truth(practice, {"LDA": found}).rows}
    assert rows["Obesity"][2] == "1.000"
    assert rows["Breast Cancer"][2] == "0.000"
    nothing = np.full(len(log.encounters), "none")
    table = dict(_alarms(log, found, np.array([1]), nothing).rows)
    assert table["planted snooping"] == "1"
    assert table["alarms of those users on the hidden practices' encounters"] == "0"


@pytest.mark.skipif(
    not DATA.is_dir() or "TELIC_SLOW" not in os.environ,
    reason=f"needs the data folder ({DATA}) and TELIC_SLOW=1: two minutes",
)
def test_a_research_area_without_seeds_is_found():
    scores = [float(row[2]) for row in dblp_held_out(DATA).rows]
    assert min(scores) > 0.6
    assert np.mean(scores) > 0.7
