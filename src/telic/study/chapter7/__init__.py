"""Chapter 7's tables and figures, on the simulated microblog and on real networks."""

from functools import partial
from typing import Any

from telic.errors import InputError
from telic.report import Report, Table
from telic.simulate.microblog import TQQ_USERS
from telic.study.chapter7.experiments import run
from telic.study.chapter7.figures import by_count_figure, release_figure
from telic.study.chapter7.networks import DENSEST, DENSITIES, REAL, make_world
from telic.study.chapter7.published import (
    PUBLISHED_ATTACK,
    PUBLISHED_ATTACK_REDUCTION,
    PUBLISHED_COMPLETE,
    PUBLISHED_COMPLETE_REDUCTION,
    PUBLISHED_PLAIN,
    PUBLISHED_PLAIN_REDUCTION,
    PUBLISHED_RISK,
)
from telic.study.chapter7.tables import (
    by_density_table,
    by_links_table,
    ceiling_table,
    complete_by_links_table,
    few_links_table,
    losses_table,
    means,
    precision,
    real_table,
    reduction_table,
    releases_table,
)
from telic.study.steps import Steps

PARTS = ("simulated", *REAL)
"""What the study is made of; each can be run alone."""


def study(
    steps: Steps, *, users: int = 200_000, samples: int = 3, seed: int = 0, only: str | None = None
) -> Report:
    """Tables 7.1–7.4 and Figures 7.7–7.9 on the simulator, its control, and the real networks.

    Parameters
    ----------
    steps : Steps
    users, samples, seed : int
        Size of the simulated network, groups per density, and what is drawn.
    only : str, optional
        One of `PARTS`; default all.
    """
    if only not in (None, *PARTS):
        raise InputError(f"part {only!r} of chapter 7 does not exist. Parts are {[*PARTS]}.")
    page = Report(
        "Chapter 7: privacy risk and DeHIN",
        lead="The t.qq network is not public. These tables are made on a simulated microblog with "
        "its published marginals, and on real networks where they are at hand; published figures "
        "stand beside ours.",
    )
    if only in (None, "simulated"):
        _simulated(
            page, steps, {"name": "simulated", "users": users, "samples": samples, "seed": seed}
        )
    for name in REAL:
        if only in (None, name):
            try:
                _real(page, steps, name)
            except InputError as error:
                if only:
                    raise
                page.note(f"{name}: left out. {error}")
    return page


def _simulated(page: Report, steps: Steps, world: dict[str, Any]) -> None:
    users, samples, seed = world["users"], world["samples"], world["seed"]
    do = partial(steps, world=world)
    page.text(
        "The simulator was fitted to the numbers of users, links and distinct values, and to what "
        "profiles alone tell (n = 0 in Table 7.2). One constant, the links per active member, was "
        "fitted to Table 7.2's rise in proportion to density. That rise is therefore no result; "
        "what link types, distance and anonymisation add is a result."
    )
    page.note(
        f"Simulated: {users:,} users, {samples} groups of 1,000 per density, seed {seed}. Made by: "
        f"telic study chapter-7 --users {users} --samples {samples} --seed {seed}. Published: 500 "
        "groups in all, 57 of them of density 0.01; 2,320,895 users."
        + " With fewer users around them, people are easier to find: compare the trends, or run "
        f"with --users {TQQ_USERS}, the published number." * (users < TQQ_USERS)
    )
    risk = do("Table 7.1", run, experiment="risk_by_links", density=DENSEST)
    page.section("Table 7.1: risk by link types (density 0.01)")
    page.table(by_links_table("Risk, percent (simulated)", risk, PUBLISHED_RISK))
    page.figure(
        by_count_figure(risk, "risk, %"),
        "Figure 7.7: mean risk by number of link types (simulated)",
    )
    found = do("Table 7.3", run, experiment="attack_by_links", density=DENSEST)
    page.section("Table 7.3: precision of DeHIN by link types")
    page.table(by_links_table("Precision, percent (simulated)", precision(found), PUBLISHED_ATTACK))
    page.figure(
        by_count_figure(precision(found), "precision, %"),
        "Figure 7.8: mean precision by number of link types (simulated)",
    )
    by_links = {names: each["scores"] for names, each in found.items()}
    reduction = reduction_table("Table 7.3", "link types", by_links, PUBLISHED_ATTACK_REDUCTION)
    page.table(reduction, folded=True)
    _releases(page, do("Tables 7.2 and 7.4", run, experiment="attack_by_density"), samples)
    page.section("Figure 7.9's argument: one link type is defended, several are not")
    argument = do("Figure 7.9 by link types", run, experiment="complete_by_links", density=DENSEST)
    page.table(complete_by_links_table(argument))
    page.text(
        "In a complete graph of one strength nobody can see which links of that strength are "
        "real. If the attack uses one link type, this defends many users, and with follow, which "
        "has no strength, everybody. If it uses several types, enough real links are left in the "
        "others. The dissertation draws this by density; here it is shown by the number of link "
        "types that the attack uses."
    )
    losses = do("losses of the releases", run, experiment="release_losses", density=DENSEST)
    page.table(losses_table(losses))
    page.text(
        "Both complete graphs publish every real link with its strength among many false ones. "
        "Where all false links of a type share one strength, other strengths tell the real ones "
        "apart, for a reader as for an attacker; where false strengths are drawn at random they do "
        "not. That is why the varying graph defends, and why it loses more (7.6.3)."
    )
    _ceiling(
        page,
        do("who has a link", run, experiment="ceiling", density=DENSEST),
        do("who is found by few links", run, experiment="found_by_links", density=DENSEST),
    )
    _advice(
        page,
        do("advice", run, experiment="advice", density=DENSEST, max_risk=0.05),
        "one group of 1,000 (simulated)",
    )
    copies = world | {"name": "control", "samples": 1}
    found = steps("control", run, experiment="risk_by_links", world=copies, density=DENSEST)
    page.section("Control: four copies of the same links")
    what = "Risk, percent (simulated; more types must add nothing)"
    page.table(by_links_table(what, found, {}))


def _releases(page: Report, found: dict[str, Any], samples: int) -> None:
    densest = str(DENSEST)
    page.section("Table 7.2: DeHIN on the plain release (KDDA)")
    what = "Precision in percent (simulated)"
    page.table(by_density_table(f"{what}, Table 7.2", found["KDDA"], PUBLISHED_PLAIN))
    reduction = reduction_table("Table 7.2", "density", found["KDDA"], PUBLISHED_PLAIN_REDUCTION)
    page.table(reduction, folded=True)
    page.text(
        "At n = 0 the dissertation finds 5.4 % at density 0.01; here it is "
        f"{means(found['KDDA'][densest])[0]:.1%} with {samples * len(DENSITIES)} groups in one "
        "network. The profiles were fitted with one group: its members tweet more than most "
        "people, and more groups hide one another."
    )
    page.section("Table 7.4: DeHIN, re-configured, on complete graphs (CGA)")
    complete = found["CGA, re-configured"]
    page.table(by_density_table(f"{what}, Table 7.4", complete, PUBLISHED_COMPLETE))
    reduction = reduction_table("Table 7.4", "density", complete, PUBLISHED_COMPLETE_REDUCTION)
    page.table(reduction, folded=True)
    page.text(
        "Removing the majority strength removes all follow links, since follow has no strength. "
        "The plain release under the same attack (“security by obscurity”, 7.6.4) gives "
        "exactly the same only if the fake strength equals the majority of the real ones: both "
        "are in the next table. There CGA is the complete graph whose fake links share one "
        "strength, VW-CGA the one whose fake links have varying strengths; “empty” is the share of "
        "targets for whom the attack finds no candidate."
    )
    page.table(releases_table(found, densest))
    page.figure(
        release_figure(found),
        "Figure 7.9: precision at distance 3 by density and release (simulated)",
    )


def _ceiling(page: Report, found: list[dict[str, Any]], few: list[dict[str, Any]]) -> None:
    """Explain where the tables level off."""
    linked = {row["links"]: row["linked"] for row in found}
    page.section("Why two link types already reach the ceiling")
    page.text(
        "Links cannot find a user who has none, so the share of targets with an out-link in the "
        "types used bounds what links can add. In the dissertation that share is at least the risk "
        "of Table 7.1 at distance 3 less 1.1 points, since users without links fall into 11 kinds. "
        "There, users who never mention hardly ever retweet or comment (one such type 92.7 to 93.2 "
        "%, all three 93.5 %), and following alone brings other people in (97.5 %). In the "
        "simulator the types fall silent independently among active users: "
        f"{linked['mention']:.1%} have a mention, {linked['mention-retweet']:.1%} a mention or a "
        f"retweet, and {linked['mention-retweet-comment']:.1%} any of the three. The ceiling "
        "therefore comes with the second type of any kind; in the dissertation with follow and one "
        "other. The simulator was left as it is: only published marginals may set it, and this "
        "share is published as a result, not as a marginal."
    )
    page.table(ceiling_table(found))
    page.text(
        "The second reason is how much one link tells. With one link type at distance 1 the "
        "dissertation finds 68.1 to 82.8 % of all targets, which is 73 to 89 % of those with a "
        f"link by the shares above. Here one link finds {few[1]['found']:.0%} and two find "
        f"{few[2]['found']:.0%}, but only {few[1]['share']:.0%} of the targets have one: active "
        "users have links enough in every type for one type to find nearly all of them."
    )
    page.table(few_links_table(few))


def _advice(page: Report, found: dict[str, Any], whom: str) -> None:
    low, high = found["interval"]
    least = "no release that keeps more meets the limit" if found["proven"] else "found by search"
    page.section(f"Advice for {whom}: a risk of {found['max_risk']:.0%}, confirmed by the attack")
    page.text(
        "`advise` lowers the risk from "
        f"{found['risk_before']:.1%} to {found['risk_after']:.1%} at a loss of {found['loss']:.0%} "
        f"of the published information ({least}). An attacker who knows the group exactly, "
        f"coarsened in the same way, then finds {found['attack_inside']:.1%}; one who has to look "
        f"in the whole network finds {found['attack_after']:.1%} [{low:.1%}, {high:.1%}], and "
        f"found {found['attack_before']:.1%} before."
    )
    choice = [list(item) for item in found["choice"].items()]
    page.table(Table("The release", {"field": "", "in the release": ""}, choice))


def _real(page: Report, steps: Steps, name: str) -> None:
    world = make_world(name)
    ((density, ((target, _),)),) = world.samples.items()
    do = partial(steps, world={"name": name}, density=density)
    found = do(f"{name}: attack", run, experiment="attack_by_links")
    page.section(world.name)
    kind = next(iter(world.network.schema.nodes))
    page.table(real_table(found, target.size(kind), world.network.size(kind)))
    risk = do(f"{name}: risk", run, experiment="risk_by_links")
    page.table(by_links_table(f"{world.name}: risk, percent", risk, {}))
    _advice(page, do(f"{name}: advice", run, experiment="advice", max_risk=0.05), world.name)
