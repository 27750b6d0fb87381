"""An advised release, as the command and the report show it."""

from typing import Any

from telic.privacy.advise import Advice
from telic.privacy.limits import NAMES
from telic.privacy.report_figures import risk_at
from telic.privacy.words import meaning
from telic.report import Report, Table


def advice_section(page: Report, facts: dict[str, Any], found: Advice) -> None:
    """Describe the advised release: what it costs, what it brings, how to make it."""
    page.section("The advised release")
    least = "no release that keeps more meets the limits" if found.proven else "found by search"
    page.text(
        f"Asked for: {found.limits.words()}. {found.loss:.0%} of the published information is lost "
        f"({least}). {attacked_words(found)} {meaning(found.after[-1])}"
    )
    page.table(measures_table(found))
    page.table(effects_table(found))
    several = len(found.adversary.attributes) > 1
    who = f" --node-type {found.adversary.node_type}" if several else ""
    asked = "".join(f" {OPTIONS[name]} {x:g}" for name, x in found.limits.given().items())
    page.text(
        f"To make this release: telic privacy advise{who}{asked} --out steps.json, then "
        f"telic privacy anonymise{who} --steps steps.json{keep_ids(found)}."
    )
    facts["advice"] = {
        "steps": found.steps,
        "limits": found.limits.given(),
        "risk": found.after[-1].risk,
        "highest": found.after[-1].highest,
        "worst_1_percent": found.after[-1].tail,
        "singled_out": found.after[-1].unique,
        "loss": found.loss,
        "attack_precision": found.attacked,
    }


OPTIONS = {
    "risk": "--max-risk",
    "highest": "--max-highest",
    "unique": "--max-unique",
    "tail": "--max-worst",
}
"""How the command calls each limit."""


def measures_table(found: Advice) -> Table:
    """Return each measure of risk before and after, beside its limit."""
    before, after, given = found.before[-1], found.after[-1], found.limits.given()
    return Table(
        "Risk today and of the release, looking as far as anything changes",
        {"measure": "", "today": ".1%", "release": ".1%", "limit": ".1%"},
        [
            [label, getattr(before, name), getattr(after, name), given.get(name)]
            for name, label in NAMES.items()
        ],
    )


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
