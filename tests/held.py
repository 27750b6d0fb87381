"""What is held to a file beside the tests, so that a change that nobody meant is seen.

Where it was meant, ``TELIC_WRITE=1 pytest FILE`` writes the files of a test anew: read their
difference.
"""

import json
import os
import re
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

from telic.report import Report

FIRST_ROWS = 2
"""Rows of a page's table that are held as they are; those below are summed up, column by column."""
WRITE = os.environ.get("TELIC_WRITE")


def hold(file: Path, found: list, *, digits: int = 4) -> None:
    """Compare with the lines of a file: numbers with a fraction, in so many digits."""
    found = [json.loads(_line(each)) for each in found]
    if WRITE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            "".join(f"{_line(_short(each, digits))}\n" for each in found), encoding="utf-8"
        )
    kept = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line, (old, new) in enumerate(zip(kept, found, strict=False), start=1):
        assert _close(new, old, 10.0 ** (1 - digits)), f"{file}:{line}: {old} became {new}"
    assert len(found) == len(kept), f"{file}: {len(kept)} lines became {len(found)}"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda array: array.tolist())


def _short(value, digits):
    if isinstance(value, dict):
        return {key: _short(each, digits) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _close(new, old, rel):
    if isinstance(old, list | dict):
        if type(new) is not type(old) or len(new) != len(old):
            return False
        if isinstance(old, dict):
            return [*new] == [*old] and _close([*new.values()], [*old.values()], rel)
        return all(_close(a, b, rel) for a, b in zip(new, old, strict=True))
    if isinstance(old, float) and isinstance(new, float):
        return new == pytest.approx(old, rel=rel, abs=1e-9, nan_ok=True)
    return type(new) is type(old) and new == old


def column(values) -> list:
    """Sum up values: how many, and what depends on each and on its place.

    That is how many differ and a checksum where they are integers or texts, which do not depend on
    the processor; the mean, the deviation and the mean by place where they are other numbers.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        values = ["" if v is None else v for v in values.to_pylist()]
    array = np.asarray(values).ravel()
    if array.dtype.kind != "f":
        text = "\n".join(map(str, array.tolist()))
        return [len(array), len(set(array.tolist())), crc32(text.encode())]
    place = np.linspace(0, 1, len(array))
    known = np.isfinite(array)
    array, place = array[known], place[known]
    if not array.size:
        return [0]
    return [len(array), float(array.mean()), float(array.std()), float((place * array).mean())]


def columns(found: pa.Table, name: str = "") -> list:
    """Sum up the columns of a table, those that are nested part by part."""
    return [
        part
        for field in found.column_names
        for part in _parts(found[field].combine_chunks(), f"{name}{field}")
    ]


def _parts(values, name):
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    if pa.types.is_list(values.type):
        return [
            [f"{name}, number", *column(values.value_lengths())],
            *_parts(values.flatten(), name),
        ]
    if pa.types.is_struct(values.type):
        parts = zip(values.type, values.flatten(), strict=True)
        return [each for field, part in parts for each in _parts(part, f"{name}.{field.name}")]
    return [[name, *column(values)]]


def _mixed(values) -> list:
    """Sum up a column of a page's table, the numbers with a fraction apart."""
    flat = [one for each in values for one in (each if isinstance(each, list) else [each])]
    parts = ([one for one in flat if isinstance(one, float) == is_float] for is_float in (1, 0))
    return [column(part) for part in parts]


@contextmanager
def drawn():
    """Outline the figures that are added to pages, in place of drawing them."""
    outlines: dict[str, list] = {}

    def figure(page, one, caption):
        outlines[caption] = outline(one)
        page._add_figure("<svg></svg>", caption)

    with patch.object(Report, "figure", figure):
        yield outlines


def page(report: Report, outlines: dict[str, list] | None = None, *, without: tuple = ()) -> list:
    """Take a page apart: headings, paragraphs by the numbers in them, tables.

    Where `outlines` of its figures are given (see `drawn`), these too. Columns that are
    measured in time can be left out.
    """
    found, tables = [], iter(report.tables)
    for block in report.markdown().split("\n\n"):
        if block.startswith("|"):
            table = next(tables)
            names = [*table.columns]
            rows = [
                [value for name, value in zip(names, row, strict=True) if name not in without]
                for row in table.rows
            ]
            found += [["columns", {**table.columns}], *rows[:FIRST_ROWS]]
            found += [["below", *_mixed(one)] for one in zip(*rows[FIRST_ROWS:], strict=True)]
        elif block.startswith("!["):
            caption = block[2:].partition("](")[0]
            found += [["figure", *each] for each in (outlines or {}).get(caption, ())]
        else:
            kind, text = re.match(r"(\W*)(.*)", block, re.S).groups()
            numbers = re.findall(r"\S*\d\S*", text)
            words = [text] if kind.startswith("#") else []  # prose may be said better
            found += [[kind.strip(), *words, *numbers]]
    return found


def outline(figure) -> list:
    """Describe a figure: size, legends, and of each of its axes what stands there and where."""
    found: list = [["size", *map(float, figure.get_size_inches())]]
    found += [["legend", *_texts(legend.get_texts())] for legend in figure.legends]
    for axes in figure.axes:
        found.append(["axes", axes.get_title(), *_texts(axes.texts)])
        for name, axis, (low, high) in (
            ("x", axes.xaxis, axes.get_xlim()),
            ("y", axes.yaxis, axes.get_ylim()),
        ):
            ticks = _texts(axis.get_ticklabels())
            shown = {key: axis.get_tick_params().get(key) for key in ("gridOn", "length")}
            where = [axis.get_label_text(), axis.get_scale(), float(low), float(high)]
            found.append([name, *where, ticks, shown])
        hidden = [name for name, spine in axes.spines.items() if not spine.get_visible()]
        if hidden:
            found.append(["hidden", *hidden])
        if legend := axes.get_legend():
            found.append(["legend", *_texts(legend.get_texts())])
        for line in axes.lines:
            looks = [to_hex(line.get_color()), line.get_linestyle(), line.get_marker()]
            x, y = (column(np.asarray(part, float)) for part in line.get_data(orig=False))
            found.append(["line", *looks, x, y])
        for image in axes.images:
            found.append(["image", column(np.ma.filled(image.get_array().astype(float), -99.0))])
        for one in axes.collections:
            corners = [np.empty((0, 2)), *(path.vertices for path in one.get_paths())]
            values = [] if one.get_array() is None else np.asarray(one.get_array(), float)
            found.append([type(one).__name__, column(np.concatenate(corners)), column(values)])
        for colour, own in groupby(axes.patches, lambda one: to_hex(one.get_facecolor())):
            corners = [one.get_path().transformed(one.get_patch_transform()) for one in own]
            found.append(["patches", colour, column([path.vertices for path in corners])])
    pyplot.close(figure)
    return found


def _texts(labels) -> list[str]:
    return [label.get_text() for label in labels if label.get_text()]
