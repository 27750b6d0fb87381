"""A search box from the files that people have; what is counted, merged and kept back."""

import datetime as dt
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import PAPER, Completer, PrefixIndex, Replay, fit_files, fold
from telic.completion.engine.payloads import Records
from telic.completion.fit import static_box
from telic.completion.fit.from_files import _records_by_text
from telic.completion.fit.lost_below_k_users import KEPT_BACK
from telic.completion.fit.merged_phrases import UNSHOWN, Gathered, HeldOut
from telic.completion.fit.sources import as_catalogue
from telic.completion.fit.static_box import _relevance
from telic.completion.learning.relevance import WINDOW
from telic.data.compositions import read_compositions
from telic.data.contracts import SIMULATED
from telic.data.phrases import PhraseList
from telic.data.queries import QueryLog
from telic.errors import InputError, TelicError
from telic.scale import Local

SECOND = 1_000_000


def texts(suggestions):
    return [suggestion.text for suggestion in suggestions]


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def listed(rows, **contexts):
    phrases, weights = zip(*rows, strict=True)
    columns = {name: pa.array(values, pa.string()) for name, values in contexts.items()}
    n = len(rows)
    return PhraseList(
        "list",
        pa.array(phrases),
        np.array(weights, float),
        None,
        None,
        columns,
        np.arange(1, n + 1),
    )


def logged(rows):
    """A query log of (query, second, user)."""
    queries = list(dict.fromkeys(q for q, _, _ in rows))
    users = list(dict.fromkeys(u for _, _, u in rows))
    return QueryLog(
        queries,
        np.array([queries.index(q) for q, _, _ in rows], np.int32),
        np.array([t * SECOND for _, t, _ in rows], np.int64),
        users,
        np.array([users.index(u) for _, _, u in rows], np.int32),
        np.ones(len(rows)),
    )


def test_a_list_is_served_by_weight_with_its_ids_and_payloads(write, tmp_path):
    rows = [
        {"title": "Tea", "views": 3, "id": "t1", "payload": {"price": [1, "€"]}},
        {"title": "Teapot", "views": 9, "id": "t2"},
        {"title": "Cup", "views": 5},
    ]
    fitted = fit_files(write("titles.jsonl", "\n".join(map(json.dumps, rows))))
    fitted.save(tmp_path / "model")
    for completer in (fitted, Completer.load(tmp_path / "model")):
        found = completer.suggest("TE")
        assert [(s.text, s.id, s.payload) for s in found] == [
            ("Teapot", "t2", None),
            ("Tea", "t1", {"price": [1, "€"]}),
        ]
        assert completer.suggest("c")[0].id is None
        assert completer.found["possible"]["popularity"] == "yes"
        assert completer.found["possible"]["feedback"].startswith("no: needs a log")


def test_what_it_was_made_from_is_said(write):
    names = fit_files(write("a.csv", "title,views\nTea,3\n"))
    assert names.trained_on == "a list of phrases, no searches"
    assert names.order_summary() == "the static order everywhere: the model has no feedback"
    log = fit_files(write("b.csv", "query,at,user\ntea,2026-01-01,bob\n"), min_users=1)
    assert log.trained_on == "a log of real searches"


def test_without_records_there_are_no_ids(write):
    (found,) = fit_files(write("a.txt", "tea\n")).suggest("t")
    assert (found.id, found.payload) == (None, None)


def test_without_weights_a_phrase_weighs_as_often_as_it_comes(write):
    completer = fit_files(write("a.txt", "tea\ntee\ntee\n"))
    assert texts(completer.suggest("t")) == ["tee", "tea"]
    assert completer.found["possible"]["popularity"].startswith("only how often")


def test_near_duplicates_are_one_suggestion_in_the_heaviest_spelling(write):
    text = "title,views,id\nTokyo,10,1\nTókýó,3,2\nTōkyō,5,3\nTokyo Tower,12,4\nTO,11,5\n"
    completer = fit_files(write("a.csv", text))
    found = completer.suggest("tok")
    assert [(s.text, s.id) for s in found[:2]] == [("Tokyo", "1"), ("Tokyo Tower", "4")]
    assert found[0].relevance == pytest.approx(np.log1p(18))
    assert completer.found["spellings merged into others"] == 2
    ada = completer.user("ada")
    completer.compose(ada).submit("TÓKYÓ")
    assert ada.history == {"Tokyo": 1.0}


def test_a_payload_of_an_older_list_that_is_no_json_has_null_for_its_nan():
    records = Records.of([None], ['{"price": NaN, "n": [Infinity, 1]}'])
    assert records.payload(0) == {"price": None, "n": [None, 1]}


def test_the_heaviest_row_that_has_an_id_or_payload_gives_it_and_the_others_are_said(write):
    counts = write("counts.csv", "title,views\nTEA,9\nTea,3\nCup,4\n")
    rows = "Tea,3,1,/a\nTea,3,2,/b\ntea,3,3,/a\nCup,4,,\nPot,1,4,/d\nPot,1,4,/d\n"
    items = write("items.csv", f"title,views,id,url\n{rows}")
    log = write("log.csv", "query,at,tenant\ntea,2026-03-01,shop\n")
    for files in ((counts, items), (items, counts), (counts, items, log)):
        box = fit_files(*files)
        (tea,) = box.suggest("tea", where={"tenant": "shop"} if log in files else None)
        assert (tea.text, tea.id, tea.payload) == ("TEA", "1", {"url": "/a"})
        assert box.found[UNSHOWN].startswith(f"2, the first {items}: row 2;")
    assert UNSHOWN not in fit_files(counts).found


def test_ids_that_the_phrases_of_a_composition_log_have_no_room_for_are_said():
    rows = replace(
        listed([("tea", 1)] * 4 + [("pot", 1)]), ids=pa.array([None, "1", "2", "2", "3"])
    )
    records, said = _records_by_text(rows, PrefixIndex.build(["tea"], [1.0]))
    assert records.id(0) == "1"
    assert said[UNSHOWN].startswith("2, the first list: row 3;")


def test_duplicates_with_different_weights_are_named_added_or_the_heavier_kept(write):
    file = write("a.csv", "title,views\nTea,3\nTea,3\nCup,4\nTea,5\n")
    with pytest.raises(InputError, match=r"a\.csv: row 4: phrase 'Tea' has weight 5, but 3 in"):
        fit_files(file)
    weights = {
        how: fit_files(file, duplicates=how).suggest("tea")[0].relevance for how in ("add", "max")
    }
    assert weights == {"add": pytest.approx(np.log1p(11)), "max": pytest.approx(np.log1p(5))}
    with pytest.raises(InputError, match="duplicates is 'drop'"):
        fit_files(file, duplicates="drop")
    repeated = write("b.csv", "title,views\nTea,3\nTea,3\n")
    assert fit_files(repeated).suggest("tea")[0].relevance == pytest.approx(np.log1p(3))


def test_a_query_log_is_popularity_history_and_privacy(write):
    rows = ["query,at,user"]
    rows += [f"teapot,2026-01-0{d},{u}" for d, u in ((1, "a"), (2, "b"), (3, "c"))]
    rows += [f"tea,2026-01-0{d},{u}" for d, u in ((1, "a"), (1, "a"), (1, "a"), (3, "b"))]
    completer = fit_files(write("log.csv", "\n".join(rows)))
    assert texts(completer.suggest("tea")) == ["teapot"]
    assert completer.found["queries kept back, too few users"] == 1
    ada = completer.user("a")
    assert ada.history == {"tea": 3.0, "teapot": 1.0}
    assert ada.previous == "tea"
    assert texts(completer.compose(ada).suggest("tea", at=0.0)) == ["teapot", "tea"]
    assert completer.found["possible"]["personal history"] == "yes"
    assert texts(fit_files(write("log.csv", "\n".join(rows)), min_users=2).suggest("tea")) == [
        "tea",
        "teapot",
    ]


def test_rows_without_a_user_are_one_person_who_may_be_one_of_the_others(write):
    rows = [f"teapot,2026-01-0{d},{u}" for d, u in ((1, "a"), (2, "b"), (3, ""))]
    rows += [f"tea,2026-01-0{d},{u}" for d, u in ((1, "a"), (2, "b"), (3, "c"), (4, ""))]
    rows += ["my own name,2026-01-05,"] * 5
    log = write("log.csv", "\n".join(["query,at,user", *rows]))
    completer = fit_files(log)
    assert texts(completer.suggest("")) == ["tea"]
    assert completer.suggest("")[0].relevance == pytest.approx(np.log1p(4))
    assert completer.found["queries kept back, too few users"] == 2
    assert completer.found["queries kept back that rows without a user hold, too"] == 2
    assert completer.found[KEPT_BACK]["3"] == (
        "1 phrases, 33.3% of the submissions in logs that name users; lost: 2, 66.7%"
    )
    assert set(texts(fit_files(log, min_users=2).suggest(""))) == {"tea", "teapot"}
    assert set(texts(fit_files(log, min_users=1).suggest(""))) == {"tea", "teapot", "my own name"}
    own = write("nobody.csv", "\n".join(["query,at", *(row.rstrip(",") for row in rows[-5:])]))
    named = write("named.csv", "\n".join(["query,at,user", *rows[:-5]]))
    assert set(texts(fit_files(named, own).suggest(""))) == {"tea", "my own name"}


def test_nothing_is_suggested_that_counts_nothing_or_that_nobody_need_have_submitted(write):
    rows = [f"tea,2026-01-01,u{i},{i % 2}" for i in range(4)]
    log = write("log.csv", "\n".join(["query,at,user,count", *rows]))
    assert texts(fit_files(log, min_users=3).suggest("")) == []
    assert texts(fit_files(log, min_users=2).suggest("")) == ["tea"]
    for fewest in (0, -1):
        with pytest.raises(
            InputError, match=f"min_users is {fewest}, expected a whole number >= 1"
        ):
            fit_files(log, min_users=fewest)


def test_a_list_and_a_log_count_together(write):
    catalogue = write("titles.csv", "title,views,url\nTea House,2,/h\nTeapot,3,/p\n")
    log = write("log.csv", "query,at\n" + "tea house,2026-01-01\n" * 5 + "tea tin,2026-01-01\n")
    found = fit_files(catalogue, log).suggest("tea")
    assert [(s.text, s.payload) for s in found] == [
        ("Tea House", {"url": "/h"}),
        ("Teapot", {"url": "/p"}),
        ("tea tin", None),
    ]
    assert found[0].relevance == pytest.approx(np.log1p(7))


TIMES = st.integers(0, 3 * WINDOW // SECOND)
NAMES = st.sampled_from(["Tea", "tea", "TÉA", "tee", "cup", "Cup "])


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(NAMES, st.integers(0, 5)), max_size=6, unique_by=lambda row: row[0]),
    events=st.lists(st.tuples(NAMES, TIMES, st.sampled_from([None, "a", "b", "c"])), max_size=20),
    until=st.none() | TIMES,
    min_users=st.integers(1, 3),
    first=st.sampled_from([0, -5 * WINDOW // SECOND]),
)
def test_entries_and_histories_by_their_definition(rows, events, until, min_users, first):
    """Also of a log from before 1970."""
    events = [(query, first + second, user) for query, second, user in events]
    until = None if until is None else first + until
    log = logged(events) if events else None
    gathered = Gathered(listed(rows) if rows else None, [log] if log else [], min_users=min_users)
    now = until * SECOND if until is not None else None
    entries = gathered.entries(until=now)
    end = max((t for _, t, _ in events), default=0) * SECOND + 1 if now is None else now
    before = [
        (q, t * SECOND, u) for q, t, u in sorted(events, key=lambda e: e[1]) if t * SECOND < end
    ]
    expected = {}
    for form in {fold(q) for q, _ in rows} | {fold(q) for q, _, _ in before}:
        own = [(q, w) for q, w in rows if fold(q) == form]
        said = [(q, t, u) for q, t, u in before if fold(q) == form]
        people = {u for _, _, u in said} - {None}
        if not own and {u for _, _, u in events} != {None} and max(1, len(people)) < min_users:
            continue
        recent = sum(t >= end - WINDOW for _, t, _ in said)
        expected[form] = (sum(w for _, w in own) + len(said), recent)
        shown = entries.phrases[[fold(p) for p in entries.phrases].index(form)]
        if own:
            assert dict(own)[shown] == max(w for _, w in own)
        else:
            spelled = [q for q, _, _ in said]
            assert spelled.count(shown) == max(map(spelled.count, spelled))
    assert {
        fold(p): (popular, recent)
        for p, popular, recent in zip(entries.phrases, entries.popular, entries.recent, strict=True)
    } == expected
    histories = gathered.histories(entries, until=now)
    for user in gathered.users:
        counts = {}
        for q, _, u in before:
            if u == user:
                counts[fold(q)] = counts.get(fold(q), 0) + 1
        assert {fold(q): c for q, c in histories[user].items()} == counts
        mine = [fold(q) for q, _, u in before if u == user]
        assert [fold(q) for q in histories[user]][-1:] == mine[-1:]


def test_the_weights_are_those_that_complete_the_held_out_end_of_the_log_best():
    """Users who repeat themselves, then users who never do."""
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "pq" for b in "abcdefghij" for c in "klmno"]
    odds = 1 / np.arange(1, 101)
    orders = [rng.choice(100, 100, replace=False, p=odds / odds.sum()) for _ in range(50)]
    never = [(words[orders[i % 50][i // 50]], i, f"u{i % 50}") for i in range(2000)]
    alone = [(words[(7 * (i % 50)) % 100], i, f"u{i % 50}") for i in range(2000)]
    from telic.completion.fit.static_box import _learned_mix

    mixes = {
        name: _learned_mix(Gathered(None, [logged(rows)], min_users=1), n=10)
        for name, rows in (("never", never), ("alone", alone))
    }
    assert mixes["alone"][1] > 0
    assert mixes["never"][1] == 0
    assert all(mix[2] == 0 for mix in mixes.values())  # half an hour: all of it is recent


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("span", "has_past"), [(2 * WINDOW, True), (2 * WINDOW - 1, False)])
def test_only_weights_of_what_the_log_tells_apart_are_tried(monkeypatch, named, span, has_past):
    """Not a user's own where nobody is named, nor what is recent where all of the log is."""
    tried = []
    monkeypatch.setattr(static_box, "_cold", lambda of, mix, **options: tried.append(mix))
    held = HeldOut(7, [], True, named, span)
    chosen = static_box._learned_mix(SimpleNamespace(held_out=lambda most: held), n=10)
    assert chosen == tried[0]
    assert {mix[1] > 0 for mix in tried} == ({False, True} if named else {False})
    assert {mix[2] > 0 for mix in tried} == ({False, True} if has_past else {False})
    for nothing in (None, held._replace(opened=False)):
        gathered = SimpleNamespace(held_out=lambda most, nothing=nothing: nothing)
        assert static_box._learned_mix(gathered, n=10) == static_box.DEFAULT


@pytest.mark.parametrize("executor", [None, Local()], ids=["whole", "in pieces"])
def test_a_row_with_a_stray_tab_can_be_left_out(tmp_path, executor):
    file = tmp_path / "log.tsv"
    rows = ["u1\ttea\t2026-01-02", "u2\tt\tea\t2026-01-02", "u2\tteo\t2026-01-03", "u3\tteo"]
    file.write_text("\n".join(["user\tquery\tat", *rows, *rows]))
    with pytest.raises(TelicError, match=r"log\.tsv: row 2: has 4 cells, expected 3"):
        fit_files(file, min_users=1, executor=executor)
    completer = fit_files(file, min_users=1, on_bad_row="skip", executor=executor)
    assert sorted(texts(completer.suggest("te"))) == ["tea", "teo"]
    (said,) = completer.found["files"]
    assert "2 rows skipped: has 4 cells" in said
    assert "2 rows skipped: has 2 cells" in said
    file.write_text("user\tquery\tat\nu1\n")
    with pytest.raises(InputError, match=r"no row can be used \(1 rows skipped: has 1 cells"):
        fit_files(file, on_bad_row="skip", executor=executor)


def test_rows_left_out_of_a_copy_are_counted_once_however_it_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("telic.data.pieces._BLOCK", 1 << 14)
    file = tmp_path / "log.tsv"
    rows = [f"u{i}\ttea\t2026-01-02" for i in range(3000)]
    file.write_text("\n".join(["user\tquery\tat", "torn", *rows]))
    executor = Local(threads=1, piece="1MiB")
    completer = fit_files(file, on_bad_row="skip", executor=executor)
    assert "3000 submissions" in completer.found["files"][0]
    assert "; 1 rows skipped: has 1 cells" in completer.found["files"][0]


@pytest.mark.parametrize("executor", [None, Local()], ids=["whole", "in pieces"])
def test_a_log_of_which_nothing_can_be_used_is_named(write, executor):
    header = "query,at,user\n"
    with pytest.raises(InputError, match=r"log\.csv: holds no row"):
        fit_files(write("log.csv", header), executor=executor)
    bad = write("log.csv", header + "tea,,ada\n" * 3)
    said = r"log\.csv: no row can be used \(3 rows skipped: at: is no time"
    with pytest.raises(InputError, match=said):
        fit_files(bad, executor=executor, on_bad_row="skip")
    good = write("good.csv", header + "tea,2026-03-01,ada\n" * 3)
    with pytest.raises(InputError, match=said):  # nor is it left out beside another
        fit_files(good, bad, executor=executor, on_bad_row="skip")


@pytest.fixture
def composed(make_table, tmp_path):
    file = tmp_path / "log.parquet"
    pq.write_table(make_table(users=3, compositions=12), file)
    return file


def test_a_composition_log_is_fitted_as_ever_and_a_list_joins_it(composed, write):
    alone = fit_files(composed, min_users=1)
    assert alone.model == "adaqac-online"
    assert alone.found["possible"]["feedback"] == "yes"
    printed = fit_files(composed, min_users=1, protocol=PAPER)
    assert (alone.words is None, printed.words is None) == (False, True)  # whose scores are no log
    rows = "title,views,url\nnew york,3,/ny\nnew delhi,1000000,/nd\n"
    both = fit_files(composed, write("titles.csv", rows), min_users=1)
    assert set(both.index.phrases(range(len(both.index)))) == {
        *alone.index.phrases(range(len(alone.index))),
        "new delhi",
    }
    found = {s.text: s.payload for s in both.suggest("new ")}
    assert found["new york"] == {"url": "/ny"}
    assert found["new delhi"] == {"url": "/nd"}
    assert found["new york times"] is None


def test_the_heaviest_row_gives_the_payload_beside_a_composition_log_too(composed, write):
    rows = "title,views,id\nnew york,1,light\nnew york,90,heavy\nnew delhi,3,\n"
    box = fit_files(composed, write("titles.csv", rows), min_users=1, duplicates="add")
    assert {s.text: s.id for s in box.suggest("new y")}["new york"] == "heavy"
    assert UNSHOWN in box.found


def test_users_whom_a_query_log_alone_names_keep_their_history(composed, write):
    log = write("log.csv", "query,at,user\nzoo,2020-01-02,ida\nzebra,2020-01-01,ida\n")
    box = fit_files(composed, log)
    assert box.users["ida"].history == {"zoo": 1.0, "zebra": 1.0}
    assert box.users["ida"].previous == "zoo"
    np.testing.assert_array_equal(box.users["ida"].weights, box.everyone)
    assert texts(box.suggest("z", user="ida")) == ["zebra", "zoo"]
    assert box.suggest("z") == []


def test_a_relevance_that_is_none_is_named(composed):
    with pytest.raises(InputError, match="relevance is 'mcp', expected one of mpc, personal"):
        fit_files(composed, min_users=1, relevance="mcp")
    with pytest.raises(InputError, match="lists is 'onw', expected one of own, shown"):
        Replay(read_compositions(composed), min_users=1).over("onw")


def test_no_replay_mixes_the_queries_of_tenants(make_table, tmp_path):
    table = make_table(users=3, compositions=12)
    of = pa.array(["a", "b"] * (len(table) // 2))
    pq.write_table(table.append_column("tenant", of), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="a log names tenants, whose queries a model"):
        Replay(read_compositions(tmp_path / "log.parquet"), min_users=1)


@pytest.mark.parametrize("role", ["category", "brand", "id", "payload", "language"])
def test_what_a_query_log_has_no_use_for_takes_no_column_away(write, role):
    titles = write("titles.csv", "title,user\nTea,7\n")
    log = write("log.csv", "query,at,user\nmy secret,2026-01-01,u1\ntea,2026-01-02,u2\n")
    box = fit_files(titles, log, columns={role: "user"})
    assert box.suggest("my") == []
    assert texts(box.suggest("my", user="u1")) == ["my secret"]
    assert set(box.users) == {"u1", "u2"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": "query"}, "whose phrase is 'query': --column user=query takes it away"),
        ({"user": "at"}, "whose at is 'at': --column user=at takes it away"),
        ({"phrase": "user"}, "whose user is 'user': --column phrase=user takes it away"),
    ],
)
def test_what_takes_a_column_away_that_a_log_needs_is_named(write, columns, message):
    log = write("log.csv", "query,at,user\ntea,2026-01-01,u1\n")
    with pytest.raises(InputError, match=message):
        fit_files(log, columns=columns)


@pytest.mark.parametrize("role", ["network", "tenant"])
def test_the_users_of_a_log_of_usual_names_are_not_taken_away(write, role):
    log = write("log.csv", "user,query,time\nu1,my secret,2026-01-01\n")
    with pytest.raises(InputError, match=f"--column {role}=user takes it away"):
        fit_files(log, columns={role: "user"})


def test_a_short_composition_log_is_a_query_log_and_that_is_said(make_table, tmp_path):
    file = tmp_path / "log.parquet"
    table = make_table(users=3, compositions=4)
    pq.write_table(table, file)
    completer = fit_files(file, min_users=1)
    assert completer.model == "static"
    assert "no user has 8 compositions (the most is 4)" in completer.found["possible"]["feedback"]
    assert sum(sum(u.history.values()) for u in completer.users.values()) == 12
    with pytest.raises(InputError, match="model is 'adaqac-online', which learns from feedback"):
        fit_files(file, model="adaqac-online")
    with pytest.raises(InputError, match="model is 'adaqac', expected one of static, adaqac-unp"):
        fit_files(file, model="adaqac")


def test_two_composition_logs_are_joined(make_table, tmp_path):
    table = make_table(users=4, compositions=10)
    whole, first, second = (tmp_path / f"{name}.parquet" for name in ("whole", "one", "two"))
    pq.write_table(table, whole)
    pq.write_table(table.slice(0, 20), first)
    pq.write_table(table.slice(20), second)
    one, two = fit_files(whole, min_users=1), fit_files(first, second, min_users=1)
    np.testing.assert_array_equal(one.index.weights_of(), two.index.weights_of())
    assert {u: s.history for u, s in one.users.items()} == {
        u: s.history for u, s in two.users.items()
    }


def test_of_joined_composition_logs_one_that_is_simulated_makes_all_so(make_table, tmp_path):
    table = make_table(users=2, compositions=10)
    real, simulated = tmp_path / "real.parquet", tmp_path / "simulated.parquet"
    pq.write_table(table.slice(0, 10), real)
    pq.write_table(table.slice(10).replace_schema_metadata({SIMULATED: b"true"}), simulated)
    assert fit_files(simulated, real).simulated
    assert fit_files(real, simulated).simulated
    pq.write_table(table.slice(10).replace_schema_metadata({SIMULATED: b"false"}), simulated)
    assert not fit_files(real, simulated).simulated


def test_composition_logs_that_do_not_join_are_named_with_the_reason(make_table, tmp_path):
    table = make_table(users=1, compositions=1)
    other = table.set_column(table.column_names.index("query"), "query", pa.array([1] * len(table)))
    files = tmp_path / "one.parquet", tmp_path / "other.parquet"
    for file, content in zip(files, (table, other), strict=True):
        pq.write_table(content, file)
    named = re.escape(f"{files[0]}, {files[1]}: cannot be joined to one log (Unable to merge")
    with pytest.raises(InputError, match=named):
        fit_files(*files)


def test_of_joined_composition_logs_a_bad_row_is_named_in_its_file(make_table, tmp_path):
    table = make_table(users=1, compositions=4)
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    pq.write_table(table, one)
    pq.write_table(table, other)
    with pytest.raises(InputError, match=r"other\.parquet, joined: row 5: .*repeats"):
        fit_files(one, other)
    place = table.column_names.index("query")
    empty = pa.array([*table["query"].to_pylist()[:2], "", "tea"])
    pq.write_table(table.set_column(place, "query", empty), other)
    with pytest.raises(InputError, match=rf"^{re.escape(str(other))}: row 3: column 'query'"):
        fit_files(one, other)


def test_no_file_is_named():
    with pytest.raises(InputError, match="no file was given"):
        fit_files()


def test_recency_is_told_by_the_times(write):
    early = dt.date(2026, 1, 1)
    for days, said in (
        (0, "no: needs a query log with times over more than 56 days"),
        (2, "not yet: the log spans 2 days, and weighing it takes over 56"),
        (56, "not yet: the log spans 56 days, and weighing it takes over 56"),
        (57, "yes, over 57 days"),
    ):
        rows = [f"tea,{early + dt.timedelta(days=d)}" for d in (0, days)]
        completer = fit_files(write("log.csv", "\n".join(["query,at", *rows])))
        assert completer.found["possible"]["recency"] == said
    assert completer.found["possible"]["personal history"].startswith("no: needs")


def test_columns_that_nothing_uses_are_said(write):
    titles = write("titles.csv", "title,watched,user\nTea,yes,ada\n")
    assert fit_files(titles).found["files"] == [
        f"{titles}: list of phrases, 1 phrases; phrase from 'title'; not used: 'watched', 'user'"
    ]
    seen = fit_files(titles, columns={"watched": "watched"}).found["files"]
    assert seen[0].endswith("phrase from 'title', watched from 'watched'; not used: 'user'")
    log = write("log.csv", "query,at,user_id,category\ntea,2026-03-01,ada,hot\n")
    named = {"user": "user_id", "brand": "category"}  # a query has no context
    (said,) = fit_files(log, columns=named, min_users=1).found["files"]
    assert said.endswith("at from 'at', user from 'user_id'; not used: 'category'")


def test_a_named_column_counts_in_the_files_that_have_it(write, tmp_path):
    titles = write("titles.csv", 'title,about\nTea,"{""price"": 4}"\n')
    log = write("log.csv", "query,at\npot,2026-03-01\n")
    words = write("words.txt", "Cup\n")
    for files in ((titles, log, words), (words, log, titles)):
        box = fit_files(*files, columns={"payload": "about"})
        assert [each.payload for each in box.suggest("tea")] == [{"price": 4}]
    with pytest.raises(InputError, match="no file has a column 'abuot' for --column payload=abuot"):
        fit_files(titles, log, columns={"payload": "abuot"})
    (tmp_path / "recorded").mkdir()
    with pytest.raises(InputError, match="--column names columns of lists"):
        fit_files(tmp_path / "recorded", columns={"phrase": "query"})


def test_what_a_composition_log_has_that_is_not_taken_is_said(make_table, tmp_path):
    rows = make_table(users=3, compositions=4).to_pylist()
    rows[2]["user"] = ""
    table = pa.Table.from_pylist(rows, make_table().schema)
    file = tmp_path / "log.parquet"
    pq.write_table(table.append_column("watched", pa.array([True] * 12)), file)
    assert fit_files(file, on_bad_row="skip", min_users=1).found["files"] == [
        f"{file}: composition log (contract 1); not used: 'watched'",
        f"{file}: 1 rows skipped: user: is empty, expected an id",
    ]
    with pytest.raises(InputError, match="--column names columns of lists and query logs"):
        fit_files(file, columns={"phrase": "query"})


@pytest.mark.parametrize(("weights", "counts"), [([2.0, 0.5, 1.0], [3.0, 0.5]), (None, [2.0, 1.0])])
def test_a_list_counts_as_what_nobody_submitted_before_every_log(weights, counts):
    rows = listed([("tea", 1), ("cup", 1), ("tea", 1)])
    rows = replace(rows, weights=None if weights is None else np.array(weights))
    log = as_catalogue(rows, "add")
    assert [log.queries[q] for q in log.query] == ["tea", "cup"]
    assert [log.users[u] for u in log.user] == [None] * 2
    assert (log.at.tolist(), log.count.tolist()) == ([0] * 2, counts)


@pytest.mark.parametrize(
    ("mix", "named", "unnamed"),
    [
        ((1.0, 0.0, 0.0), "mpc", "mpc"),
        ((0.6, 0.0, 0.4), "timesense", "timesense"),
        ((0.5, 0.5, 0.0), "personal", "mpc"),
        ((0.4, 0.3, 0.3), "personal", "timesense"),
    ],
)
def test_a_relevance_is_named_by_the_parts_that_count(mix, named, unnamed):
    """The part of the user's own counts only where the log names users."""
    for name, is_named in ((named, True), (unnamed, False)):
        made = _relevance(mix, named=is_named)
        assert (made.name, made.popular, made.personal, made.recent) == (name, *mix)


@pytest.mark.parametrize("with_list", [False, True])
def test_what_only_a_tenants_composition_log_has_is_that_tenants_own(
    make_table, tmp_path, with_list
):
    table = make_table(users=3, compositions=12)
    log, titles = tmp_path / "log.parquet", tmp_path / "titles.csv"
    tenants = pa.array(["shop"] * len(table), pa.string())
    pq.write_table(table.append_column("tenant", tenants), log)
    titles.write_text("title,views\nnew york,3\nnew ulm,2\n")
    box = fit_files(log, *[titles] * with_list, min_users=1)

    def shown(tenant):
        return {each.text for each in box.suggest("new", where={"tenant": tenant})}

    assert {"new york", "new jersey", "newcastle"} <= shown("shop")
    assert shown("club") == ({"new york", "new ulm"} if with_list else set())


def test_users_of_a_tenants_composition_log_are_known_as_the_service_asks_for_them(
    make_table, tmp_path
):
    table = make_table(users=3, compositions=12)
    logs = {name: tmp_path / f"{name}.parquet" for name in ("plain", "shop", "default")}
    pq.write_table(table, logs.pop("plain"))
    for name, log in logs.items():
        tenants = pa.array([name] * len(table), pa.string())
        pq.write_table(table.append_column("tenant", tenants), log)
    plain = fit_files(tmp_path / "plain.parquet").users
    assert fit_files(logs["default"]).users.keys() == plain.keys()
    users = fit_files(logs["shop"]).users
    assert [*users] == [f"shop:{name}" for name in plain]
    assert [state.history for state in users.values()] == [each.history for each in plain.values()]
    earlier, name = tmp_path / "earlier.csv", next(iter(plain))
    earlier.write_text(f"query,at,user,tenant\nnew pub,2020-01-01,{name},shop\n")
    assert "new pub" in fit_files(logs["shop"], earlier).users[f"shop:{name}"].history


def test_phrases_that_weigh_nothing_are_suggested_beside_a_composition_log_too(
    make_table, tmp_path
):
    log, titles = tmp_path / "log.parquet", tmp_path / "titles.csv"
    pq.write_table(make_table(users=3, compositions=12), log)
    titles.write_text("title,views,language\nnew york,3,en\nneu-ulm,0,de\nnewry,0,en\n")
    box = fit_files(log, titles)
    assert "new york" in {each.text for each in box.suggest("new", where={"language": "en"})}
    assert "new york" not in {each.text for each in box.suggest("new", where={"language": "de"})}
    assert texts(box.suggest("newr", where={"language": "en"}))[0] == "newry"
    assert texts(box.suggest("neu"))[0] == "neu-ulm"


def test_what_a_list_gives_twice_counts_beside_a_composition_log_as_without_one(
    make_table, tmp_path
):
    log, titles = tmp_path / "log.parquet", tmp_path / "titles.csv"
    pq.write_table(make_table(users=3, compositions=12), log)
    titles.write_text("title,views\nteapot,5\nteapot,4\ntea,7\n")
    with pytest.raises(InputError, match=r"row 2: phrase 'teapot' has weight 4, but 5 in "):
        fit_files(log, titles)
    for duplicates, found in (("max", ["tea", "teapot"]), ("add", ["teapot", "tea"])):
        box = fit_files(log, titles, duplicates=duplicates)
        assert [each.text for each in box.suggest("tea")] == found
    titles.write_text("title,views\ntea,4\ntea,4\nteapot,7\n")
    for files in ((log, titles), (titles,)):
        assert [each.text for each in fit_files(*files).suggest("tea")] == ["teapot", "tea"]
