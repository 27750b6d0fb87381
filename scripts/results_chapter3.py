"""Write docs/results-chapter-3.md: chapter 3 on simulated phones and on UniMobile's real pairs.

Run it with `TELIC_DATA=… .venv/bin/python scripts/results_chapter3.py`; a quarter of an hour.
"""

import os
from pathlib import Path

from rich.console import Console

from telic.data.pairs import read_pairs
from telic.simulate import geonames_catalogue
from telic.study.chapter3_report import chapter3_study

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "results-chapter-3.md"


def main():
    data = Path(os.environ.get("TELIC_DATA", ROOT.parent / "shared" / "data"))
    page, _ = chapter3_study(
        geonames_catalogue(), pairs=read_pairs(data / "qac" / "unimobile_query_app_pairs.parquet"),
        progress=Console(stderr=True).print,
    )  # fmt: skip
    title, rest = page.markdown().split("\n\n", 1)
    written = (
        "Written by `scripts/results_chapter3.py`; do not edit. These are the tables of "
        "`telic study chapter-3 --pairs unimobile_query_app_pairs.parquet` with its defaults, "
        "which makes the figures too."
    )
    OUT.write_text(f"{title}\n\n{written} {rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
