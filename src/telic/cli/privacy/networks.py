"""`telic privacy`: where networks come from, files of other tools or a simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.console import Overwrite, print_json
from telic.cli.options import finite, refuse_given
from telic.cli.privacy.files import split_names
from telic.cli.privacy.options import AsJson, Seed, app
from telic.cli.progress import steps as steps_shown
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.hin import Network

GRAPHML = (".graphml", ".xml")


@app.command()
def simulate(
    out: Annotated[Path, typer.Argument(help="Folder to create: auxiliary/ and target/.")],
    users: Annotated[int, typer.Option(help="Users of the auxiliary network.", min=2)] = 20_000,
    links: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="<int>",
            help="Links of the auxiliary network beside those of planted groups. Default: 24.6 per "
            "user, as in t.qq.",
        ),
    ] = None,
    size: Annotated[int, typer.Option(min=2, help="Users of the published part.")] = 1000,
    density: Annotated[
        float,
        typer.Option(help="Density of the published part, after the growth.", callback=finite),
    ] = 0.01,
    isolated: Annotated[
        float | None,
        typer.Option(help="Share of the published users without out-links.", callback=finite),
    ] = None,
    growth: Annotated[
        float,
        typer.Option(
            help="Share of links and tweets added since the publication.", callback=finite
        ),
    ] = 0.1,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a microblog like t.qq: the network today, and a part of it published earlier."""
    from telic.data import atomic_path, check_output
    from telic.data.contracts import SIMULATED
    from telic.hin import write_network
    from telic.simulate.microblog import Community, earlier_snapshot, microblog

    check_output(out, kind="simulated networks", overwrite=overwrite)
    group = Community(density, size, isolated)
    with atomic_path(out) as temporary, steps_shown("simulate", 2) as begin:
        begin("drawing users and links")
        network, (members,) = microblog(users=users, links=links, communities=[group], seed=seed)
        target = earlier_snapshot(network, members, growth=growth, seed=seed)
        begin("writing")
        temporary.mkdir()
        for name, part in (("auxiliary", network), ("target", target)):
            write_network(part, temporary / name, metadata={SIMULATED: b"true"})
    if as_json:
        parts = {"auxiliary": _sizes(network), "target": _sizes(target)}
        print_json({"folder": str(out), "simulated": True, **parts})
    else:
        typer.echo(f"{out}: written (simulated).")


@app.command()
def convert(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            help="A network folder, a KDD Cup 2012 folder, GraphML, an edge list, or a .json "
            "that describes several tables with keys."
        ),
    ],
    out: Annotated[
        Path, typer.Argument(help="Network folder to write, or a .graphml or .csv file.")
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            help="An edge list's columns, such as link,source,target,strength or "
            "source,target,time (then strength is how often a link occurs)."
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            help="Whether an edge list's first line names its columns; default: detected."
        ),
    ] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Every line links both ways.")
    ] = False,
    duplicates: Annotated[str, typer.Option(help="'raise', or 'sum' up repeated links.")] = "raise",
    project: Annotated[
        str | None, typer.Option(help="Keep this node type; --path says how it is linked.")
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            help="New link type and its meta-path: 'mention=post mention'; ~ follows a "
            "link backwards."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make a network folder of other tools' files, or project it on one node type (7.3.5)."""
    from telic.data import check_output
    from telic.hin import project as projected
    from telic.hin import write_edge_list, write_graphml, write_network
    from telic.hin.csv_tables import named_files

    if (project is None) != (path is None):
        raise InputError("--project and --path go together: a node type, and how it is linked.")
    written = {".graphml": ("GraphML", write_graphml), ".csv": ("CSV", write_edge_list)}
    kind, write = written.get(out.suffix.lower(), ("network", write_network))
    described = source.suffix.lower() == ".json"
    reads = [source, *(named_files(source) if described else ())]
    check_output(out, kind=kind, reads=reads, overwrite=overwrite)
    if described or source.is_dir() or source.suffix.lower() in GRAPHML:
        of_lists = ["columns", "header", "undirected"]
        if source.suffix.lower() not in GRAPHML:
            of_lists.append("duplicates")
        refuse_given(context, of_lists, f"for {source}, which is no edge list")
    with steps_shown("convert", 2) as begin:
        begin("reading")
        network = _read(source, columns, header, undirected, duplicates)
        if project is not None:
            paths: dict[str, list[str]] = {}
            for text in path or []:
                name, equals, way = text.partition("=")
                if not (name.strip() and equals):
                    raise InputError(f"--path {text!r}: expected NAME='link ~link …'.")
                paths.setdefault(name.strip(), []).append(way)
            network = projected(network, project, paths)
        begin("writing")
        write(network, out)
    if kind == "CSV" and (lonely := _without_links(network)):
        typer.echo(
            f"An edge list names no node without links: {lonely:,} are not in {out}.", err=True
        )
    if as_json:
        print_json({"path": str(out), **_sizes(network)})
        return
    sizes = {name: f"{len(links):,}" for name, links in network.links.items()}
    typer.echo(
        f"{out}: written. "
        + ", ".join(f"{network.size(kind):,} {kind} nodes" for kind in network.nodes)
        + "".join(f", {size} {name} links" for name, size in sizes.items())
    )


def _without_links(network: "Network") -> int:
    """Count the nodes that no link leads from or to."""
    linked: dict[str, set[int]] = {kind: set() for kind in network.nodes}
    for link in network.schema.links:
        linked[link.source].update(network.links[link.name].sources.tolist())
        linked[link.target].update(network.links[link.name].indices.tolist())
    return sum(network.size(kind) - len(nodes) for kind, nodes in linked.items())


def _sizes(network: "Network") -> dict[str, dict[str, int]]:
    return {
        "nodes": {name: table.num_rows for name, table in network.nodes.items()},
        "links": {name: len(links) for name, links in network.links.items()},
    }


def _read(
    source: Path, columns: str | None, header: bool | None, undirected: bool, duplicates: str
) -> "Network":
    from telic.hin import read_edge_list, read_graphml, read_kdd_cup_2012, read_network, read_tables

    if source.suffix.lower() == ".json":
        return read_tables(source)
    if (source / "user_profile.txt").is_file():
        return read_kdd_cup_2012(source)
    if source.is_dir():
        return read_network(source)
    if source.suffix.lower() in GRAPHML:
        return read_graphml(source, duplicates=duplicates)
    return read_edge_list(
        source,
        columns=split_names(columns),
        header=header,
        directed=not undirected,
        duplicates=duplicates,
    )
