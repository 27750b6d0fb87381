"""Write docs/results-chapter-7.md: chapter 7's tables on the simulator and on real networks.

Run it with `TELIC_DATA=… .venv/bin/python scripts/results_chapter7.py`; it takes five minutes.
"""

from pathlib import Path

from rich.console import Console

from telic.simulate.microblog import TQQ_USERS
from telic.study import chapter7

OUT = Path(__file__).parent.parent / "docs" / "results-chapter-7.md"


def main():
    page, _ = chapter7.report(users=TQQ_USERS, samples=3, progress=Console(stderr=True).print)
    title, rest = page.markdown().split("\n\n", 1)
    written = "Written by `scripts/results_chapter7.py`; do not edit."
    OUT.write_text(f"{title}\n\n{written} {rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
