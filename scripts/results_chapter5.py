"""Write docs/results-chapter-5.md: Figure 5.1's comparison in numbers.

Run it with `TELIC_DATA=… .venv/bin/python scripts/results_chapter5.py [folder]`; it takes a quarter
of an hour, and goes on from where it was if the folder for finished runs is given.
"""

import sys
from pathlib import Path

from rich.console import Console

from telic.study.chapter5_report import chapter5_study

OUT = Path(__file__).parent.parent / "docs" / "results-chapter-5.md"


def main():
    work = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    page, _ = chapter5_study(work=work, progress=Console(stderr=True).print)
    title, rest = page.markdown().split("\n\n", 1)
    written = "Written by `scripts/results_chapter5.py`; do not edit."
    OUT.write_text(f"{title}\n\n{written} {rest}", encoding="utf-8")
    page.write(OUT.with_suffix(".html").name if work is None else work / "report.html")


if __name__ == "__main__":
    main()
