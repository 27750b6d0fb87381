"""Edge lists read and written: CSV, SNAP, multilayer and temporal files; KDD Cup 2012 track 1."""

import csv
import gzip
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from telic.data import atomic_path
from telic.data.csv_files import (
    check_quotes,
    csv_table,
    ending_of,
    is_compressed,
    separator_of,
    unreadable,
)
from telic.data.tables import no_such_file
from telic.errors import InputError
from telic.hin.links import MAX_STRENGTH
from telic.hin.network import Network, network_from_arrays
from telic.hin.network_files import link_table
from telic.hin.schema import LinkType, Rule, Schema, is_type_name

_GROWING = Rule("at_least")
_TITLES = {
    "src": "source",
    "from": "source",
    "fromnodeid": "source",
    "from_node": "source",
    "source_id": "source",
    "follower": "source",
    "dst": "target",
    "to": "target",
    "tonodeid": "target",
    "to_node": "target",
    "target_id": "target",
    "followee": "target",
    "layer": "link",
    "weight": "strength",
    "timestamp": "time",
    "ts": "time",
    "datetime": "time",
    "date": "time",
    "unixts": "time",
}
"""Other tools' names for the columns."""
_SINCE = 100_000_000
"""Whole numbers that are all at least this large are taken for times (seconds since 1970)."""
_NO_TEXT = (".xlsx", ".xls", ".ods", ".parquet", ".zip")
"""Endings of files that hold no lines."""
_TORN = OSError, EOFError, zlib.error
"""What a file raises that is torn, compressed or not."""


def read_edge_list(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    directed: bool = True,
    duplicates: str = "raise",
    node_type: str = "user",
) -> Network:
    """Read links from a text file, plain or ``.gz``: CSV, SNAP, multilayer, or temporal.

    Parameters
    ----------
    path : path
        Lines that start with ``#`` are comments, up to the first that does not. Blanks around cells
        do not count.
    columns : sequence of str, optional
        What the columns are: ``source``, ``target`` and, if there, ``link`` (or layer),
        ``strength`` and ``time``; others are ignored. Default: the first line, if it names a source
        ("source", "src", "from", …) and a target; otherwise SNAP's ``source target [strength]``.
        Multilayer files are often ``("link", "source", "target", "strength")``, temporal ones
        ``("source", "target", "time")``: where there is a time and no strength, a link's strength
        is how often it occurs.
    header : bool, optional
        Whether the first line holds names instead of a link. Default: it is found out, and where
        that cannot be, InputError says so.
    delimiter : str, optional
        Default: in ``.csv`` files the comma, semicolon or tab of the first line, in ``.tsv`` files
        the tab, blanks elsewhere.
    directed : bool
        False: every line is a link both ways.
    duplicates : {"raise", "sum"}
        What to do with a link that occurs twice: ``sum`` adds the strengths, or counts the lines
        where there are none.
    node_type : str
        All nodes are of this type, with no attributes.

    Raises
    ------
    InputError
        Naming the line that cannot be read, or what is not clear about the columns.
    """
    path = Path(path)
    if not path.is_file():
        raise no_such_file(path)
    if ending_of(path) in _NO_TEXT:
        raise InputError(
            f"{path}: its ending {ending_of(path)!r} is of no text file. Save it as CSV, or give a "
            "folder of tables, a description (.json) or GraphML."
        )
    if delimiter is None and ending_of(path) in (".csv", ".tsv"):
        delimiter = separator_of(path, comment="#")
    lines = list(_lines(path, delimiter))
    names, lines = _columns_of(path, lines, columns, header)
    if not lines:
        raise InputError(f"{path}: holds no link. Expected lines such as 'source target'.")
    rows: dict[str, list[list[str]]] = {}
    for number, words in lines:
        if len(words) < len(names):
            raise InputError(f"{path}: line {number} has {len(words)} of {len(names)} columns.")
        row = dict(zip(names, words, strict=False))
        if not (row["source"] and row["target"]):
            raise InputError(f"{path}: line {number} lacks the id of its source or target.")
        kind = row.get("link", "link")
        if not is_type_name(kind):
            raise InputError(
                f"{path}: line {number}: {kind!r} cannot be a link type's name, which also names a "
                "file. Expected a text without '/' that does not begin with '.'."
            )
        rows.setdefault(kind, []).append(
            [row["source"], row["target"], row.get("strength", "1"), str(number)]
        )
    weighted = "strength" in names
    # Lines with a time are events: what repeats is counted.
    if not weighted and "time" in names:
        duplicates = "sum"
    links, types = {}, []
    for name, found in sorted(rows.items()):
        if not directed:
            found += [[t, s, *others] for s, t, *others in found if s != t]
        source, target, strength, numbers = (list(column) for column in zip(*found, strict=True))
        again = len(set(zip(source, target, strict=True))) < len(source)
        if again and duplicates == "raise":
            raise _repeated(path, zip(source, target, strict=True), numbers)
        counted = weighted or "time" in names or (duplicates == "sum" and again)
        itself = any(map(str.__eq__, source, target))
        types.append(LinkType(name, node_type, node_type, _GROWING if counted else None, itself))
        links[name] = [source, target]
        if counted:
            values = [_strength(s, path, n) for s, n in zip(strength, numbers, strict=True)]
            links[name].append(values)
    ids = sorted({x for ends in links.values() for x in (*ends[0], *ends[1])})
    if all(_is_integer(x) for x in ids):
        ids = sorted({int(x) for x in ids})
        for ends in links.values():
            ends[0], ends[1] = [int(x) for x in ends[0]], [int(x) for x in ends[1]]
    schema = Schema({node_type: {}}, tuple(types))
    nodes = {node_type: {"id": pa.array(ids, None if ids else pa.int64())}}
    return network_from_arrays(schema, nodes, links, duplicates=duplicates)


_Lines = list[tuple[int, list[str]]]


def _columns_of(
    path: Path, lines: _Lines, columns: Sequence[str] | None, header: bool | None
) -> tuple[list[str], _Lines]:
    """Return the columns' names, and the lines that are links."""
    first = lines[0][1] if lines else []
    titles = [_TITLES.get(word.lower(), word.lower()) for word in first]
    named = "source" in titles and "target" in titles and header is not False
    if columns is not None:
        names = [_TITLES.get(name.lower(), name.lower()) for name in columns]
    elif named:
        names = titles
    else:
        names = ["source", "target", "strength"][: len(first)]
    if not {"source", "target"} <= set(names) and lines:
        raise InputError(
            f"{path}: columns {[*names]} lack 'source' or 'target'. Say what each column is, "
            "in their order and whatever their names (on the command line --columns source,target)."
        )
    for name in ("source", "target", "link", "strength"):
        if names.count(name) > 1:
            raise InputError(
                f"{path}: two columns are the {name!r}. Say what each column is, in their order, "
                "and call other ones otherwise (on the command line --columns source,target,other)."
            )
    if named or header:
        lines = lines[1:]
    elif header is None and lines and _looks_like_names(names, lines):
        if columns is None or _is_ambiguous(names, lines):
            raise InputError(
                f"{path}: line {lines[0][0]} ({', '.join(first)}) may be the columns' names. Say "
                "what the columns are and whether the first line names them (on the command line "
                "--columns source,target --header, or --no-header)."
            )
        lines = lines[1:]
    if columns is None and not named:
        _check_unnamed(path, lines)
    return names, lines


def _ends(names: Sequence[str], words: list[str]) -> list[str]:
    row = dict(zip(names, words, strict=False))
    return [row.get("source", ""), row.get("target", "")]


def _looks_like_names(names: Sequence[str], lines: _Lines) -> bool:
    """Say whether the first line is of another kind than the rest, or about nobody else."""
    first = _ends(names, lines[0][1])
    if any(_is_integer(x) for x in first):
        return False
    return not set(first) & {x for _, words in lines[1:] for x in _ends(names, words)}


def _is_ambiguous(names: Sequence[str], lines: _Lines) -> bool:
    """Say whether the first line could be a link too: it has a number for a strength, or ids that
    are texts like those of other lines.
    """
    row = dict(zip(names, lines[0][1], strict=False))
    if "strength" in row:
        return _whole(row["strength"]) is not None
    rest = [x for _, words in lines[1:] for x in _ends(names, words)]
    return not rest or not all(_is_integer(x) for x in rest)


def _check_unnamed(path: Path, lines: _Lines) -> None:
    """Raise InputError if the third of unnamed columns is hardly a strength, or there are more."""
    widths = {len(words) for _, words in lines}
    if len(lines) and min(widths) > 3:
        raise InputError(
            f"{path}: lines have {min(widths)} columns. Say what they are (columns, such as "
            "link,source,target,strength or source,target,strength,time)."
        )
    third = [words[2] for _, words in lines if len(words) > 2]
    if not third or len(third) < len(lines) or not all(_is_integer(x) for x in third):
        return
    values = [int(x) for x in third]
    pairs = [(words[0], words[1]) for _, words in lines]
    rising = len(lines) > 2 and values == sorted(values) and len(set(pairs)) < len(pairs)
    if min(values) >= _SINCE or (rising and len(set(values)) > 1):
        raise InputError(
            f"{path}: the third column looks like times ({values[0]} … {values[-1]}), not "
            "strengths. Say what the columns are (columns): source,target,time counts how often a "
            "link occurs, source,target,strength takes them as they are."
        )


def _lines(path: Path, delimiter: str | None) -> Any:
    opened = gzip.open if is_compressed(path) else open
    try:
        if delimiter:
            check_quotes(path, delimiter)
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=delimiter) if delimiter else map(str.split, stream)
            begun = False
            for number, words in enumerate(rows, 1):
                marked = bool(words) and words[0].startswith("#")
                if marked and begun and not delimiter:
                    raise InputError(
                        f"{path}: line {number} begins with '#' after the first link. Delete it if "
                        "it is a comment; ids may begin so in CSV."
                    )
                if words and (begun or not marked):
                    begun = True
                    yield number, [word.strip() for word in words]
    except (*_TORN, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from None


def _is_integer(text: str) -> bool:
    """Say whether a text is the way an integer of 64 bits is written: "007" is not 7."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 19 and str(int(text)) == text


def _repeated(path: Path, links: Iterable[tuple[str, str]], numbers: list[str]) -> InputError:
    first: dict[tuple[str, str], str] = {}
    again = next(
        {number, first[link]}
        for link, number in zip(links, numbers, strict=True)
        if first.setdefault(link, number) != number
    )
    before, line = sorted(again, key=int)  # of two directions the later line may come first
    return InputError(
        f"{path}: line {line} repeats the link of line {before}. Add the strengths up into one "
        "line, or let them be added up: duplicates='sum', on the command line --duplicates sum."
    )


def _whole(text: str) -> int | None:
    """Return the whole number that a text says, as 3, 3.0 or 1e2; None if it says none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def _strength(text: str, path: Path, line: str) -> int:
    value = _whole(text)
    if value is not None and 1 <= value <= MAX_STRENGTH:
        return value
    raise InputError(
        f"{path}: line {line}: strength is {text!r}, expected a positive integer up to "
        f"{MAX_STRENGTH}. Drop the line or correct its strength."
    )


def write_edge_list(network: Network, path: str | Path) -> None:
    """Write the links of a network with one node type as CSV: link, source, target, strength.

    Attributes, and users without links, are not in such a file; `read_edge_list` reads it back.
    Links without strengths have 1, and ids that are all texts of whole numbers become numbers.

    Raises
    ------
    InputError
        If there are several node types, whose ids could not be told apart, or no link; or if an id
        or a link type is empty or has blanks around it, which are not read back.
    """
    if len(network.nodes) > 1:
        raise InputError(
            f"an edge list holds one node type, the network has {list(network.nodes)}. Write a "
            "folder or GraphML, or project it first."
        )
    (ids,) = (table.column("id").to_pylist() for table in network.nodes.values())
    for text in (*network.links, *ids):
        if isinstance(text, str) and (text != text.strip() or not text):
            what = "has blanks around it" if text else "is an empty name"
            raise InputError(
                f"{text!r} {what}, which an edge list does not keep. Write a folder or GraphML, or "
                "rename it."
            )
    if not any(len(links) for links in network.links.values()):
        raise InputError("an edge list is of links, and the network has none. Write a folder.")
    parts = []
    for name in network.links:
        table = link_table(network, network.schema.link(name))
        if "strength" not in table.column_names:
            ones = pa.repeat(pa.scalar(1, pa.int32()), len(table))
            table = table.append_column("strength", ones)
        parts.append(table.add_column(0, "link", pa.repeat(name, len(table))))
    with atomic_path(path) as temporary:
        pyarrow.csv.write_csv(pa.concat_tables(parts), temporary)


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
    if not path.is_file():
        raise no_such_file(path)
    parse = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)
    return csv_table(path, names=names, parse_options=parse)
