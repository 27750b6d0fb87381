"""`telic privacy attack | again | infer`: what an intruder learns."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.jobs import Cluster, Memory, Piece, SkipBadPartitions, Work, job_of, steps_or_job
from telic.cli.options import refuse_ending
from telic.cli.privacy.files import find_truth, read_steps, write_candidates
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
    intruder,
)
from telic.report.table import Table

RULES = 'an object such as {"yob": "exact", "tweets": {"tolerance": 5}}'


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
            help="Who is who: ids (they are kept), none (nobody knows), auto (ids if all are "
            "there), or a Parquet file with columns target and auxiliary."
        ),
    ] = "auto",
    steps: Steps = None,
    reconfigured: Annotated[
        bool,
        typer.Option(
            "--reconfigured",
            help="First remove the links with the commonest strength (Section 7.6.2).",
        ),
    ] = False,
    eliminate: Annotated[
        bool,
        typer.Option(
            "--eliminate",
            help="Beyond the dissertation: one target's only match is no match of any other.",
        ),
    ] = False,
    added: Added = 0.0,
    changed: Changed = 0.0,
    missing: Missing = 1.0,
    node_type: NodeType = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    piece: Piece = None,
    skip_bad_partitions: SkipBadPartitions = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Run DeHIN: find the target's users in the auxiliary network (Section 7.5)."""
    from telic.data import check_output
    from telic.data.json_files import read_json
    from telic.hin import read_network
    from telic.privacy import LinkErrors, measured_attack
    from telic.privacy.anonymisers.complete_graph import without_majority_strength
    from telic.privacy.anonymisers.release_steps import COARSENINGS, apply_steps, rules_after
    from telic.privacy.protected import target_type
    from telic.privacy.report.page import FOUND

    errors = LinkErrors(added, changed, missing)
    reads = [auxiliary, target, rules, steps, None if truth in TRUTHS else truth]
    if candidates is not None:
        check_output(candidates, kind="candidates", reads=reads, overwrite=overwrite)
        refuse_ending("--candidates", candidates, "Parquet", ".parquet")
    repeated = read_steps(steps)
    override = None if rules is None else read_json(rules, dict, RULES)
    beside = candidates or Path("telic-attack")
    with (
        job_of(
            memory, cluster, work, beside, reads=reads, piece=piece, skip_bad=skip_bad_partitions
        ) as job,
        steps_or_job(job, "attack", 3) as begin,
    ):
        begin("reading")
        published = read_network(target)
        node_type = target_type(published, node_type)
        # Steps that the publisher described are repeated on what is known, as an attacker would.
        known = read_network(auxiliary)
        coarsened = apply_steps(
            known, repeated, only=COARSENINGS, node_type=node_type, where=f"{steps}: "
        )
        if override and repeated:
            override = rules_after(known, repeated, override, node_type=node_type)
        known = coarsened
        seen = attributes, links, known_ids, in_links, joint, max_distance
        adversary = intruder(published, node_type, *seen, override)
        removed = None
        if reconfigured:
            published, removed = without_majority_strength(published, node_type=node_type)
        right_answers, kind = find_truth(truth, known, published, node_type)
        found = measured_attack(
            known,
            published,
            adversary=adversary,
            truth=right_answers,
            eliminate=eliminate,
            errors=errors,
            executor=job.executor,
            work=job.work,
            skip_bad=skip_bad_partitions,
            progress=begin,
        )
        if candidates is not None:  # a full disk must not cost the job's folder
            write_candidates(candidates, found.result, known, published, node_type)
    rows = found.rows
    out = {
        "auxiliary_users": found.known,
        "target_users": published.size(node_type),
        "truth": kind,
        "adversary": adversary.dump(),
        "link_errors": {**asdict(errors), "words": errors.words()},
        "rows": rows,
    }
    extensions = {
        "in_links": in_links,
        "joint": joint,
        "eliminate": eliminate,
        "added": added > 0,
        "changed": changed > 0,
        "missing": missing < 1,
    }
    out["extensions"] = [name for name, on in extensions.items() if on]
    if left_out := job.left_out():
        out["left_out"] = left_out
    if removed is not None:
        out["links_removed"] = removed
    if right_answers is not None:
        out["not_in_auxiliary"] = int((right_answers < 0).sum())
    if as_json:
        print_json(out)
        return
    typer.echo(f"{adversary.words()} {errors.words()}")
    title = (
        f"DeHIN: {out['target_users']} targets, {out['auxiliary_users']} known users; truth: {kind}"
    )
    columns = {
        "distance": "",
        "precision [95 %]": FOUND,
        "unique, wrong": ".1%",
        "unique": ".1%",
        "empty": ".1%",
        "reduction": ".3%",
        "mean candidates": ".1f",
    }
    shown = []
    for r in rows:
        right: Any = "unknown"
        if "precision" in r:
            right = [r[name] for name in ("precision", "precision_low", "precision_high")]
        others = (r[name] for name in ("unique", "empty", "reduction_rate", "mean_candidates"))
        shown.append([r["distance"], right, r.get("unique_wrong", "unknown"), *others])
    show(Table(title, columns, shown))
    if left_out:
        typer.echo(
            f"{len(left_out)} pieces were left out; their targets keep the candidates that they "
            "had, so that the attack finds at least what is shown."
        )
    if unknown := out.get("not_in_auxiliary"):
        typer.echo(
            f"{unknown:,} of the targets are not in the auxiliary network as far as the truth "
            "says: whoever is found for them counts as wrong."
        )
    if rows[0]["empty"] > MANY_EMPTY:  # whose friends, too, match nobody: links say nothing yet
        typer.echo(
            f"{rows[0]['empty']:.0%} of the targets match nobody by profile alone. Where values "
            "were coarsened, or have changed, that is no protection: give the release's --steps, "
            "or --rules."
        )
    elif rows[-1]["empty"] > MANY_EMPTY and not added:
        typer.echo(
            f"{rows[-1]['empty']:.0%} of the targets match nobody. That is no protection: links "
            "may have been added, and an intruder who allows for that may find far more. Try "
            "--added 0.3, and more."
        )
    if removed is not None:
        typer.echo(f"Links removed before the attack, by type: {removed}")


@app.command()
def again(
    first: Annotated[Path, typer.Argument(help="Network folder that was published before.")],
    second: Annotated[Path, typer.Argument(help="Network folder to be published now.")],
    steps: Annotated[
        Path | None,
        typer.Option(
            help="JSON: how the second was coarsened beyond the first. The intruder repeats it on "
            "the first."
        ),
    ] = None,
    node_type: NodeType = None,
    as_json: AsJson = False,
) -> None:
    """Measure what two releases of the same people tell together.

    Give both as they are published, but with the original ids (anonymise --keep-ids). By these
    telic knows who is who; the intruder does not see them.
    """
    from telic.hin import read_network
    from telic.privacy import Adversary, two_releases

    networks = [read_network(folder) for folder in (first, second)]
    seen = [Adversary.of(network, node_type=node_type) for network in networks]
    repeated = read_steps(steps)
    found = two_releases(*networks, adversary=seen[0], later=seen[1], steps=repeated)
    if as_json:
        print_json(
            {
                "people": found.people,
                **{name: getattr(found, name)._asdict() for name in ("first", "second", "joined")},
                "matched": found.matched,
                "unmatched": found.unmatched,
                "adversary": seen[0].dump(),
            }
        )
        return

    typer.echo(seen[0].words())
    columns = {
        "release": "",
        **dict.fromkeys(("mean risk", "worst 1 %", "highest", "unique users"), ".1%"),
    }
    releases = {"first": found.first, "second": found.second, "both, rows joined": found.joined}
    rows = [[label, x.risk, x.tail, x.highest, x.unique] for label, x in releases.items()]
    show(Table(f"Risk of the {found.people:,} people who are in both", columns, rows))
    if found.matched is None:
        typer.echo("The attack was not run: too many users are alike.")
    else:
        typer.echo(
            f"The attack joins the rows of {found.matched:.1%} of these people without any id."
        )
    if found.unmatched is not None and found.unmatched > MANY_EMPTY:
        typer.echo(
            f"The rows of {found.unmatched:.0%} match none of the second release. Where that is "
            "coarser, it is no protection: give how it was coarsened as --steps."
        )


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
