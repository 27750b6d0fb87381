"""Risk, attack, anonymisers and advice on a simulated network of the size of t.qq."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from benchmarks.form import clock, grid
from benchmarks.privacy.recursion import candidates
from telic.hin import induced, read_network, write_network
from telic.privacy.adversary import Adversary
from telic.privacy.advice.advise import advise
from telic.privacy.anonymisers.release_steps import apply_steps
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import _target_links, attack
from telic.privacy.attacks.score import scores
from telic.privacy.link_type_sets import subsets
from telic.privacy.merged_types import flatten
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import risks
from telic.privacy.utility.utility_loss import utility_loss
from telic.simulate.microblog import TQQ_USERS, Community, microblog

LOAD = """
import sys, time
from telic.hin import read_network
read_network(sys.argv[2])
begin = time.perf_counter(), time.process_time()
read_network(sys.argv[1])
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
print(next(int(x.split()[1]) / 1e6 for x in open("/proc/self/status") if "VmHWM" in x))
"""

MIDDLE = 200_000
"""Users of the network that is anonymised."""
SAMPLED = 200
"""Targets that the slower comparisons are timed on; few of the 1,000 take most of the time."""


def book(release, **options):
    """Give the adversary of Chapter 7, who sees out-links, link type by link type."""
    return Adversary.of(release, in_links=False, joint=False, **options)


FILE = "privacy-speed.md"
OPTIONS = {"users": (TQQ_USERS, "of the simulated network")}


def page(run):
    """Return the page in Markdown."""
    users = run.options.users
    rows = []

    def row(work, target, seen):
        rows.append([work, target, seen])
        print(work, seen, sep=": ", flush=True)

    small, (few,) = microblog(users=3000, communities=[Community(0.02, 200)])
    warm = Auxiliary(small, book(small))
    attack(warm, induced(small, {"user": few}), distance=3)
    list(risks(small, book(small, distance=2)))
    begin, used = time.perf_counter(), time.process_time()
    network, (members,) = microblog(users=users, communities=[Community(0.01)], seed=0)
    links = sum(len(part) for part in network.links.values())
    wall, used = time.perf_counter() - begin, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    row("simulate", "≤ 60 s", f"{wall:.0f} s ({used:.0f} CPU s), {peak:.1f} GB at most")
    with tempfile.TemporaryDirectory() as folder:
        write_network(small, Path(folder) / "small")
        write_network(network, Path(folder) / "net")
        words = [sys.executable, "-c", LOAD, f"{folder}/net", f"{folder}/small"]
        loaded, busy, memory = map(float, subprocess.check_output(words).split())
        network = read_network(Path(folder) / "net")
    row(
        "load from Parquet",
        "≤ 10 s, ≤ 1.2 GB",
        f"{loaded:.1f} s ({busy:.1f} CPU s), {memory:.2f} GB at most",
    )
    target = induced(network, {"user": members})
    spent, prepared = clock(lambda: Auxiliary(network, book(target)))
    row("prepare the auxiliary network, once", "", f"{spent:.1f} CPU s")
    spent, result = clock(lambda: attack(prepared, target, distance=3), run.options.repeat)
    row("attack, 1,000 targets, n = 0…3, 4 link types", "≤ 0.5 CPU s", f"{spent:.3f} CPU s")
    found = [score.precision for score in scores(result, prepared.size, members)]
    row("its precision, n = 0…3", "", " / ".join(f"{100 * part:.1f} %" for part in found))
    every = subsets(list(prepared.adversary.links))
    many, _ = clock(lambda: [attack(prepared, target, distance=3, links=s) for s in every])
    row("the same for 15 subsets of link types", "≤ 5 s", f"{many:.2f} CPU s")
    _compare(row, prepared, network, target, result, spent)
    spent, _ = clock(lambda: [found.risk for found in risks(network, book(network, distance=3))])
    row("risk, 45 settings, the whole network", "≤ 30 CPU s", f"{spent:.1f} CPU s")
    _anonymise(row, small)
    return (
        f"# Speed of the privacy tools\n\nAll this was measured on a simulated microblog of the "
        f"size of t.qq: {users:,} users and {links:,} links, unless a "
        f"row says otherwise, with {numba.get_num_threads()} thread.\n\n"
        "telic's attack is the *level method*. It sorts users by profile, so that users who "
        "match a profile stand side by side. Each user carries 64 bits that say which kinds of "
        "neighbours the user may have; they rule out nearly everyone without a look at the "
        "links. The remaining candidates are refined distance by distance (n). The time of the "
        "attack leaves out the preparation of the auxiliary network, which is done once and has a "
        "row of its own.\n\n"
        "The rival is the printed recursion, compiled. It compares every target with every "
        "user, attribute by attribute, and every neighbour with every neighbour, each pair as "
        "often as the recursion meets it. Further rows time it with early exits, and on telic's "
        "own sorted index with profiles reduced to intervals, which favours the rival.\n\n"
    ) + grid(["work", "target", "measured"], rows)


def _anonymise(row, small):
    """Time the steps that draw links, what a release loses, and advice."""
    steps = (
        [{"method": "perturb", "share": 0.2, "plausible": False}],
        [{"method": "k-degree", "k": 50, "plausible": False}],
    )
    for step in steps:
        utility_loss(small, apply_steps(small, step))
    network, _ = microblog(users=MIDDLE, communities=[Community(0.01)], seed=0)
    for step in steps:
        spent, release = clock(lambda step=step: apply_steps(network, step))
        lost, _ = clock(lambda release=release: utility_loss(network, release))
        row(
            f"{step[0]['method']}, {MIDDLE:,} users",
            "",
            f"{spent:.1f} CPU s, and {lost:.1f} CPU s to measure what is lost",
        )
    spent, found = clock(lambda: advise(network, Limits(risk=0.05)))
    row(
        f"advise, {MIDDLE:,} users, risk ≤ 5 %",
        "",
        f"{spent:.1f} CPU s, {found.tried} releases judged",
    )


def _compare(row, prepared, network, target, result, spent):
    """Time the recursion at every distance, and count what the level method saves."""
    _, *links = _target_links(prepared, flatten(target, prepared.adversary), None)
    # As printed: profiles attribute by attribute, users and links in the network's own order.
    seen = prepared.adversary.attributes["user"]
    names = list(seen)
    known, wanted = (
        np.column_stack([net.nodes["user"].column(a).to_numpy() for a in names]).astype(np.int32)
        for net in (network, target)
    )
    sides = [seen[a].bounds(wanted[:, i]) for i, a in enumerate(names)]
    least, most = (
        np.column_stack([np.broadcast_to(side[k], len(wanted)) for side in sides]).astype(float)
        for k in (0, 1)
    )
    parts = [network.links[name] for name in prepared.adversary.links]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    indptr = np.stack([part.indptr + begin for part, begin in zip(parts, starts, strict=False)])
    strength = [np.ones(len(p), np.int32) if p.strength is None else p.strength for p in parts]
    indices = np.concatenate([p.indices for p in parts])
    plain = (
        (known, least, most),
        tuple(links),
        (indptr, indices, np.concatenate(strength)[:, None]),
    )
    # On the level method's own index: profiles reduced to one interval of sorted users.
    everyone = np.ones(target.size("user"), bool)
    sets = prepared.intervals(flatten(target, prepared.adversary), everyone)
    ranks = np.arange(prepared.size, dtype=np.int32)[:, None]
    own = (
        (ranks, sets.first[:, None].astype(float), sets.last[:, None] - 1.0),
        tuple(links),
        (prepared.indptr, prepared.indices, prepared.strength),
    )
    everyone = np.arange(prepared.size)
    for name, hasty, args, order, distances in (
        ("as printed", False, plain, everyone, (1, 2, 3)),
        ("with early exits", True, plain, everyone, (3,)),
        ("as printed, but on the level method's sorted index", False, own, prepared.order, (3,)),
    ):
        for n in distances:
            keep = np.zeros(prepared.size, bool)
            candidates(n, hasty, 0, keep[:0], *args)
            total, same = 0.0, True
            chosen = everyone[: target.size("user")]
            if n < 3 or args is not plain or hasty:
                chosen = np.random.default_rng(0).choice(chosen, SAMPLED, replace=False)
            for t in chosen:
                begin = time.process_time()
                candidates(n, hasty, t, keep, *args)
                total += time.process_time() - begin
                found = np.sort(order[np.flatnonzero(keep)])
                same = same and np.array_equal(found, result.candidates(int(t), n))
            total *= target.size("user") / len(chosen)
            row(
                f"the compiled recursion, {name}, n = {n}, {len(chosen):,} of the targets",
                "level method ≥ 1,000× less" if n == 3 and args is plain and not hasty else "",
                f"{total:.1f} CPU s for 1,000: {total / spent:,.0f}× the level method's n = 0…3; "
                f"candidate sets {'equal' if same else 'DIFFER'}",
            )
