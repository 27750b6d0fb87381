"""Records keep UBI 1.3.0, and what is recorded is read back as the compositions that it was."""

import json
from datetime import UTC, datetime, timedelta, timezone

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.data import read_compositions
from telic.data.ubi import Arm, keystroke_record, of_tenant, read_ubi, submission_record
from telic.errors import InputError

TEXT = {"type": "string"}
ID = {"type": "string", "maxLength": 100}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}
ACTION = {
    "oneOf": [
        {
            "enum": [
                *("click_through", "add_to_cart", "click", "watch"),
                *("view", "purchase", "impression"),
            ]
        },
        ID,
    ]
}
QUERY_ID = {"oneOf": [{"type": "string", "format": "uuid"}, ID]}
# What version 1.3.0 of UBI's schemas asks of the fields that are used here, word for word: a name
# that is in the list and a text matches both of two, of which one may match.
QUERY = {
    "type": "object",
    "required": ["user_query"],
    "additionalProperties": False,
    "properties": {
        "application": ID,
        "query_id": QUERY_ID,
        "client_id": ID,
        "user_query": TEXT,
        "timestamp": TIME,
        "object_id_field": ID,
        "query_response_hit_ids": {"type": "array", "items": TEXT},
        "query_attributes": {"type": "object"},
    },
}
EVENT = {
    "type": "object",
    "required": ["action_name", "timestamp"],
    "additionalProperties": False,
    "properties": {
        "application": ID,
        "action_name": ACTION,
        "query_id": QUERY_ID,
        "client_id": ID,
        "timestamp": TIME,
        "message_type": ID,
        "message": {"type": "string", "maxLength": 1024},
        "event_attributes": {
            "type": "object",
            "required": ["position"],
            "properties": {
                "object": {
                    "type": "object",
                    "required": ["object_id"],
                    "properties": {
                        "object_id": {"type": "string", "maxLength": 256},
                        "object_id_field": ID,
                    },
                },
                "position": {
                    "type": "object",
                    "required": ["ordinal"],
                    "properties": {"ordinal": {"type": "integer"}},
                },
            },
        },
    },
}
START = datetime(2026, 1, 1, tzinfo=UTC)


def typed(composition, number, prefix, *, user="ada", shown=("tea", "ten"), **more):
    return keystroke_record(
        composition=composition,
        number=number,
        user=user,
        prefix=prefix,
        at=START + timedelta(seconds=number),
        shown=list(shown),
        **more,
    )


def sent(composition, number, query="tea", *, user="ada", selected=None, after=60):
    return submission_record(
        composition=composition,
        number=number,
        user=user,
        query=query,
        at=START + timedelta(seconds=after),
        selected=selected,
    )


@pytest.fixture
def folder(tmp_path):
    def write(queries, events):
        for name, records in (("queries", queries), ("events", events)):
            text = "".join(json.dumps(record) + "\n" for record in records)
            (tmp_path / f"{name}-1.jsonl").write_text(text)
        return tmp_path

    return write


def test_times_are_written_in_utc():
    there = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    record = keystroke_record(composition="c", number=1, user="ada", prefix="t", at=there, shown=[])
    assert record["timestamp"] == "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("selected", [None, 2])
def test_records_keep_the_published_schema(selected):
    jsonschema_rs.validate(QUERY, typed("c", 1, "t"), validate_formats=True)
    jsonschema_rs.validate(EVENT, sent("c", 1, selected=selected), validate_formats=True)
    assert sent("c", 1, selected=selected)["action_name"] == ("select" if selected else "submit")
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(QUERY, typed("c", 1, "t", user="u" * 101))


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@settings(max_examples=60, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ada", "bob"]),
            st.lists(st.tuples(words, st.lists(words, max_size=3)), min_size=1, max_size=4),
            words,
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_was_typed_and_shown_comes_back(tmp_path_factory, compositions):
    folder = tmp_path_factory.mktemp("ubi")
    queries, events, expected = [], [], []
    for c, (user, strokes, query, whether) in enumerate(compositions):
        for number, (prefix, shown) in enumerate(strokes, 1):
            queries.append(typed(f"c{c}", number, prefix, user=user, shown=shown))
        last = strokes[-1][1]
        place = len(last) if whether and last else None
        query = last[place - 1] if place else query
        events.append(sent(f"c{c}", len(strokes), query, user=user, selected=place, after=60 + c))
        expected.append((user, f"c{c}", query, place, [tuple(stroke) for stroke in strokes]))
    for name, records in (("queries", queries[::-1]), ("events", events[::-1])):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}-1.jsonl").write_text(text)
    table, left_out = read_ubi(folder)
    assert left_out == {}
    found = [
        (
            row["user"],
            row["composition"],
            row["query"],
            row["selected"],
            [(stroke["prefix"], stroke["suggestions"]) for stroke in row["keystrokes"]],
        )
        for row in table.to_pylist()
    ]
    assert found == expected
    row = table.to_pylist()[0]
    assert row["submitted_at"] == START + timedelta(seconds=60)
    assert row["keystrokes"][0]["at"] == START + timedelta(seconds=1)


def test_the_table_keeps_contract_1_and_begins_at_the_first_character(folder):
    at = folder(
        [typed("c", 1, ""), typed("c", 2, "t"), typed("c", 3, ""), typed("c", 4, "te")],
        [sent("c", 4, selected=1)],
    )
    table, left_out = read_ubi(at)
    assert left_out == {}
    log = read_compositions(table)
    assert [log.prefixes[p] for p in log.prefix] == ["t", "", "te"]
    assert log.selected.tolist() == [1]


def test_what_cannot_be_used_is_counted_by_its_reason(folder):
    foreign = {"query_id": "x", "user_query": "tea", "timestamp": "2026-01-01T00:00:00Z"}
    at = folder(
        [
            typed("whole", 1, "t"),
            typed("hole", 1, "t"),
            typed("hole", 3, "te"),
            typed("late", 2, "t"),
            typed("blank", 1, ""),
            foreign,
        ],
        [
            sent("whole", 1, after=50),
            sent("whole", 1, after=55),
            sent("hole", 3),
            sent("late", 2),
            sent("blank", 1),
            sent("unknown", 1),
        ],
    )
    with (at / "queries-1.jsonl").open("a") as file:
        file.write('{"query_id": "half')
    table, left_out = read_ubi(at)
    assert table["composition"].to_pylist() == ["whole"]
    assert table["submitted_at"].to_pylist() == [START + timedelta(seconds=50)]
    assert left_out == {
        "half-written lines at a file's end": 1,
        "queries that name no composition": 1,
        "submissions that are repeated": 1,
        "submissions with a keystroke missing": 2,
        "submissions of which nothing was typed": 1,
        "submissions without keystrokes": 1,
    }


def test_what_is_told_twice_counts_once_and_what_lacks_a_part_is_counted(folder):
    parts = "client_id", "user_query", "timestamp"
    at = folder(
        [
            *[typed("whole", 1, "t")] * 2,
            typed("whole", 2, "te"),
            *[typed("of nobody", 1, "t"), typed("of nobody", 2, "te")],
            *(typed(part, 1, "t") for part in parts),
            *(typed(part, 2, "te") | {part: None} for part in parts),
            typed("of a list", 1, "t") | {"query_response_hit_ids": ["tea", None]},
        ],
        [
            sent("whole", 2),
            *(sent(part, 2) for part in parts),
            {key: of for key, of in sent("of nobody", 2).items() if key != "message"},
            sent("of nobody", 2) | {"timestamp": None},
            sent("of nobody", 2) | {"message": " "},
            sent("of a list", 1),
        ],
    )
    table, left_out = read_ubi(at)
    assert [stroke["prefix"] for stroke in table["keystrokes"][0].as_py()] == ["t", "te"]
    assert left_out == {
        "queries that are repeated": 1,
        "submissions without a query or a time": 3,
        "submissions with a keystroke without a user, a text or a time": 4,
    }
    assert read_compositions(at).skipped == left_out
    folder([typed("a", 1, "t")], [sent("a", 1) | {"timestamp": None}])
    with pytest.raises(InputError, match="holds no composition"):
        read_compositions(at)
    folder([], [sent("a", 1)])
    assert read_ubi(at)[1] == {"submissions without keystrokes": 1}


def test_files_are_read_together_and_broken_ones_named(folder):
    at = folder([typed("a", 1, "t")], [sent("a", 1)])
    (at / "queries-2.jsonl").write_text(json.dumps(typed("b", 1, "t")) + "\n")
    (at / "events-2.jsonl").write_text(json.dumps(sent("b", 1)) + "\n")
    assert sorted(read_ubi(at)[0]["composition"].to_pylist()) == ["a", "b"]
    (at / "queries-3.jsonl").write_text("[1\n")
    with pytest.raises(InputError, match=r"queries-3\.jsonl: is not UBI 1\.3\.0 in JSON lines"):
        read_ubi(at)


def test_a_line_that_is_still_being_written_is_left_out_and_a_time_that_is_none_refused(folder):
    at = folder([typed("a", 1, "t")], [sent("a", 1)])
    (at / "queries-2.jsonl").write_text('{"half')
    table, left_out = read_ubi(at)
    assert table["composition"].to_pylist() == ["a"]
    assert left_out == {"half-written lines at a file's end": 1}
    folder([typed("a", 1, "t") | {"timestamp": "noon"}], [sent("a", 1)])
    with pytest.raises(InputError, match="holds a time or text that is none"):
        read_ubi(at)


def test_a_folder_without_submissions_or_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no submission"):
        read_ubi(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_ubi(tmp_path / "x")


def test_arms_and_groups_are_columns_where_somebody_has_them(folder):
    more = [{"tenant": "pub", "arm": Arm("new", 0.25)}, {"tenant": "bar"}, {}]
    names = "abc"
    at = folder(
        [typed(name, 1, "t", **own) for name, own in zip(names, more, strict=True)],
        [sent(name, 1) for name in names],
    )
    table, _ = read_ubi(at)
    assert "network" not in table.column_names
    found = table.select(["composition", "tenant", "arm", "propensity"]).to_pylist()
    none = {"tenant": None, "arm": None, "propensity": None}
    assert found == [
        {"composition": "a", "tenant": "pub", "arm": "new", "propensity": 0.25},
        none | {"composition": "b", "tenant": "bar"},
        none | {"composition": "c"},
    ]
    assert of_tenant(table, "bar", at)["composition"].to_pylist() == ["b"]
    with pytest.raises(InputError, match="no composition of tenant 'inn', but of bar, pub"):
        of_tenant(table, "inn", at)
    with pytest.raises(InputError, match="no composition of tenant 'pub', but of nobody"):
        of_tenant(table.drop_columns("tenant"), "pub", at)
