from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.simulate.hospital import Difficulty, simulate_hospital
from telic.simulate.hospital_families import simulate_family
from telic.simulate.hospital_mechanics import draw
from telic.simulate.hospital_practices import CORE_SIZES, HIDDEN_SIZES
from telic.simulate.hospital_teams_and_snooping import simulate_teams
from telic.specialty.log.log_files import read_log


def test_columns_are_drawn_with_the_weights_of_their_row_whatever_these_add_up_to():
    weights, n = np.array([[1.0, 3.0, 0.0], [0.02, 0.0, 0.08]]), 4000
    drawn = draw(np.random.default_rng(0), weights, np.repeat([1, 0], n)).reshape(2, n)
    for columns, wanted in zip(drawn, weights[::-1], strict=True):
        share, expected = np.bincount(columns, minlength=3) / n, wanted / wanted.sum()
        assert (abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital") / "log"
    simulate_hospital(folder, scale=0.01, seed=3)
    return folder


def test_published_marginals(folder):
    log = read_log(folder)
    assert log.simulated
    assert len(log.users) == 3_269
    assert len(log.patients) == round(291_562 * 0.01)
    assert len(log.encounters) == round(890_812 * 0.01)
    assert pq.read_metadata(folder / "accesses.parquet").num_rows == round(4_829_376 * 0.01)
    sizes = log.class_sizes()
    assert CORE_SIZES.items() <= sizes.items()
    assert len(sizes) == 165
    assert sum(sizes.values()) == 1_961
    assert len(log.codes) <= 603
    practices = Counter(pq.read_table(folder / "truth_users.parquet")["practice"].to_pylist())
    assert HIDDEN_SIZES.items() <= practices.items()


def test_hidden_users_have_other_codes_or_none(folder):
    practice = pq.read_table(folder / "truth_users.parquet")["practice"].to_pylist()
    taxonomy = read_log(folder).taxonomy
    hidden = np.isin(practice, list(HIDDEN_SIZES))
    assert 0.5 < (taxonomy[hidden] == "").mean() < 0.7
    assert not np.isin(taxonomy[hidden], list(HIDDEN_SIZES)).any()


def test_truth_rows_point_at_snooping(folder):
    truth = pq.read_table(folder / "truth_accesses.parquet")
    rows = truth["row"].to_numpy()
    assert rows.min() >= 1
    assert rows.max() <= 48_294
    # 2e-4 of 48,294 accesses, give or take six standard deviations
    assert abs(len(rows) - 9.66) < 6 * 9.66**0.5


def test_same_seed_same_log(tmp_path, folder):
    simulate_hospital(tmp_path / "again", scale=0.01, seed=3)
    for name in ("accesses", "diagnoses", "providers", "access_diagnoses"):
        assert pq.read_table(tmp_path / "again" / f"{name}.parquet").equals(
            pq.read_table(folder / f"{name}.parquet")
        )


def test_without_focus_nobody_specialises(tmp_path):
    def own_share(focus):
        path = tmp_path / str(focus)
        simulate_hospital(path, scale=0.01, difficulty=Difficulty(focus=focus))
        log = read_log(path)
        counts = log.user_diagnosis()[log.taxonomy == "Ophthalmology"].sum(axis=0)
        return counts[np.isin(log.codes, ["Cataract", "Glaucoma"])].sum() / counts.sum()

    assert own_share(0.45) > 4 * own_share(0.0)


def test_scale_is_checked(tmp_path):
    for scale in (2, 1e-9, float("nan")):
        with pytest.raises(InputError, match=f"scale is {scale}, expected a number from 0.001"):
            simulate_hospital(tmp_path / "log", scale=scale)


def test_a_hospital_that_nobody_knows_is_refused():
    for make, change, message in (
        (simulate_family, {"family": "clinics"}, "family is 'clinics', expected one of panels"),
        (simulate_family, {"control": "still"}, "control is 'still', expected one of none"),
        (simulate_teams, {"snooping": "much"}, "snooping is 'much', expected one of planted"),
    ):
        with pytest.raises(InputError, match=message):
            make(**{"family": "wards", "seed": 0, **change})
