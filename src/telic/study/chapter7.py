"""Chapter 7's tables and figures, on the simulated microblog and on real networks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.anonymise import complete_graph, without_majority_strength
from telic.privacy.auxiliary import Auxiliary
from telic.privacy.dehin import Attack, attack
from telic.privacy.risk import risks
from telic.privacy.score import Score, bootstrap_interval, right, scores
from telic.privacy.target import own_links, subsets
from telic.privacy.utility import link_losses
from telic.report import Report
from telic.simulate.microblog import TQQ_USERS
from telic.study import chapter7_checks as checks
from telic.study.chapter7_networks import (
    DENSITIES,
    World,
    copenhagen,
    sanremo,
    simulated_world,
    timme,
)
from telic.study.chapter7_published import (
    PUBLISHED_ATTACK,
    PUBLISHED_COMPLETE,
    PUBLISHED_PLAIN,
    PUBLISHED_RISK,
)

DISTANCES = range(4)
BOOK: dict[str, Any] = {"in_links": False, "joint": False}
"""The book's adversary sees out-links, link type by link type."""
REAL = {"sanremo": sanremo, "copenhagen": copenhagen, "timme": timme}
PARTS = ("simulated", *REAL)
"""What the study is made of; each can be run alone."""


def risk_table(world: World, density: float) -> dict[tuple[str, ...], list[np.ndarray]]:
    """Table 7.1: risk by link types and distance, one value per sample."""
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for target, _ in world.samples[density]:
        seen = Adversary.of(
            target, attributes=world.risk_attributes, distance=max(DISTANCES), **BOOK
        )
        every = risks(target, seen)
        for risk in every:
            rows = found.setdefault(risk.links, [[] for _ in DISTANCES])
            rows[risk.distance].append(risk.risk)
    return {names: [np.array(values) for values in rows] for names, rows in found.items()}


def attack_by_links(world: World, density: float) -> dict[tuple[str, ...], list[list[Score]]]:
    """Table 7.3: the attack by link types; scores by sample and distance."""
    prepared = _prepare(world)
    names = own_links(world.network.schema, _type(world))
    return {
        chosen: [
            _attacked(prepared, target, truth, links=chosen)[1]
            for target, truth in world.samples[density]
        ]
        for chosen in subsets(names)
    }


def attack_by_density(world: World) -> dict[str, dict[float, list[list[Score]]]]:
    """Tables 7.2 and 7.4 and Figure 7.9: the attack on each release, at every density.

    Releases: as they are with ids replaced (KDDA; ids are never compared, so they need not be);
    complete graph (CGA) with the fake strength drawn at random and with the majority strength,
    both met by the re-configured attack; the re-configured attack on the plain release; complete
    graph of varying weights (VW-CGA), met by both.
    """
    prepared = _prepare(world)
    out: dict[str, dict[float, list[list[Score]]]] = {}
    for density, samples in world.samples.items():
        for number, (target, truth) in enumerate(samples):
            for release, network in _releases(target, number):
                rows = out.setdefault(release, {}).setdefault(density, [])
                rows.append(_attacked(prepared, network, truth)[1])
    return out


def _releases(target: Network, seed: int) -> Iterable[tuple[str, Network]]:
    complete = complete_graph(target, seed=seed)
    majority = complete_graph(target, strengths=_majority(target), seed=seed)
    varying = complete_graph(target, varying=True, seed=seed)
    yield "KDDA", target
    yield "KDDA, re-configured", without_majority_strength(target)[0]
    yield "CGA, re-configured", without_majority_strength(complete)[0]
    yield "CGA at the majority strength, re-configured", without_majority_strength(majority)[0]
    yield "VW-CGA", varying
    yield "VW-CGA, re-configured", without_majority_strength(varying)[0]


LOSSES = {
    "false_links": "published links that are false",
    "lost_links": "real links not published",
    "strength": "real links with another strength",
    "links": "information about links that is gone",
}


def release_losses(world: World, density: float) -> dict[str, dict[str, float]]:
    """Section 7.6.3: what each complete graph loses, link by link; means over samples."""
    found: dict[str, list[dict[str, float]]] = {}
    for number, (target, _) in enumerate(world.samples[density]):
        for name, release in (
            ("KDDA", target),
            ("CGA", complete_graph(target, seed=number)),
            ("VW-CGA", complete_graph(target, varying=True, seed=number)),
        ):
            found.setdefault(name, []).append(link_losses(target, release))
    return {
        name: {key: float(np.mean([row[key] for row in rows])) for key in LOSSES}
        for name, rows in found.items()
    }


def _majority(target: Network) -> dict[str, int]:
    common = {}
    for name, links in target.links.items():
        if links.strength is not None and len(links):
            values, counts = np.unique(links.strength, return_counts=True)
            common[name] = int(values[counts.argmax()])
    return common


def _prepare(world: World) -> Auxiliary:
    target = next(iter(world.samples.values()))[0][0]
    return Auxiliary(world.network, Adversary.of(target, **BOOK))


def _attacked(
    prepared: Auxiliary, target: Network, truth: np.ndarray, links: Sequence[str] | None = None
) -> tuple[Attack, list[Score]]:
    result = attack(prepared, target, distance=max(DISTANCES), links=links)
    return result, scores(result, prepared.size, truth)


def _type(world: World) -> str:
    return next(iter(world.network.schema.nodes))


def report(
    *,
    users: int = 200_000,
    samples: int = 3,
    seed: int = 0,
    only: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Report, dict[str, Any]]:
    """Tables 7.1–7.4 and Figures 7.7–7.9 on the simulator, its control, and the real networks.

    Parameters
    ----------
    users, samples, seed : int
        Size of the simulated network, groups per density, and what is drawn.
    only : str, optional
        One of `PARTS`; default all.
    progress : callable

    Returns
    -------
    page : Report
    facts : dict
        Every number shown.
    """
    if only not in (None, *PARTS):
        raise InputError(f"part {only!r} of chapter 7 does not exist. Parts are {[*PARTS]}.")
    page = Report(
        "Chapter 7: privacy risk and DeHIN",
        lead="The t.qq network is not public. These tables are made on a simulated microblog with "
        "its published marginals, and on real networks where they are at hand; the book's "
        "figures stand beside ours.",
    )
    facts: dict[str, Any] = {"users": users, "samples": samples, "seed": seed}
    if only in (None, "simulated"):
        _simulated(page, facts, users, samples, seed, progress)
    for name, make in REAL.items():
        if only not in (None, name):
            continue
        progress(name)
        try:
            _real_section(page, facts, name, make())
        except InputError as error:
            if only:
                raise
            page.note(f"{name}: left out. {error}")
    return page, facts


def _simulated(
    page: Report, facts: dict[str, Any], users: int, samples: int, seed: int,
    progress: Callable[[str], None],
) -> None:  # fmt: skip
    densest = DENSITIES[-1]
    progress("simulating")
    world = simulated_world(users=users, samples=samples, seed=seed)
    page.text(
        "What the simulator was fitted to: numbers of users, links and distinct values; what "
        "profiles alone tell (n = 0 in Table 7.2); and one constant, the links per active member, "
        "by Table 7.2's rise in proportion to density. That rise is therefore no result; what link "
        "types, distance and anonymisation add is."
    )
    page.note(
        f"Simulated: {users:,} users, {samples} groups of 1,000 per density, seed {seed}. Made by: "
        f"telic study chapter-7 --users {users} --samples {samples} --seed {seed}. Published: 57 "
        "to 500 groups, 2,320,895 users."
        + " With fewer users around them, people are easier to find: compare the trends, and run "
        "with --users 2320895 for the size." * (users < TQQ_USERS)
    )
    progress("Table 7.1")
    risk = risk_table(world, densest)
    _risk_section(page, facts, "table_7_1", "Table 7.1: risk by link types (density 0.01)", risk,
                  PUBLISHED_RISK, "simulated")  # fmt: skip
    page.figure(_by_count_figure(risk, "risk, %"), "Figure 7.7: mean risk by number of link types "
                "(simulated)")  # fmt: skip
    progress("Table 7.3")
    by_links = attack_by_links(world, densest)
    precision = {
        names: [np.array([row[n].precision for row in rows]) for n in DISTANCES]
        for names, rows in by_links.items()
    }
    _risk_section(page, facts, "table_7_3", "Table 7.3: precision of DeHIN by link types",
                  precision, PUBLISHED_ATTACK, "simulated")  # fmt: skip
    page.figure(_by_count_figure(precision, "precision, %"), "Figure 7.8: mean precision by number "
                "of link types (simulated)")  # fmt: skip
    progress("Tables 7.2 and 7.4")
    releases = attack_by_density(world)
    facts["releases"] = {
        name: {str(d): _means(rows, "precision") for d, rows in table.items()}
        for name, table in releases.items()
    }
    _density_section(page, "Table 7.2: DeHIN on the plain release (KDDA)", releases["KDDA"],
                     PUBLISHED_PLAIN)  # fmt: skip
    alone = facts["releases"]["KDDA"][str(densest)][0]
    page.text(
        f"At n = 0 the book finds 5.4 % at density 0.01; here it is {alone:.1%} with "
        f"{samples * len(DENSITIES)} groups in one network. The profiles were fitted with one "
        "group: its members tweet more than most people, and more groups hide one another."
    )
    _density_section(page, "Table 7.4: DeHIN, re-configured, on complete graphs (CGA)",
                     releases["CGA, re-configured"], PUBLISHED_COMPLETE)  # fmt: skip
    page.text(
        "Removing the majority strength removes all follow links, since follow has no strength. "
        "The plain release under the same attack (“security by obscurity”, 7.6.4) gives "
        "exactly the same only if the fake strength equals the majority of the real ones: both "
        "are in the next table."
    )
    rows = [
        [name, *(f"{100 * v:.1f}" for v in _means(table[densest], "precision")),
         f"{100 * _means(table[densest], 'empty')[-1]:.1f}"]
        for name, table in releases.items()
    ]  # fmt: skip
    page.table(["release, attack", *(f"n = {n}" for n in DISTANCES), "empty at n = 3"], rows,
               caption="Precision by release at density 0.01, in percent (simulated)")  # fmt: skip
    losses = facts["losses"] = release_losses(world, densest)
    page.table(
        ["release", *(f"{words}, %" for words in LOSSES.values())],
        [[name, *(f"{100 * row[key]:.1f}" for key in LOSSES)] for name, row in losses.items()],
        caption="What a release loses at density 0.01, means over link types (simulated)",
    )
    page.text(
        "Both complete graphs publish every real link with its strength among many false ones. "
        "Where all false links of a type share one strength, other strengths tell the real ones "
        "apart, for a reader as for an attacker; where false strengths are drawn at random they do "
        "not. That is why the varying graph defends, and why it loses more (7.6.3)."
    )
    page.figure(_release_figure(releases), "Figure 7.9: precision at distance 3 by density and "
                "release (simulated)")  # fmt: skip
    progress("ceiling and advice")
    checks.ceiling_section(page, facts, world, densest)
    _advice_section(page, facts, world, densest, "one group of 1,000 (simulated)")
    progress("control")
    control = simulated_world(users=users, samples=1, densities=(densest,), copies=True, seed=seed)
    title = "Control: four copies of the same links"
    what = "simulated; more types must add nothing"
    _risk_section(page, facts, "control", title, risk_table(control, densest), {}, what)


def _advice_section(
    page: Report, facts: dict[str, Any], world: World, density: float, whom: str
) -> None:
    found = facts["advice"] = checks.advice(world, density, max_risk=0.05)
    low, high = found["interval"]
    least = "no release that keeps more meets the limit" if found["proven"] else "found by search"
    page.section(f"Advice for {whom}: a risk of {found['max_risk']:.0%}, confirmed by the attack")
    page.text(
        "`advise` lowers the risk from "
        f"{found['risk_before']:.1%} to {found['risk_after']:.1%} at a loss of {found['loss']:.0%} "
        f"of the published information ({least}). An attacker who knows the group exactly, "
        f"coarsened alike, then finds {found['attack_inside']:.1%}; one who has to look in the "
        f"whole network finds {found['attack_after']:.1%} [{low:.1%}, {high:.1%}], and found "
        f"{found['attack_before']:.1%} before."
    )
    page.table(["field", "in the release"], list(found["choice"].items()), caption="The release")


def _real_section(page: Report, facts: dict[str, Any], key: str, world: World) -> None:
    ((_, samples),) = world.samples.items()
    target, truth = samples[0]
    page.section(world.name)
    prepared = _prepare(world)
    rows, stored = [], {}
    for names in subsets(own_links(world.network.schema, _type(world))):
        result, by_distance = _attacked(prepared, target, truth, links=names)
        far = by_distance[-1].distance
        low, high = bootstrap_interval(right(result, truth, far))
        rows.append(["-".join(names), *(f"{100 * s.precision:.1f}" for s in by_distance),
                     f"[{100 * low:.1f}, {100 * high:.1f}]",
                     f"{100 * by_distance[-1].unique_wrong:.1f}",
                     f"{100 * by_distance[-1].empty:.1f}"])  # fmt: skip
        stored["-".join(names)] = {
            "precision": [s.precision for s in by_distance], "low": low, "high": high,
            "unique_wrong": by_distance[-1].unique_wrong, "empty": by_distance[-1].empty,
        }  # fmt: skip
    page.table(
        ["link types", *(f"n = {n}" for n in DISTANCES), "95 % at n = 3", "wrong", "empty"], rows,
        caption=f"Precision of DeHIN, percent: {target.size(_type(world))} targets among "
        f"{world.network.size(_type(world)):,} users",
    )  # fmt: skip
    facts[key] = {"attack": stored}
    risk = risk_table(world, next(iter(world.samples)))
    _risk_section(page, facts[key], "risk", f"{world.name}: risk", risk, {}, world.name)
    _advice_section(page, facts[key], world, next(iter(world.samples)), world.name)


def _risk_section(
    page: Report, facts: dict[str, Any], key: str, title: str,
    table: Mapping[tuple[str, ...], list[np.ndarray]], published: Mapping[str, tuple[float, ...]],
    what: str,
) -> None:  # fmt: skip
    page.section(title)
    rows = []
    for names, values in table.items():
        low, high = bootstrap_interval(values[1])
        row = ["-".join(names), *(f"{100 * v.mean():.1f}" for v in values)]
        if len(values[1]) > 1:
            row.append(f"[{100 * low:.1f}, {100 * high:.1f}]")
        if published:
            row += [f"{v:.1f}" for v in published.get("-".join(names), ())] or ["", "", ""]
        rows.append(row)
    columns = ["link types", *(f"n = {n}" for n in DISTANCES)]
    if any(len(values[1]) > 1 for values in table.values()):
        columns.append("95 % at n = 1")
    if published:
        columns += ["book, n = 1", "n = 2", "n = 3"]
    page.table(columns, rows, caption=f"Percent ({what})")
    facts[key] = {"-".join(n): [float(v.mean()) for v in values] for n, values in table.items()}


def _density_section(
    page: Report, title: str, table: Mapping[float, list[list[Score]]],
    published: Mapping[float, tuple[float, ...]],
) -> None:  # fmt: skip
    page.section(title)
    rows = []
    for density, samples in table.items():
        precision, reduction = _means(samples, "precision"), _means(samples, "reduction_rate")
        low, high = bootstrap_interval(np.array([row[-1].precision for row in samples]))
        rows.append([density, *(f"{100 * v:.1f}" for v in precision),
                     f"[{100 * low:.1f}, {100 * high:.1f}]", f"{100 * reduction[-1]:.3f}",
                     *(f"{v:.1f}" for v in published.get(density, ()))])  # fmt: skip
    page.table(
        ["density", *(f"n = {n}" for n in DISTANCES), "95 % at n = 3", "reduction at n = 3",
         *(f"book, n = {n}" for n in DISTANCES)],
        rows, caption="Precision in percent (simulated; intervals over samples)",
    )  # fmt: skip


def _means(samples: list[list[Score]], measure: str) -> list[float]:
    return [float(np.mean([getattr(row[n], measure) for row in samples])) for n in DISTANCES]


def _by_count_figure(table: Mapping[tuple[str, ...], list[np.ndarray]], label: str) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    most = max(len(names) for names in table)
    for n in list(DISTANCES)[1:]:
        means = [
            100 * np.mean([v[n].mean() for names, v in table.items() if len(names) == count])
            for count in range(1, most + 1)
        ]
        axes.plot(range(1, most + 1), means, marker="o", label=f"distance {n}")
    axes.set_xticks(range(1, most + 1))
    axes.set_xlabel("number of link types")
    axes.set_ylabel(label)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _release_figure(releases: Mapping[str, Mapping[float, list[list[Score]]]]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, table in releases.items():
        values = [100 * _means(rows, "precision")[-1] for rows in table.values()]
        axes.plot(list(table), values, marker="o", label=name)
    axes.set_xlabel("density")
    axes.set_ylabel("precision, %")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
