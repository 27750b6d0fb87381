"""`telic specialty simulate | import`: where access logs come from."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.options import finite
from telic.cli.specialty.options import Seed, app, tell


@app.command()
def simulate(
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    scale: Annotated[
        float, typer.Option(help="Share of patients and accesses, 0.001 to 1.", callback=finite)
    ] = 0.05,
    seed: Seed = 0,
) -> None:
    """Write a simulated hospital's access log, with its truth."""
    from telic.data import check_output
    from telic.simulate.hospital import simulate_hospital

    check_output(folder, overwrite=None)
    simulate_hospital(folder, scale=scale, seed=seed)
    typer.echo(f"{folder}: a simulated access log", err=True)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Folder of the export.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    kind: Annotated[str, typer.Option(help="omop, fhir, mimic3 or eicu.")],
) -> None:
    """Convert an OMOP, FHIR NDJSON, MIMIC-III or eICU export to an access log."""
    from telic.data import check_output
    from telic.specialty.log.other_systems import import_log
    from telic.specialty.log.source_gaps import lacks_of

    check_output(folder, reads=[source], overwrite=None)
    tell(import_log(source, folder, kind=kind))
    tell([f"{kind} lacks {element}: {why}" for element, why in lacks_of(folder).items()])
    typer.echo(f"{folder}: written", err=True)
