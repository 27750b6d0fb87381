"""The page of data contracts names the columns that the schemas have."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from telic.data import contracts

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "data-contracts.md"


def section(number):
    return re.split(r"(?m)^## \d+\. ", PAGE.read_text(encoding="utf-8"))[number]


def type_of(field):
    """The field's type as the page writes it."""
    words = {"item: ": "", "[us, tz=UTC]": "", ": float": ": float32", "double": "float64"}
    text = str(field.type)
    for arrow, page in words.items():
        text = text.replace(arrow, page)
    return text + ", null" * field.nullable


@pytest.mark.parametrize(
    ("number", "schema"), [(1, contracts.COMPOSITIONS), (2, contracts.QUERIES)]
)
def test_a_table_of_columns_is_the_schema(number, schema):
    rows = re.findall(r"(?m)^\| `(\w+)` \| ([^|]*) \|", section(number))
    assert rows == [(field.name, type_of(field)) for field in schema]


def test_the_hospital_log_has_the_columns_of_its_schemas():
    lists = re.findall(r"(?m)^\| `(\w+)\.parquet`[^|]*\| ([^|]*)\|", section(3))
    assert {name: re.findall(r"`(\w+)`", columns) for name, columns in lists} == {
        name: getattr(contracts, name.upper()).names
        for name in ("accesses", "diagnoses", "providers", "access_diagnoses", "names")
    }


def test_a_type_is_written_as_on_the_page():
    assert type_of(pa.field("x", contracts.INSTALLED_APP, nullable=False)) == (
        "struct<app: string, daily_opens: float32>"
    )
