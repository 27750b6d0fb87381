"""What the commands of `telic auc` share."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.options import finite

app = typer.Typer(help="Rank rare events: fit, rank, evaluate, compare.", no_args_is_help=True)

Table = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or libsvm file.")]
Label = Annotated[str | None, typer.Option(help="Column of the label (not for libsvm).")]
Positive = Annotated[
    str | None, typer.Option(help="The label to rank first. Default: the rarer one.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out. Repeatable.")]
OneHot = Annotated[
    list[str] | None,
    typer.Option(help="Column of numbers, dates or ids to take as categories. Repeatable."),
]
ScalingName = Annotated[
    str,
    typer.Option(
        help="raw, unit, minmax, minmax+unit, standard or standard+unit. It changes AUC more than "
        "the choice of solver does."
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        help="auto, exact, cg, spam, vrspam, spdam, solam, regsolam, opauc, oam-seq, oam-gra, "
        "uniexp or ranksvm."
    ),
]
Penalty = Annotated[str, typer.Option(help="l2 or elasticnet.")]
Beta = Annotated[str, typer.Option(help="Ridge weight, or 'cv' for 5-fold cross-validation.")]
Beta1 = Annotated[
    float, typer.Option(help="Weight of the absolute values (elasticnet).", callback=finite)
]
Threshold = Annotated[str, typer.Option(help="prior, youden, cost=C or top_k=K.")]
Model = Annotated[Path, typer.Option(help="Model folder.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**32 - 1,  # scikit-learn's splits take no larger one
        metavar="<int>",
        help="Seed of splits and of stochastic solvers.",
    ),
]
