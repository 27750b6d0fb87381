"""`telic privacy`: the risk of a network, and the attack on a release."""

from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.jobs import Cluster, Memory, Work, job_of, steps_or_job, tell_job
from telic.cli.privacy.files import (
    find_truth,
    read_json,
    read_loss,
    read_steps,
    split_names,
    write_candidates,
)
from telic.cli.privacy.options import (
    MANY_EMPTY,
    TRUTHS,
    Added,
    AsJson,
    Attributes,
    Changed,
    InLinks,
    Joint,
    KnownIds,
    Links,
    MaxDistance,
    Missing,
    NetworkFolder,
    NodeType,
    Steps,
    app,
)
from telic.errors import InputError
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
        str | None, typer.Option(help="A numeric column with each user's loss l(t) in [0, 1].")
    ] = None,
    worst: Annotated[int, typer.Option(min=0, help="List this many users at highest risk.")] = 0,
    show_ids: Annotated[bool, typer.Option(help="Name them by their ids.")] = False,
    node_type: NodeType = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    as_json: AsJson = False,
) -> None:
    """Privacy risk for every subset of up to five link types and every distance (Section 7.4)."""
    from dataclasses import replace

    import numpy as np

    from telic.hin import read_network
    from telic.privacy import Adversary
    from telic.privacy.link_type_sets import sets_to_judge
    from telic.privacy.risk.risk_in_words import meaning
    from telic.privacy.risk.risks import risks

    net = read_network(network)
    adversary = Adversary.of(
        net,
        node_type=node_type,
        attributes=split_names(attributes),
        links=split_names(links),
        known_ids=split_names(known_ids),
        in_links=in_links,
        joint=joint,
        distance=max_distance,
    )
    node_type = adversary.node_type
    sets = sets_to_judge(list(adversary.links))
    weights = None if loss is None else read_loss(net, node_type, loss)
    rows, last = [], None
    with (
        job_of(memory, cluster, work, Path("telic-risk"), reads=[network, loss]) as job,
        steps_or_job(job, "risk", len(sets)) as begin,
    ):
        executor, pieces = job or (None, None)
        for names in sets:
            begin("-".join(names))
            for found in risks(
                net, adversary, links=[names], loss=weights, executor=executor, work=pieces
            ):
                rows.append(replace(found, hashes=found.hashes[:0]))  # the last one's are enough
                last = found
    if job:
        tell_job(job)
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
    if worst:
        sizes = last.group_sizes()
        ids = net.ids(node_type)
        out["worst"] = [
            {
                "user": ids[int(v)].as_py() if show_ids else int(v),
                "k": int(sizes[v]),
                "risk": float((1 if weights is None else weights[v]) / sizes[v]),
            }
            for v in last.worst(worst, None if weights is None else np.asarray(weights))
        ]
    if as_json:
        print_json(out)
        return
    typer.echo(f"{adversary.words()} Risk takes what is seen to be known exactly.")
    show(
        Table(
            f"Privacy risk of {net.size(node_type)} users",
            {
                "link types": "",
                "distance": "",
                "mean risk": ".1%",
                "worst 1 %": ".1%",
                "highest": ".1%",
                "unique users": ".1%",
            },
            [
                ["-".join(r.links) or "(none)", r.distance, r.risk, r.tail, r.highest, r.unique]
                for r in rows
            ],
        )
    )
    if weights is None:
        typer.echo(f"All link types, farthest distance. {out['meaning']}")
    if worst:
        label = "user" if show_ids else "user (row)"
        show(
            Table(
                "At highest risk, all link types, farthest distance",
                {label: "", "users alike (k)": ",", "risk": ".3f"},
                [list(one.values()) for one in out["worst"]],
            )
        )


@app.command()
def attack(
    auxiliary: Annotated[Path, typer.Argument(help="Network folder whose users are known.")],
    target: Annotated[Path, typer.Argument(help="Network folder that was published.")],
    max_distance: MaxDistance = None,
    candidates: Annotated[
        Path | None, typer.Option(help="Write every candidate set to this Parquet file.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            help='JSON: attribute or link type → "exact", "at_least", "at_most", '
            '"ignore", {"tolerance": x}.'
        ),
    ] = None,
    attributes: Attributes = None,
    links: Links = None,
    known_ids: KnownIds = None,
    in_links: InLinks = True,
    joint: Joint = True,
    truth: Annotated[
        str,
        typer.Option(
            help="'ids' (ids are kept), 'none', or a Parquet file with columns "
            "target and auxiliary. Default: ids, if they are all there."
        ),
    ] = "auto",
    steps: Steps = None,
    reconfigured: Annotated[
        bool, typer.Option(help="First remove the links with the majority strength (7.6.2).")
    ] = False,
    eliminate: Annotated[
        bool, typer.Option(help="Extension: a user matched uniquely is nobody else.")
    ] = False,
    added: Added = 0.0,
    changed: Changed = 0.0,
    missing: Missing = 1.0,
    node_type: NodeType = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Run DeHIN: find the target's users in the auxiliary network (Section 7.5)."""
    from dataclasses import asdict

    from telic.data import check_output
    from telic.hin import read_network
    from telic.privacy import Adversary, Auxiliary
    from telic.privacy.anonymisers.complete_graph import without_majority_strength
    from telic.privacy.anonymisers.release_steps import COARSENINGS, apply_steps
    from telic.privacy.attacks import dehin
    from telic.privacy.attacks.link_errors import LinkErrors
    from telic.privacy.attacks.score import bootstrap_interval, right, scores
    from telic.privacy.protected import target_type
    from telic.privacy.report.page import FOUND

    errors = LinkErrors(added, changed, missing)
    reads = [auxiliary, target, rules, steps, None if truth in TRUTHS else truth]
    if candidates is not None:
        check_output(candidates, reads=reads, overwrite=overwrite)
    with (
        job_of(memory, cluster, work, candidates or Path("telic-attack"), reads=reads) as job,
        steps_or_job(job, "attack", 3) as begin,
    ):
        begin("reading")
        published = read_network(target)
        node_type = target_type(published, node_type)
        # Steps that the publisher described are repeated on what is known, as an attacker would.
        known = apply_steps(
            read_network(auxiliary), read_steps(steps), only=COARSENINGS, node_type=node_type
        )
        override = None if rules is None else read_json(rules, dict)
        if not published.size(node_type):
            raise InputError(f"{target}: node type {node_type!r} is empty: nobody to look for.")
        adversary = Adversary.of(
            published,
            node_type=node_type,
            attributes=split_names(attributes),
            links=split_names(links),
            known_ids=split_names(known_ids),
            in_links=in_links,
            joint=joint,
            distance=max_distance,
            rules=override,
        )
        removed = None
        if reconfigured:
            published, removed = without_majority_strength(published, node_type=node_type)
        begin("sorting what is known")
        prepared = Auxiliary(known, adversary)
        begin("comparing")
        executor, pieces = job or (None, None)
        result = dehin.attack(
            prepared,
            published,
            eliminate=eliminate,
            errors=errors,
            executor=executor,
            work=pieces,
        )
    if job:
        tell_job(job)
    right_answers, kind = find_truth(truth, known, published, node_type)
    rows: list[dict[str, Any]] = []
    for distance, sizes in enumerate(result.sizes):
        row: dict[str, Any] = {
            "distance": distance,
            "targets": len(sizes),
            "unique": float((sizes == 1).mean()),
            "empty": float((sizes == 0).mean()),
            "reduction_rate": float((1 - sizes / max(prepared.size, 1)).mean()),
            "mean_candidates": float(sizes.mean()),
        }
        rows.append(row)
    if right_answers is not None:
        for row, score in zip(rows, scores(result, prepared.size, right_answers), strict=True):
            low, high = bootstrap_interval(right(result, right_answers, score.distance))
            row |= {
                "precision": score.precision,
                "precision_low": low,
                "precision_high": high,
                "unique_right": score.unique_right,
                "unique_wrong": score.unique_wrong,
                "truth_kept": score.truth_kept,
            }
            if score.right_of_unique >= 0:
                row["right_of_unique"] = score.right_of_unique
    if candidates is not None:
        write_candidates(candidates, result, known, published, node_type)
    out = {
        "auxiliary_users": prepared.size,
        "target_users": published.size(node_type),
        "truth": kind,
        "adversary": adversary.dump(),
        "link_errors": {**asdict(errors), "words": errors.words()},
        "rows": rows,
    }
    out["extensions"] = [
        name
        for name, on in (
            ("in_links", in_links),
            ("joint", joint),
            ("eliminate", eliminate),
            ("added", added > 0),
            ("changed", changed > 0),
            ("missing", missing < 1),
        )
        if on
    ]
    if removed is not None:
        out["links_removed"] = removed
    if right_answers is not None:
        out["not_in_auxiliary"] = int((right_answers < 0).sum())
    if as_json:
        print_json(out)
        return
    typer.echo(f"{adversary.words()} {errors.words()}")
    show(
        Table(
            f"DeHIN: {out['target_users']} targets, {out['auxiliary_users']} known users; "
            f"truth: {kind}",
            {
                "distance": "",
                "precision [95 %]": FOUND,
                "unique, wrong": ".1%",
                "unique": ".1%",
                "empty": ".1%",
                "reduction": ".3%",
                "mean candidates": ".1f",
            },
            [
                [
                    r["distance"],
                    [r["precision"], r["precision_low"], r["precision_high"]]
                    if "precision" in r
                    else "unknown",
                    r.get("unique_wrong", "unknown"),
                    r["unique"],
                    r["empty"],
                    r["reduction_rate"],
                    r["mean_candidates"],
                ]
                for r in rows
            ],
        )
    )
    if rows[-1]["empty"] > MANY_EMPTY and not added:
        typer.echo(
            f"{rows[-1]['empty']:.0%} of the targets match nobody. That is no protection: links "
            "may have been added, and an intruder who allows for that may find far more. Try "
            "--added 0.3, and more."
        )
    if removed is not None:
        typer.echo(f"Links removed before the attack, by type: {removed}")
