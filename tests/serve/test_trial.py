"""A trial of two services, from what they record to what each is worth; and where that is known."""

import itertools
import json
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from telic import cli
from telic.completion.evaluation.trial import judge_interleaving, judge_trial
from telic.data.ubi import Arm, Teams, read_ubi
from telic.errors import InputError
from telic.evaluate import mean_weight, wilson_interval
from telic.serve import Settings, create_app
from telic.serve.state.composition_recorder import Recorder
from telic.simulate.trials import simulate_trial


def recorded_trial(folder, trial, propensity=None):
    """Record simulated people's compositions; those who accept take the second of the list."""
    opened = {}
    for user, arm, drawn, reward in zip(
        trial.user, trial.arm, trial.propensity, trial.reward, strict=True
    ):
        at = Arm("ab"[arm], propensity or float(drawn))
        if at not in opened:
            opened[at] = Recorder(folder, arm=at)
            opened[at].start()
        typing = opened[at].begin(f"u{user}")
        opened[at].keystroke(typing, "te", 0.0, ["tea", "teapot"])
        opened[at].submission(typing, "Teapot" if reward else "ten")
    for recorder in opened.values():
        recorder.close()
    return read_ubi(folder)


@contextmanager
def recording(folder):
    recorder = Recorder(folder)
    recorder.start()
    yield recorder
    recorder.close()


def test_what_arms_are_worth_is_estimated_from_what_they_record(tmp_path):
    trial = simulate_trial(users=80, choices=10, seed=2)
    table, left_out = recorded_trial(tmp_path / "log", trial)
    assert left_out == {}
    found = judge_trial(table)
    assert (found.compositions, found.users) == (800, 80)
    assert found.wrong == []
    assert found.observed["acceptance"].value == pytest.approx(trial.reward.mean())
    first, second = found.values[:2]
    assert (first.arm, second.arm) == ("a", "b")
    assert first.compositions + second.compositions == 800
    for value, truth in zip((first, second), trial.truth, strict=True):
        assert value.snips.low <= truth <= value.snips.high
    assert first.difference is None
    assert second.difference.value == pytest.approx(second.snips.value - first.snips.value)
    # Half a place for each that was accepted, and four of six letters saved.
    mrr, saved = found.values[2], found.values[4]
    assert (mrr.measure, saved.measure) == ("MRR", "keystrokes saved")
    assert mrr.snips.value == pytest.approx(first.snips.value / 2)
    assert saved.snips.value == pytest.approx(first.snips.value * 4 / 6)


def test_the_command_compares_arms_and_says_where_propensities_are_wrong(
    tmp_path, monkeypatch, capsys
):
    def telic(*arguments):
        monkeypatch.setattr(sys, "argv", ["telic", "completion", "trial", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    trial = simulate_trial(users=40, choices=10, shares=(0.2, 0.2), seed=1)
    recorded_trial(tmp_path / "right", trial)
    code, out, err = telic(tmp_path / "right", "--first", "b", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["wrong_propensities"] == []
    assert [row["arm"] for row in found["values"]] == ["b", "a"] * 3
    assert found["values"][0]["difference"] is None
    with recording(tmp_path / "right") as recorder:  # then a trial of the other kind, there too
        for user in "abc":
            typing = recorder.begin(user)
            recorder.keystroke(typing, "te", 0.0, ["tea", "ten"], Teams("10", 0.5))
            recorder.submission(typing, "tea")
    both = json.loads(telic(tmp_path / "right", "--first", "b", "--json")[1])
    assert both.pop("interleaved")["model"] == 3
    assert both == found
    _, out, _ = telic(tmp_path / "right")
    assert "IPS" in out
    assert "in 3 interleaved compositions" in out
    events = next((tmp_path / "right").glob("events-*"))
    events.write_text(events.read_text() + '{"half')
    code, out, err = telic(tmp_path / "right", "--first", "b", "--json")
    assert (code, json.loads(out)["values"]) == (0, found["values"])
    assert err == f"{tmp_path / 'right'}: left out 1: half-written lines at a file's end\n"
    pq.write_table(pa.table({"arm": ["a", "b"], "user": ["u", "v"]}), tmp_path / "other.parquet")
    code, _, err = telic(tmp_path / "other.parquet")
    assert code == 2
    assert "other.parquet: has arms, but no column 'query'. Name what" in err
    recorded_trial(tmp_path / "wrong", trial, propensity=0.5)
    code, out, err = telic(tmp_path / "wrong")
    assert code == 0
    assert "IPS" in out
    assert "arm a: its weights have mean" in err
    for arguments, message in (
        ((tmp_path / "right", "--first", "c"), "there is no arm 'c'"),
        ((__file__,), "no Parquet file"),
    ):
        code, _, err = telic(*arguments)
        assert code == 2
        assert message in err


def one_of_each_kind(**changes):
    """What a log of both kinds has: a composition in each arm, and one of an interleaved list."""
    at = pa.timestamp("us", "UTC")
    stroke = pa.struct(
        [("at", at), ("prefix", pa.string()), ("suggestions", pa.list_(pa.string()))]
    )
    strokes = [{"at": 0, "prefix": "te", "suggestions": ["ten", "tea"]}]
    given = {
        "user": (["ann", "ben", "eve"], pa.string()),
        "composition": (["1", "2", "3"], pa.string()),
        "query": (["ten"] * 3, pa.string()),
        "submitted_at": ([1] * 3, at),
        "selected": ([1] * 3, pa.int16()),
        "keystrokes": ([strokes] * 3, pa.list_(stroke)),
        "arm": (["a", "b", None], pa.string()),
        "propensity": ([0.5] * 3, pa.float64()),
        "teams": ([None, None, "10"], pa.string()),
    }
    columns = {name: changes.get(name, values) for name, (values, _) in given.items()}
    return pa.table({name: pa.array(columns[name], kind) for name, (_, kind) in given.items()})


@pytest.mark.parametrize("rows", [slice(0, 2), slice(2, 3)], ids=["arms", "interleaved"])
def test_a_part_of_a_log_of_both_kinds_may_hold_one(rows, tmp_path, monkeypatch, capsys):
    table = one_of_each_kind()
    pq.write_table(table.take(list(range(3))[rows]), tmp_path / "part.parquet")
    monkeypatch.setattr(
        sys, "argv", ["telic", "completion", "trial", str(tmp_path / "part.parquet"), "--json"]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    assert (end.value.code or 0, err) == (0, "")
    assert ("values" in json.loads(out)) == (rows == slice(0, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": ["ten", None, "ten"]}, "row 2: column 'query': is null"),
        ({"keystrokes": [[]] * 3}, "row 1: column 'keystrokes': is empty"),
        ({"teams": [None, None, "1x"]}, "teams: expected 0 or 1"),
        ({"arm": [None] * 3, "teams": [None] * 3}, "no list was interleaved"),
    ],
)
def test_the_command_says_where_a_table_is_none(changes, message, tmp_path, monkeypatch, capsys):
    pq.write_table(one_of_each_kind(**changes), tmp_path / "log.parquet")
    monkeypatch.setattr(
        sys, "argv", ["telic", "completion", "trial", str(tmp_path / "log.parquet")]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_beside_what_was_exported_from_it_is_refused(tmp_path, monkeypatch, capsys):
    """An older export of one arm would give what that arm did then twice its weight."""
    for name, rows in (("old", [0]), ("all", [0, 1])):
        pq.write_table(one_of_each_kind().take(rows), tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / "old.parquet"), str(tmp_path / "all.parquet")]
    monkeypatch.setattr(sys, "argv", ["telic", "completion", "trial", *paths])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "1 compositions are there twice" in capsys.readouterr().err


def test_who_was_shown_no_list_typed_in_full():
    strokes = [[{"at": 0, "prefix": "te", "suggestions": None}]] * 3
    found = judge_trial(one_of_each_kind(keystrokes=strokes, selected=[None] * 3))
    assert found.observed["MRR"].value == 0


def table_of(trial, propensity):
    """What `read_ubi` gives of a trial, in which everybody typed the query."""
    n = len(trial.user)
    strokes = {"prefix": "te", "suggestions": ["ten"]}
    return pa.table(
        {
            "user": [f"u{user}" for user in trial.user],
            "query": ["ten"] * n,
            "selected": pa.array([None] * n, pa.int16()),
            "keystrokes": [[strokes]] * n,
            "arm": ["ab"[arm] for arm in trial.arm],
            "propensity": propensity,
        }
    )


def test_a_trial_that_is_right_is_not_called_wrong_one_time_in_twenty():
    """Who says that nothing can be trusted must be surer than an interval of 95 % is."""
    trial = simulate_trial(users=40, choices=10, shares=(0.5, 0.5), seed=28)
    weight = mean_weight(trial.propensity, trial.arm == 0, trial.user)
    assert weight.low > 1.04, "unlikely, and three seeds in sixty have it"
    assert judge_trial(table_of(trial, trial.propensity)).wrong == []
    shares = np.where(trial.arm == 0, 0.4, 0.6)
    assert judge_trial(table_of(trial, shares)).wrong == ["a", "b"]


def choices_of(accepted, arm):
    """What `read_ubi` gives of users with a composition each."""
    n = len(accepted)
    strokes = [[{"prefix": "te", "suggestions": ["ten"] if one else ["tea"]}] for one in accepted]
    return pa.table(
        {
            "user": [f"{arm}{i}" for i in range(n)],
            "query": ["ten"] * n,
            "selected": pa.array([1 if one else None for one in accepted], pa.int16()),
            "keystrokes": strokes,
            "arm": [arm] * n,
            "propensity": [0.5] * n,
        }
    )


def test_arms_of_few_people_who_are_all_alike_are_worth_what_their_intervals_say():
    rng, shares, hits = np.random.default_rng(0), (0.9, 0.8), np.zeros(3)
    for _ in range(200):
        parts = [choices_of(rng.random(5) < p, arm) for p, arm in zip(shares, "ab", strict=True)]
        first, second = judge_trial(pa.concat_tables(parts)).values[:2]
        pairs = (first.snips, shares[0]), (second.snips, shares[1]), (second.difference, -0.1)
        hits += [value.low <= truth <= value.high for value, truth in pairs]
    assert (hits >= 0.94 * 200).all()


def test_the_interval_of_people_who_are_all_alike_is_wilsons():
    rows = pa.concat_tables([choices_of([True] * 4, "a"), choices_of([True, False] * 3, "b")])
    found = judge_trial(rows, first="b")
    other, alike = found.values[:2]
    low, high = wilson_interval(1.0, 4)
    assert (alike.snips.value, alike.snips.low, alike.snips.high) == (1.0, low, high)
    assert alike.difference.value == pytest.approx(0.5)
    assert 0.5 - alike.difference.low == pytest.approx(np.hypot(1 - low, other.snips.high - 0.5))
    assert alike.difference.high - 0.5 == pytest.approx(0.5 - other.snips.low)
    everybody = judge_trial(pa.concat_tables([choices_of([True] * 3, arm) for arm in "ab"]))
    assert everybody.observed["acceptance"].low == wilson_interval(1.0, 6)[0]
    assert everybody.values[1].difference.low < -0.4


def test_no_interval_of_a_trial_is_a_point():
    half = [choices_of([True, False] * 4, arm) for arm in "ab"]
    users = [name for arm in "ab" for name in np.repeat([f"{arm}{i}" for i in range(4)], 2)]
    rows = pa.concat_tables(half)  # each user accepts one of two, so that none moves the estimate
    rows = rows.set_column(rows.column_names.index("user"), "user", pa.array(users))
    nobody = pa.concat_tables([choices_of([False] * 8, arm) for arm in "ab"])
    for table in (rows, nobody):
        found = judge_trial(table)
        for value in found.values:
            for each in (value.snips, value.ips, value.difference):
                assert each is None or each.high - each.low > 0.2
        assert found.observed["acceptance"].high - found.observed["acceptance"].low > 0.1


def test_one_user_does_not_tell_whether_propensities_are_right(tmp_path):
    trial = simulate_trial(users=1, choices=12, shares=(0.5, 0.5), seed=1)
    found = judge_trial(recorded_trial(tmp_path / "log", trial)[0])
    assert found.users == 1
    assert found.wrong == []
    assert {row["snips_low"] for row in found.rows()} == {None}


def test_what_is_no_trial_is_refused(tmp_path):
    trial = simulate_trial(users=5, choices=2)
    table, _ = recorded_trial(tmp_path / "log", trial)
    with pytest.raises(InputError, match="no arm"):
        judge_trial(table.drop_columns(["arm", "propensity"]))
    with pytest.raises(InputError, match="no arm"):
        judge_trial(table.slice(0, 0))
    with pytest.raises(InputError, match="only the arm 'a'"):
        judge_trial(table.filter(pa.compute.equal(table["arm"], "a")))


def test_a_service_records_as_the_arm_that_it_is(completer, tmp_path):
    settings = Settings.beside(tmp_path / "model", record=str(tmp_path / "log"), arm="b")
    app = create_app(completer, Settings(**vars(settings) | {"propensity": 0.25}))
    app.recorder.start()
    typing = app.recorder.begin("ada")
    app.recorder.keystroke(typing, "s", 0.0, ["soup"])
    app.recorder.submission(typing, "soup")
    app.recorder.close()
    table, _ = read_ubi(tmp_path / "log")
    assert table.select(["arm", "propensity"]).to_pylist() == [{"arm": "b", "propensity": 0.25}]
    for propensity in (0.0, 1.5):
        with pytest.raises(InputError, match="propensity is"):
            create_app(completer, Settings(**vars(settings) | {"propensity": propensity}))
    with pytest.raises(InputError, match="arm is 'b': it takes record"):
        create_app(completer, replace(settings, record=""))
    with pytest.raises(InputError, match=r"propensity is 0\.25: it takes arm"):
        create_app(completer, replace(settings, arm="", propensity=0.25))


def test_compositions_are_drawn_into_arms_with_the_probabilities_that_are_recorded(
    completer, tmp_path
):
    """The control sees the static order, the others what the model makes of it."""
    settings = Settings.beside(
        tmp_path / "model", record=str(tmp_path / "log"), record_unasked=True, control=0.25
    )
    app = create_app(completer, replace(settings, max_keystrokes=2))
    app.desk._compositions._draw = np.random.default_rng(0).random
    with TestClient(app, "http://127.0.0.1:8000") as client:
        for number in range(80):
            of = {"user": f"u{number}", "composition": "c"}
            for second, typed in enumerate(("sal", "sa") * 2):  # begun anew in between
                asked = of | {"q": typed, "t": 3000.0 * second}
                shown = client.get("/suggest", params=asked).json()[1]
            taken = shown[0] if number % 2 else "sap"
            assert client.post("/submit", json=of | {"query": taken}).status_code == 200
    table, left_out = read_ubi(tmp_path / "log")
    assert (len(table), left_out) == (80, {})
    found = judge_trial(table, first="static")
    assert found.wrong == []
    assert [value.arm for value in found.values] == ["static", "model"] * 3
    rows, static = table.to_pylist(), [each.text for each in completer.suggest("sa")]
    assert {(row["arm"], row["propensity"]) for row in rows} == {("static", 0.25), ("model", 0.75)}
    for row in rows:
        # What was looked at for long sinks, unless the order is static.
        assert (row["keystrokes"][-1]["suggestions"] == static) == (row["arm"] == "static")


def test_each_composition_is_drawn_for_itself_and_none_that_is_not_recorded(completer, tmp_path):
    settings = Settings.beside(tmp_path / "model", record=str(tmp_path / "log"), control=0.5)
    app = create_app(completer, settings)
    compositions, draws = app.desk._compositions, iter((0.7, 0.2, 0.6))
    compositions._draw = lambda: next(draws)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        for number, consent in enumerate("10101"):
            of = {"user": "ada", "composition": f"c{number}", "q": "s", "consent": consent}
            client.get("/suggest", params=of)
        opened = [compositions.find("ada", f"c{number}") for number in range(5)]
    assert [each.keep_static for each in opened] == [False, False, True, False, False]
    assert [each.recording is not None for each in opened] == [True, False, True, False, True]


@pytest.mark.parametrize(
    "changes", [{"record": ""}, {"arm": "b"}, {"control": 1.0}], ids=["unrecorded", "arm", "all"]
)
def test_a_control_that_can_tell_nothing_is_refused(completer, tmp_path, changes):
    given = {"record": str(tmp_path / "log"), "control": 0.5} | changes
    with pytest.raises(InputError, match="it takes record, no arm, and a share below 1"):
        create_app(completer, Settings.beside(tmp_path / "model", **given))


def interleaved(completer, tmp_path, taken, typing=("sal", "sa"), compositions=40):
    """Let people type to a service that interleaves, and take what `taken` says of the list."""
    settings = Settings.beside(
        tmp_path / "model", record=str(tmp_path / "log"), record_unasked=True, interleave=1.0
    )
    app = create_app(completer, settings)
    app.desk._compositions._mixer = np.random.default_rng(5)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        for number in range(compositions):
            of = {"user": f"u{number % (compositions // 2)}", "composition": f"c{number}"}
            for second, typed in enumerate(typing):
                asked = of | {"q": typed, "t": 3000.0 * second}
                shown = client.get("/suggest", params=asked).json()[1]
            assert len(set(shown)) == len(shown)
            client.post("/submit", json=of | {"query": taken(shown)})
    return read_ubi(tmp_path / "log")[0]


def test_who_ranks_better_gets_the_credit_of_interleaved_lists(completer, tmp_path):
    static = [each.text for each in completer.suggest("sa")]
    typing = completer.compose(completer.user())
    for second, typed in enumerate(("sal", "sa")):
        better = [each.text for each in typing.suggest(typed, at=3.0 * second)]
    assert better[0] != static[0]
    table = interleaved(completer, tmp_path, lambda shown: better[0])
    found = judge_interleaving(table)
    assert (found.compositions, found.users, found.model) == (40, 20, 40)
    assert found.preference.low > 0
    (tmp_path / "other").mkdir()
    table = interleaved(completer, tmp_path / "other", lambda shown: static[0])
    assert judge_interleaving(table).preference.high < 0


def test_two_orders_that_are_the_same_get_even_credit(
    make_completer, tmp_path, monkeypatch, capsys
):
    static = make_completer(model="static")
    table = interleaved(static, tmp_path, lambda shown: shown[0], compositions=100)
    found = judge_interleaving(table)
    assert found.static + found.model == 100
    assert found.preference.low < 0 < found.preference.high
    assert {row["teams"][:2] for row in table.to_pylist()} == {"01", "10"}
    records = [
        json.loads(line)
        for file in (tmp_path / "log").glob("queries-*.jsonl")
        for line in file.read_text().splitlines()
    ]
    for record in records:  # a fair coin for every two
        said = record["query_attributes"]
        assert said["propensity"] == 0.5 ** np.ceil(len(said["teams"]) / 2)
        assert len(said["teams"]) == len(record["query_response_hit_ids"])
    said = []
    for more in ([], ["--json"]):
        command = ["telic", "completion", "trial", str(tmp_path / "log"), *more]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        said.append(capsys.readouterr().out)
    assert "100 interleaved compositions" in said[0]
    assert json.loads(said[1]) == found.facts()


def test_what_is_taken_is_its_pick_however_it_is_spelled(tmp_path):
    """As acceptance has it: a page may submit in small letters what it was shown in large ones."""
    with recording(tmp_path / "log") as recorder:
        for number, taken in enumerate(("tea", "TEN", "Tea", "hot TEA", "teapot")):
            typing = recorder.begin(f"u{number}")
            recorder.keystroke(typing, "te", 0.0, ["Tea", "Ten", "Hot tea"], Teams("10", 0.5))
            recorder.submission(typing, taken)
    table, _ = read_ubi(tmp_path / "log")
    assert sorted(table["selected"].to_pylist(), key=str) == [1, 1, 2, 3, None]
    found = judge_interleaving(table)
    assert (found.model, found.static) == (2, 1)


@pytest.mark.parametrize(("users", "sure"), [(2, False), (12, True)])
def test_a_few_who_happen_to_agree_do_not_make_a_preference_certain(users, sure):
    """Of two fair coins both are heads one time in four."""
    table = pa.table(
        {
            "user": [f"u{user}" for user in range(users) for _ in range(3)],
            "selected": pa.array([1] * 3 * users, pa.int16()),
            "teams": ["10"] * 3 * users,
        }
    )
    found = judge_interleaving(table).preference
    assert found.value == 1
    assert found.low < found.high == 1
    assert (found.low > 0) == sure


def test_what_is_typed_in_full_is_nobodys_pick(completer, tmp_path):
    new = itertools.count()
    found = judge_interleaving(interleaved(completer, tmp_path, lambda shown: f"sap{next(new)}"))
    assert (found.static, found.model, found.preference.value) == (0, 0, 0.0)
    (tmp_path / "whole").mkdir()
    table = interleaved(completer, tmp_path / "whole", lambda shown: shown[0], ("so", "soup"))
    found = judge_interleaving(table)  # it was in the list, and was not taken from it
    assert (found.static, found.model) == (0, 0)
    with pytest.raises(InputError, match="no list was interleaved"):
        judge_interleaving(pa.table({"user": ["a"]}))
    with pytest.raises(InputError, match="teams: expected 0 or 1"):
        judge_interleaving(pa.table({"teams": [10]}))  # which numbers cannot tell from 010


@pytest.mark.parametrize("changes", [{"record": ""}, {"control": 0.1}, {"interleave": 1.5}])
def test_interleaving_that_can_tell_nothing_is_refused(completer, tmp_path, changes):
    (tmp_path / "log").mkdir()
    given = {"record": str(tmp_path / "log"), "interleave": 0.5} | changes
    with pytest.raises(InputError, match="interleave is"):
        create_app(completer, Settings.beside(tmp_path / "model", **given))
