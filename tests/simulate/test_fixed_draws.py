"""Simulators draw what they drew: they were fixed before any gain was looked at.

A tiny run of each is held to `draws/`, column by column. Where a change is meant, see `tests.held`.
"""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.held import column, columns, hold

from telic.simulate import (
    SETTINGS,
    Catalogue,
    affinity_of_pairs,
    dwell_twin,
    example_phones,
    geonames_catalogue,
    made_up_affinity,
    marginals,
    other_tastes,
    phone_marginals,
    simulate_change,
    simulate_phones,
    simulate_typists,
    simulated_replay,
)
from telic.simulate.dwell_controls import tried
from telic.simulate.hospital import Difficulty, simulate_hospital
from telic.simulate.hospital_families import plan, simulate_family
from telic.simulate.hospital_mechanics import FAMILIES
from telic.simulate.hospital_practices import conditions
from telic.simulate.hospital_teams_and_snooping import SNOOPING, simulate_teams
from telic.simulate.microblog import Community, earlier_snapshot, microblog
from telic.simulate.replays import TOLD
from telic.simulate.searchers import Causes, searchers
from telic.simulate.text_corpora import e2006_like, rcv1_like
from telic.simulate.trials import simulate_lists, simulate_trial
from telic.study.do_no_harm.experiments import letters_catalogue
from telic.study.signals.experiments import WITHOUT

DRAWS = Path(__file__).parent / "draws"
SIZE = {"users": 6, "compositions": 12}
WORDS = ["tea", "coffee", "thyme", "toast", "milk"]
CATALOGUE = Catalogue(
    [f"{a} {b}" for a in WORDS for b in ("cup", "pot", "market")] + WORDS,
    np.arange(20, 0, -1) ** 1.5,
)
HARD = Difficulty(
    focus=0.7,
    wrong_codes=0.2,
    hidden_coded=0.8,
    surgical_tilt=3.0,
    same_practice=0.3,
    background=0.5,
    comorbid=0.6,
    snooping=0.05,
)


def arrays(found, name=""):
    """Sum up the fields of a named tuple or dataclass that are arrays, lists or numbers."""
    names = getattr(found, "_fields", None) or [field.name for field in fields(found)]
    return [
        [f"{name}{field}", *column(value)]
        for field in names
        if isinstance(value := getattr(found, field), np.ndarray | list | tuple | float)
    ]


def typists(folder):
    for setting in SETTINGS:
        log = simulate_typists(CATALOGUE, setting=setting, seed=1, **SIZE)
        yield from columns(log, f"{setting}: ")
        yield marginals(log)


def twin(folder):
    log = simulate_typists(CATALOGUE, attention=0.4, candidates=3, seed=2, **SIZE)
    return columns(dwell_twin(log, seed=3))


def changing_people(folder):
    return columns(
        simulate_change(
            CATALOGUE,
            before="readers",
            after="inattentive",
            users=3,
            compositions=(6, 8),
            causes=other_tastes(CATALOGUE, seed=4),
            seed=1,
        )
    )


def replays(folder):
    log = simulate_typists(CATALOGUE, setting="readers", seed=1, **SIZE)
    yield from columns(CATALOGUE.as_queries(log), "queries: ")
    for told in TOLD:
        yield [told, tried(simulated_replay(CATALOGUE, log, told=told))]


def phones(folder):
    log = simulate_phones(CATALOGUE, strength=0.6, seed=1, **SIZE)
    shuffled = simulate_phones(CATALOGUE, strength=0.6, independent=True, seed=1, **SIZE)
    known, affinity = example_phones()
    example = simulate_phones(known, affinity=affinity, seed=2, **SIZE)
    yield from columns(log, "own: ")
    yield from columns(shuffled.select(["installed", "opened"]), "independent: ")
    yield from columns(example.select(["query", "opened"]), "example: ")
    yield phone_marginals(log)
    yield from arrays(made_up_affinity(CATALOGUE, apps=12, seed=3), "affinity: ")


def hospital(folder):
    settings = {"as published": Difficulty(), "hard": HARD, "no focus": Difficulty(focus=0)}
    for name, difficulty in settings.items():
        simulate_hospital(folder / name, scale=0.002, seed=1, difficulty=difficulty)
        for file in sorted((folder / name).glob("*.parquet")):
            yield from columns(pq.read_table(file), f"{name}: {file.stem}.")
    yield ["conditions", *column([code for own in conditions().values() for code in own])]


def families(folder):
    for family in FAMILIES:
        for control, seed in (("none", 0), ("lean", 12), ("moved", 13)):
            made = simulate_family(family, seed, control=control)
            yield from _changing(arrays(made.log, f"{family}, {control}: "))
            yield [f"{family}, {control}: practice", *column(made.practice)]
            yield [f"{family}, {control}: codes", *column(made.log.diagnosis.indices)]
    plans = [plan(seed) for seed in range(40)]
    for field in fields(plans[0]):
        yield [f"plans: {field.name}", *column([getattr(one, field.name) for one in plans])]


def teams(folder):
    for snooping in SNOOPING:
        made = simulate_teams("referrals", 1, snooping=snooping)
        yield from _changing(arrays(made.log, f"{snooping}: "))
        yield [f"{snooping}: kind", *column(made.kind)]


def _changing(found):
    """Leave out what numbers its rows."""
    return [one for one in found if not one[0].endswith((": codes", "_row", ": fine"))]


def blog(folder):
    groups = [Community(0.02, 60), Community(0.05, 40, isolated=0.2)]
    settings = {
        "own": {},
        "copies": {"copies": True, "links": 900},
        "equal": {"equal_strengths": True, "links": 900},
    }
    for name, options in settings.items():
        network, members = microblog(users=400, communities=groups, seed=1, **options)
        yield from _network(network, name)
        yield [f"{name}: members", *column(np.concatenate(members))]
    earlier = earlier_snapshot(network, members[0], growth=0.3, seed=2)
    yield from _network(earlier, "earlier")


def _network(network, name):
    yield from columns(network.nodes["user"], f"{name}: user.")
    for kind, links in network.links.items():
        yield [f"{name}: {kind}", *column(links.indptr), *column(links.indices)]
        if links.strength is not None:
            yield [f"{name}: {kind}, strength", *column(links.strength)]


def some_searchers(folder):
    for name, causes in WITHOUT.items():
        log = searchers(Causes(**causes), users=8, sessions=6, nouns=30, days=20, seed=1)
        yield from arrays(log, f"{name}: ")


def trials(folder):
    yield from arrays(simulate_trial(users=9, choices=7, lift=0.1, seed=1), "trial: ")
    yield from arrays(simulate_lists(users=5, lists=4, decay=0.7, seed=1), "lists: ")


def corpora(folder):
    for make in (rcv1_like, e2006_like):
        made = make(n=60, d=300, words=12.0, seed=1)
        for part in ("indptr", "indices", "data"):
            yield [f"{make.__name__}: {part}", *column(getattr(made.X, part))]
        yield [f"{make.__name__}: y", *column(made.y)]


def catalogues(folder):
    (folder / "pairs.csv").write_text("user,query,app\n1,rain,a\n2,rain,b\n2,mail,b\n")
    real, affinity = affinity_of_pairs(folder / "pairs.csv")
    yield from arrays(real, "pairs: ")
    yield from arrays(affinity, "affinity: ")
    yield from arrays(CATALOGUE.outdated(seed=1), "outdated: ")
    yield from arrays(letters_catalogue(1), "letters: ")
    yield from arrays(geonames_catalogue(), "places: ")


@pytest.mark.parametrize(
    "simulator",
    [
        typists,
        twin,
        changing_people,
        replays,
        phones,
        hospital,
        families,
        teams,
        blog,
        some_searchers,
        trials,
        corpora,
        catalogues,
    ],
)
def test_draws_are_what_they_were(simulator, tmp_path):
    hold(DRAWS / f"{simulator.__name__}.jsonl", [*simulator(tmp_path)], digits=7)
