from dataclasses import replace

import numpy as np
import pytest

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.beyond_chance import KINDS, SPECIALTY_LIKELIER, FirstReasons, limit
from telic.specialty.alarms.diagnosis_lifts import ask_specialties, coverage_of
from telic.specialty.discovery.discover import discover


@pytest.fixture(scope="module")
def log():
    log = simulate_family("problem lists", 0).log
    some = np.arange(len(log.users)) % 3 > 0
    return replace(log, taxonomy=np.where(some, log.taxonomy, ""))


def in_turn(made, chance, asked):
    """The first reason of each access, by the definition: what has one is left out of the next."""
    kind, left = [0] * made, list(range(chance))
    for place, figures, by_chance, likelier in asked:
        rest = [a for a in range(made) if kind[a] == 0]
        least = limit(figures[rest], by_chance[left], likelier=likelier)
        for a in rest:
            if figures[a] > least:
                kind[a] = place
        left = [r for r in left if by_chance[r] <= least]
    return kind


def test_what_has_a_reason_is_left_out_of_the_next_threshold(log):
    rng, first = np.random.default_rng(0), FirstReasons(log)
    made, chance = len(first.made[0]), len(first.chance[0])
    turns = []
    for kind in ("colleagues", "practised", "declared"):
        figures = rng.integers(0, 9, made) + (rng.random(made) < 0.3) * rng.integers(0, 9, made)
        turns.append((KINDS.index(kind), figures.astype(float), rng.integers(0, 9, chance), 2.0))
        first.ask(kind, *turns[-1][1:])
    assert first.kind.tolist() == in_turn(made, chance, turns)
    assert set(first.kind) == {0, 1, 2, 3}


def test_specialties_are_asked_of_those_who_have_one_and_of_their_random_records(log):
    found, first = discover(log, restarts=1), FirstReasons(log)
    coverage = coverage_of(log, found)
    turns = []
    for place, has, lifts in (
        (2, log.taxonomy != "", coverage.declared),
        (3, found.cluster >= 0, coverage.practised),
    ):
        made, chance = (lifts(*pairs)[0] * has[pairs[0]] for pairs in (first.made, first.chance))
        turns.append((place, made, chance, SPECIALTY_LIKELIER))
    covered = ask_specialties(first, found, coverage)
    assert first.kind.tolist() == in_turn(len(first.made[0]), len(first.chance[0]), turns)
    assert set(first.kind) == {0, 2, 3}
    for (_, lift, *_), code in zip(turns, covered, strict=True):
        assert ((code >= 0) == (lift > 1)).all()
