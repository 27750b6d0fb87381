"""`telic demo`: from a catalogue to a search box that learns, in about a minute."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.completion.evaluate import tell
from telic.cli.completion.options import Json, Seed
from telic.cli.progress import console, steps
from telic.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from telic.completion import Replay
    from telic.completion.evaluation.report import Summary
    from telic.report import Report

SEEDS = 5
"""Simulated logs of each control."""


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the log, the model and the report.")] = Path(
        "telic-demo"
    ),
    serve: Annotated[bool, typer.Option(help="Open the search box when done.")] = True,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the search box; 0 for any that is free.")
    ] = 8000,
    phone: Annotated[
        bool, typer.Option("--phone", help="Show two phones with different apps, side by side.")
    ] = False,
    seed: Seed = 0,
    overwrite: Annotated[
        bool, typer.Option(help="Replace what an earlier demo wrote, and nothing else.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Simulate typists, measure every model, write a report, open the search box."""
    import pyarrow.parquet as pq

    from telic.completion import fit_completer
    from telic.completion.box.completer import KIND
    from telic.completion.learning.relevance import NAMES
    from telic.data import atomic_path, check_output

    measured: Callable[..., tuple[pa.Table, Replay, Summary]]
    options: dict[str, Any]
    if phone:
        names, measured, total = ("phones.parquet", "phone-model", "phones.html"), _phones, 4
        options = {"model": "appaware", "relevance": "mpc"}
    else:
        names, measured, options = ("log.parquet", "model", "report.html"), _typists, {}
        total = 3 + 2 * len(NAMES) + 2 * SEEDS
    began = time.perf_counter()
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file, expected a folder.")
    out.mkdir(parents=True, exist_ok=True)
    for name, kind in zip(names, ("composition log", KIND, "page"), strict=True):
        check_output(out / name, kind=kind, overwrite=overwrite)
    log_file, model, page = (out / name for name in names)
    with ThreadPoolExecutor(2) as two, steps("demo", total) as progress:
        log, replay, summary = measured(seed, progress, two)
        with atomic_path(log_file) as temporary:
            pq.write_table(log, temporary)
        progress("writing the report")
        summary.page().write(page)
        progress("fitting the search box")
        fit_completer(replay, **options).save(model)
    seconds = time.perf_counter() - began
    tell(replace(summary, facts=summary.facts | {"seconds": seconds}), as_json=as_json)
    console.print(f"{seconds:.0f} s; log, model and report are in {out}/ (open {page})")
    if serve:
        from telic.cli.completion.serve import serve as open_search_box

        if phone:
            console.print("Two phones side by side: add /phones to the address.")
        open_search_box(context, [str(model), "--port", str(port)])


def _typists(
    seed: int, progress: Callable[[str], None], executor: Executor
) -> "tuple[pa.Table, Replay, Summary]":
    """Simulate typists over the world's places, measure every model, and the dwell control."""
    from telic.completion import CAREFUL, PAPER, evaluate
    from telic.completion.evaluation.report import feedback_summary
    from telic.simulate import (
        controls_table,
        dwell_control,
        geonames_catalogue,
        simulate_typists,
        simulated_replay,
    )

    progress("simulating typists over the world's places")
    catalogue = geonames_catalogue()
    log = simulate_typists(catalogue, seed=seed)
    replay = simulated_replay(catalogue, log)
    results = evaluate(
        replay,
        protocols=(CAREFUL, PAPER),
        lists=("own",),
        progress=progress,
        executor=executor,
    )
    controls = controls_table(
        dwell_control(
            catalogue,
            settings=("inattentive", "readers"),
            seeds=SEEDS,
            users=100,
            compositions=100,
            progress=progress,
            executor=executor,
        )
    )
    summary = feedback_summary(replay, results)

    def page() -> "Report":
        report = summary.page()
        report.section("Controls: do dwell times carry anything?")
        report.text(
            "Each simulated log is compared with its dwell twin (dwell times permuted within each "
            "user). Small logs and few seeds here; `telic study chapter-2` runs ten of full size."
        )
        report.table(controls)
        return report

    facts = summary.facts | {"controls": controls.records()}
    return log, replay, replace(summary, tables=[*summary.tables, controls], facts=facts, page=page)


def _phones(
    seed: int, progress: Callable[[str], None], executor: Executor
) -> "tuple[pa.Table, Replay, Summary]":
    """Simulate phones and measure AppAware."""
    from telic.completion.evaluation.appaware_evaluation import evaluate_phones
    from telic.completion.evaluation.report import apps_summary
    from telic.simulate import example_phones, simulate_phones, simulated_replay

    progress("simulating phones")
    catalogue, affinity = example_phones()
    log = simulate_phones(catalogue, affinity=affinity, users=100, compositions=120, seed=seed)
    replay = simulated_replay(catalogue, log)
    results = evaluate_phones(replay, relevances=("mpc",), lists=("own",), progress=progress)
    return log, replay, apps_summary(replay, results)
