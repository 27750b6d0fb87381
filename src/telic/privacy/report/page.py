"""One page for whoever decides whether a network may be published."""

from collections.abc import Callable
from typing import Any

import numpy as np

from telic.data.contracts import SIMULATED
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.attacks.attribute_inference import WAYS
from telic.privacy.attacks.link_errors import EXACT, LinkErrors
from telic.privacy.report.advice import advice_section, what_to_do
from telic.privacy.report.figures import risk_map
from telic.privacy.report.findings import RiskFindings, gather, reasons, told_apart_by
from telic.privacy.report.intruder_tests import MOTIVATED, inferred_words, intruder_tests
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risk_in_words import for_one_person, meaning
from telic.privacy.risk.risks import growth_bounds
from telic.report import Report, Table

GROUPS = (1, 2, 5, 10)
"""The report counts the users whose kind has at most so many members."""
POINTS = "100 {:+.1f} [{:+.1f}, {:+.1f}]"
FOUND = "{:.1%} [{:.1%}, {:.1%}]"
"""How a share with its interval is shown."""


def risk_report(
    network: Network,
    *,
    auxiliary: Network | None = None,
    name: str = "network",
    limits: Limits | None = None,
    adversary: Adversary | None = None,
    errors: LinkErrors = EXACT,
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
    errors : LinkErrors
        How far links may differ from what the attacker knows, in the attack.
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
    found = gather(
        network, adversary, auxiliary=auxiliary, errors=errors, limits=limits, progress=progress
    )
    facts = found.facts()
    kinds = len(adversary.links)
    page = Report(
        f"Before you publish: {name}",
        lead=f"{found.users:,} users, {kinds} kind{'s' * (kinds != 1)} of links. Removing names "
        "does not make a network anonymous: people are recognised by their profile and by whom "
        "they link to. This page measures how far, and what to do about it.",
    )
    if (network.nodes[adversary.node_type].schema.metadata or {}).get(SIMULATED) == b"true":
        page.note("This network is simulated: no real person is in it.")
    _short_section(page, found)
    _tests_section(page, facts, found)
    if found.advised is not None:
        advice_section(page, found.advised)
    _map_section(page, found)
    _worst_section(page, found, worst, show_ids)
    _fields_section(page, found)
    _attack_section(page, found)
    if found.inferred:
        _inference_section(page, found)
    _limits_section(page, found)
    return page, facts


def _short_section(page: Report, found: RiskFindings) -> None:
    last, users, advised = found.last, found.users, found.advised
    page.section("In short")
    alone, singled = (round(risk.unique * users) for risk in (found.full[0], last))
    page.note(
        f"As it stands, {singled:,} of {users:,} people can be singled out: nobody else has the "
        f"same profile and the same links. By profile alone it is {alone:,}."
    )
    if advised is not None:
        page.note(_decision(found))
    page.text(f"What the risk means. {meaning(last)}")
    sizes = last.group_sizes()
    page.text(
        f"For one person. In the middle: {for_one_person(int(np.median(sizes)))} Worst off: "
        f"{for_one_person(int(sizes.min()))}"
    )
    if advised is not None and not advised.limits.met_by(last):
        page.text(f"After the release described below. {meaning(advised.after[-1])}")
    page.section("What to do next")
    for step in what_to_do(found.last, advised):
        page.text(step)


def _decision(found: RiskFindings) -> str:
    advised = found.advised
    assert advised is not None
    asked = advised.limits.words()
    if advised.limits.met_by(found.last):
        return f"That is within your limits ({asked}): nothing has to be coarsened."
    after = advised.after[-1]
    return (
        f"That is above your limits ({asked}): do not publish it as it is. The release described "
        f"below keeps them, with a mean risk of {after.risk:.1%} and a highest of "
        f"{after.highest:.1%}; it gives up {advised.loss:.0%} of the published information."
    )


def _tests_section(page: Report, facts: dict[str, Any], found: RiskFindings) -> None:
    page.section("Against whom: the motivated intruder")
    page.text(
        f"{MOTIVATED} {found.adversary.words()} All numbers on this page are about this intruder, "
        "who has these things from another source and wants to find a person's row. Risk assumes "
        "that the intruder knows them exactly, and that everyone has the same to lose."
    )
    linked = None if found.attacked is None else found.attacked[-1].score.precision
    tests = intruder_tests(found.adversary, found.last, linked, inferred_words(found.inferred))
    facts["tests"] = [test._asdict() for test in tests]
    page.table(Table("Three tests", {"test": "", "question": "", "as it stands": ""}, tests))


def _map_section(page: Report, found: RiskFindings) -> None:
    page.section("Which links, and how far: the risk today")
    page.text(
        "Two people are alike if all that is published about them is equal. With k people alike, "
        "an intruder who knows what one of them looks like picks the right one with a chance of "
        "1 in k. Looking 0 links far uses a person's own profile alone; 1 link far also uses the "
        "neighbours and their profiles; 2 links far, the neighbours of those."
    )
    alone = found.mapped is not found.every
    if alone:
        page.text(
            f"Profiles alone tell nearly everybody apart ({found.full[0].risk:.1%}), so the "
            "picture shows what links would tell to somebody who knows no profile."
        )
    if found.adversary.links:
        page.figure(
            risk_map(found.mapped),
            "Mean risk if only these kinds of links were published"
            + (", without any attribute" if alone else "")
            + ", by how far the intruder looks. Dark: people are told apart",
        )
    columns = {
        "Looking this many links far": "",
        "Mean risk (1/k)": ".1%",
        "Worst 1 % of users": ".1%",
        "Highest": ".1%",
        "Alone of their kind": ".1%",
    }
    rows = [[r.distance, r.risk, r.tail, r.highest, r.unique] for r in found.full]
    page.table(Table("All link types together. k: how many users look the same", columns, rows))
    sizes = found.last.group_sizes()
    counts = [[_alike(k), int((sizes <= k).sum())] for k in GROUPS]
    title = "Looking as far as the last row above"
    page.table(Table(title, {"Users who": "", "number": ","}, counts))


def _worst_section(page: Report, found: RiskFindings, worst: int, show_ids: bool) -> None:
    page.section("Who is worst off, and why")
    if found.last.unique:
        alone = round(found.last.unique * found.users)
        page.table(
            Table(
                f"What sets the {alone:,} apart who are alone",
                {"if this were not published": "", "would not be alone": ","},
                sorted(told_apart_by(found), key=lambda row: -row[1]),
                "One field may be enough for many, or each of several: then leaving out one helps "
                "nobody.",
            )
        )
    ids = found.network.ids(found.adversary.node_type)
    asked = "" if show_ids else " (rows, counted from 1; ids are printed on request only)"
    columns = {
        "User" if show_ids else "Row": "",
        "users alike (k)": ",",
        "by profile alone": ",",
        "told from the others by": "",
    }
    rows = [
        [str(ids[one.user]) if show_ids else one.user + 1, *one[1:]]
        for one in reasons(found, worst)
    ]
    page.table(Table(f"Users who are worst off{asked}", columns, rows))


def _fields_section(page: Report, found: RiskFindings) -> None:
    page.section("What each field adds")
    page.text(
        "Leaving out one field alone helps little where the others already tell people apart: "
        "look for rows clearly below today's risk."
    )
    columns = {"If this were not published": "", "risk would be": ".1%"}
    rows = [[one.field, one.risk] for one in found.without]
    page.table(Table(f"Risk with everything published: {found.last.risk:.1%}", columns, rows))


def _attack_section(page: Report, found: RiskFindings) -> None:
    page.section("Linkability: the attack itself")
    if found.attacked is None:
        page.text(
            "The attack was not run: too many pairs of users match by profile. It cannot find more "
            "people than are alone of their kind, as counted above."
        )
        return
    source = "this network itself" if found.own else "the auxiliary network given"
    page.text(
        f"A known attack (DeHIN) was run with {source} as what the attacker knows "
        f"({found.known_users:,} users), "
        "allowing for growth where the schema says so: a count may have risen. "
        f"{found.errors.words()} {_missing(found.not_known)} An "
        "attack may find fewer people than are alone of their kind, since it has to allow for "
        "growth and to search among more people."
    )
    title = "Users found: exactly one person fits, and it is the right one"
    columns = {
        "Links followed": "",
        "found [95 % interval]": FOUND,
        "wrong person": ".1%",
        "nobody fits": ".1%",
        "people left on average": ".1f",
    }
    rows = [
        [x.distance, [x.precision, low, high], x.unique_wrong, x.empty, x.mean_candidates]
        for x, low, high in found.attacked
    ]
    page.table(Table(title, columns, rows))


def _inference_section(page: Report, found: RiskFindings) -> None:
    page.section("Inference: what others' rows tell of a person")
    page.text(
        "An intruder who knows everything of a person but one attribute guesses it: from the "
        "person's row if it is found; without it, from the others who look the same or from those "
        "whom the person is linked with. A gain is the share of right guesses beyond those of the "
        "commonest value. The control guesses from shuffled values: its gains are chance."
    )
    columns = {"attribute": "", "commonest value": ".1%"}
    columns |= {f"gain from {words}": POINTS for words in WAYS.values()}
    columns |= {"largest gain of the control": POINTS}
    rows = []
    for one in found.inferred:
        gains = [[*one.gains[way]] for way in WAYS]
        rows.append([one.attribute, one.baseline, *gains, [*max(one.control.values())]])
    page.table(Table("Percentage points beyond the commonest value [95 % interval]", columns, rows))


def _limits_section(page: Report, found: RiskFindings) -> None:
    page.section("What this does not cover")
    page.text(
        "Inference by better models than the guesses above. Attackers who know more than the "
        "fields listed above, who know fields only roughly, or who plant accounts of their own. "
        "Free text, times and anything else that is not in the schema. Several releases of the "
        "same people (telic privacy again measures two): risks add up. Low risk here is not "
        "anonymity in the sense of the law; it is one input."
    )
    if not found.adversary.links:
        return
    page.section("For the statistician: how fast risk can grow")
    lower, upper = growth_bounds(found.network, 1, found.adversary)
    full = found.full
    page.text(
        "Theory (Theorem 7.4.5) bounds how many different users one could tell apart, if "
        f"values were independent and links never met again: looking one link far, between "
        f"10 to the power {lower:,.0f} and 10 to the power {upper:,.0f}, and more than doubly "
        f"exponentially after that. Here there are {found.users:,} users, so the measured number "
        f"cannot pass that: {full[0].cardinality:,} different profiles, "
        f"{full[min(1, len(full) - 1)].cardinality:,} different users one link far, "
        f"{found.last.cardinality:,} at the farthest distance."
    )


def _missing(count: int) -> str:
    if count == 0:
        return "All published users are in it."
    return f"{count:,} of the published users are not in it and cannot be found."


def _alike(k: int) -> str:
    if k == 1:
        return "are alone of their kind"
    return f"look like at most {k - 1} {'other' if k == 2 else 'others'}, or are alone"
