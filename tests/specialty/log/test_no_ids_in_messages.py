"""Whatever is wrong with a file, messages and notes name rows and columns, never who is in it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.specialty.discovery.result import Discovery, Specialty, read_discovery
from telic.specialty.log.diagnosis_codes import read_code_table
from telic.specialty.log.log_files import read_log
from telic.specialty.log.other_systems import import_log

SECRET = "zq"  # every id holds it, and nothing else does
TABLES = {
    "accesses": [
        ["user", "patient", "encounter", "at"],
        *([f"zqu{i % 3}", f"zqp{i % 4}", f"zqe{i % 4}", "2024-01-05T10:00Z"] for i in range(9)),
    ],
    "diagnoses": [
        ["patient", "encounter", "code"],
        *([f"zqp{i % 4}", f"zqe{i % 4}", f"c{i % 3}"] for i in range(8)),
    ],
    "providers": [["user", "taxonomy"], *([f"zqu{i}", "Urology"] for i in range(3))],
    "access_diagnoses": [
        ["user", "patient", "encounter", "code"],
        *([f"zqu{i % 3}", f"zqp{i % 4}", f"zqe{i % 4}", f"c{i % 3}"] for i in range(4)),
    ],
}
CELLS = st.sampled_from(
    ["", " ", "zqp1", "zqu2", "zq7", "2024-02-31", '"zqe1', "zqe1\nzqu1", "zq\x00", "zqé", "zq;zq"]
)
_change = st.tuples(st.integers(0, 9), st.integers(0, 3), CELLS)
DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("cell"), _change),
        st.tuples(st.just("swap"), _change),
        st.tuples(st.just("cut"), _change),
        st.tuples(st.just("more"), _change),
        st.tuples(st.just("no header"), _change),
        st.tuples(st.just("bytes"), _change),
    ),
    min_size=1,
    max_size=3,
)


def damaged(rows, damage):
    """The CSV file of a table after some accidents."""
    rows, encoding = [list(row) for row in rows], "utf-8"
    for kind, (row, column, cell) in damage:
        here = rows[row % len(rows)]
        if kind == "cell" and here:
            here[column % len(here)] = cell
        elif kind == "swap":
            for one in rows[1:]:
                one.reverse()
        elif kind == "cut":
            del here[column:]
        elif kind == "more":
            here.append(cell)
        elif kind == "no header" and len(rows) > 1:
            del rows[0]
        elif kind == "bytes":
            encoding = ["utf-16", "latin-1", "utf-8-sig"][row % 3]
    return "\n".join(map(",".join, rows)).encode(encoding, errors="replace")


def messages(work):
    """What a user is told."""
    try:
        return work()
    except InputError as error:
        return [str(error)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    (folder / "meta.json").write_text('{"vocabulary": "other"}')
    return folder


@given(st.sampled_from(sorted(TABLES)), DAMAGE, st.sampled_from(["raise", "skip"]))
@settings(max_examples=100, derandomize=True)
def test_a_damaged_log_tells_no_ids(folder, table, damage, on_bad_row):
    for name, rows in TABLES.items():
        (folder / f"{name}.csv").write_bytes(damaged(rows, damage if name == table else []))
    told = messages(lambda: read_log(folder, on_bad_row=on_bad_row).notes)
    assert not any(SECRET in text for text in told), told


@pytest.mark.parametrize("name", ["user", "patient", "encounter", "at"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([["zqu1"]]),
        pa.array([{"zq": "zqu1"}]),
        pa.array([b"zq\xff"]),
        pa.array([1.5]),
        pa.array([2**62]),
        pa.array([True]),
        pa.array([None], pa.string()),
        pa.array(np.array(["2024-01-01"], "datetime64[D]")),
        pa.array([2**60], pa.timestamp("ms", tz="UTC")),
    ],
)
def test_a_column_of_another_type_is_named_and_not_quoted(tmp_path, name, column):
    (tmp_path / "meta.json").write_text('{"vocabulary": "other"}')
    for table, rows in TABLES.items():
        columns = dict(zip(rows[0], [[cell] for cell in rows[1]], strict=True))
        if table == "accesses":
            columns[name] = column
        pq.write_table(pa.table(columns), tmp_path / f"{table}.parquet")
    told = messages(lambda: read_log(tmp_path).notes)
    assert not any(SECRET in text for text in told), told


def test_a_file_without_its_header_is_not_quoted(folder, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("zq1,zq2\nzq3,zq4\n")
    with pytest.raises(InputError, match="it has none of the expected") as said:
        read_code_table(file)
    assert SECRET not in str(said.value)


EXPORTS = {
    "omop": {
        "visit_occurrence": [
            ["visit_occurrence_id", "person_id", "provider_id", "visit_start_date"],
            ["zqe1", "zqp1", "zqu1", "2024-01-05"],
            ["zqe2", "zqp2", "zqu2", "2024-01-05"],
        ],
        "condition_occurrence": [
            ["person_id", "visit_occurrence_id", "provider_id", "condition_source_value"],
            ["zqp1", "zqe1", "zqu1", "C50.911"],
        ],
        "provider": [["provider_id", "specialty_source_value"], ["zqu1", "Oncology"]],
    },
    "mimic3": {
        "chartevents": [["cgid", "subject_id", "hadm_id", "charttime"], *[["zq1"] * 4] * 2],
        "diagnoses_icd": [["subject_id", "hadm_id", "icd9_code"], ["zq1"] * 3],
        "caregivers": [["cgid", "description"], ["zq1", "RN"]],
    },
    "eicu": {
        "careprovider": [
            ["patientunitstayid", "specialty", "careprovidersaveoffset"],
            ["zq1", "Urology", "5"],
        ],
        "diagnosis": [["patientunitstayid", "icd9code"], ["zq1", "592.0"]],
        "patient": [["patientunitstayid", "uniquepid", "hospitalid"], ["zq1", "zqp", "zqh"]],
    },
}


@given(st.data(), st.sampled_from(sorted(EXPORTS)), DAMAGE)
@settings(max_examples=100, derandomize=True)
def test_a_damaged_export_tells_no_ids(tmp_path_factory, data, kind, damage):
    source = tmp_path_factory.mktemp("export")
    table = data.draw(st.sampled_from(sorted(EXPORTS[kind])))
    for name, rows in EXPORTS[kind].items():
        (source / f"{name}.csv").write_bytes(damaged(rows, damage if name == table else []))
    told = messages(lambda: import_log(source, source / "log", kind=kind))
    assert not any(SECRET in text for text in told), told


@pytest.fixture(scope="module")
def log(folder):
    """What the undamaged files hold."""
    for name, rows in TABLES.items():
        (folder / f"{name}.csv").write_bytes(damaged(rows, []))
    return replace(read_log(folder), notes=[])


VALUES = st.sampled_from(["zqu1", ["zqu1"], {"zq": "zqu1"}, [["zqu1"]], 7, None, "", []])
PLACES = st.sampled_from(
    [
        ("log",),
        ("details",),
        ("details", "n_topics"),
        ("specialties",),
        ("specialties", 0),
        ("method",),
        ("specialties", 0, "users"),
        ("specialties", 0, "users", 0),
        ("specialties", 0, "stability"),
        ("specialties", 0, "stability_months"),
        ("specialties", 0, "diagnoses"),
        ("specialties", 0, "diagnoses", 0),
        ("specialties", 0, "diagnoses", 0, "lift"),
        ("specialties", 0, "name"),
    ]
)


@given(PLACES, VALUES, st.integers(0, 400))
@settings(max_examples=100, derandomize=True)
def test_a_damaged_discovery_tells_no_ids(folder, log, place, value, cut):
    found = Specialty("c1", None, None, np.array([0, 1]), [("c1", 2.0)], None, None, None)
    content = Discovery("lda", [found], np.array([0, 0, -1]), {"n_topics": 3}).as_json(log)
    *path, last = place
    inner = content
    for step in path:
        inner = inner[step]
    inner[last] = value
    text = json.dumps(content)
    file = folder / "found.json"
    file.write_text(text[: -cut or None] if cut < 40 else text)

    def read():
        read_discovery(file, log)
        return []

    told = messages(read)
    assert not any(SECRET in one for one in told), told
