"""`telic completion replay | trial`: which of several search boxes does better."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.completion.options import Json, SkipBadRows, app, composition_log
from telic.cli.console import print_json, show
from telic.cli.options import refuse_given
from telic.cli.progress import console, steps
from telic.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


@app.command()
def replay(
    log: Annotated[
        Path,
        typer.Argument(
            help="Composition log, Parquet (data contract 1 of the documentation), or the folder "
            "that the service recorded to; from after the models were fitted."
        ),
    ],
    model_a: Annotated[Path, typer.Argument(help="Model folder.")],
    model_b: Annotated[Path, typer.Argument(help="Model folder, compared with the first.")],
    shown: Annotated[
        int,
        typer.Option(
            help="Suggestions in a list; at most as many as both models re-rank.", min=1, max=200
        ),
    ] = 10,
    skip_bad_rows: SkipBadRows = False,
    as_json: Json = False,
) -> None:
    """Compare two models on a log: MRR, success at k and keystrokes, with users as the unit."""
    from telic.completion import Completer, compare_completers

    read = composition_log(log, skip=skip_bad_rows)
    a, b = (Completer.load(model) for model in (model_a, model_b))
    with steps("replaying", 2 * len(read)) as begin:
        found = compare_completers(read, a, b, show=shown, progress=begin)
    if as_json:
        facts = {"a": str(model_a), "b": str(model_b), "simulated": found.simulated}
        counts = {"compositions": found.compositions, "users": found.users}
        counts["shown"] = found.shown
        print_json(facts | counts | {"measures": found.rows()})
        return
    names = (model_a.name, model_b.name)
    show(found.table(*(names if names[0] != names[1] else ("a", "b"))))


@app.command()
def trial(
    context: typer.Context,
    recorded: Annotated[
        list[Path],
        typer.Argument(
            help="Folders that the arms' services recorded to, or what export-log made of them."
        ),
    ],
    first: Annotated[
        str | None, typer.Option(help="The arm to compare with; default: the first by name.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what each arm of a trial is worth, even if the arms' shares changed over time.

    Of lists that were drawn from two orders (--interleave), say whose suggestions people took.
    """
    import pyarrow as pa

    from telic.completion.evaluation.trial import judge_interleaving, judge_trial
    from telic.data.tables import refuse_twice

    refuse_twice(recorded)
    tables = [_recorded(path) for path in recorded]
    table = pa.concat_tables(tables, promote_options="default")
    each = table.group_by(["composition", "user", "submitted_at"]).aggregate([])
    if len(each) < len(table):
        raise InputError(
            f"{', '.join(map(str, recorded))}: {len(table) - len(each):,} compositions are there "
            "twice, and would count twice. Name a folder or what was exported from it, not both."
        )
    # A part of a log may have the columns of the whole and nothing in them.
    kinds = [name for name in ("arm", "teams") if name in table.column_names]
    filled = [name for name in kinds if table[name].null_count < len(table)]
    mixed = judge_interleaving(table) if "teams" in (filled or kinds) else None
    if mixed and "arm" not in filled:
        refuse_given(context, ["first"], "where no composition has an arm")
        if as_json:
            print_json(mixed.facts())
        else:
            show(mixed.table())
        return
    found = judge_trial(table, first=first)
    for arm in found.wrong:
        weight = found.weights[arm]
        console.print(
            f"arm {arm}: its weights have mean {weight.value:.3f} [{weight.low:.3f}, "
            f"{weight.high:.3f}] (99.9 %), which should be 1: users were not sent to it as its "
            "propensity says, so no estimate here can be trusted.",
            soft_wrap=True,
        )
    if as_json:
        counts = {"compositions": found.compositions, "users": found.users}
        observed = {measure: value.value for measure, value in found.observed.items()}
        wrong = {"wrong_propensities": found.wrong}
        both = {"interleaved": mixed.facts()} if mixed else {}
        print_json(counts | {"observed": observed} | wrong | {"values": found.rows()} | both)
        return
    show(found.table())
    if mixed:  # one folder may hold a trial of each kind
        show(mixed.table())


def _recorded(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    from telic.data import read_compositions
    from telic.data.tables import no_such_file
    from telic.data.ubi import read_ubi

    if path.is_dir():
        table, left_out = read_ubi(path)
        for reason, count in left_out.items():
            console.print(f"{path}: left out {count}: {reason}", soft_wrap=True)
        return table
    if not path.exists():
        raise no_such_file(path)
    try:
        table = pq.read_table(path)
    except pa.ArrowException:
        raise InputError(f"{path}: is no Parquet file. Name a folder or an exported log.") from None
    wanted = ("user", "query", "keystrokes", "selected", "propensity")
    for name in wanted if "arm" in table.column_names else ():
        if name not in table.column_names:
            raise InputError(
                f"{path}: has arms, but no column {name!r}. Name what telic completion export-log "
                "made of a service's records."
            )
    read_compositions(path)  # names file, row and column of what cannot be read
    return table
