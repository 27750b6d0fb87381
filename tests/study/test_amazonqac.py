"""AmazonQAC's real columns, on rows that are made up: reading in pieces, and the study's rules."""

import datetime as dt
import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.held import hold

from telic import cli
from telic.completion.signals import STATIC
from telic.completion.signals.gates import Worth
from telic.errors import InputError
from telic.study import amazonqac
from telic.study.amazonqac.rows import Source
from telic.study.steps import Steps

BEGIN = dt.datetime(2023, 9, 1)


def stamp(minutes, sep="T"):
    return (BEGIN + dt.timedelta(minutes=minutes)).isoformat(sep=sep, timespec="seconds")


def train_row(number, session, term, minutes, prefixes=None):
    if prefixes is None:
        prefixes = [term[: i + 1] for i in range(len(term))]
    return {
        "query_id": str(number),
        "session_id": session,
        "prefixes": prefixes,
        "first_prefix_typed_time": stamp(minutes) + ".293Z",
        "final_search_term": term,
        "search_time": stamp(minutes),
        "popularity": 9,
    }


def to_test(number, session, term, prefix, past=()):
    at = 60 * 24 * 40 + number
    return {
        "query_id": number,
        "session_id": session,
        "past_search_terms": [[t, stamp(at - ago, " ")] for t, ago in past],
        "prefix": prefix,
        "prefix_typed_time": stamp(at) + ".256Z",
        "final_search_term": term,
        "search_time": stamp(at, " "),
    }


def follow_ups(users=240, seed=0):
    """Who searched for a thing searches for its case next; which things, chance says."""
    rng = np.random.default_rng(seed)
    things = [f"{a}{b} thing" for a in "bdfgkmprst" for b in ("ola", "ira")]
    rows = []
    for user in range(users):
        for visit in range(4):
            at = rng.integers(0, 60 * 24 * 30)
            thing = things[rng.integers(len(things))]
            rows.append(train_row(len(rows), f"s{user}", thing, int(at)))
            term = f"case for {thing}" if rng.random() < 0.8 else f"case for {things[visit]}"
            rows.append(train_row(len(rows), f"s{user}", term, int(at) + 2))
    tests = []
    for number in range(120):
        thing = things[rng.integers(len(things))]
        past = [(thing, 3), ("bola thing", 60 * 24)]
        tests.append(to_test(number, f"t{number}", f"case for {thing}", "case", past))
    return rows, tests


def write(folder, rows, tests, size=500):
    for split, content in (("train", rows), ("test", tests)):
        (folder / split).mkdir(parents=True)
        for i in range(0, len(content), size):
            table = pa.Table.from_pylist(content[i : i + size])
            pq.write_table(table, folder / split / f"part-{i:05}.parquet", row_group_size=100)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("qac"), *follow_ups())


def test_rows_are_read_as_they_are_published(tmp_path):
    rows = [
        train_row(1, "a", "sink rack", 5, prefixes=["s", "sinc", "sin", "rack"]),
        train_row(2, "b", "tea", 6, prefixes=[]),
    ]
    tests = [
        to_test(0, "z", "transformers legacy", "transf", [("ultra magnus", 7), ("robots", 9)]),
        to_test(1, "z", "robots", "roo", [("ultra magnus", 8), ("robots", 10)]),
    ]
    table = Source(write(tmp_path, rows, tests), share=1.0).read(None, lambda step: None)
    found = table.to_pylist()
    assert [(r["session"], r["term"], r["tested"]) for r in found] == [
        ("a", "sink rack", False),
        ("b", "tea", False),
        ("z", "transformers legacy", True),
        ("z", "robots", True),
        ("z", "robots", False),
        ("z", "ultra magnus", False),
    ]
    assert found[0]["typed"] in ("s", "sin")  # "sinc" and "rack" do not begin the term
    assert [r["typed"] for r in found[1:]] == [None, "transf", "roo", None, None]
    first = int(BEGIN.replace(tzinfo=dt.UTC).timestamp() * 1e6)
    assert found[0]["at"] == first + 5 * 60 * 10**6
    past = found[-1]["at"]
    assert past == first + (60 * 24 * 40 - 7) * 60 * 10**6  # once, though two rows have it


def test_prefixes_may_be_lists_in_json_and_what_is_missing_among_them_is_none(tmp_path):
    """A text is no list of its letters."""
    rows = [train_row(1, "a", "tea", 5, prefixes='["te", null, "x"]')]
    tests = [to_test(0, "z", "tea", "t", [("robots", 7)])]
    table = Source(write(tmp_path, rows, tests), share=1.0).read(None, lambda step: None)
    assert table["typed"].to_pylist()[0] == "te"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"session_id": None}, "row 2: column 'session_id' is empty"),
        ({"final_search_term": None}, "row 2: column 'final_search_term' is empty"),
        ({"prefix_typed_time": None}, "row 2: column 'prefix_typed_time' is empty"),
        ({"past_search_terms": [["tea"]]}, "row 2: column 'past_search_terms' holds"),
        ({"past_search_terms": [["tea", None]]}, "row 2: column 'past_search_terms' holds"),
    ],
)
def test_rows_to_test_on_that_lack_something_are_named(tmp_path, change, message):
    whole = to_test(0, "z", "tea", "t", [("robots", 7)])
    folder = write(tmp_path, [train_row(1, "a", "tea", 5)], [whole, whole | change])
    with pytest.raises(InputError, match=message):
        Source(folder, share=1.0).read(None, lambda step: None)


def test_a_share_keeps_whole_sessions(folder):
    whole = Source(folder, share=1.0).read(None, lambda step: None).filter
    table = Source(folder, share=1.0).read(None, lambda step: None)
    part = Source(folder, share=0.3).read(None, lambda step: None)
    sessions = {s for s in part["session"].to_pylist() if s.startswith("s")}
    assert 0.2 < len(sessions) / 240 < 0.4
    kept = [s in sessions or s.startswith("t") for s in table["session"].to_pylist()]
    assert part.num_rows == whole(pa.array(kept)).num_rows


def test_what_was_read_is_kept_and_not_read_again(folder, tmp_path, monkeypatch):
    first = Source(folder, share=1.0).read(tmp_path, lambda step: None)
    assert len(list(tmp_path.glob("part-*.parquet"))) == 4
    monkeypatch.setattr(Source, "_train_rows", lambda self, file: 1 / 0)
    assert Source(folder, share=1.0).read(tmp_path, lambda step: None).equals(first)
    with pytest.raises(ZeroDivisionError):
        Source(folder, share=0.5).read(tmp_path, lambda step: None)


def test_what_an_earlier_telic_kept_as_plain_text_is_taken(folder, tmp_path):
    source = Source(folder, share=1.0)
    read = source.read(tmp_path, lambda text: None)
    for kept in tmp_path.glob("part-*.parquet"):
        plain = pq.read_table(kept)
        for name in ("session", "term"):
            place = plain.column_names.index(name)
            plain = plain.set_column(place, name, plain[name].cast(pa.string()))
        pq.write_table(plain, kept)
    assert source.read(tmp_path, lambda text: None).to_pylist() == read.to_pylist()


def test_the_session_is_found_to_tell_what_follows(folder, tmp_path):
    report = amazonqac.study(Steps(), data=folder, share=1.0)
    rows = {row[""]: row for row in report.tables[0].records()}
    assert rows["+ session"]["MRR@10"] > rows["static"]["MRR@10"] + 0.3
    difference, low, high = rows["all that help"]["MRR − static, points"]
    assert 0.3 < low < difference < high
    assert rows["published: prefix tree (completr)"]["S@10"] == 0.285


def test_what_is_tested_counts_for_nobody(folder):
    told = []
    table = Source(folder, share=1.0).read(None, told.append)
    assert told[0] == f"train, file 1 of {len(list((folder / 'train').iterdir()))}"
    assert told[-1].startswith("test, ")
    told.clear()
    whole = amazonqac.evaluated(table, min_sessions=1, seed=0, steps=Steps(progress=told.append))
    assert told[0] == "gathering what to learn from"
    assert told[-1] == "testing"
    log, typed, tested = amazonqac._as_log(table)
    assert (log.count[tested] == 0).all()
    assert (log.count[~tested] == 1).all()
    assert whole["tested"] == tested.sum() == 120
    assert typed[tested].tolist() == [4] * 120
    learned = [(row["group"], row["gate"].split(":")[0]) for row in whole["signals"]]
    found = [*(whole | {"signals": learned}).items()]
    hold(Path(__file__).parent / "pages" / "amazonqac.jsonl", found, digits=3)


def test_the_later_part_is_chosen_by_and_other_sessions_are_learned_from(folder, monkeypatch):
    walked, given = [], []

    def walk(searches, events, places, **options):
        walked.append((searches, events))
        return iter(())

    def stop(searches, model, chosen_by, prefixes):
        given.extend(prefixes)
        raise KeyboardInterrupt

    monkeypatch.setattr(amazonqac, "walk", walk)
    monkeypatch.setattr(amazonqac, "learn", MagicMock())
    monkeypatch.setattr(amazonqac, "learn_pairs", stop)
    monkeypatch.setattr(amazonqac, "Lessons", MagicMock())
    table = Source(folder, share=1.0).read(None, lambda step: None)
    with pytest.raises(KeyboardInterrupt):
        amazonqac.evaluated(table, min_sessions=1, seed=3, steps=Steps())
    (searches, learned), (_, chosen) = walked
    log, typed, tested = amazonqac._as_log(table)
    at = np.sort(log.at[(typed > 0) & ~tested])
    half, fifth = at[len(at) // 2], at[len(at) * 4 // 5]
    assert half <= searches.at[learned].min() < searches.at[learned].max() < fifth
    assert searches.at[chosen].min() >= fifth
    sessions = [set(searches.user[events].tolist()) for events in (learned, chosen)]
    assert not sessions[0] & sessions[1]
    assert 0.3 < len(learned) / ((half <= at) & (at < fifth)).sum() < 0.7
    assert 0.3 < len(chosen) / (at >= fifth).sum() < 0.7
    paired, places = given
    assert paired.tolist() == learned.tolist()  # so few that all are learned from
    assert places.tolist() == typed[np.argsort(log.at, kind="stable")][learned].tolist()


def test_weights_of_pairs_are_used_where_their_gate_is_open(folder, monkeypatch):
    table, results = Source(folder, share=1.0).read(None, lambda step: None), []
    for certain in (True, False):
        worth = Worth(0.1, certain, "on: told")
        monkeypatch.setattr(amazonqac, "learn_pairs", lambda *_, worth=worth: (STATIC, worth))
        found = amazonqac.evaluated(table, min_sessions=1, seed=3, steps=Steps())
        assert found["signals"][-1]["gate"] == "on: told"
        mrr = {row["model"]: row["mrr"] for row in found["results"]}
        assert mrr["+ session, pairs"] == mrr["static"]
        results.append(mrr["all that help"] == mrr["static"])
    assert results == [True, False]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda typed, tested: (typed, tested & False), "to learn from, or none to test on"),
        (lambda typed, tested: (typed * 0, tested), "to learn from, or none to test on"),
        (
            lambda typed, tested: (typed * (np.arange(len(typed)) < 2), tested),
            "too few submissions to split. Raise --share",
        ),
    ],
)
def test_too_few_submissions_are_said(changed, said, folder, monkeypatch):
    as_log = amazonqac._as_log

    def some(table):
        log, typed, tested = as_log(table)
        return log, *changed(typed, tested)

    monkeypatch.setattr(amazonqac, "_as_log", some)
    table = Source(folder, share=1.0).read(None, lambda step: None)
    with pytest.raises(InputError, match=said):
        amazonqac.evaluated(table, min_sessions=1, seed=0, steps=Steps())


def test_the_command_says_what_is_wrong_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["telic", "study", "amazonqac", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err.strip().splitlines()[-1]

    assert "name the folder of AmazonQAC" in run()[1]
    (tmp_path / "empty").mkdir()
    assert "train: holds no .parquet file" in run("--data", tmp_path / "empty")[1]
    rows, tests = follow_ups(users=4)
    renamed = [{**row, "term": row["final_search_term"]} for row in rows]
    for row in renamed:
        del row["final_search_term"]
    write(tmp_path / "renamed", renamed, tests)
    code, said = run("--data", tmp_path / "renamed", "--share", "1")
    assert code == 2
    assert "has no column 'final_search_term'" in said
    write(tmp_path / "times", [row | {"search_time": "soon"} for row in rows], tests)
    assert "column 'search_time'" in run("--data", tmp_path / "times", "--share", "1")[1]
    assert "share is 2.0" in run("--data", tmp_path / "times", "--share", "2")[1]
    assert not list(tmp_path.glob("*.html"))


def test_json_of_the_command_has_the_tables(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["study", "amazonqac", "--data", folder, "--share", "1", "--work", "w", "--json"]
    monkeypatch.setattr(sys, "argv", ["telic", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert tables[0]["title"].startswith("The test split")
    assert list((tmp_path / "w").glob("part-*.parquet"))


def test_a_share_must_be_a_share(tmp_path):
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="share is"):
            Source(tmp_path, share=share)
