"""The picture of the packages shows every file in its room, and none that there is not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "telic"
PAGE = (ROOT / "docs" / "explain" / "architecture.md").read_text(encoding="utf-8")
PICTURE = PAGE.partition("## Packages")[2].partition("\n## ")[0]
ROOMS = dict(re.findall(r"^ {6}(\w+)/(.*?)(?=^ {6}\w|^ {4}\w|\Z)", PICTURE, re.M | re.S))


def files_of(room):
    """The files of a room: what is in its folder and below."""
    return {p.stem for p in (SOURCE / room).rglob("*.py") if not p.stem.startswith("__")}


def test_every_room_is_in_the_picture():
    assert set(ROOMS) == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"study"}))
def test_every_file_is_in_its_room(room):
    missing = {stem for stem in files_of(room) if not re.search(rf"\b{stem}\b", ROOMS[room])}
    assert not missing


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_every_file_in_the_picture_is_there(room):
    assert not set(re.findall(r"\b(\w+)\.py\b", ROOMS[room])) - files_of(room)


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"study"}))
def test_every_folder_is_in_the_picture_of_its_room(room):
    folders = {p.parent.name for p in (SOURCE / room).glob("*/__init__.py")}
    assert folders <= set(re.findall(r"^ {8,10}(\w+)/", ROOMS[room], re.M))


LIMIT = re.compile(r"^(MAX_\w+|MOST)\b.* = ", re.M)


def test_every_limit_is_named_in_a_test():
    """What is just taken and just refused is looked at by the constant's name."""
    tests = {
        word
        for path in (ROOT / "tests").glob("*/**/test_*.py")
        for word in re.findall(r"\b[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
    limits = {
        name: path.name
        for room in ("choice", "completion", "data", "serve")
        for path in (SOURCE / room).rglob("*.py")
        for name in LIMIT.findall(path.read_text(encoding="utf-8"))
    }
    assert len(limits) > 10
    assert not {name: file for name, file in limits.items() if name not in tests}
