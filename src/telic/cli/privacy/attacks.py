"""`telic privacy`: what an intruder learns from two releases, or of an attribute."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.console import print_json, show
from telic.cli.privacy.options import AsJson, NetworkFolder, NodeType, app
from telic.report.table import Table


@app.command()
def again(
    first: Annotated[Path, typer.Argument(help="Network folder that was published before.")],
    second: Annotated[Path, typer.Argument(help="Network folder to be published now.")],
    node_type: NodeType = None,
    as_json: AsJson = False,
) -> None:
    """What two releases of the same people tell together.

    Give both as they are published, but with the ids they had before (anonymise --keep-ids), which
    say who is who; the intruder is not taken to see these.
    """
    from telic.hin import read_network
    from telic.privacy import Adversary, two_releases
    from telic.privacy.risk.risks import Measures

    networks = [read_network(folder) for folder in (first, second)]
    seen = [Adversary.of(network, node_type=node_type) for network in networks]
    found = two_releases(*networks, adversary=seen[0], later=seen[1])
    if as_json:
        print_json(
            {
                "people": found.people,
                **{name: getattr(found, name)._asdict() for name in ("first", "second", "joined")},
                "matched": found.matched,
                "adversary": seen[0].dump(),
            }
        )
        return

    def row(label: str, one: Measures) -> list[str | float]:
        return [label, one.risk, one.tail, one.highest, one.unique]

    typer.echo(seen[0].words())
    columns = {
        "release": "",
        **dict.fromkeys(("mean risk", "worst 1 %", "highest", "unique users"), ".1%"),
    }
    rows = [
        row("first", found.first),
        row("second", found.second),
        row("both, rows joined", found.joined),
    ]
    show(Table(f"Risk of the {found.people:,} people who are in both", columns, rows))
    if found.matched is None:
        typer.echo("The attack was not run: too many users are alike.")
    else:
        typer.echo(f"The attack joins the rows of {found.matched:.1%} of them without any id.")


@app.command()
def infer(
    network: NetworkFolder,
    attribute: Annotated[list[str], typer.Argument(help="Published attributes to guess.")],
    node_type: NodeType = None,
    as_json: AsJson = False,
) -> None:
    """Guess attributes of people from a release, with a control that must gain nothing."""
    from telic.hin import read_network
    from telic.privacy import Adversary, inference
    from telic.privacy.attacks.attribute_inference import WAYS
    from telic.privacy.report.page import POINTS

    net = read_network(network)
    adversary = Adversary.of(net, node_type=node_type)
    found = [inference(net, name, adversary=adversary) for name in attribute]
    if as_json:
        print_json({"inference": [asdict(one) for one in found], "adversary": adversary.dump()})
        return
    rows = [
        [one.attribute, one.baseline, words, [*one.gains[way]], [*one.control[way]]]
        for one in found
        for way, words in WAYS.items()
    ]
    columns = {
        "attribute": "",
        "commonest": ".1%",
        "guessed from": "",
        "gain": POINTS,
        "control": POINTS,
    }
    show(Table("Right guesses beyond the commonest value, points [95 %]", columns, rows))
