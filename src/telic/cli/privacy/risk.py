"""`telic privacy risk`: the privacy risk of a network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.console import print_json, show
from telic.cli.jobs import Cluster, Memory, Piece, SkipBadPartitions, Work, job_of, steps_or_job
from telic.cli.privacy.files import read_loss
from telic.cli.privacy.options import (
    AsJson,
    Attributes,
    InLinks,
    Joint,
    KnownIds,
    Links,
    MaxDistance,
    NetworkFolder,
    NodeType,
    app,
    intruder,
)
from telic.report.table import Table


@app.command()
def risk(
    network: NetworkFolder,
    links: Links = None,
    attributes: Attributes = None,
    max_distance: MaxDistance = None,
    known_ids: KnownIds = None,
    in_links: InLinks = True,
    joint: Joint = True,
    loss: Annotated[
        str | None,
        typer.Option(help="A numeric column with what a user loses when found, l(t) in [0, 1]."),
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, metavar="<int>", help="List this many users at highest risk.")
    ] = 0,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="With --worst: name these users by their ids.")
    ] = False,
    node_type: NodeType = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    piece: Piece = None,
    skip_bad_partitions: SkipBadPartitions = False,
    as_json: AsJson = False,
) -> None:
    """Show the risk for every subset of up to five link types and every distance (Section 7.4)."""
    from dataclasses import replace

    import numpy as np

    from telic.hin import read_network
    from telic.privacy.link_type_sets import sets_to_judge
    from telic.privacy.risk.risk_in_words import meaning
    from telic.privacy.risk.risks import risks

    net = read_network(network)
    adversary = intruder(
        net, node_type, attributes, links, known_ids, in_links, joint, max_distance
    )
    node_type = adversary.node_type
    sets = sets_to_judge(list(adversary.links))
    weights = None if loss is None else read_loss(net, node_type, loss)
    rows, last = [], None
    with (
        job_of(
            memory,
            cluster,
            work,
            Path("telic-risk"),
            reads=[network],
            piece=piece,
            skip_bad=skip_bad_partitions,
        ) as job,
        steps_or_job(job, "risk", len(sets)) as begin,
    ):
        for names in sets:
            begin("-".join(names))
            for found in risks(
                net,
                adversary,
                links=[names],
                loss=weights,
                executor=job.executor,
                work=job.work,
                skip_bad=skip_bad_partitions,
            ):
                rows.append(replace(found, hashes=found.hashes[:0]))  # the last one's are enough
                last = found
    assert last is not None
    out: dict[str, Any] = {
        "users": net.size(node_type),
        "adversary": adversary.dump(),
        "rows": [
            {
                "links": list(r.links),
                "distance": r.distance,
                "risk": r.risk,
                "highest": r.highest,
                "worst_1_percent": r.tail,
                "unique": r.unique,
                "cardinality": r.cardinality,
            }
            for r in rows
        ],
        "k_histogram": {str(k): users for k, users in last.k_histogram().items()},
    }
    if weights is None:
        out["meaning"] = meaning(last)
    if left_out := job.left_out():
        out["left_out"] = left_out
    if worst:
        sizes = last.group_sizes()
        ids = net.ids(node_type)
        out["worst"] = [
            {
                "user": ids[int(v)].as_py() if show_ids else int(v) + 1,
                "k": int(sizes[v]),
                "risk": float((1 if weights is None else weights[v]) / sizes[v]),
            }
            for v in last.worst(worst, None if weights is None else np.asarray(weights))
        ]
    if as_json:
        print_json(out)
        return
    typer.echo(f"{adversary.words()} Risk assumes that the intruder knows all of it exactly.")
    shares = ("mean risk", "worst 1 %", "highest", "unique users")
    columns = {"link types": "", "distance": "", **dict.fromkeys(shares, ".1%")}
    shown = [
        ["-".join(r.links) or "(none)", r.distance, r.risk, r.tail, r.highest, r.unique]
        for r in rows
    ]
    show(Table(f"Privacy risk of {net.size(node_type)} users", columns, shown))
    if left_out:
        typer.echo(
            f"{len(left_out)} pieces were left out; their users count as alone, so that the risk "
            "is at most what is shown."
        )
    if weights is None:
        typer.echo(f"All link types, farthest distance. {out['meaning']}")
    if worst:
        label = "user" if show_ids else "user (row)"
        columns = {label: "", "users alike (k)": ",", "risk": ".3f"}
        listed = [list(one.values()) for one in out["worst"]]
        show(Table("At highest risk, all link types, farthest distance", columns, listed))
