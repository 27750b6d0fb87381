"""What a page is made of, without its numbers: to compare a small run with the page in docs."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "measured"


def outline(page: str) -> set[tuple[str, str]]:
    """Headings, captions of tables and figures, and how paragraphs begin; digits left out."""
    found = set()
    for block in re.split(r"\n\n+", page):
        kind = "text"
        if block.startswith("#"):
            kind = "heading"
        elif block.startswith("!["):
            kind, block = "figure", block.partition("](")[0]
        elif block.startswith("|"):
            continue
        elif block.startswith("*"):
            kind = "caption"
        words = re.sub(r"[^a-z ]", " ", block.lower()).split()
        found.add((kind, " ".join(words[:4])))
    return found


def left_out(study: str, page: str) -> set[tuple[str, str]]:
    """Return what the page in docs has and this one has not."""
    written = (DOCS / f"results-{study}.md").read_text(encoding="utf-8")
    return outline(written) - outline(page) - {("text", "written by make page")}
