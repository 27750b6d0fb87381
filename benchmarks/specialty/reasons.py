"""How many accesses have a reason, and how much snooping?

The three constants are tried on the half of the hospitals that they are chosen on; then the other
half is measured once, with the control.
"""

from unittest.mock import patch

import numpy as np
from scipy.stats import binomtest, t

from benchmarks.form import grid
from telic.simulate.hospital_families import FAMILIES, plan
from telic.simulate.hospital_teams_and_snooping import PLANTED, SNOOPING, simulate_teams
from telic.specialty.alarms import colleagues, diagnosis_lifts
from telic.specialty.alarms.access_reasons import find_reasons
from telic.specialty.alarms.beyond_chance import LIKELIER, SPECIALTY_LIKELIER
from telic.specialty.alarms.colleagues import UNEXPLAINED, care_of
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.discover import discover

FILE = "reasons.md"
CHOSEN_ON = ("panels", "problem lists")
CHOOSING = [seed for seed in range(0, 24, 2) if plan(seed).users < 5000]
REPORTED = [seed for seed in range(1, 24, 2) if plan(seed).users < 5000]
DEPTHS = (0.01, 0.02, 0.05, 0.1)
"""How far down the queues are read, in shares of all accesses."""
KEPT = (LIKELIER, SPECIALTY_LIKELIER, UNEXPLAINED)
TRIED = [(a, b, UNEXPLAINED) for a in (1.0, 2.0, 4.0, 8.0) for b in (1.0, 3.0, 9.0)]
TRIED += [(LIKELIER, SPECIALTY_LIKELIER, weight) for weight in (1.0, 0.7, 0.2, 0.1)]


def counts(hospital, found, constants=KEPT):
    """Of each kind of access, how many there are and how many have a reason."""
    likelier, specialty, unexplained = constants
    with (
        patch.object(colleagues, "LIKELIER", likelier),
        patch.object(diagnosis_lifts, "SPECIALTY_LIKELIER", specialty),
        patch.object(colleagues, "UNEXPLAINED", unexplained),
    ):
        explained = find_reasons(hospital.log, found).explained
    counted = {}
    for kind in np.unique(hospital.kind):
        own = explained[hospital.kind == kind]
        counted[str(kind) or "care"] = [own.size, int(own.sum())]
    return counted


def read(hospital, found):
    """How much of what was planted, but by workmates, stands in the first lines of each queue."""
    log = hospital.log
    alerts = judge(log, found, care=care_of(log, found))
    planted = ~np.isin(hospital.kind, ["", "workmates"])
    lines = [int(depth * len(planted)) for depth in DEPTHS]
    queues = {status: alerts.queue(status) for status in ("all", "no-reason")}
    return {
        "planted": int(planted.sum()),
        "longest": {status: len(queue) / len(planted) for status, queue in queues.items()},
        **{
            status: [int(planted[queue[:n]].sum()) for n in lines]
            for status, queue in queues.items()
        },
    }


def choose(asked):
    def under_constants(family, seed):
        hospital = simulate_teams(family, seed)
        found = discover(hospital.log, restarts=1)
        return [counts(hospital, found, constants) for constants in TRIED]

    return {
        (family, seed): asked.kept(f"choose-{family}-{seed}", under_constants, family, seed)
        for family in CHOSEN_ON
        for seed in CHOOSING
    }


def report(asked):
    def one(family, seed, snooping):
        hospital = simulate_teams(family, seed, snooping=snooping)
        found = discover(hospital.log, restarts=1)
        return {"reasons": counts(hospital, found), "read": read(hospital, found)}

    return {
        (family, seed, snooping): asked.kept(
            f"report-{family}-{seed}-{snooping}", one, family, seed, snooping
        )
        for family in FAMILIES
        for seed in REPORTED
        for snooping in SNOOPING
    }


def pooled(parts):
    return np.sum(parts, axis=0)


def planted(one):
    """What was planted but workmates, who have a column of their own."""
    return pooled([value for kind, value in one.items() if kind not in ("care", "workmates")])


def wilson(number):
    n, explained = (int(x) for x in number)
    low, high = binomtest(explained, n).proportion_ci(method="wilson")
    return f"{explained / n:.1%} ({low:.1%} to {high:.1%})"


def difference(hospitals):
    """Points that care is explained more often than what was planted; mean over hospitals."""
    each = []
    for one in hospitals:
        (n, explained), (m, found) = one["care"], planted(one)
        each.append(100 * (explained / n - found / m))
    half = t.ppf(0.975, len(each) - 1) * np.std(each, ddof=1) / np.sqrt(len(each))
    return float(np.mean(each)), float(np.mean(each) - half), float(np.mean(each) + half)


def read_rows(done):
    """A row for each queue and way to plant: the share read by depth, over all hospitals."""
    for snooping in SNOOPING:
        own = [one["read"] for (_, _, kind), one in done.items() if kind == snooping]
        planted = sum(one["planted"] for one in own)
        for status, name in (("all", "alarms"), ("no-reason", "accesses without a reason")):
            found = pooled([one[status] for one in own])
            length = np.mean([one["longest"][status] for one in own])
            said = "snooping" if snooping == "planted" else "made as care"
            yield [said, name, f"{length:.0%}", *(f"{n / planted:.0%}" for n in found)]
    yield ["anything", "drawn at random", "100%", *(f"{depth:.0%}" for depth in DEPTHS)]


def rows(done):
    for family in (*FAMILIES, "together"):
        own = [
            one["reasons"]
            for (name, _, snooping), one in done.items()
            if snooping == "planted" and family in (name, "together")
        ]
        care = [one["care"] for one in own]
        cells = [wilson(pooled([one[kind] for one in own])) for kind in PLANTED]
        shares = [explained / n for n, explained in care]
        marked = family if family in (*CHOSEN_ON, "together") else f"{family} (never looked at)"
        snooped = wilson(pooled([planted(one) for one in own]))
        yield [marked, str(len(own)), wilson(pooled(care)), f"{min(shares):.0%}", snooped, *cells]


def page(asked):
    """Return the page in Markdown."""
    chosen, done = choose(asked), report(asked)
    head = ["family", "hospitals", "care explained", "lowest hospital", "snooping but workmates"]
    out = [HEAD, grid([*head, *PLANTED], rows(done)).rstrip(), CONTROL]
    judged = []
    for snooping in SNOOPING:
        mean, low, high = difference(
            [one["reasons"] for (_, _, kind), one in done.items() if kind == snooping]
        )
        name = "made as care" if snooping == "as care" else "snooping (the effect put in)"
        control = "holds" if low <= 0 <= high else "fails"
        judged.append([name, f"{mean:+.1f}", f"[{low:+.1f}, {high:+.1f}]", control])
    out += [grid(["planted", "points", "95 %", "control"], judged).rstrip(), READ]
    depths = [f"first {depth:.0%}" for depth in DEPTHS]
    out += [grid(["planted", "queue of", "length", *depths], read_rows(done)).rstrip(), CHOICE]
    head = ["people", "specialties", "colleague", "care", *PLANTED]
    out += [grid(head, tried_rows(chosen)).rstrip(), LIMITS]
    return "\n".join(out)


def tried_rows(chosen):
    """A row for each choice of constants: how much is explained on the half for choosing."""
    for i, tried in enumerate(TRIED):
        own = [one[i] for one in chosen.values()]
        sums = [pooled([one[kind] for one in own]) for kind in ("care", *PLANTED)]
        kept = " (kept)" if tried == KEPT else ""
        yield [*(f"{c:g}" for c in tried[:-1]), f"{tried[-1]:g}{kept}"] + [
            f"{explained / n:.1%}" for n, explained in sums
        ]


HEAD = """# Reasons for accesses, and for snooping

Every hospital here is **simulated** (`telic.simulate.hospital_teams_and_snooping`), in the four
families of [discovery](discovery.md) with 150 to 1,200 users. In every encounter one user leads,
and sometimes a second is consulted. Their teams of 3 to 9 people open the record too. Between 2 %
and 7 % of the accesses are on-call work of anybody, which nothing in a log explains.

The constants were chosen on two families, with even seeds (the last table). The other tables use
the odd seeds of all four families; they were run again when workmates were added. Real logs have
not been tried.
[The guide](../explain/specialty.md) says what counts as a reason.

## On the hospitals kept for testing

The goals were a reason for at least 90 % of the accesses of care, and for at most 5 % of
snooping.
"""
CONTROL = """
The intervals are Wilson's 95 % intervals over accesses. Hospitals differ by more than these, as
the lowest hospital shows. Snooping is planted, and always by users whose teams do not treat the
patient:

- **random patient**: the user opens any such patient's record;
- **known person**: 15 such users look up the same record;
- **again and again**: one such user opens up to three encounters of one patient;
- **workmates**: up to four such users of one team look up the same record together.

Workmates speak for one another, and most of what they look up has a reason here: the second goal is
missed where people of one team look somebody up together.

## Control

In the same hospitals the planted accesses are now made in the way that care is made. Care must
then not be explained more often than what was planted. The table gives the difference in
percentage points, as the mean over hospitals with a 95 % interval. The control holds if the
interval covers 0. With real snooping (“the effect put in”, without workmates) it must fail.
"""
READ = """
## What reading a queue is worth

How much of what was planted (but by workmates) stands in the first lines of a queue, which is read
down to a share of all accesses of the hospital. `telic specialty explain` lists alarms, and with
`--status no-reason` every access without a reason. Snooping in records that the user's own code
covers is no alarm: so the queue of alarms holds less of it, however far one reads. “Made as care”
is the control: of that, a queue must hold no more than the last row says, in which lines are drawn
at random.

In the [hospital of chapter 6](results-chapter-6.md), which has no teams, a queue holds little more
snooping than one that is drawn at random (its table of planted snooping).
"""
CHOICE = """
## How the constants were chosen

A figure counts as a reason if it is above a threshold. The threshold is where the share of accesses
above it, less a multiple of the share of random records above it, is largest. The first two columns
give the multiple, for people who treat the patient and for specialties. The third is the weight of
a colleague whose own access to the record no specialty explains; a colleague whose access a
specialty explains has weight 1. It hardly matters in these hospitals, and was chosen on hospitals
by other hands, in which specialties explain more. The last columns say how much of each kind has a
reason.
"""
LIMITS = """
## Limits

- The goals are reached because the simulator has teams. Specialties alone explain little, because
  they fit random records nearly as well. Where users open records alone, expect far fewer
  reasons.
- Snooping on a patient of one's own team has a reason by this definition. It is not planted here.
- Most care without a reason is on-call work, or a record that one user alone opened.
- The weight of a colleague tells workmates from a team that treats the patient only where
  specialties explain much of the care.
- Nobody here works with different colleagues on every shift, stands in on any ward, or serves the
  whole hospital. Where people do, far fewer of their accesses have a reason.
"""
