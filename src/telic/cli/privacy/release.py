"""`telic privacy`: make a release, choose it, and report on it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import finite, refuse_ending, refuse_given
from telic.cli.privacy.files import read_steps, split_names, write_key
from telic.cli.privacy.options import (
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
    intruder,
)
from telic.cli.progress import steps as steps_shown
from telic.errors import InputError
from telic.report.table import Table

MaxRisk = Annotated[
    float | None, typer.Option(help="Highest mean risk R(T) you accept.", callback=finite)
]
MaxHighest = Annotated[
    float | None,
    typer.Option(
        help="Highest risk you accept for anybody; at 0.2 at least five users must look alike.",
        callback=finite,
    ),
]
MaxUnique = Annotated[
    float | None,
    typer.Option(help="Highest share of users who are alone of their kind.", callback=finite),
]
WEIGHTS = 'an object such as {"yob": 2, "follow": 0.5}'
EFFECT = ("field", "level", "risk_without", "risk_if_published")
"""How JSON names what a field adds to the risk."""
MaxTail = Annotated[
    float | None,
    typer.Option(help="Highest mean risk of the 1 % of users who are worst off.", callback=finite),
]


@app.command()
def anonymise(
    context: typer.Context,
    network: NetworkFolder,
    out: Annotated[Path, typer.Argument(help="Folder to write the release to.")],
    steps: Steps = None,
    keep_ids: Annotated[bool, typer.Option("--keep-ids", help="Do not replace any ids.")] = False,
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
    from telic.privacy.anonymisers.fake_links import detect_fakes
    from telic.privacy.anonymisers.ids import randomise_ids, schema_only
    from telic.privacy.anonymisers.k_degree import degree_classes
    from telic.privacy.anonymisers.release_steps import ADDING, apply_steps
    from telic.privacy.protected import target_type
    from telic.privacy.utility.utility_loss import STRUCTURE_USERS, utility_loss

    check_output(out, kind="network", reads=[network, steps], overwrite=overwrite)
    if keep_ids:
        refuse_given(context, ["key", "public"], "beside --keep-ids, which replaces no id")
    if key is not None:
        if key.resolve().is_relative_to(out.resolve()):
            raise InputError(
                f"--key {key}: is in the release, whose readers must not have it. Choose another "
                "folder."
            )
        check_output(key, kind="key", reads=[network, steps], overwrite=overwrite)
        refuse_ending("--key", key, "Parquet", ".parquet")
    todo = read_steps(steps)
    net = read_network(network)
    node_type = target_type(net, node_type)
    with steps_shown("anonymise", len(todo) + 2) as begin:
        draw = secrets.randbits(128) if seed is None else seed
        release = apply_steps(
            net, todo, seed=draw, node_type=node_type, progress=begin, where=f"{steps}: "
        )
        begin("measuring what is lost")
        loss = utility_loss(net, release, node_type=node_type)
        made = release  # with the nodes still in their order
        begin("writing")
        if not keep_ids:
            release, secret = randomise_ids(
                release, seed=draw, node_type=node_type, public=split_names(public) or ()
            )
            if key is not None:
                write_key(key, secret)
        write_network(schema_only(release), out)
    unnamed = sorted(
        {
            column
            for kind, table in net.nodes.items()
            for column in set(table.column_names) - {"id", *net.schema.nodes[kind]}
        }
    )
    if unnamed:
        typer.echo(f"Left out, since the schema does not name them: {', '.join(unnamed)}", err=True)
    looked_at = min(net.size(node_type), STRUCTURE_USERS)
    losses = {**dataclasses.asdict(loss), "total": loss.total()}
    seen = Adversary.of(release, node_type=node_type)
    k_degree = any("k-degree" in str(step.get("method")) for step in todo)
    fakes = any(step.get("method") in ADDING for step in todo)
    classes = degree_classes(release, node_type=node_type) if k_degree else {}
    told = detect_fakes(net, made, node_type=node_type) if fakes else {}
    if as_json:
        facts = {
            "utility_loss": losses,
            "structure_users": looked_at,
            "adversary": seen.dump(),
            "fake_links_auc": told,
        }
        print_json(facts | ({"degree_classes": classes} if k_degree else {}))
        return
    typer.echo(f"What the release shows. {seen.words()}")
    if keep_ids:
        typer.echo(
            f"But the release keeps its {node_type} ids: whoever knows them finds everybody.",
            err=True,
        )
    if k_degree:
        title = (
            "Users who share a degree, at least (k-degree promises k for each link type's "
            "out-degree alone, joint-k-degree for all together)"
        )
        shared = [[name, users] for name, users in classes.items()]
        show(Table(title, {"degree": "", "users at least": ","}, shared))
    if told:
        title = "How well fake links can be told from real ones (AUC; 0.5: not at all)"
        show(Table(title, {"link type": "", "AUC": ".2f"}, [list(one) for one in told.items()]))
    lost = [[name, value] for name, value in losses.items()]
    title = f"Utility lost in {out} (0: none, 1: all)"
    show(Table(title, {"measure": "", "loss": ".3f"}, lost))
    if looked_at < net.size(node_type):
        typer.echo(
            f"From clustering on: a snowball sample of {looked_at:,} of the "
            f"{net.size(node_type):,} users, and the links among them."
        )


@app.command()
def advise(
    network: NetworkFolder,
    max_risk: MaxRisk = None,
    max_highest: MaxHighest = None,
    max_unique: MaxUnique = None,
    max_worst: MaxTail = None,
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
    max_tried: Annotated[
        int,
        typer.Option(min=1, help="Judge about this many releases at most, beside --resume's."),
    ] = 3000,
    seconds: Annotated[
        float, typer.Option(min=1, help="Longest search, in seconds.", callback=finite)
    ] = 300,
    resume: Annotated[
        Path | None,
        typer.Option(help="File that keeps what was judged; the next search goes on from it."),
    ] = None,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Find the release under stated limits that loses least, and confirm it by attack."""
    from telic.data import atomic_path, check_output, refuse_unwritable
    from telic.data.json_files import read_json
    from telic.data.own_outputs import refuse_read
    from telic.hin import read_network
    from telic.privacy import Limits
    from telic.privacy.advice.advise import advise as search
    from telic.privacy.report.advice import (
        attacked_words,
        distances_table,
        effects_table,
        keep_ids,
        measures_table,
    )
    from telic.privacy.risk.risk_in_words import meaning

    limits = Limits(max_risk, max_highest, max_unique, max_worst)
    if out is not None:
        check_output(out, kind="JSON", reads=[network, weights, resume], overwrite=overwrite)
    if resume is not None:
        refuse_unwritable(resume)
        refuse_read(resume, [network, weights])
        if out is not None and out.resolve() == resume.resolve():
            raise InputError(f"--resume names {resume}, where the steps go. Choose another name.")
    weigh = None if weights is None else read_json(weights, dict, WEIGHTS)
    net = read_network(network)
    adversary = intruder(
        net, node_type, attributes, links, known_ids, in_links, joint, max_distance
    )
    with steps_shown("advise") as begin:
        found = search(
            net,
            limits,
            adversary=adversary,
            max_tried=max_tried,
            progress=begin,
            seconds=seconds,
            resume=resume,
            weights=weigh,
        )
    if out is not None:
        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps(found.steps, indent=1), encoding="utf-8")
    if as_json:
        print_json(
            {
                "steps": found.steps,
                "choice": found.choice,
                "loss": found.loss,
                "proven_least": found.proven,
                "tried": found.tried,
                "risk_before": [r.risk for r in found.before],
                "risk_after": [r.risk for r in found.after],
                "limits": limits.given(),
                "highest_after": found.after[-1].highest,
                "worst_1_percent_after": found.after[-1].tail,
                "alone_after": found.after[-1].unique,
                "meaning": meaning(found.after[-1]),
                "attack_precision": found.attacked,
                "adversary": adversary.dump(),
                "effects": [dict(zip(EFFECT, one, strict=True)) for one in found.effects],
            }
        )
        return
    least = "one that loses less may exist"
    if found.proven:
        least = "no release that loses less meets the limit"
    typer.echo(adversary.words())
    typer.echo(
        f"Risk {found.before[-1].risk:.1%} → {found.after[-1].risk:.1%}; information lost "
        f"{found.loss:.0%} ({least}; {found.tried} releases judged). {attacked_words(found)} "
        f"{meaning(found.after[-1])}"
    )
    if public := keep_ids(found):
        typer.echo(f"To publish the ids that may stay: telic privacy anonymise{public}.")
    show(measures_table(found))
    show(effects_table(found))
    show(distances_table(found))


@app.command()
def report(
    network: NetworkFolder,
    out: Annotated[Path, typer.Argument(help="HTML file to write.")],
    auxiliary: Annotated[
        Path | None, typer.Option(help="Network that the attacker knows; default: this one.")
    ] = None,
    max_risk: MaxRisk = None,
    max_highest: MaxHighest = None,
    max_unique: MaxUnique = None,
    max_worst: MaxTail = None,
    max_distance: MaxDistance = None,
    attributes: Attributes = None,
    links: Links = None,
    known_ids: KnownIds = None,
    in_links: InLinks = True,
    joint: Joint = True,
    added: Added = 0.0,
    changed: Changed = 0.0,
    missing: Missing = 1.0,
    worst: Annotated[int, typer.Option(min=0, help="Users at highest risk to list.")] = 10,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="Print user ids in the report.")
    ] = False,
    node_type: NodeType = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page for whoever decides whether the network may be published.

    With a limit, it also advises on a release.
    """
    from telic.data import check_output
    from telic.hin import read_network
    from telic.privacy import Limits, LinkErrors
    from telic.privacy.report.page import risk_report

    errors = LinkErrors(added, changed, missing)
    given = max_risk, max_highest, max_unique, max_worst
    limits = None if given == (None,) * 4 else Limits(*given)
    check_output(out, kind="page", reads=[network, auxiliary], overwrite=overwrite)
    with steps_shown("report") as begin:
        begin("reading")
        net = read_network(network)
        adversary = intruder(
            net, node_type, attributes, links, known_ids, in_links, joint, max_distance
        )
        page, facts = risk_report(
            net,
            auxiliary=None if auxiliary is None else read_network(auxiliary),
            name=network.resolve().name,
            limits=limits,
            adversary=adversary,
            errors=errors,
            worst=worst,
            show_ids=show_ids,
            progress=begin,
        )
    page.write(out)
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{out}: written.")
