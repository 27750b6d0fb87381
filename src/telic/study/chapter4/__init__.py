"""Chapter 4: convergence of stochastic block coordinate descent (Figures 4.1 and 4.2)."""

from pathlib import Path

from telic.data.data_sets import set_file
from telic.errors import InputError
from telic.report import Report
from telic.study.chapter4.experiment import BLOCKS, CASES, MULTIPLES, convergence
from telic.study.chapter4.figures import convergence_figure
from telic.study.chapter4.tables import reach_table, saving_table
from telic.study.steps import Steps

LEAST = 0.001
"""Of the rows: some sixteen of the smallest set."""


def study(
    steps: Steps,
    *,
    replications: int = 10,
    passes: float = 40,
    share: float = 0.1,
    data: Path | None = None,
    seed: int = 0,
) -> Report:
    """Regenerate Figures 4.1 and 4.2, with tables of what they show."""
    if not LEAST <= share <= 1 or replications < 1 or passes <= 0:
        raise InputError(
            f"share {share!r}, replications {replications!r}, passes {passes!r}: expected "
            f"{LEAST:g} <= share <= 1, at least one replication and passes > 0."
        )
    report = Report(
        "Chapter 4: convergence of stochastic block coordinate descent",
        lead=f"The tables compare eight methods on elastic-net problems: {share:.0%} of the rows, "
        f"means of {replications} replications. ASBCD-U, ASBCD-L and ASBCD-O draw rows uniformly, "
        "by their Lipschitz constants, and with the optimal probabilities.",
    )
    report.note(
        "rcv1 and E2006-tfidf are stand-ins of the same shape from a topic model (simulated). "
        "The dissertation gives neither its λ's nor its block counts: here λ₁ = λ₂ = 1e-4 and "
        f"{BLOCKS} blocks for SBCD and MRBCD; ASBCD runs with one block, because for linear "
        "models the cost of a step is the row's non-zeros, whatever the block. Each method "
        f"takes the step, of {', '.join(map(str, MULTIPLES))} times the theoretical one, with the "
        "lowest objective on the training rows; the dissertation (4.4.4) chooses its steps by "
        "five-fold cross-validation."
    )
    names = list(CASES)
    if not set_file("covtype", data).is_file():
        report.note(f"COVTYPE is left out: {set_file('covtype', data)} not found. Set TELIC_DATA.")
        names.remove("COVTYPE")
    options = {"share": share, "data": data and str(data), "seed": seed}
    found = {
        name: steps(
            name, convergence, case=name, replications=replications, passes=passes, **options
        )
        for name in names
    }
    report.table(saving_table(found))
    for name, numbers in found.items():
        report.section(name)
        report.text(
            f"{numbers['n']:,} × {numbers['d']:,}, {CASES[name]}. The optimum is certified to a "
            f"relative {numbers['certified']:.1e}."
        )
        report.figure(
            convergence_figure(numbers["curves"]),
            f"{name}: objective gap, relative to that at zero, against the dissertation's count of "
            "passes, gradient evaluations, and time (Figures 4.1 and 4.2).",
        )
        report.table(reach_table(name, numbers["curves"]))
    return report
