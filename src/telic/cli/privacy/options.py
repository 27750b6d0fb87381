"""What the commands of `telic privacy` share: options, mostly of what an intruder sees."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.options import finite
from telic.cli.privacy.files import split_names

if TYPE_CHECKING:
    from telic.hin import Network
    from telic.privacy import Adversary

app = typer.Typer(help="Know the risk before you publish a network.", no_args_is_help=True)

NetworkFolder = Annotated[Path, typer.Argument(help="A network folder (schema.json, Parquet).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
MANY_EMPTY = 0.05
"""Targets without a candidate above this share are a sign of links that are not real."""
TRUTHS = ("ids", "auto", "none")
"""What `--truth` says if it names no file."""
NodeType = Annotated[str | None, typer.Option(help="Whom to protect; default the only type.")]
Links = Annotated[str | None, typer.Option(help="Link types the intruder sees; default all.")]
Attributes = Annotated[
    str | None,
    typer.Option(
        help="Attributes the intruder sees, separated by commas ('' for none, type.name "
        "for other node types); default all that the schema does not ignore."
    ),
]
MaxDistance = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="<int>",  # shorter than "<int range>": the help has room for long options
        help="How many links the intruder follows; default: until nothing changes.",
    ),
]
KnownIds = Annotated[
    str | None,
    typer.Option(
        help="Other node types whose ids the intruder knows ('' for none); default all "
        "that the schema does not call pseudonyms."
    ),
]
InLinks = Annotated[bool, typer.Option(help="Whether the intruder sees who links to a node.")]
Joint = Annotated[
    bool, typer.Option(help="Whether the intruder sees that several links lead to the same node.")
]
Added = Annotated[
    float,
    typer.Option(
        help="Share of a person's published links that may be false or unknown to the intruder.",
        callback=finite,
    ),
]
Changed = Annotated[
    float,
    typer.Option(
        help="Share of these links whose strength may differ from what the intruder knows.",
        callback=finite,
    ),
]
Missing = Annotated[
    float,
    typer.Option(
        help="Share of a person's known links that may be missing in the release; 1: any number, "
        "as in a network that grew.",
        callback=finite,
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="<int>", help="Same seed, same result.")]
Steps = Annotated[
    Path | None,
    typer.Option(
        help='JSON list such as [{"method": "generalise", "attribute": "yob", "width": 5}].'
    ),
]


def intruder(
    net: "Network",
    node_type: str | None,
    attributes: str | None,
    links: str | None,
    known_ids: str | None,
    in_links: bool,
    joint: bool,
    distance: int | None,
    rules: dict[str, Any] | None = None,
) -> "Adversary":
    """Return the intruder whom the options describe."""
    from telic.privacy import Adversary

    return Adversary.of(
        net,
        node_type=node_type,
        attributes=split_names(attributes),
        links=split_names(links),
        known_ids=split_names(known_ids),
        in_links=in_links,
        joint=joint,
        distance=distance,
        rules=rules,
    )
