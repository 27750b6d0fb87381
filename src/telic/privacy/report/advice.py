"""An advised release, as the command and the report show it."""

from telic.privacy.advice.advise import Advice
from telic.privacy.report.figures import frontier_figure, risk_at
from telic.privacy.risk.limits import NAMES
from telic.privacy.risk.risks import Risk
from telic.report import Report, Table


def advice_section(page: Report, found: Advice) -> None:
    """Describe the advised release: what it costs, what it brings, how to make it."""
    page.section("The advised release")
    least = "no release that keeps more meets the limits" if found.proven else "found by search"
    page.text(
        f"Asked for: {found.limits.words()}. {found.loss:.0%} of the published information is lost "
        f"({least}). {attacked_words(found)}"
    )
    page.figure(
        frontier_figure(found),
        "What risk is left for what is given up. Each point is a release that none found beats in "
        "both; the square is the network as it is, the star the advised release",
    )
    page.table(measures_table(found))
    page.table(effects_table(found))


def what_to_do(today: Risk, found: Advice | None) -> list[str]:
    """Say in numbered sentences what a publisher does next."""
    if found is None:
        return [
            "1. Do not publish it on the strength of the mean alone: decide which risk "
            "you accept on average and for the person who is worst off.",
            "2. Make this page again with these limits, for example telic privacy report "
            "NETWORK PAGE --max-risk 0.05 --max-highest 0.2: it then describes a release that "
            "keeps them.",
        ]
    several = len(found.adversary.attributes) > 1
    who = f" --node-type {found.adversary.node_type}" if several else ""
    asked = "".join(f" {OPTIONS[name]} {x:g}" for name, x in found.limits.given().items())
    first = (
        "1. Check below whom the page takes for the intruder. If somebody could know "
        "more than that, the risk is higher than stated."
    )
    last = (
        "Read below what the release leaves out. If that is what your readers need, weigh it "
        "(--weights) and ask again, or give access under a contract instead of publishing."
    )
    if found.limits.met_by(today):
        return [
            first,
            f"2. Publish under new ids: telic privacy anonymise NETWORK RELEASE{who} --key "
            f"key.parquet{keep_ids(found)}. Lock the key up, or make none.",
        ]
    return [
        first,
        f"2. Make the release: telic privacy advise NETWORK{who}{asked} --out steps.json, then "
        f"telic privacy anonymise NETWORK RELEASE{who} --steps steps.json --key key.parquet"
        f"{keep_ids(found)}. Give advise the options that described the intruder for this page, "
        "if any. Lock the key up, or make none.",
        f"3. {last}",
        "4. Before the next release of the same people, measure both together (telic privacy "
        "again): risks add up.",
    ]


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
    far, distance = "as far as anything changes", found.adversary.distance
    if distance is not None:
        far = f"{distance} link{'s' * (distance != 1)} far"
    return Table(
        f"Risk today and of the release, looking {far}",
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
        "By links followed",
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
        f"The attack by the same intruder, who knows exactly all that the release shows, finds "
        f"{found.attacked:.1%} of the users; {alone}."
    )
