"""`telic completion fit | inspect`: a search box from files, looked into."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.completion.options import (
    Json,
    MinCompositions,
    MinUsers,
    Queries,
    SessionGap,
    SkipBadRows,
    Window,
    app,
    holds_compositions,
    protocols_of,
    relevances_of,
)
from telic.cli.console import Overwrite, plain_console, print_facts, print_json
from telic.cli.jobs import Cluster, Memory, Piece, SkipBadPartitions, Work, job_of
from telic.cli.options import refuse_given
from telic.cli.progress import console
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.completion import Completer

Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Lists of phrases, query logs or a composition log: CSV, TSV, JSON lines, Parquet, "
        "text (data contracts 1, 2 and 5 of the documentation), or the folder that a service "
        "recorded to."
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        help="ROLE=COLUMN, such as phrase=product or weight=sold; a role of your own is a context "
        "to filter by. May be repeated."
    ),
]
Duplicates = Annotated[
    Any,  # fit_files says which there are
    typer.Option(
        metavar="<str>",
        help="What to do about a phrase listed twice with different weights: raise (an "
        "error), add or max.",
    ),
]
Deny = Annotated[
    Path | None,
    typer.Option(
        help="Text file of what is never suggested; each line is a phrase, a *part* or a /pattern/."
    ),
]
SynonymsFile = Annotated[
    Path | None,
    typer.Option(
        "--synonyms", help="Text file of synonyms; each line is a group, separated by commas."
    ),
]
Keyboard = Annotated[
    str | None,
    typer.Option(
        help="qwerty, qwertz or azerty: a key beside the right one is a cheaper typo than another."
    ),
]


def columns_of(given: list[str] | None) -> dict[str, str]:
    """Read ``ROLE=COLUMN`` options."""
    columns: dict[str, str] = {}
    for text in given or ():
        role, equals, column = text.partition("=")
        if not (role and equals and column):
            raise InputError(f"--column is {text!r}, expected ROLE=COLUMN, as in phrase=title.")
        if role in columns:
            raise InputError(
                f"--column names {role!r} twice: {columns[role]} and {column}. Keep one."
            )
        columns[role] = column
    return columns


def signal_groups(given: str, option: str) -> tuple[str, ...] | None:
    """Read an option that names groups of signals, by commas; None for all that a log tells of."""
    from telic.completion.signals.groups import EVERY_GROUP

    if given == "all":
        return None
    chosen = tuple(given.split(","))
    for group in chosen:
        if group not in EVERY_GROUP:
            known = ", ".join(EVERY_GROUP)
            raise InputError(f"{option} names {group!r}, expected some of {known}.")
    return chosen


@app.command()
def fit(
    context: typer.Context,
    sources: Sources,
    out: Annotated[Path, typer.Argument(help="Model folder to write.")],
    queries: Queries = None,
    column: Column = None,
    duplicates: Duplicates = "raise",
    deny: Deny = None,
    synonyms: SynonymsFile = None,
    keyboard: Keyboard = None,
    relevance: Annotated[
        str, typer.Option(help="Static relevance score, with a composition log.")
    ] = "personal-s",
    model: Annotated[
        str | None,
        typer.Option(
            help="With a composition log: static, adaqac-unp, adaqac-batch, adaqac-online (the "
            "default), appaware or appaware-adaqac."
        ),
    ] = None,
    signals: Annotated[
        str | None,
        typer.Option(
            help="Rank by groups of signals, all or some of popularity, time, personal, session, "
            "match, pairs and, with a composition log, feedback and apps, separated by commas. A "
            "group counts only where it helps on held-out data (its gate)."
        ),
    ] = None,
    session_gap: SessionGap = 30.0,
    protocol: Annotated[str, typer.Option(help="careful, bounded or paper.")] = "careful",
    candidates: Annotated[
        int,
        typer.Option(help="How many candidates are re-ranked; no list is longer.", min=1, max=200),
    ] = 10,
    min_compositions: MinCompositions = 8,
    min_users: MinUsers = 3,
    window: Window = 30.0,
    skip_bad_rows: SkipBadRows = False,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    piece: Piece = None,
    skip_bad_partitions: SkipBadPartitions = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a search box on lists, query logs or a composition log; write it as a model folder."""
    from telic.completion import PAPER, fit_files
    from telic.completion.box.completer import KIND
    from telic.data import check_output

    files = [*sources, *([queries] if queries else [])]
    reads = [*files, deny, synonyms]
    check_output(out, kind=KIND, reads=reads, overwrite=overwrite)
    edited = editors_changes(deny, synonyms, keyboard)  # what is wrong with them ends no long fit
    (score,) = relevances_of([relevance])
    chosen = protocols_of(protocol)
    if len(chosen) > 1:
        raise InputError("--protocol is 'both', expected careful or paper: one model is fitted.")
    learning = ("relevance", "protocol", "min_compositions")
    if signals is not None:
        refuse_given(context, (*learning, "candidates", "duplicates"), "beside --signals")
    else:
        refuse_given(context, ["session_gap"], "without --signals")
        if not (model or "").startswith("appaware"):
            refuse_given(context, ["window"], "without --signals or a model of apps")
    if not holds_compositions(files):
        refuse_given(context, (*learning, "window"), "without a composition log")
    elif chosen == (PAPER,) and signals is None:
        why = "with --protocol paper, which finds phrases by their beginning alone"
        refuse_given(context, ("synonyms", "keyboard"), why)
    with job_of(
        memory, cluster, work, out, reads=reads, piece=piece, skip_bad=skip_bad_partitions
    ) as job:
        with nullcontext() if job.executor else console.status("fitting"):
            completer = fit_files(
                *files,
                columns=columns_of(column),
                duplicates=duplicates,
                relevance=score,
                model=model,
                protocol=chosen[0],
                n=candidates,
                minutes=window,
                min_users=min_users,
                min_compositions=min_compositions,
                on_bad_row="skip" if skip_bad_rows else "raise",
                executor=job.executor,
                work=job.work,
                skip_bad=skip_bad_partitions,
                signals=None if signals is None else signal_groups(signals, "--signals") or "all",
                session_gap=session_gap,
            )
        completer = edited(completer)
        completer.save(out)
    _describe(out, completer, as_json=as_json)
    if not len(completer.index):
        typer.echo(
            f"note: {out} suggests nothing but users' own searches: no phrase was submitted by "
            f"{min_users} users (--min-users) and not denied (--deny).",
            err=True,
        )


def editors_changes(
    deny: Path | None, synonyms: Path | None, keyboard: str | None
) -> "Callable[[Completer], Completer]":
    """Read what an editor says; return what applies it to a completer, once that is fitted."""
    from telic.completion import DenyList, Synonyms
    from telic.completion.engine.keyboards import keys_beside

    keys_beside(keyboard)  # says what is wrong with it
    same = Synonyms.read(synonyms) if synonyms else None
    denied = DenyList.read(deny) if deny else None

    def edited(completer: "Completer") -> "Completer":
        completer = replace(completer, keyboard=keyboard or "", synonyms=same)
        return completer.denying(denied) if denied else completer

    return edited


@app.command()
def inspect(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    prefix: Annotated[
        str | None,
        typer.Option(help="Show the suggestions for this prefix instead, also with --json."),
    ] = None,
    k: Annotated[
        bool,
        typer.Option(
            "--k",
            help="Show only how many phrases are suggested, and how many are lost, if at least k "
            "users must have submitted a phrase, for k from 1 to 100, in all and by tenant.",
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compare every file with its hash, not only those that changed since the "
            "last check.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a model's card, and what it holds: scores, weights, where feedback may re-rank."""
    from telic.completion import Completer
    from telic.completion.evaluation.json_facts import model_card
    from telic.completion.fit.lost_below_k_users import KEPT_BACK
    from telic.data.saved_models import written_by

    completer = Completer.load(model, verify=verify)
    if not k:
        card = model_card(completer) | {"written by": written_by(model)}
        return _describe(model, completer, as_json=as_json, prefix=prefix, card=card)
    refuse_given(context, ["prefix"], "beside --k")
    said = completer.found.get(KEPT_BACK)
    if said is None:
        raise InputError(
            f"{model}: was fitted on no log that names its users, or by an older version. Fit it "
            "on such a log."
        )
    facts = {KEPT_BACK: said}
    if as_json:
        print_json({"folder": str(model), **facts})
    else:
        print_facts(facts)


def _describe(
    folder: Path,
    completer: "Completer",
    *,
    as_json: bool,
    prefix: str | None = None,
    card: dict[str, str] | None = None,
) -> None:
    from telic.completion.evaluation.json_facts import model_facts
    from telic.data.object_storage import is_remote, place

    name = place(folder) if is_remote(folder) else folder
    facts = ({"card": card} if card else {}) | model_facts(completer)
    if prefix is not None:
        suggestions = completer.compose(completer.user()).suggest(prefix, at=0.0)
        facts[f"suggestions for {prefix!r}"] = texts = [s.text for s in suggestions]
    if as_json:
        print_json({"folder": str(name), **facts})
        return
    out = plain_console()
    if prefix is not None:
        out.print("\n".join(texts) or f"nothing is found for {prefix!r}", soft_wrap=True)
        return
    out.print(f"{name}", soft_wrap=True)
    print_facts(facts, to=out)
