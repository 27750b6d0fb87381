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
from telic.privacy.limits import Limits
from telic.privacy.merged_types import flatten
from telic.privacy.report_advice import advice_section
from telic.privacy.report_figures import growth_figure
from telic.privacy.risk import Risk, growth_bounds, risks
from telic.privacy.score import bootstrap_interval, right, same_ids, scores
from telic.privacy.target import sets_to_judge
from telic.privacy.views import farthest
from telic.privacy.words import MOTIVATED, for_one_person, intruder_tests, meaning
from telic.report import Report, Table

GROUPS = (1, 2, 5, 10)
"""The report counts the users whose kind has at most so many members."""
NOT_MEASURED = "Not measured here."
"""What the report says of inference."""
FOUND = "{:.1%} [{:.1%}, {:.1%}]"
"""How a share with its interval is shown."""


def risk_report(
    network: Network,
    *,
    auxiliary: Network | None = None,
    name: str = "network",
    limits: Limits | None = None,
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
    limits : Limits, optional
        Also advise on a release that keeps them.
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
        "highest": last.highest,
        "worst_1_percent": last.tail,
        "rows": [
            {
                "links": list(r.links),
                "distance": r.distance,
                "risk": r.risk,
                "highest": r.highest,
                "worst_1_percent": r.tail,
                "singled_out": r.unique,
            }
            for r in every
        ],
    }
    page = Report(f"Before you publish: {name}", lead=_lead(users, names))
    if (network.nodes[node_type].schema.metadata or {}).get(SIMULATED) == b"true":
        page.note("This network is simulated: no real person is in it.")
    page.section("In short")
    page.note(_verdict(users, profile, last))
    page.text(
        f"For one person. In the middle: {for_one_person(int(np.median(sizes)))} Worst off: "
        f"{for_one_person(int(sizes.min()))}"
    )
    advised = None
    if limits is not None:
        progress("searching for a release")
        advised = advise(network, limits, adversary=adversary, progress=progress)
        page.note(_decision(last, advised))
    page.section("What is assumed")
    page.text(
        f"{MOTIVATED} {adversary.words()} All numbers on this page are about this intruder, who "
        "has these things from another source and wants to find a person's row. Risk takes them to "
        "be known exactly. Everyone is taken to have the same to lose."
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
                "Mean risk (1/k)": ".1%",
                "Worst 1 % of users": ".1%",
                "Highest": ".1%",
                "Alone of their kind": ".1%",
            },
            [[r.distance, r.risk, r.tail, r.highest, r.unique] for r in full],
        )
    )
    counts = [[_alike(k), int((sizes <= k).sum())] for k in GROUPS]
    title = "Looking as far as the last row above"
    page.table(Table(title, {"Users who": "", "number": ","}, counts))
    if max(r.risk for r in every) - min(r.risk for r in every) < 0.01:
        page.text("Profiles alone tell so much that links hardly change the risk.")
    elif names:
        page.figure(
            growth_figure(every),
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
    page.section("The motivated intruder: three tests")
    found = None if facts["attack"] is None else facts["attack"][-1]["precision"]
    tests = intruder_tests(adversary, last, found, NOT_MEASURED)
    facts["tests"] = [test._asdict() for test in tests]
    page.table(Table("", {"test": "", "question": "", "as it stands": ""}, tests))
    if advised is not None:
        advice_section(page, facts, advised)
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
        f"same profile and the same links. By profile alone it is {alone:,}. {meaning(last)}"
    )


def _decision(today: Risk, found: Advice) -> str:
    asked = found.limits.words()
    if found.limits.met_by(today):
        return f"That is within your limits ({asked}): nothing has to be coarsened."
    return (
        f"That is above your limits ({asked}): do not publish it as it is. The release described "
        f"below keeps them, with a mean risk of {found.after[-1].risk:.1%} and a highest of "
        f"{found.after[-1].highest:.1%}; it gives up {found.loss:.0%} of the published information."
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
