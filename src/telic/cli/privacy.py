"""`telic privacy`: risk, attack, anonymise, advise, report."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.privacy_files import (
    find_truth,
    read_json,
    read_loss,
    read_steps,
    split_names,
    write_candidates,
    write_parquet,
)
from telic.cli.progress import steps as steps_shown
from telic.errors import InputError
from telic.report.table import Table

app = typer.Typer(help="Know the risk before you publish a network.", no_args_is_help=True)

NetworkFolder = Annotated[Path, typer.Argument(help="A network folder (schema.json, Parquet).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
TRUTHS = ("ids", "auto", "none")
"""What `--truth` says if it names no file."""
NodeType = Annotated[str | None, typer.Option(help="Whom to protect; default the only type.")]
Links = Annotated[str | None, typer.Option(help="Link types the intruder sees; default all.")]
Attributes = Annotated[
    str | None,
    typer.Option(help="Attributes the intruder sees, separated by commas ('' for none, type.name "
                 "for other node types); default all that the schema does not ignore."),
]  # fmt: skip
MaxDistance = Annotated[
    int | None, typer.Option(min=0, help="How far it looks; default: until nothing changes.")
]
KnownIds = Annotated[
    str | None,
    typer.Option(help="Other node types whose ids the intruder knows ('' for none); default all "
                 "that the schema does not call pseudonyms."),
]  # fmt: skip
InLinks = Annotated[bool, typer.Option(help="Whether it sees who links to a node.")]
Joint = Annotated[
    bool, typer.Option(help="Whether it sees that several links lead to the same node.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Steps = Annotated[
    Path | None,
    typer.Option(help='JSON list such as [{"method": "generalise", "attribute": "yob", '
                 '"width": 5}].'),
]  # fmt: skip


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
    as_json: AsJson = False,
) -> None:
    """Privacy risk for every subset of up to five link types and every distance (Section 7.4)."""
    from dataclasses import replace

    import numpy as np

    from telic.hin import read_network
    from telic.privacy import Adversary
    from telic.privacy.risk import risks
    from telic.privacy.target import sets_to_judge

    net = read_network(network)
    adversary = Adversary.of(
        net, node_type=node_type, attributes=split_names(attributes), links=split_names(links),
        known_ids=split_names(known_ids), in_links=in_links, joint=joint, distance=max_distance,
    )  # fmt: skip
    node_type = adversary.node_type
    sets = sets_to_judge(list(adversary.links))
    weights = None if loss is None else read_loss(net, node_type, loss)
    rows, last = [], None
    with steps_shown("risk", len(sets)) as begin:
        for names in sets:
            begin("-".join(names))
            for found in risks(net, adversary, links=[names], loss=weights):
                rows.append(replace(found, hashes=found.hashes[:0]))  # the last one's are enough
                last = found
    assert last is not None
    out: dict[str, Any] = {
        "users": net.size(node_type),
        "adversary": adversary.dump(),
        "rows": [
            {"links": list(r.links), "distance": r.distance, "risk": r.risk, "unique": r.unique,
             "cardinality": r.cardinality}
            for r in rows
        ],
        "k_histogram": {str(k): users for k, users in last.k_histogram().items()},
    }  # fmt: skip
    if worst:
        sizes = last.group_sizes()
        ids = net.ids(node_type)
        out["worst"] = [
            {"user": ids[int(v)].as_py() if show_ids else int(v), "k": int(sizes[v]),
             "risk": float((1 if weights is None else weights[v]) / sizes[v])}
            for v in last.worst(worst, None if weights is None else np.asarray(weights))
        ]  # fmt: skip
    if as_json:
        print_json(out)
        return
    typer.echo(f"{adversary.words()} Risk takes what is seen to be known exactly.")
    show(
        Table(
            f"Privacy risk of {net.size(node_type)} users",
            {"link types": "", "distance": "", "risk": ".1%", "unique users": ".1%"},
            [["-".join(r.links) or "(none)", r.distance, r.risk, r.unique] for r in rows],
        )
    )
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
    noise: Annotated[
        float, typer.Option(help="Extension: share of neighbours that may stay unmatched.")
    ] = 0.0,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Run DeHIN: find the target's users in the auxiliary network (Section 7.5)."""
    from telic.data import check_output
    from telic.hin import read_network
    from telic.privacy import Adversary, Auxiliary, dehin
    from telic.privacy.anonymise import without_majority_strength
    from telic.privacy.release_steps import COARSENINGS, apply_steps
    from telic.privacy.report import FOUND
    from telic.privacy.score import bootstrap_interval, right, scores
    from telic.privacy.target import target_type

    if candidates is not None:
        read = [auxiliary, target, rules, steps, None if truth in TRUTHS else truth]
        check_output(candidates, reads=read, overwrite=overwrite)
    with steps_shown("attack", 3) as begin:
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
            published, node_type=node_type, attributes=split_names(attributes),
            links=split_names(links), known_ids=split_names(known_ids), in_links=in_links,
            joint=joint, distance=max_distance, rules=override,
        )  # fmt: skip
        removed = None
        if reconfigured:
            published, removed = without_majority_strength(published, node_type=node_type)
        begin("sorting what is known")
        prepared = Auxiliary(known, adversary)
        begin("comparing")
        result = dehin.attack(prepared, published, eliminate=eliminate, noise=noise)
    right_answers, kind = find_truth(truth, known, published, node_type)
    rows: list[dict[str, Any]] = []
    for distance, sizes in enumerate(result.sizes):
        row: dict[str, Any] = {"distance": distance, "targets": len(sizes),
               "unique": float((sizes == 1).mean()),
               "empty": float((sizes == 0).mean()),
               "reduction_rate": float((1 - sizes / max(prepared.size, 1)).mean()),
               "mean_candidates": float(sizes.mean())}  # fmt: skip
        rows.append(row)
    if right_answers is not None:
        for row, score in zip(rows, scores(result, prepared.size, right_answers), strict=True):
            low, high = bootstrap_interval(right(result, right_answers, score.distance))
            row |= {"precision": score.precision, "precision_low": low, "precision_high": high,
                    "unique_right": score.unique_right, "unique_wrong": score.unique_wrong,
                    "truth_kept": score.truth_kept}  # fmt: skip
            if score.right_of_unique >= 0:
                row["right_of_unique"] = score.right_of_unique
    if candidates is not None:
        write_candidates(candidates, result, known, published, node_type)
    out = {"auxiliary_users": prepared.size, "target_users": published.size(node_type),
           "truth": kind, "adversary": adversary.dump(), "rows": rows}  # fmt: skip
    out["extensions"] = [
        name for name, on in (("in_links", in_links), ("joint", joint), ("eliminate", eliminate),
                              ("noise", noise > 0)) if on
    ]  # fmt: skip
    if removed is not None:
        out["links_removed"] = removed
    if right_answers is not None:
        out["not_in_auxiliary"] = int((right_answers < 0).sum())
    if as_json:
        print_json(out)
        return
    typer.echo(adversary.words())
    show(
        Table(
            f"DeHIN: {out['target_users']} targets, {out['auxiliary_users']} known users; "
            f"truth: {kind}",
            {
                "distance": "", "precision [95 %]": FOUND, "unique, wrong": ".1%",
                "unique": ".1%", "empty": ".1%", "reduction": ".3%", "mean candidates": ".1f",
            },
            [
                [
                    r["distance"],
                    [r["precision"], r["precision_low"], r["precision_high"]]
                    if "precision" in r else "unknown",
                    r.get("unique_wrong", "unknown"), r["unique"], r["empty"],
                    r["reduction_rate"], r["mean_candidates"],
                ]
                for r in rows
            ],
        )
    )  # fmt: skip
    if removed is not None:
        typer.echo(f"Links removed before the attack, by type: {removed}")


@app.command()
def anonymise(
    network: NetworkFolder,
    out: Annotated[Path, typer.Argument(help="Folder to write the release to.")],
    steps: Steps = None,
    keep_ids: Annotated[bool, typer.Option(help="Do not replace any ids.")] = False,
    public: Annotated[
        str | None,
        typer.Option(
            help="Other node types that keep their ids, such as a public catalogue. The "
            "intruder may know them: they count in the risk."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Write new id → old id here. Keep it secret.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Same seed, same release. Keep it secret: it undoes new ids and fake "
            "links. Default: drawn and not kept.",
        ),
    ] = None,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Apply steps to a network, replace its ids, and say what utility that costs."""
    import dataclasses
    import secrets

    from telic.data import check_output
    from telic.hin import read_network, write_network
    from telic.privacy import Adversary
    from telic.privacy.anonymise import degree_classes, randomise_ids, schema_only
    from telic.privacy.release_steps import apply_steps
    from telic.privacy.target import target_type
    from telic.privacy.utility import STRUCTURE_USERS, utility_loss

    check_output(out, reads=[network, steps], overwrite=overwrite)
    if key is not None:
        check_output(key, reads=[network, steps, out], overwrite=overwrite)
        if key.resolve() == out.resolve() or out.resolve() in key.resolve().parents:
            raise InputError(f"--key {key}: is in the release's folder. Choose another name.")
    net = read_network(network)
    node_type = target_type(net, node_type)
    todo = read_steps(steps)
    with steps_shown("anonymise", len(todo) + 2) as begin:
        draw = secrets.randbits(128) if seed is None else seed
        release = apply_steps(net, todo, seed=draw, node_type=node_type, progress=begin)
        begin("measuring what is lost")
        loss = utility_loss(net, release, node_type=node_type)
        begin("writing")
        if not keep_ids:
            release, secret = randomise_ids(
                release, seed=draw, node_type=node_type, public=split_names(public) or ()
            )
            if key is not None:
                write_parquet(key, secret)
        write_network(schema_only(release), out)
    unnamed = sorted(
        {c for name, table in net.nodes.items() for c in table.column_names}
        - {"id", *(c for attributes in net.schema.nodes.values() for c in attributes)}
    )
    if unnamed:
        typer.echo(f"Left out, since the schema does not name them: {', '.join(unnamed)}", err=True)
    looked_at = min(net.size(node_type), STRUCTURE_USERS)
    losses = {**dataclasses.asdict(loss), "total": loss.total()}
    seen = Adversary.of(release, node_type=node_type)
    k_degree = any(step.get("method") == "k-degree" for step in todo)
    classes = degree_classes(release, node_type=node_type) if k_degree else {}
    if as_json:
        facts = {"utility_loss": losses, "structure_users": looked_at, "adversary": seen.dump()}
        print_json(facts | ({"degree_classes": classes} if k_degree else {}))
        return
    typer.echo(f"What the release shows. {seen.words()}")
    if keep_ids:
        typer.echo(
            f"But it keeps its {node_type} ids: whoever knows them finds everybody.", err=True
        )
    if k_degree:
        title = (
            "Users who share a degree, at least (k-degree promises k for each link type's "
            "out-degree alone)"
        )
        shared = [[name, users] for name, users in classes.items()]
        show(Table(title, {"degree": "", "users at least": ","}, shared))
    lost = [[name, value] for name, value in losses.items()]
    title = f"Utility lost in {out} (0: none, 1: all)"
    show(Table(title, {"measure": "", "loss": ".3f"}, lost))
    if looked_at < net.size(node_type):
        typer.echo(
            f"Clustering, prediction and communities: from a snowball sample of {looked_at:,} of "
            f"the {net.size(node_type):,} users, and the links among them."
        )


@app.command()
def advise(
    network: NetworkFolder,
    max_risk: Annotated[float, typer.Option(help="Highest mean risk R(T) you accept.")],
    max_distance: MaxDistance = None,
    attributes: Attributes = None,
    links: Links = None,
    known_ids: KnownIds = None,
    in_links: InLinks = True,
    joint: Joint = True,
    out: Annotated[Path | None, typer.Option(help="Write the steps to this JSON file.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="JSON: field → how much its loss counts.")
    ] = None,
    max_tried: Annotated[int, typer.Option(min=1, help="Judge at most about so many.")] = 3000,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Find the release under a stated risk that loses least, and confirm it by attack."""
    from telic.data import atomic_path, check_output
    from telic.hin import read_network
    from telic.privacy import Adversary
    from telic.privacy.advise import advise as search
    from telic.privacy.report import (
        attacked_words,
        distances_table,
        effects_table,
        keep_ids,
    )

    if out is not None:
        check_output(out, reads=[network, weights], overwrite=overwrite)
    net = read_network(network)
    adversary = Adversary.of(
        net, node_type=node_type, attributes=split_names(attributes), links=split_names(links),
        known_ids=split_names(known_ids), in_links=in_links, joint=joint, distance=max_distance,
    )  # fmt: skip
    with steps_shown("advise") as begin:
        found = search(
            net, max_risk=max_risk, adversary=adversary, max_tried=max_tried, progress=begin,
            weights=None if weights is None else read_json(weights, dict),
        )  # fmt: skip
    if out is not None:
        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps(found.steps, indent=1), encoding="utf-8")
    if as_json:
        print_json({
            "steps": found.steps, "choice": found.choice, "loss": found.loss,
            "proven_least": found.proven, "tried": found.tried,
            "risk_before": [r.risk for r in found.before],
            "risk_after": [r.risk for r in found.after],
            "alone_after": found.after[-1].unique,
            "attack_precision": found.attacked,
            "adversary": adversary.dump(),
            "effects": [
                {"field": name, "level": level, "risk_without": without, "risk_if_published": added}
                for name, level, without, added in found.effects
            ],
        })  # fmt: skip
        return
    least = "no cheaper one meets it" if found.proven else "a cheaper one may exist"
    typer.echo(adversary.words())
    typer.echo(
        f"Risk {found.before[-1].risk:.1%} → {found.after[-1].risk:.1%}; information lost "
        f"{found.loss:.0%} ({least}; {found.tried} releases judged). {attacked_words(found)}"
    )
    if public := keep_ids(found):
        typer.echo(f"To publish the ids that may stay: telic privacy anonymise{public}.")
    show(effects_table(found))
    show(distances_table(found))


@app.command()
def report(
    network: NetworkFolder,
    out: Annotated[Path, typer.Argument(help="HTML file to write.")],
    auxiliary: Annotated[
        Path | None, typer.Option(help="What an attacker knows; default the network itself.")
    ] = None,
    max_risk: Annotated[
        float | None, typer.Option(help="Also advise on a release under this risk.")
    ] = None,
    max_distance: MaxDistance = None,
    attributes: Attributes = None,
    links: Links = None,
    known_ids: KnownIds = None,
    in_links: InLinks = True,
    joint: Joint = True,
    worst: Annotated[int, typer.Option(min=0, help="Users at highest risk to list.")] = 10,
    show_ids: Annotated[bool, typer.Option(help="Print user ids in the report.")] = False,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page for whoever decides whether the network may be published."""
    from telic.data import check_output
    from telic.hin import read_network
    from telic.privacy import Adversary
    from telic.privacy.report import risk_report

    check_output(out, reads=[network, auxiliary], overwrite=overwrite)
    with steps_shown("report") as begin:
        begin("reading")
        net = read_network(network)
        adversary = Adversary.of(
            net, node_type=node_type, attributes=split_names(attributes), links=split_names(links),
            known_ids=split_names(known_ids), in_links=in_links, joint=joint, distance=max_distance,
        )  # fmt: skip
        page, facts = risk_report(
            net,
            auxiliary=None if auxiliary is None else read_network(auxiliary),
            name=network.resolve().name, max_risk=max_risk, adversary=adversary, worst=worst,
            show_ids=show_ids, progress=begin,
        )  # fmt: skip
    page.write(out)
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{out}: written.")
