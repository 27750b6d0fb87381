"""Write docs/results-chapter-4.md: figures 4.1 and 4.2 as tables.

Run it with `TELIC_DATA=… .venv/bin/python scripts/results_chapter4.py`; it takes about 15 minutes.
"""

from pathlib import Path

from rich.console import Console

from telic.study import chapter4

OUT = Path(__file__).parent.parent / "docs" / "results-chapter-4.md"


def main():
    page, _ = chapter4.chapter4_study(progress=Console(stderr=True).print)
    title, rest = page.markdown().split("\n\n", 1)
    written = "Written by `scripts/results_chapter4.py`; do not edit."
    OUT.write_text(f"{title}\n\n{written} {rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
