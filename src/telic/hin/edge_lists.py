"""Networks from text files: edge lists, SNAP and multilayer files, KDD Cup 2012 track 1."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from telic.errors import InputError
from telic.hin.network import Network, network_from_arrays
from telic.hin.schema import LinkType, Rule, Schema

_GROWING = Rule("at_least")
_TITLES = {"src": "source", "dst": "target", "layer": "link", "weight": "strength"}
"""Other tools' names for the columns."""


def read_edge_list(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    directed: bool = True,
    duplicates: str = "raise",
    node_type: str = "user",
) -> Network:
    """Read links from a text file, plain or ``.gz``: CSV, SNAP, or multilayer.

    Parameters
    ----------
    path : path
        Lines that start with ``#`` are comments.
    columns : sequence of str, optional
        What the columns are: ``source``, ``target`` and, if there, ``link`` (or layer) and
        ``strength``; others are ignored. Default: the first line names them if it contains
        "source" or "src" (then also "dst", "weight"); otherwise SNAP's
        ``source target [strength]``. Multilayer files are often
        ``("link", "source", "target", "strength")``.
    delimiter : str, optional
        Default: a comma in ``.csv`` files, blanks elsewhere.
    directed : bool
        False: every line is a link both ways.
    duplicates : {"raise", "sum"}
    node_type : str
        All nodes are of this type, with no attributes.

    Raises
    ------
    InputError
        Naming the line that cannot be read.
    """
    path = Path(path)
    if delimiter is None and ".csv" in path.suffixes:
        delimiter = ","
    rows: dict[str, list[list[str]]] = {}
    for number, words in _lines(path, delimiter):
        if columns is None:
            titles = [_TITLES.get(word.lower(), word.lower()) for word in words]
            named = "source" in titles
            columns = titles if named else ("source", "target", "strength")[: len(words)]
            if named:
                continue
        if len(words) < len(columns):
            raise InputError(f"{path}: line {number} has {len(words)} of {len(columns)} columns.")
        row = dict(zip(columns, words, strict=False))
        if "source" not in row or "target" not in row:
            raise InputError(f"{path}: columns {[*columns]} lack 'source' or 'target'.")
        if not (row["source"] and row["target"]):
            raise InputError(f"{path}: line {number} lacks the id of its source or target.")
        link = str(row.get("link", row.get("layer", "link")))
        rows.setdefault(link, []).append(
            [row["source"], row["target"], row.get("strength", "1"), str(number)]
        )
    weighted = columns is not None and "strength" in columns
    links, types = {}, []
    for name, found in sorted(rows.items()):
        source, target, strength, lines = (list(column) for column in zip(*found, strict=True))
        if not directed:
            both = [s != t for s, t in zip(source, target, strict=True)]
            back = [t for t, keep in zip(target, both, strict=True) if keep]
            source, target = (
                source + back,
                target + [s for s, keep in zip(source, both, strict=True) if keep],
            )
            strength += [x for x, keep in zip(strength, both, strict=True) if keep]
        types.append(LinkType(name, node_type, node_type, _GROWING if weighted else None, True))
        links[name] = [source, target]
        if weighted:
            links[name].append([_integer(s, path, n) for s, n in zip(strength, lines * 2)])  # noqa: B905
    ids = sorted({x for ends in links.values() for x in (*ends[0], *ends[1])})
    if all(_is_integer(x) for x in ids):
        ids = sorted({int(x) for x in ids})
        for ends in links.values():
            ends[0], ends[1] = [int(x) for x in ends[0]], [int(x) for x in ends[1]]
    schema = Schema({node_type: {}}, tuple(types))
    nodes = {node_type: {"id": pa.array(ids, None if ids else pa.int64())}}
    return network_from_arrays(schema, nodes, links, duplicates=duplicates)


def _lines(path: Path, delimiter: str | None) -> Any:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=delimiter) if delimiter else map(str.split, stream)
            for number, words in enumerate(rows, 1):
                if words and not words[0].startswith("#"):
                    yield number, [word.strip() for word in words]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error}).") from None


def _is_integer(text: str) -> bool:
    """Say whether a text is the way an integer of 64 bits is written: "007" is not 7."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 19 and str(int(text)) == text


def _integer(text: str, path: Path, line: str) -> int:
    try:
        value = float(text)
        if value.is_integer() and abs(value) < 2**63:
            return int(value)
    except ValueError:
        pass
    raise InputError(f"{path}: line {line}: strength is {text!r}, expected a positive integer.")


def read_kdd_cup_2012(folder: str | Path) -> Network:
    """Read KDD Cup 2012 track 1: ``user_profile.txt``, ``user_sns.txt``, ``user_action.txt``.

    Gender, year of birth and number of tags become exact attributes, the tweet count a growing
    one. An action file's row gives up to three links: mention, retweet, comment.
    """
    folder = Path(folder)
    profile = _tabbed(folder / "user_profile.txt", ["id", "yob", "gender", "tweets", "tag_ids"])
    tag_ids = profile.column("tag_ids").cast(pa.string())
    tags = pc.add(pc.count_substring(tag_ids, ";"), 1)
    tags = pc.if_else(pc.equal(tag_ids, "0"), 0, tags)
    # Some years of birth are no numbers: they are kept as the texts they are.
    nodes = {
        "id": profile.column("id"),
        "gender": profile.column("gender"),
        "yob": profile.column("yob").cast(pa.string()),
        "tags": tags,
        "tweets": profile.column("tweets"),
    }
    follow = _tabbed(folder / "user_sns.txt", ["source", "target"])
    action = _tabbed(
        folder / "user_action.txt", ["source", "target", "mention", "retweet", "comment"]
    )
    links: dict[str, Any] = {"follow": [follow.column("source"), follow.column("target")]}
    types = [LinkType("follow", "user", "user")]
    for name in ("mention", "retweet", "comment"):
        part = action.filter(pc.greater(action.column(name), 0))
        links[name] = [part.column("source"), part.column("target"), part.column(name)]
        types.append(LinkType(name, "user", "user", _GROWING, True))
    exact = Rule("exact")
    attributes = {"gender": exact, "yob": exact, "tags": exact, "tweets": _GROWING}
    schema = Schema({"user": attributes}, tuple(types))
    return network_from_arrays(schema, {"user": nodes}, links)


def _tabbed(path: Path, names: list[str]) -> pa.Table:
    try:
        return pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
        )
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read ({error}).") from None
