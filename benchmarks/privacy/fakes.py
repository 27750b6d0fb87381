"""How well fake links can be told from real ones, by anonymiser, and whom a tolerant attack finds.

The detector is `telic.privacy.detect_fakes`: it is told the truth of other links of the release, so
it knows more than an intruder. The goal is an AUC of at most .60 for every link type.
"""

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.form import Run, grid
from telic.data.data_sets import data_folder
from telic.hin import LinkType, Rule, Schema, induced, network_from_arrays
from telic.privacy import Adversary, Auxiliary, LinkErrors, attack, detect_fakes, scores
from telic.privacy.anonymisers.release_steps import apply_steps
from telic.simulate.microblog import Community, microblog

FILE = "fake-links.md"
OPTIONS = {"seeds": (2, "releases of each kind"), "users": (300, "of the simulated group")}
GOAL = 0.6
RELEASES = {
    "perturb 10 %, random": {"method": "perturb", "share": 0.1, "plausible": False},
    "perturb 10 %": {"method": "perturb", "share": 0.1},
    "perturb 30 %": {"method": "perturb", "share": 0.3},
    "5-degree, random": {"method": "k-degree", "k": 5, "plausible": False},
    "5-degree": {"method": "k-degree", "k": 5},
    "5-degree, even 0.2": {"method": "k-degree", "k": 5, "even": 0.2},
    "5-degree, even 0.4": {"method": "k-degree", "k": 5, "even": 0.4},
    "joint 5-degree": {"method": "joint-k-degree", "k": 5},
    "edge-dp, ε = 10": {"method": "edge-dp", "epsilon": 10},
    "CGA": {"method": "complete"},
    "VW-CGA": {"method": "complete", "varying": True},
}
ATTACKED = [name for name in RELEASES if "CGA" not in name and "dp" not in name]
TOLERANCE = (0.0, 0.2, 0.5)


def simulated(users):
    """Return a dense group of a simulated microblog: links within it follow hardly any pattern."""
    network, members = microblog(users=20_000, communities=[Community(0.01, users)])
    return induced(network, {"user": members[0]})


def copenhagen():
    """Return calls, messages and Facebook friends of 833 people; no profiles."""
    table = pq.read_table(data_folder() / "hin" / "cns_links.parquet")
    kinds, links, types = table["link"].cast("string"), {}, []
    for kind in sorted(pc.unique(kinds).to_pylist()):
        part = table.filter(pc.equal(kinds, kind)).group_by(["src", "dst"])
        part = part.aggregate([("weight", "sum")])
        weighted = pc.max(part["weight_sum"]).as_py() > 1
        types.append(LinkType(kind, "user", "user", Rule("at_least") if weighted else None, True))
        links[kind] = tuple(part[name] for name in ("src", "dst", "weight_sum"))
    ids = np.unique(np.concatenate([table[end].to_numpy() for end in ("src", "dst")]))
    return network_from_arrays(Schema({"user": {}}, tuple(types)), {"user": {"id": ids}}, links)


def detected(network, step, seeds):
    """Return the AUCs by seed and link type."""
    for seed in range(seeds):
        release = apply_steps(network, [step], seed=seed)
        yield list(detect_fakes(network, release, seed=100 + seed).values())


def attacked(network, step, seeds):
    """Return the users found, and those whom nobody matches, by what the attack tolerates."""
    rows = []
    for seed in range(seeds):
        release = apply_steps(network, [step], seed=seed)
        prepared = Auxiliary(network, Adversary.of(release))
        for added in TOLERANCE:
            result = attack(prepared, release, distance=1, errors=LinkErrors(added=added))
            last = scores(result, prepared.size, np.arange(prepared.size))[-1]
            rows.append([last.unique_right, last.empty])
    return np.array(rows).reshape(seeds, len(TOLERANCE), 2).mean(axis=0).tolist()


def page(run: Run) -> str:
    """Return the page in Markdown."""
    seeds, users = run.options.seeds, run.options.users
    head = (
        "# Fake links that are told from real ones\n\n"
        "An anonymiser that adds fake links hides people only as long as nobody can tell these "
        "links from real ones. “5-degree” is `k-degree` with k = 5; CGA and VW-CGA are complete "
        "graphs whose fake links have equal and varying strengths. A detector sees a release "
        "(strengths, common neighbours, degrees, links back, links of other types, attributes) and "
        "is told which of *other* links of the same release are fake. An AUC of .5 is a guess; the "
        f"goal is at most {GOAL:.2f}. Each cell gives the mean over {seeds} releases and all link "
        "types, and the highest of the link types' means. “Random” fake links lead anywhere; the "
        "others are "
        "drawn to look real.\n\n"
    )
    names, rows = [], {name: [name] for name in RELEASES}
    group = simulated(users)
    for label, network in (("simulated microblog", group), ("Copenhagen (real)", copenhagen())):
        names.append(label)
        for name in filter(run.asks_for, RELEASES):
            found = run.kept(f"{label} {name}", detected, network, RELEASES[name], seeds)
            means = np.mean(found, axis=0)
            met = "yes" if max(means) <= GOAL else "**no**"
            rows[name].append(f"{np.mean(means):.2f}, {max(means):.2f}: {met}")
    text = head + grid(
        ["release", *(f"{name}: AUC, highest, goal met" for name in names)],
        [row for row in rows.values() if len(row) > 1],
    )
    text += (
        "\n`perturb` can choose both ends of a fake link. `k-degree` cannot: it must add links "
        "to the users whose degree it raises, so the user from whom a link starts tells much "
        "about the link. `even` replaces real links of the other users by fake ones until "
        "everybody has about the given share of fake links, which costs real links. "
        "`joint-k-degree` and `edge-dp` draw ends at random. A complete graph has every link, "
        "so nothing but strengths could hide the real ones.\n\n"
        "## Whom the attack finds all the same\n\n"
        "On the simulated microblog the intruder knows the original network and looks one link "
        "far. The table gives the share of targets that are found and the share that no known "
        "user matches, by the share of links that the attack allows to be false (`--added`).\n\n"
    )
    cells = []
    for name in filter(run.asks_for, ATTACKED):
        found = run.kept(f"attack {name}", attacked, group, RELEASES[name], seeds)
        cells.append([name, *(f"{right:.1%}, {empty:.1%}" for right, empty in found)])
    text += grid(["release", *(f"added {share:g}: found, nobody" for share in TOLERANCE)], cells)
    return text + (
        "\nA target that nobody matches is not thereby protected: the plain attack only fails at "
        "the first fake link. So attack a release that has added links with `--added`.\n"
    )
