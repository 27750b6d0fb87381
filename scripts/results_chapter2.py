"""Write docs/results-chapter-2.md: the tables of the chapter-2 study on simulated typists.

Run it with `.venv/bin/python scripts/results_chapter2.py`; it takes some minutes.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from telic.completion import PROTOCOLS
from telic.completion.evaluation import evaluate
from telic.simulate import geonames_catalogue, simulate_typists
from telic.study import chapter2_controls
from telic.study.chapter2_report import attention_table, controls_table, overview_table

OUT = Path(__file__).parent.parent / "docs" / "results-chapter-2.md"
SEEDS = 10


def markdown(columns: Sequence[str], rows: Sequence[Sequence]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main():
    tell = Console(stderr=True).print
    catalogue = geonames_catalogue()
    replay = chapter2_controls.simulated_replay(catalogue, simulate_typists(catalogue, seed=0))
    results = evaluate(replay, protocols=tuple(PROTOCOLS.values()), progress=tell)
    controls = chapter2_controls.controls(catalogue, seeds=SEEDS, progress=tell)
    curve = chapter2_controls.attention_curve(catalogue, seeds=3, progress=tell)
    parts = [
        "# Chapter 2 on simulated typists",
        "Written by `scripts/results_chapter2.py`; do not edit. **The people are simulated** "
        "(`docs/data-card-typists.md`): 200 typists with 150 compositions each over the world's "
        "places. MRR in percent; changes against the static order of the same relevance in points; "
        "paired t-test over users, a star marks p < 0.05. Both protocols are explained in "
        "`telic.completion.adaqac.Protocol`.",
        "## At the last keystroke",
        markdown(*overview_table(results, "last")),
        "## At every keystroke",
        markdown(*overview_table(results, "all")),
        "## Controls",
        "Each log is compared with its dwell twin: the same lists, positions and queries, dwell "
        f"times permuted within each user. adaQAC-UnP (MPC, last keystroke, without the gate), "
        f"{SEEDS} seeds, 95 % intervals over seeds. Where nobody looks at the lists the difference "
        "must vanish; where everybody reads and dwells in proportion (planted) it must not.",
        markdown(*controls_table(controls)),
        "## The gain over attention",
        "Calibrated typists with the share of lists they look at swept; points of MRR, mean over "
        "three seeds ± standard error.",
        markdown(*attention_table(curve)),
    ]
    OUT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
