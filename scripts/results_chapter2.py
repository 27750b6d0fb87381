"""Write docs/results-chapter-2.md, the tables of the chapter-2 study, and README's figures of it.

Run it with `.venv/bin/python scripts/results_chapter2.py`; it takes ten minutes of one core. These
are the tables of `telic study chapter-2` with its defaults, which makes the figures too.
"""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from telic.completion import PROTOCOLS
from telic.completion.evaluation import evaluate
from telic.simulate import geonames_catalogue, simulate_typists
from telic.study import chapter2_controls
from telic.study.chapter2_report import (
    KNOWLEDGE,
    WHAT_IS_RANKED,
    attention_table,
    controls_table,
    knowledge_table,
    overview_table,
)

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "results-chapter-2.md"
SEEDS = 10
FEW_SEEDS = 3


def markdown(columns: Sequence[str], rows: Sequence[Sequence]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def readme_paragraph(last: tuple[list, list], every: tuple[list, list]) -> str:
    """Say what the defaults of `telic completion fit` gain."""
    found = {
        relevance: [
            next(
                (row[columns.index("static")], row[columns.index("adaqac-online")])
                for row in rows
                if row[:4] == [relevance, "careful", 10, "own"]
            )
            for columns, rows in (last, every)
        ]
        for relevance in ("personal-s", "mpc")
    }
    (static, gain), (static_every, gain_every) = found["personal-s"]
    _, (static_popular, gain_popular) = found["mpc"]
    return textwrap.fill(
        f"With the defaults, feedback adds {gain} points of MRR to {static} at the last "
        f"keystroke and {gain_every} to {static_every} over all keystrokes on simulated typists. "
        "Their lists were made by popularity alone, so that feedback also tells which of a user's "
        "own queries the lists left out; a gain of that kind does not come again once your box "
        "shows the completer's lists. Where the relevance is popularity too, feedback adds "
        f"{gain_popular} to {static_popular}: little. What it adds with your users, `telic "
        "completion evaluate` says.",
        100, break_on_hyphens=False,
    )  # fmt: skip


def main():
    tell = Console(stderr=True).print
    catalogue = geonames_catalogue()
    replay = chapter2_controls.simulated_replay(catalogue, simulate_typists(catalogue, seed=0))
    results = evaluate(replay, protocols=tuple(PROTOCOLS.values()), progress=tell)
    controls = chapter2_controls.controls(catalogue, seeds=SEEDS, progress=tell)
    knowledge = chapter2_controls.knowledge(catalogue, seeds=FEW_SEEDS, progress=tell)
    curve = chapter2_controls.attention_curve(catalogue, seeds=FEW_SEEDS, progress=tell)
    last, every = (overview_table(results, prefixes) for prefixes in ("last", "all"))
    parts = [
        "# Chapter 2 on simulated typists",
        "Written by `scripts/results_chapter2.py`; do not edit. **The people are simulated** "
        "(`docs/data-card-typists.md`): 200 typists with 150 compositions each over the world's "
        "places. MRR in percent; changes against the static order of the same relevance in points; "
        "paired t-test over users, a star marks p < 0.05. Both protocols are explained in "
        "`telic.completion.adaqac.Protocol`; `paper` trains on the union of candidates and "
        "submitted query, and tests on the candidates alone. `telic study chapter-2` makes these "
        "tables with its defaults.",
        WHAT_IS_RANKED,
        "## At the last keystroke",
        markdown(*last),
        "## At every keystroke",
        markdown(*every),
        "## Controls",
        "Each log is compared with its dwell twin: the same lists, positions and queries, dwell "
        f"times permuted within each user. adaQAC-UnP (MPC, last keystroke, without the gate), "
        f"{SEEDS} seeds, 95 % intervals over seeds. Where nobody looks at the lists the difference "
        "must vanish; where everybody reads and dwells in proportion (planted) it must not.",
        markdown(*controls_table(controls)),
        "## Lists by a system that knows more",
        f"{KNOWLEDGE} Means over {FEW_SEEDS} seeds.",
        markdown(*knowledge_table(knowledge)),
        "## The gain over attention",
        "Calibrated typists with the share of lists they look at swept; points of MRR, mean over "
        f"{FEW_SEEDS} seeds ± standard error.",
        markdown(*attention_table(curve)),
    ]
    OUT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    readme = ROOT / "README.md"
    text, said = re.subn(
        r"With the defaults, .*?(?=\n\n)", readme_paragraph(last, every),
        readme.read_text(encoding="utf-8"), flags=re.S,
    )  # fmt: skip
    if said != 1:
        raise ValueError("README.md holds no paragraph that begins 'With the defaults, '.")
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
