import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import Replay
from telic.completion.learning import replayed_log
from telic.completion.learning.relevance import Relevance
from telic.data import composition_rows, compositions
from telic.data.composition_rows import MAX_APPS, MAX_DAILY_OPENS, MAX_LIST, Unfolded
from telic.data.compositions import read_compositions
from telic.data.contracts import COMPOSITIONS, MAX_TEXT, OPTIONAL
from telic.data.tables import one_chunk
from telic.errors import InputError

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema([f.with_nullable(True) for f in COMPOSITIONS if f.name not in OPTIONAL[1:]])


def at(seconds):
    return NOW + dt.timedelta(seconds=seconds)


def row(**change):
    good = {
        "user": "u",
        "composition": "c",
        "query": "facetime",
        "submitted_at": at(9),
        "selected": 2,
        "keystrokes": [
            {"at": at(1), "prefix": "f", "suggestions": ["facebook"]},
            {"at": at(2), "prefix": "fa", "suggestions": ["facebook", "facetime"]},
        ],
    }
    return good | change


def stroke(second, prefix, suggestions=()):
    return {"at": at(second), "prefix": prefix, "suggestions": list(suggestions)}


def write(path, rows, schema=SCHEMA):
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def test_white_space_of_queries_and_lists_is_tidied(tmp_path):
    shown = ["ice  tea", "face", "ice\ntea"]
    typed = row(query=" ice\x00\ttea", selected=None, keystrokes=[stroke(1, "i ", shown)])
    log = read_compositions(write(tmp_path / "log.parquet", [typed]))
    assert sorted(log.phrases) == ["face", "ice tea"]
    assert log.phrases[log.query[0]] == "ice tea"
    assert [log.phrases[p] for p in log.shown] == ["ice tea", "face", "ice tea"]


def test_a_log_is_unfolded_in_order_of_submission(tmp_path):
    later = row(composition="d", user="v", submitted_at=at(99), selected=None, query="🙂 日本")
    log = read_compositions(write(tmp_path / "log.parquet", [later, row()]))
    assert log.ids.to_pylist() == ["c", "d"]
    assert [log.users[u] for u in log.user] == ["u", "v"]
    assert [log.phrases[q] for q in log.query] == ["facetime", "🙂 日本"]
    assert log.selected.tolist() == [2, 0]
    shown = [log.phrases[q] for q in log.shown]
    assert shown == ["facebook", "facebook", "facetime"] * 2
    assert log.list_start.tolist() == [0, 1, 3, 4, 6]
    assert [log.prefixes[p] for p in log.prefix] == ["f", "fa"] * 2
    assert np.diff(log.at)[0] == 1_000_000
    assert log.installed_start.tolist() == log.opened_start.tolist() == [0, 0, 0]
    assert not log.simulated


BROKEN = {
    "user": (row(user=None), "'user': is null"),
    "empty user": (row(user=""), "'user': is empty"),
    "query": (row(query="  "), "'query': is empty"),
    "long query": (row(query="x" * 10_000_000), f"longer than {MAX_TEXT}"),
    "no keystroke": (row(keystrokes=[], selected=None), "at least one keystroke"),
    "empty first prefix": (
        row(keystrokes=[stroke(1, ""), stroke(2, "f")], selected=None),
        "empty at the first keystroke",
    ),
    "times out of order": (
        row(keystrokes=[stroke(2, "f"), stroke(1, "fa")], selected=None),
        "earlier than the keystroke before",
    ),
    "submitted too early": (row(submitted_at=at(1)), "earlier than the last keystroke"),
    "selected beyond the list": (row(selected=3), "not a position in the last list"),
    "null suggestion": (
        row(keystrokes=[stroke(1, "f", [None])], selected=None),
        "holds a null",
    ),
    "empty suggestion": (
        row(keystrokes=[stroke(1, "f", ["f", ""])], selected=None),
        "an empty text",
    ),
    "nothing to match": (row(query="´"), "white space and diacritics"),
    "null prefix": (row(keystrokes=[stroke(1, None)], selected=None), "is null"),
    "null keystrokes": (row(keystrokes=None, selected=None), "'keystrokes': is null"),
    "selected below the list": (row(selected=0), "not a position in the last list"),
    "long prefix": (
        row(keystrokes=[stroke(1, "f" * (MAX_TEXT + 1))], selected=None),
        f"longer than {MAX_TEXT}",
    ),
    "long list": (
        row(keystrokes=[stroke(1, "f", ["f"] * (MAX_LIST + 1))], selected=None),
        f"more than {MAX_LIST} suggestions",
    ),
    "long suggestion": (
        row(keystrokes=[stroke(1, "f", ["f" * (MAX_TEXT + 1)])], selected=None),
        f"over {MAX_TEXT} characters",
    ),
}


@pytest.mark.parametrize(("broken", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_row_is_named_or_skipped_and_counted(tmp_path, broken, message):
    path = write(tmp_path / "log.parquet", [row(), broken | {"composition": "bad"}])
    with pytest.raises(InputError, match=rf"log\.parquet: row 2: column .*{message}"):
        read_compositions(path)
    log = read_compositions(path, on_bad_row="skip")
    assert log.ids.to_pylist() == ["c"]
    assert list(log.skipped.values()) == [1]


def test_a_tenant_with_a_colon_is_named(tmp_path):
    rows = [row(tenant="a"), row(tenant="a:b", composition="d"), row(tenant=None, composition="e")]
    path = write(tmp_path / "log.parquet", rows, COMPOSITIONS)
    with pytest.raises(
        InputError, match=r"log\.parquet: row 2: column 'tenant': 'a:b' has a colon"
    ):
        read_compositions(path)
    assert read_compositions(path, on_bad_row="skip").ids.to_pylist() == ["c", "e"]


@st.composite
def logs(draw):
    """Rows that keep the contract, at its edges too: equal times, no lists, no apps."""
    rows = []
    texts = st.sampled_from(["facebook", "facetime", "鮭", "São Paulo"])
    for i in range(draw(st.integers(1, 4))):
        now, keystrokes = draw(st.integers(0, 3)), []
        openings = st.builds(
            lambda app, before, now=now: {"app": app, "at": at(now - before)},
            st.sampled_from(["maps", "mail"]),
            st.integers(0, 2),
        )
        apps = draw(
            st.dictionaries(st.sampled_from(["maps", "mail", "news"]), st.floats(0, 9, width=32))
        )
        opened = draw(st.none() | st.lists(openings, max_size=3))
        for _ in range(draw(st.integers(1, 3))):
            shown = draw(st.none() | st.lists(texts, max_size=3))
            keystrokes.append({"at": at(now), "prefix": draw(texts), "suggestions": shown})
            now += draw(st.integers(0, 1))
        shown = keystrokes[-1]["suggestions"] or [None]
        rows.append(
            {
                "user": draw(st.sampled_from("vua")),
                "composition": f"c{i}",
                "query": draw(texts),
                "submitted_at": draw(st.sampled_from([keystrokes[-1]["at"], at(9)])),
                "selected": draw(st.none() | st.integers(1, len(shown))) if shown[0] else None,
                "keystrokes": keystrokes,
                "installed": [{"app": app, "daily_opens": opens} for app, opens in apps.items()],
                "opened": opened,
            }
        )
    return rows


def backwards(kind):
    """The same type with the fields of its structs in the opposite order, and one field more."""
    if pa.types.is_list(kind):
        return pa.list_(backwards(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, backwards(field.type)) for field in list(kind)[::-1]]
        return pa.struct([pa.field("more", pa.string()), *fields])
    return kind


def rows_of(log):
    """The rows again, from the flat arrays alone."""
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

    def time(micros):
        return start + dt.timedelta(microseconds=int(micros))

    def part(starts, i):
        return range(starts[i], starts[i + 1])

    return [
        {
            "user": log.users[log.user[c]],
            "composition": log.ids[c].as_py(),
            "query": log.phrases[log.query[c]],
            "submitted_at": time(log.submitted_at[c]),
            "selected": int(log.selected[c]) or None,
            "keystrokes": [
                {
                    "at": time(log.at[k]),
                    "prefix": log.prefixes[log.prefix[k]],
                    "suggestions": [log.phrases[log.shown[s]] for s in part(log.list_start, k)],
                }
                for k in part(log.keystroke_start, c)
            ],
            "installed": [
                {"app": log.apps[log.installed_app[i]], "daily_opens": log.daily_opens[i]}
                for i in part(log.installed_start, c)
            ],
            "opened": [
                {"app": log.apps[log.opened_app[o]], "at": time(log.opened_at[o])}
                for o in part(log.opened_start, c)
            ],
        }
        for c in range(len(log))
    ]


@settings(max_examples=60, derandomize=True)
@given(logs())
def test_the_flat_arrays_hold_what_the_rows_held(rows):
    schema = pa.schema([pa.field(field.name, backwards(field.type)) for field in COMPOSITIONS])
    log = read_compositions(pa.Table.from_pylist(rows, schema=schema))
    expected = [
        row
        | {
            "keystrokes": [k | {"suggestions": k["suggestions"] or []} for k in row["keystrokes"]],
            "opened": sorted(
                sorted(row["opened"] or [], key=lambda entry: entry["app"]),
                key=lambda entry: entry["at"],
                reverse=True,
            ),
        }
        for row in sorted(rows, key=lambda row: row["submitted_at"])
    ]
    assert rows_of(log) == expected
    assert log.users == sorted(set(log.users))


def test_a_list_of_the_longest_length_is_taken():
    longest = row(keystrokes=[stroke(1, "f", ["f"] * MAX_LIST)], selected=None)
    assert len(read_compositions(pa.Table.from_pylist([longest], schema=SCHEMA)).shown) == MAX_LIST


def test_a_log_without_any_keystroke_is_named():
    with pytest.raises(InputError, match="row 1: column 'keystrokes': is empty"):
        read_compositions(pa.Table.from_pylist([row(keystrokes=[], selected=None)], schema=SCHEMA))


def test_a_field_that_is_missing_inside_a_list_is_named():
    strokes = [{"at": at(1), "prefix": "f"}]
    with pytest.raises(InputError, match=r"'keystrokes' .*field suggestions is missing"):
        read_compositions(pa.Table.from_pylist([row(keystrokes=strokes)]))


def test_nanoseconds_are_cut():
    table = pa.Table.from_pylist([row()], schema=SCHEMA)
    fine = pa.array([int(at(9).timestamp() * 1e9) + 999], pa.timestamp("ns", "UTC"))
    log = read_compositions(table.set_column(3, "submitted_at", fine))
    assert log.submitted_at[0] == int(at(9).timestamp() * 1e6)


def test_a_repeated_id_is_named(tmp_path):
    path = write(tmp_path / "log.parquet", [row(), row()])
    with pytest.raises(InputError, match="row 2: column 'composition': 'c' repeats"):
        read_compositions(path)


def test_a_backspace_to_the_empty_prefix_is_legal(tmp_path):
    strokes = [stroke(1, "f", ["facebook"]), stroke(2, ""), stroke(3, "g")]
    log = read_compositions(
        write(tmp_path / "log.parquet", [row(keystrokes=strokes, selected=None)])
    )
    assert [log.prefixes[p] for p in log.prefix] == ["f", "", "g"]


def test_what_is_not_a_log_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_compositions(tmp_path / "none.parquet")
    for address in ("s3://bucket/log.parquet", Path("s3://bucket/log.parquet")):
        with pytest.raises(InputError, match=r"^s3://bucket/log\.parquet: is an address"):
            read_compositions(address)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match=r"broken\.parquet: not a readable Parquet file"):
        read_compositions(broken)
    with pytest.raises(InputError, match="column 'keystrokes' is missing"):
        read_compositions(
            pa.table(
                {name: ["x"] for name in ("user", "composition", "query")} | {"submitted_at": [NOW]}
            )
        )
    wrong = pa.Table.from_pylist([row() | {"submitted_at": "yesterday"}])
    table = pa.Table.from_pylist([row()], schema=SCHEMA)
    with pytest.raises(InputError, match="column 'user' comes more than once"):
        read_compositions(table.append_column("user", table["user"]))
    with pytest.raises(InputError, match="column 'submitted_at' is string, expected timestamp"):
        read_compositions(wrong)
    for name, value, kind in (
        ("keystrokes", "typed", "list"),
        ("keystrokes", ["t"], "list"),
        ("user", 1.5, "string"),
    ):
        wrong = pa.Table.from_pylist([row() | {name: value}])
        with pytest.raises(InputError, match=f"column '{name}' is .*, expected {kind}"):
            read_compositions(wrong)
    with pytest.raises(InputError, match="holds no composition"):
        read_compositions(SCHEMA.empty_table())
    with pytest.raises(InputError, match="no row keeps the contract"):
        read_compositions(write(tmp_path / "all.parquet", [row(user=None)]), on_bad_row="skip")
    with pytest.raises(InputError, match="on_bad_row"):
        read_compositions(write(tmp_path / "all.parquet", [row()]), on_bad_row="ignore")


def test_other_widths_of_the_same_types_are_taken(tmp_path):
    table = pa.Table.from_pylist([row()], schema=SCHEMA)
    nanoseconds = table["submitted_at"].cast(pa.timestamp("ns"))  # no zone: UTC
    table = table.set_column(3, "submitted_at", nanoseconds)
    table = table.set_column(0, "user", pa.array(["u"], pa.large_string()).dictionary_encode())
    table = table.append_column("more", pa.array([1]))
    log = read_compositions(table)
    assert log.users == ["u"]
    assert log.submitted_at[0] == int(at(9).timestamp() * 1e6)


def test_simulated_logs_say_so(tmp_path):
    table = pa.Table.from_pylist([row()], schema=SCHEMA)
    table = table.replace_schema_metadata({"telic.simulated": "true"})
    assert read_compositions(table).simulated


def with_apps(**apps):
    fields = {field.name: field for field in COMPOSITIONS}
    schema = pa.schema([*SCHEMA, fields["installed"], fields["opened"]])
    return pa.Table.from_pylist([row(**apps), row(composition="d")], schema=schema)


def test_apps_are_read_latest_opening_first():
    opened = [{"app": app, "at": at(-60 * m)} for app, m in (("maps", 9), ("mail", 1), ("maps", 5))]
    installed = [{"app": "mail", "daily_opens": 2.0}, {"app": "maps", "daily_opens": 0.0}]
    log = read_compositions(with_apps(installed=installed, opened=opened))
    assert [log.apps[a] for a in log.installed_app] == ["mail", "maps"]
    assert log.daily_opens.tolist() == [2.0, 0.0]
    assert [log.apps[a] for a in log.opened_app] == ["mail", "maps", "maps"]
    assert (np.diff(log.opened_at) < 0).all()
    assert log.installed_start.tolist() == [0, 2, 2]
    assert log.opened_start.tolist() == [0, 3, 3]


@pytest.mark.parametrize(
    ("apps", "message"),
    [
        ({"installed": [{"app": "a", "daily_opens": -1.0}]}, "daily_opens.*not a number from 0"),
        ({"installed": [{"app": "a", "daily_opens": 1e9}]}, "installed.daily_opens"),
        (
            {"installed": [{"app": str(i), "daily_opens": 1.0} for i in range(MAX_APPS + 1)]},
            "column 'installed': has more than 2000 entries",
        ),
        (
            {"opened": [{"app": "a", "at": at(-60)}] * (MAX_APPS + 1)},
            "column 'opened': has more than 2000 entries",
        ),
        ({"installed": [{"app": "", "daily_opens": 1.0}]}, "installed.app.*null or empty"),
        ({"installed": [{"app": "a", "daily_opens": 1.0}] * 2}, "lists an app twice"),
        ({"opened": [{"app": "a", "at": at(5)}]}, "opened.at.*later than the first keystroke"),
        (
            {"keystrokes": [stroke(1, "f", ["f"] * 2)], "opened": [{"app": "a", "at": at(2)}]},
            "opened.at.*later than the first keystroke",
        ),
        ({"opened": [{"app": "a", "at": None}]}, "opened.at.*is null"),
    ],
)
def test_bad_apps_are_named(apps, message):
    with pytest.raises(InputError, match=message):
        read_compositions(with_apps(**apps))
    assert len(read_compositions(with_apps(**apps), on_bad_row="skip")) == 1


def test_what_is_as_long_and_as_often_as_may_be_is_taken():
    text, openings = "f" * MAX_TEXT, [{"app": "a", "daily_opens": MAX_DAILY_OPENS}]
    longest = {"query": text, "keystrokes": [stroke(1, text, [text])], "selected": 1}
    log = read_compositions(with_apps(**longest, installed=openings))
    assert log.prefixes[log.prefix[0]] == log.phrases[log.query[0]] == text
    assert log.daily_opens.tolist() == [MAX_DAILY_OPENS]
    more = [{"app": "a", "daily_opens": MAX_DAILY_OPENS + 1}]
    with pytest.raises(InputError, match="not a number from 0 to 100000"):
        read_compositions(with_apps(installed=more))


def test_reading_holds_the_lists_once_and_lets_them_go():
    """The texts of the lists are nearly all of a log; each further copy would double its memory."""
    lists = [stroke(second, "f", ["a suggestion of some length"] * 50) for second in range(1, 21)]
    rows = [row(composition=f"c{i}", keystrokes=lists, selected=None) for i in range(200)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert one_chunk(table["keystrokes"]).buffers()[1].address == (
        table["keystrokes"].chunk(0).buffers()[1].address
    )
    parts = Unfolded(table)
    held = [value for value in vars(parts).values() if isinstance(value, pa.Array)]
    assert sum(value.nbytes for value in held) < table.nbytes / 50


def as_texts(log):
    """What a log says, composition by composition, however its texts are numbered."""
    said = []
    for c in range(len(log)):
        strokes = range(log.keystroke_start[c], log.keystroke_start[c + 1])
        lists = [
            [log.phrases[t] for t in log.shown[log.list_start[k] : log.list_start[k + 1]]]
            for k in strokes
        ]
        installed = range(log.installed_start[c], log.installed_start[c + 1])
        opened = range(log.opened_start[c], log.opened_start[c + 1])
        said.append(
            (
                *(log.users[log.user[c]], log.ids[c].as_py(), log.phrases[log.query[c]]),
                *(int(log.submitted_at[c]), int(log.selected[c])),
                [(int(log.at[k]), log.prefixes[log.prefix[k]]) for k in strokes],
                lists,
                [(log.apps[log.installed_app[i]], float(log.daily_opens[i])) for i in installed],
                [(log.apps[log.opened_app[i]], int(log.opened_at[i])) for i in opened],
                {role: values[place[c]] for role, (values, place) in log.groups.items()},
            )
        )
    return said


def some_rows(count, seed):
    """Rows out of order, with lists, apps and groups of all sizes; some break the contract."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        begin = NOW + dt.timedelta(minutes=int(rng.integers(0, 50)))
        query = f"tea {rng.integers(9)}"
        keystrokes = [
            {
                "at": begin + dt.timedelta(seconds=k),
                "prefix": query[: k + 1],
                "suggestions": [f"tea {i}" for i in range(rng.integers(0, 4))],
            }
            for k in range(rng.integers(1, 4))
        ]
        apps = [f"app {i}" for i in rng.permutation(5)[: rng.integers(0, 5)]]
        rows.append(
            {
                "user": f"u{rng.integers(4)}" if rng.random() > 0.1 else "",
                "composition": f"c{number}" if rng.random() > 0.1 else "c0",
                "query": query,
                "submitted_at": begin + dt.timedelta(seconds=9),
                "selected": None,
                "keystrokes": keystrokes,
                "installed": [{"app": app, "daily_opens": 1.5} for app in apps],
                "opened": [
                    {"app": app, "at": begin - dt.timedelta(seconds=i // 2)}
                    for i, app in enumerate(apps)
                ],
                "tenant": [None, "shop", "news"][rng.integers(3)],
            }
        )
    return pa.Table.from_pylist(rows, schema=COMPOSITIONS)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("piece", [1, 7, 39, 40, 41])
def test_a_log_that_is_read_in_pieces_is_the_same(piece, stored, mapped, tmp_path, monkeypatch):
    table = some_rows(40, seed=piece)
    whole = read_compositions(table, on_bad_row="skip")
    source = table
    if stored:
        pq.write_table(table, source := tmp_path / "log.parquet")
    monkeypatch.setattr(compositions, "PIECE", piece)
    monkeypatch.setattr(composition_rows, "RANGES", 5)
    monkeypatch.setattr(compositions, "AT_ONCE", 6)
    monkeypatch.setattr(replayed_log, "RANGES", 5)
    folder = tmp_path if mapped else None
    pieces = read_compositions(source, on_bad_row="skip", folder=folder)
    assert as_texts(pieces) == as_texts(whole)
    long = pieces.at, pieces.prefix, pieces.list_start, pieces.shown, pieces.daily_opens
    assert [isinstance(array.base, np.memmap) for array in long] == [mapped] * 5
    pieces.let_go()
    assert as_texts(pieces) == as_texts(whole)
    assert {file.name for file in tmp_path.iterdir()} <= {"log.parquet"}
    nobodys = [None], np.zeros(len(whole), np.int32)
    for lists in ("own", "shown"):  # a replay numbers what was shown anew
        # No replay mixes tenants.
        logs = [replace(log, groups=log.groups | {"tenant": nobodys}) for log in (whole, pieces)]
        made = [Replay(log, min_compositions=4, min_users=1).over(lists) for log in logs]
        moments = [one.moments(Relevance.named("mpc"), one.every_keystroke(0, 1)) for one in made]
        np.testing.assert_array_equal(*(one.candidates for one in moments))
        features = [one.features(found) for one, found in zip(made, moments, strict=True)]
        np.testing.assert_array_equal(*features)
        assert features[0].any()
        # What was shown is held in memory only where it is ranked, or lies there anyway.
        assert ("shown" in vars(made[1])) == (lists == "shown" or not mapped)
    assert pieces.skipped == whole.skipped
    assert sum(whole.skipped.values()) > 2
    assert [array.dtype for array in vars(pieces).values() if isinstance(array, np.ndarray)] == [
        array.dtype for array in vars(whole).values() if isinstance(array, np.ndarray)
    ]


def test_a_bad_row_of_a_later_piece_has_its_number(monkeypatch):
    monkeypatch.setattr(compositions, "PIECE", 2)
    rows = some_rows(40, seed=1).to_pylist()
    fine = [row for row in rows if row["user"] and row["composition"] != "c0"][:6]
    again = [*fine[:5], fine[0]]
    said = f"row 6: column 'composition': '{fine[0]['composition']}' repeats"
    with pytest.raises(InputError, match=said):
        read_compositions(pa.Table.from_pylist(again, schema=COMPOSITIONS))
