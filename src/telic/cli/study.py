"""`telic study`: regenerate the papers' tables and figures."""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.completion.options import CatalogueFile, Json, MinUsers
from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import finite
from telic.cli.progress import console, steps

app = typer.Typer(help="Regenerate the papers' tables and figures.", no_args_is_help=True)

Out = Annotated[
    Path | None,
    typer.Option(help="Report to write; .md writes Markdown. Default: telic-CHAPTER.html."),
]
Work = Annotated[
    Path | None, typer.Option(help="Folder of finished steps, to go on after an interruption.")
]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)]
Data = Annotated[Path | None, typer.Option(help="Folder of real data; default: TELIC_DATA.")]


def _every_study(
    out: Out = None, work: Work = None, overwrite: Overwrite = False, as_json: Json = False
) -> None:
    """Take what every study takes: `out` before its own options, the others after them."""


def _command(module: str, reads: Sequence[str] = ()) -> Callable[..., Any]:
    """Make a command of a function that has nothing but options: it runs a study with them.

    The options of `_every_study` are added; a study with a file of `results` takes no `work`.

    Parameters
    ----------
    module : str
        Of `telic.study`; the command is called after it.
    reads : sequence of str
        Options that name what is read: no page may take its place.
    """
    name = re.sub(r"(?<=[a-z])(?=[0-9])", "-", module.rpartition(".")[2]).replace("_", "-")

    def command(options: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(options).parameters
        out, work, *others = inspect.signature(_every_study).parameters.values()
        last = others if "results" in own else [work, *others]

        @app.command(name)
        @wraps(options)
        def run(**given: Any) -> None:
            try:
                _study(name, module, [given[option] for option in reads], **given)
            except KeyboardInterrupt:
                if "results" not in given:
                    raise
                results = given["results"]
                console.print(f"telic: interrupted; {results} keeps the finished runs, run again.")
                raise typer.Exit(130) from None

        # What typer reads.
        vars(run)["__signature__"] = inspect.Signature([out, *own.values(), *last])
        return run

    return command


def _study(
    name: str,
    module: str,
    reads: Sequence[Path | None],
    *,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    work: Path | None = None,
    **settings: Any,
) -> None:
    """Run a study, write its report, and print its first table, or all tables as JSON."""
    from telic.study.steps import Steps

    out = out or Path(f"telic-{name}.html")
    _check_page(out, reads, overwrite)
    study = import_module(f"telic.study.{module}").study
    with steps(module) as progress:
        report = study(Steps(work, progress), **settings)
    report.written_by(_page_command(name, settings, study))
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        print_json(report.as_json())
    else:
        show(report.tables[0])


@_command("chapter2", reads=("catalogue",))
def chapter_2(
    catalogue: CatalogueFile = None,
    min_users: MinUsers = 3,
    seeds: Annotated[int, typer.Option(help="Simulated logs per control.", min=2)] = 10,
    users: Annotated[int, typer.Option(help="Users of each simulated log.", min=4)] = 200,
    compositions: Annotated[int, typer.Option(help="Compositions of each user.", min=8)] = 150,
) -> None:
    """Adaptive completion on simulated typists: tables 2.3–2.5, figures 2.2–2.5, controls."""


@_command("do_no_harm")
def do_no_harm(
    seeds: Annotated[
        int,
        typer.Option(
            help="Seeds of the logs over made-up phrases, in each half of the study.",
            min=1,
        ),
    ] = 2,
    users: Annotated[int, typer.Option(help="Users of each log over made-up phrases.", min=2)] = 24,
    place_users: Annotated[int, typer.Option(help="Users of each log over places.", min=2)] = 40,
    fits: Annotated[int, typer.Option(help="Logs of each setting to fit the gate on.", min=1)] = 16,
) -> None:
    """Users who change after fitting: what they lose with and without the running check."""


@_command("top_of_list")
def top_of_list(
    rows: Annotated[int, typer.Option(help="Rows of each set, at most.", min=300)] = 30_000,
    resamples: Annotated[int, typer.Option(help="Resamples for the intervals.", min=20)] = 1000,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Linear rankers by the top of their lists, on real sets with rare positives."""


@_command("chapter3", reads=("catalogue", "pairs"))
def chapter_3(
    catalogue: CatalogueFile = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="File of real query-app pairs. Default: TELIC_DATA's UniMobile."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Simulated logs per control.", min=2)] = 4,
    users: Annotated[int, typer.Option(help="Users of each simulated log.", min=4)] = 150,
    compositions: Annotated[int, typer.Option(help="Compositions of each user.", min=8)] = 120,
    real_pairs: Annotated[
        bool, typer.Option(help="Also measure on real query-app pairs, which takes minutes.")
    ] = True,
) -> None:
    """The phone's apps: tables 3.1, 3.2, 3.5, figures 3.2-3.7, controls, real pairs."""


@_command("signals")
def signals(
    users: Annotated[int, typer.Option(help="Users of each simulated log.", min=10)] = 400,
    sessions: Annotated[int, typer.Option(help="Sessions of each simulated user.", min=5)] = 40,
    compositions: Annotated[
        int, typer.Option(help="Compositions of each user of a simulated phone.", min=20)
    ] = 100,
    seeds: Annotated[int, typer.Option(help="Simulated logs of each world.", min=2)] = 3,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Sessions, time and people on real query logs, and simulated searchers with controls."""


@_command("saturation")
def saturation(
    users: Annotated[
        int, typer.Option(help="Users to fit on; half as many are tested.", min=10)
    ] = 100,
    seeds: Annotated[int, typer.Option(help="Simulated logs of each setting.", min=1)] = 2,
) -> None:
    """Bounds on feedback for slow, fast, distracted and screen-reader typists, simulated."""


@_command("shoppers")
def shoppers(
    users: Annotated[int, typer.Option(help="Users of each simulated log.", min=10)] = 60,
    compositions: Annotated[int, typer.Option(help="Compositions of each user.", min=10)] = 80,
    seeds: Annotated[int, typer.Option(help="Simulated logs of each setting.", min=2)] = 5,
) -> None:
    """Feedback and signals on simulated people of a second family, on whom nothing was tuned."""


@_command("drift")
def drift(
    users: Annotated[int, typer.Option(help="Users of each simulated query log.", min=50)] = 150,
    sessions: Annotated[int, typer.Option(help="Sessions of each in a year.", min=50)] = 150,
    typists: Annotated[
        int, typer.Option(help="Users of each simulated log of compositions.", min=5)
    ] = 24,
    seeds: Annotated[int, typer.Option(help="Simulated logs of each world.", min=2)] = 3,
) -> None:
    """A simulated year of change: what a box loses that is not fitted again each night."""


@_command("session_pairs")
def session_pairs(
    sessions: Annotated[int, typer.Option(help="Sessions of each simulated user.", min=5)] = 40,
    seeds: Annotated[int, typer.Option(help="Simulated logs of each world and size.", min=1)] = 3,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """A learned weight for each pair of queries in a session: what it adds to the signals."""


@_command("amazonqac", reads=("data",))
def amazonqac(
    data: Annotated[
        Path | None, typer.Option(help="Folder of AmazonQAC that holds train/ and test/.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            help="Part of the training sessions; 0.1 are 40 million searches.", callback=finite
        ),
    ] = 0.02,
    min_sessions: Annotated[
        int, typer.Option(help="Suggest a term only if this many sessions had it.", min=1)
    ] = 4,
    seed: Seed = 0,
) -> None:
    """Signals on AmazonQAC's test split, beside what is published; --work resumes a run."""


@_command("chapter4")
def chapter_4(
    replications: Annotated[int, typer.Option(help="Runs of each method.", min=1)] = 10,
    passes: Annotated[
        float, typer.Option(help="Passes of each run over the rows.", callback=finite)
    ] = 40,
    share: Annotated[
        float, typer.Option(help="Part of the rows; 1 takes hours.", callback=finite)
    ] = 0.1,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Convergence of ASBCD and its rivals: figures 4.1 and 4.2."""


@_command("chapter5")
def chapter_5(
    replications: Annotated[int, typer.Option(help="Runs of each method.", min=1)] = 30,
    seconds: Annotated[
        float, typer.Option(help="Longest time of one run.", min=0.01, callback=finite)
    ] = 1.5,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Stochastic ADMM on graph-guided fused logistic regression, real data: figure 5.1."""


@_command("chapter6")
def chapter_6(
    scale: Annotated[
        float, typer.Option(help="Size of the simulated hospital, 0.001 to 1.", callback=finite)
    ] = 1.0,
    part: Annotated[
        str,
        typer.Option(
            help="tables; or a check against the simulator's truth, each of which takes hours: "
            "recovery, diagnosis or knob; or checks, all three of them."
        ),
    ] = "tables",
    pipeline: Annotated[
        str, typer.Option(help="Tables 6.7–6.9: chosen in each training half, or printed.")
    ] = "chosen",
    data: Data = None,
    seed: Seed = 0,
    threads: Annotated[int, typer.Option(min=1, help="Does not change the result.")] = 1,
) -> None:
    """De facto specialties, simulated: tables 6.1, 6.3–6.9, figure 6.1; DBLP if it is at hand."""


@_command("chapter7")
def chapter_7(
    users: Annotated[
        int,
        typer.Option(
            min=2,
            help="Users of the simulated network; the chapter's page has 2320895 (about 5 "
            "minutes).",
        ),
    ] = 200_000,
    samples: Annotated[int, typer.Option(min=1, help="Sampled groups of each density.")] = 3,
    seed: Seed = 0,
    only: Annotated[
        str | None, typer.Option(help="simulated, sanremo, copenhagen or timme; default all.")
    ] = None,
) -> None:
    """Privacy risk and DeHIN, simulated and real networks: tables 7.1–7.4, figures 7.7–7.9."""


Runs = Annotated[int, typer.Option(help="Random 80/20 splits.", min=1)]
Sets = Annotated[list[str] | None, typer.Option("--set", help="Only this set. Repeatable.")]
Results = Annotated[Path, typer.Option(help="File of finished runs, to go on from.")]


@_command("auc_papers.paper001", reads=("results",))
def paper_001(
    runs: Runs = 20,
    only: Sets = None,
    data: Data = None,
    results: Results = Path("auc-results.jsonl"),
) -> None:
    """AUC of SPAM, SPDAM and their rivals, beside the exact optimum: four tables."""


@_command("auc_papers.paper002", reads=("results",))
def paper_002(
    runs: Runs = 20,
    only: Sets = None,
    data: Data = None,
    results: Results = Path("auc-results.jsonl"),
) -> None:
    """AUC of VRSPAM and its rivals, beside the exact optimum: Table 1."""


@app.command("all")
def all_studies(
    out: Annotated[
        Path, typer.Option(help="Page to write; .md writes Markdown, figures beside it.")
    ] = Path("telic-study-all.html"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: minutes instead of many hours.")
    ] = False,
    work: Work = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Every claim of the documents beside what is found here; --work resumes an earlier run.

    A study whose data are not there is left out; one that fails is named, and the exit code is 1.
    """
    from telic.study.book import run_all

    _check_page(out, [], overwrite)
    with steps("study all") as progress:
        book = run_all(work, quick=quick, seed=seed, progress=progress)
    # A Markdown page is the site's, where the figures of a quick run have no place.
    report = book.report(figures=not (quick and out.suffix == ".md"))
    given = ["--quick"] * quick + [f"--seed {seed}"] * (seed != 0)
    report.written_by(f'make page ARGS="{" ".join(["all", *given])}"')
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        print_json(book.as_json())
    else:
        show(report.tables[0])
    for failure in book.failures():
        console.print(f"telic: failed: {failure}")
    if book.failures():
        raise typer.Exit(1)


def _check_page(out: Path, reads: Sequence[Path | None], overwrite: bool) -> None:
    """Refuse, before the work, a page that cannot be written."""
    from telic.data import check_output

    check_output(out, kind="page", reads=reads, overwrite=overwrite)
    if out.suffix == ".md":
        check_output(out.with_suffix(""), kind="figures", reads=reads, overwrite=overwrite)


def _page_command(words: str, settings: dict[str, Any], study: Callable[..., Any]) -> str:
    """Return the command that writes a study's page anew, with the settings that are no default."""
    given = [
        f"--{name.replace('_', '-')} {settings[name]}"
        for name, setting in inspect.signature(study).parameters.items()
        if isinstance(settings.get(name), int | float | str) and settings[name] != setting.default
    ]
    return f'make page ARGS="{" ".join([words, *given])}"'
