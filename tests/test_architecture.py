"""The picture of the packages shows every file that there is, and none that there is not."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = PAGE.partition("## Packages")[2].partition("\n## ")[0]
FILES = {
    path.stem
    for path in (ROOT / "src" / "telic").rglob("*.py")
    if not path.stem.startswith("__") and "study" not in path.parts
}


def test_every_file_is_in_the_picture():
    missing = {stem for stem in FILES if not re.search(rf"\b{stem}\b", PICTURE)}
    assert not missing


def test_every_file_in_the_picture_is_there():
    everything = {path.stem for path in (ROOT / "src").rglob("*.py")}
    gone = set(re.findall(r"\b(\w+)\.py\b", PICTURE)) - everything
    assert not gone
