"""`telic demo`: from a catalogue to a search box that learns, in about a minute."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.completion import Json, Seed, print_results
from telic.cli.console import print_table
from telic.cli.progress import console, steps


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the log, the model and the report.")] = Path(
        "telic-demo"
    ),
    serve: Annotated[bool, typer.Option(help="Open the search box when done.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    phone: Annotated[
        bool, typer.Option("--phone", help="Two phones with different apps, side by side.")
    ] = False,
    seed: Seed = 0,
    overwrite: Annotated[
        bool, typer.Option(help="Replace what an earlier demo wrote, and nothing else.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Simulate typists, measure every model, write a report, open the search box."""
    if phone:
        _phones(out, port if serve else None, seed, overwrite=overwrite, as_json=as_json)
        return
    import pyarrow.parquet as pq

    from telic.completion import PROTOCOLS, evaluate, fit_completer
    from telic.completion.relevance import NAMES
    from telic.data import atomic_path, check_output
    from telic.simulate import geonames_catalogue, simulate_typists
    from telic.study import chapter2_controls, chapter2_report

    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    for name in ("log.parquet", "model", "report.html"):
        check_output(out / name, overwrite=overwrite)
    seeds = 5
    two = ThreadPoolExecutor(2)
    with two, steps("demo", 3 + 2 * len(NAMES) + 2 * seeds) as progress:
        progress("simulating typists over the world's places")
        catalogue = geonames_catalogue()
        log = simulate_typists(catalogue, seed=seed)
        with atomic_path(out / "log.parquet") as temporary:
            pq.write_table(log, temporary)
        replay = chapter2_controls.simulated_replay(catalogue, log)
        results = evaluate(
            replay, protocols=tuple(PROTOCOLS.values()), lists=("own",), progress=progress,
            executor=two,
        )  # fmt: skip
        controls = chapter2_controls.controls(
            catalogue,
            settings=("inattentive", "readers"),
            seeds=seeds,
            users=100,
            compositions=100,
            progress=progress,
            executor=two,
        )
        progress("writing the report")
        report = chapter2_report.evaluation_report(replay, results)
        report.section("Controls: do dwell times carry anything?")
        report.text(
            "Each simulated log is compared with its dwell twin (dwell times permuted within each "
            "user). Small logs and few seeds here; `telic study chapter-2` runs ten of full size."
        )
        report.table(*chapter2_report.controls_table(controls))
        report.write(out / "report.html")
        progress("fitting the search box")
        completer = fit_completer(replay)
        completer.save(out / "model")
    seconds = time.perf_counter() - began
    if as_json:
        rows = [row for result in results for row in result.rows()]
        typer.echo(
            json.dumps({"simulated": True, "rows": rows, "controls": controls, "seconds": seconds})
        )
    else:
        print_results(replay, results)
        print_table("SIMULATED: do dwell times help?", *chapter2_report.controls_table(controls))
    console.print(f"{seconds:.0f} s; log, model and report are in {out}/ (open {out}/report.html)")
    if serve:
        from telic.cli.completion import serve as open_search_box

        open_search_box(out / "model", port=port)


def _phones(out: Path, port: int | None, seed: int, *, overwrite: bool, as_json: bool) -> None:
    """Simulate phones, measure AppAware, write a report, open two phones side by side."""
    import pyarrow.parquet as pq

    from telic.completion import fit_completer
    from telic.completion.appaware_evaluation import evaluate_phones
    from telic.data import atomic_path, check_output
    from telic.simulate import example_phones, simulate_phones
    from telic.study import chapter2_controls, chapter3_report

    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    for name in ("phones.parquet", "phone-model", "phones.html"):
        check_output(out / name, overwrite=overwrite)
    with steps("demo", 4) as progress:
        progress("simulating phones")
        catalogue, affinity = example_phones()
        log = simulate_phones(catalogue, affinity=affinity, users=100, compositions=120, seed=seed)
        with atomic_path(out / "phones.parquet") as temporary:
            pq.write_table(log, temporary)
        replay = chapter2_controls.simulated_replay(catalogue, log)
        rows = [
            row
            for result in evaluate_phones(
                replay, relevances=("mpc",), lists=("own",), progress=progress
            )
            for row in result.rows()
        ]
        progress("writing the report")
        chapter3_report.evaluation_report(rows, simulated=True).write(out / "phones.html")
        progress("fitting the search box")
        fit_completer(replay, model="appaware", relevance="mpc").save(out / "phone-model")
    seconds = time.perf_counter() - began
    if as_json:
        typer.echo(json.dumps({"simulated": True, "rows": rows, "seconds": seconds}))
    else:
        title = "SIMULATED phones. Every keystroke, %, and the change against Standard"
        print_table(title, *chapter3_report.variants_table(rows))
    console.print(f"{seconds:.0f} s; log, model and report are in {out}/ (open {out}/phones.html)")
    if port is not None:
        from telic.cli.completion import serve as open_search_box

        console.print("Two phones side by side: add /phones to the address.")
        open_search_box(out / "phone-model", port=port)
