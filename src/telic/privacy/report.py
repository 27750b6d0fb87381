"""One page for whoever decides whether a network may be published."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from telic.data.contracts import SIMULATED
from telic.hin import Network, density
from telic.privacy.adversary import Adversary
from telic.privacy.advise import MAX_PAIRS, Advice, advise
from telic.privacy.auxiliary import Auxiliary, TooManyPairs
from telic.privacy.dehin import attack
from telic.privacy.merged_types import flatten
from telic.privacy.risk import Risk, growth_bounds, risks
from telic.privacy.score import bootstrap_interval, right, same_ids, scores
from telic.privacy.target import sets_to_judge
from telic.privacy.views import farthest
from telic.report import Report, Table

GROUPS = (1, 2, 5, 10)
"""The report counts the users whose kind has at most so many members."""
FOUND = "{:.1%} [{:.1%}, {:.1%}]"
"""How a share with its interval is shown."""


def risk_report(
    network: Network,
    *,
    auxiliary: Network | None = None,
    name: str = "network",
    max_risk: float | None = None,
    adversary: Adversary | None = None,
    worst: int = 10,
    show_ids: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Report, dict[str, Any]]:
    """Describe the risk of publishing a network, for a data-protection officer.

    Parameters
    ----------
    network : Network
        What is to be published.
    auxiliary : Network, optional
        What an attacker is assumed to know, with the same ids; default the network itself.
    name : str
    max_risk : float, optional
        Also advise on a release under this risk.
    adversary : Adversary, optional
        What an intruder is taken to see; default everything that the network contains. Risk, attack
        and advice go by it, and the page says it in words.
    worst : int
        How many users at highest risk to list.
    show_ids : bool
        Name them by id; default by row number.
    progress : callable
        Told what is done next.

    Returns
    -------
    report : Report
    facts : dict
        The numbers the report is made of.
    """
    adversary = Adversary.of(network) if adversary is None else adversary
    node_type, names = adversary.node_type, list(adversary.links)
    progress("risk by link types and distance")
    every = list(risks(network, adversary, links=sets_to_judge(names)))
    full = [risk for risk in every if len(risk.links) == len(names)]
    profile, last = full[0], full[-1]
    sizes = last.group_sizes()
    users = network.size(node_type)
    facts: dict[str, Any] = {
        "users": users,
        "adversary": adversary.dump(),
        "density": density(network),
        "risk_by_profile": profile.risk,
        "risk": last.risk,
        "singled_out": last.unique,
        "rows": [{"links": list(r.links), "distance": r.distance, "risk": r.risk} for r in every],
    }
    page = Report(f"Before you publish: {name}", lead=_lead(users, names))
    if (network.nodes[node_type].schema.metadata or {}).get(SIMULATED) == b"true":
        page.note("This network is simulated: no real person is in it.")
    page.section("In short")
    page.note(_verdict(users, profile, last))
    advised = None
    if max_risk is not None:
        progress("searching for a release")
        advised = advise(network, max_risk=max_risk, adversary=adversary, progress=progress)
        page.note(_decision(last.risk, max_risk, advised))
    page.section("What is assumed")
    page.text(
        f"{adversary.words()} All numbers on this page are about this intruder, who has these "
        "things from another source and wants to find a person's row. Risk takes them to be known "
        "exactly. Everyone is taken to have the same to lose."
    )
    page.section("Singling out: who is alike")
    page.text(
        "Two people are alike if all that is published about them is equal. With k people alike, "
        "an attacker who knows what one of them looks like picks the right one with a chance of "
        "1 in k. Looking 0 links far uses a person's own profile alone; 1 link far also uses the "
        "neighbours and their profiles; 2 links far, the neighbours of those."
    )
    page.table(
        Table(
            "All link types together. k: how many users look the same",
            {
                "Looking this many links far": "",
                "Prosecutor risk (mean of 1/k)": ".1%",
                "Alone of their kind": ".1%",
            },
            [[r.distance, r.risk, r.unique] for r in full],
        )
    )
    counts = [[_alike(k), int((sizes <= k).sum())] for k in GROUPS]
    title = "Looking as far as the last row above"
    page.table(Table(title, {"Users who": "", "number": ","}, counts))
    if max(r.risk for r in every) - min(r.risk for r in every) < 0.01:
        page.text("Profiles alone tell so much that links hardly change the risk.")
    elif names:
        page.figure(
            _growth_figure(every),
            "Mean risk by the number of link types published and how far an attacker looks",
        )
    if last.unique == 1 and not show_ids:
        page.text("All are alone of their kind, so all are at the highest risk.")
    else:
        _worst_section(page, network, last, sizes, worst, show_ids, node_type)
    page.section("What each field adds")
    page.text(
        "Leaving out one field alone helps little where the others already tell people apart: "
        "look for rows clearly below today's risk."
    )
    progress("what each field adds")
    effects = _effects(network, adversary)
    facts["risk_without"] = dict(effects)
    page.table(
        Table(
            f"Risk with everything published: {last.risk:.1%}",
            {"If this were not published": "", "risk would be": ".1%"},
            [[field, value] for field, value in effects],
        )
    )
    page.section("Linkability: the attack itself")
    progress("running the attack")
    _attack_section(page, facts, network, auxiliary, adversary)
    if advised is not None and max_risk is not None:
        _advice_section(page, facts, advised, max_risk)
    page.section("What this does not cover")
    page.text(
        "Inference: what can be learnt about a person without finding their row, for example "
        "because everybody alike shares a secret. Attackers who know more than the fields listed "
        "above, who know fields only roughly, or who plant accounts of their own. Free text, "
        "times and anything else that is not in the schema. Several releases of the same people: "
        "risks add up. Low risk here is not anonymity in the sense of the law; it is one input."
    )
    page.section("For the statistician: how fast risk can grow")
    if names:
        lower, upper = growth_bounds(network, 1, adversary)
        page.text(
            "Theory (Theorem 7.4.5) bounds how many different users one could tell apart, if "
            f"values were independent and links never met again: looking one link far, between "
            f"10 to the power {lower:,.0f} and 10 to the power {upper:,.0f}, and more than doubly "
            f"exponentially after that. Here there are {users:,} users, so the measured number "
            f"cannot pass that: {full[0].cardinality:,} different profiles, "
            f"{full[min(1, len(full) - 1)].cardinality:,} different users one link far, "
            f"{last.cardinality:,} at the farthest distance."
        )
    return page, facts


def _lead(users: int, names: list[str]) -> str:
    return (
        f"{users:,} users, {len(names)} kinds of links between them. Removing names does not make "
        "a network anonymous: people are recognised by their profile and by whom they link to. "
        "This page measures how far."
    )


def _verdict(users: int, profile: Risk, last: Risk) -> str:
    alone, singled = (round(risk.unique * users) for risk in (profile, last))
    return (
        f"As it stands, {singled:,} of {users:,} people can be singled out: nobody else has the "
        f"same profile and the same links. By profile alone it is {alone:,}. Someone who knows a "
        "person's published fields would pick that person's row with a chance of "
        f"{last.risk:.1%} on average (prosecutor risk)."
    )


def _decision(risk: float, max_risk: float, found: Advice) -> str:
    if risk <= max_risk:
        return f"That is within your limit of {max_risk:.1%}: nothing has to be coarsened."
    return (
        f"That is above your limit of {max_risk:.1%}: do not publish it as it is. The release "
        f"described below brings the risk down to {found.after[-1].risk:.1%}; it gives up "
        f"{found.loss:.0%} of the published information."
    )


def _effects(network: Network, adversary: Adversary) -> list[tuple[str, float]]:
    """Return the risk if the adversary did not see one attribute, type of ids, or link type."""
    effects = []

    def farthest(what: str, seen: Adversary) -> None:
        *_, last = risks(network, seen, links=[list(seen.links)])
        effects.append((what, last.risk))

    for kind, table in adversary.attributes.items():
        for name in table:
            left = {n: rule for n, rule in table.items() if n != name}
            label = name if kind == adversary.node_type else f"{kind}.{name}"
            seen = replace(adversary, attributes={**adversary.attributes, kind: left})
            farthest(label, seen)
    for kind in adversary.known_ids:
        others = tuple(k for k in adversary.known_ids if k != kind)
        farthest(f"ids of {kind}", replace(adversary, known_ids=others))
    for name in adversary.links:
        farthest(f"{name} links", adversary.with_links(n for n in adversary.links if n != name))
    if adversary.links:
        farthest("all links", adversary.with_links([]))
    return effects


def _worst_section(
    page: Report,
    network: Network,
    last: Risk,
    sizes: np.ndarray,
    worst: int,
    show_ids: bool,
    node_type: str,
) -> None:
    ids = network.ids(node_type)
    page.table(
        Table(
            "Some of the users at highest risk"
            + ("" if show_ids else " (row numbers; ids are printed on request only)"),
            {"User" if show_ids else "Row": "", "users alike (k)": ",", "risk": ".2f"},
            [
                [str(ids[int(v)]) if show_ids else int(v), int(sizes[v]), float(1 / sizes[v])]
                for v in last.worst(worst)
            ],
        )
    )


def _missing(count: int) -> str:
    if count == 0:
        return "All published users are in it."
    return f"{count:,} of the published users are not in it and cannot be found."


def _alike(k: int) -> str:
    if k == 1:
        return "are alone of their kind"
    return f"look like at most {k - 1} {'other' if k == 2 else 'others'}, or are alone"


def _attack_section(
    page: Report,
    facts: dict[str, Any],
    network: Network,
    auxiliary: Network | None,
    adversary: Adversary,
) -> None:
    known = network if auxiliary is None else auxiliary
    prepared = Auxiliary(known, adversary)
    try:
        alike = farthest(flatten(network, adversary), adversary)
        result = attack(prepared, network, alike=alike, max_pairs=MAX_PAIRS)
    except TooManyPairs as error:
        facts["attack"] = None
        page.text(
            f"The attack was not run: {error} It cannot find more people than are alone of their "
            "kind, as counted above."
        )
        return
    truth = same_ids(known, network, adversary.node_type)
    rows = []
    facts["attack"] = []
    for score in scores(result, prepared.size, truth):
        low, high = bootstrap_interval(right(result, truth, score.distance))
        rows.append(
            [
                score.distance,
                [score.unique_right, low, high],
                score.unique_wrong,
                score.empty,
                score.mean_candidates,
            ]
        )
        facts["attack"].append(
            {
                "distance": score.distance,
                "precision": score.precision,
                "unique_wrong": score.unique_wrong,
                "empty": score.empty,
            }
        )
    source = "this network itself" if auxiliary is None else "the auxiliary network given"
    page.text(
        f"A known attack (DeHIN) was run with {source} as what the attacker knows "
        f"({prepared.size:,} users), "
        "allowing for growth where the schema says so: a count may have risen, links may be new. "
        f"{_missing(int((truth < 0).sum()))} An "
        "attack may find fewer people than are alone of their kind, since it has to allow for "
        "growth and to search among more people."
    )
    page.table(
        Table(
            "Users found: exactly one person fits, and it is the right one",
            {
                "Links followed": "",
                "found [95 % interval]": FOUND,
                "wrong person": ".1%",
                "nobody fits": ".1%",
                "people left on average": ".1f",
            },
            rows,
        )
    )


def _advice_section(page: Report, facts: dict[str, Any], found: Advice, max_risk: float) -> None:
    page.section(f"A release under {max_risk:.0%} risk")
    least = "no release that keeps more meets the limit" if found.proven else "found by search"
    page.text(
        f"Risk falls from {found.before[-1].risk:.1%} to {found.after[-1].risk:.1%} and "
        f"{found.loss:.0%} of the published information is lost ({least}). {attacked_words(found)}"
    )
    page.table(effects_table(found))
    several = len(found.adversary.attributes) > 1
    who = f" --node-type {found.adversary.node_type}" if several else ""
    page.text(
        f"To make this release: telic privacy advise{who} --max-risk {max_risk:g} --out "
        f"steps.json, then telic privacy anonymise{who} --steps steps.json{keep_ids(found)}."
    )
    facts["advice"] = {
        "steps": found.steps,
        "risk": found.after[-1].risk,
        "loss": found.loss,
        "attack_precision": found.attacked,
    }


def effects_table(found: Advice) -> Table:
    """Return what each field adds to the risk, before and after."""
    return Table(
        "Field by field",
        {
            "field": "",
            "in the release": "",
            "risk today without it": ".1%",
            "risk of the release with it in full": ".1%",
        },
        [list(effect) for effect in found.effects],
    )


def distances_table(found: Advice) -> Table:
    """Return the risk by how many links are followed, before and after."""
    return Table(
        "Hop by hop",
        {"links followed": "", "risk today": ".1%", "risk of the release": ".1%"},
        [
            [n, risk_at(found.before, n), risk_at(found.after, n)]
            for n in sorted({r.distance for r in (*found.before, *found.after)})
        ],
    )


def keep_ids(found: Advice) -> str:
    """Give the option of `anonymise` that keeps the ids which the advice leaves as they are."""
    gone = {step["node_type"] for step in found.steps if step["method"] == "replace-ids"}
    kept = [kind for kind in found.adversary.known_ids if kind not in gone]
    return f" --public {','.join(kept)}" if kept else ""


def attacked_words(found: Advice) -> str:
    """Say what the attack finds in an advised release, or why it was not run."""
    alone = f"{found.after[-1].unique:.1%} of the users are alone of their kind in it"
    if found.attacked is None:
        return (
            f"The attack was not run on that release: too many users are alike. {alone[:1].upper()}"
            f"{alone[1:]}, and it cannot find more."
        )
    return (
        f"The attack by the same intruder, who knows all that it shows exactly, finds "
        f"{found.attacked:.1%} of the users; {alone}."
    )


def risk_at(rows: list[Risk], distance: int) -> float:
    """Return the risk at a distance, or at the last one before it that is given."""
    return max((row for row in rows if row.distance <= distance), key=lambda r: r.distance).risk


def _growth_figure(every: list[Risk]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    distances = sorted({risk.distance for risk in every})
    by_links: dict[tuple[str, ...], list[Risk]] = {}
    for risk in every:
        by_links.setdefault(risk.links, []).append(risk)
    for count in sorted({len(names) for names in by_links if names}):
        means = [
            np.mean(
                [
                    risk_at(subset, n)
                    for subset in by_links.values()
                    if len(subset[0].links) == count
                ]
            )
            for n in distances
        ]
        axes.plot(
            distances,
            np.multiply(means, 100),
            marker="o",
            label=f"{count} kind{'s' * (count > 1)} of links",
        )
    axes.set_xticks(distances)
    axes.set_xlabel("how many links far an attacker looks")
    axes.set_ylabel("risk, %")
    axes.set_ylim(0, 105)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
