"""What is recorded is whole, private, bounded, and gone when its user is forgotten."""

import errno
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from telic.completion import fit_files
from telic.data.ubi import MAX_ID, Arm, Teams, read_ubi
from telic.errors import InputError
from telic.serve.state import composition_recorder
from telic.serve.state.composition_recorder import Recorder, erase, network_digest, recorded


def started(*given, **limits):
    recorder = Recorder(*given, **limits)
    recorder.start()
    return recorder


def type_and_submit(recorder, user, query, *prefixes, shown=("salad", "soup")):
    typing = recorder.begin(user)
    for at, prefix in enumerate(prefixes):
        recorder.keystroke(typing, prefix, float(at), list(shown))
    recorder.submission(typing, query)
    return typing


def test_a_composition_is_recorded_with_what_was_selected(tmp_path, caplog):
    recorder = started(tmp_path / "log")
    type_and_submit(recorder, "ada", "soup", "s", "so")
    type_and_submit(recorder, "bob", "soup", "s", "soup")  # typed to its end, though it was shown
    type_and_submit(recorder, "bo", "Soup", "s", "so")
    type_and_submit(recorder, "bea", "Soup", "s", "SOUP")
    type_and_submit(recorder, "cyd", "tea", "t", "te\ud800")
    type_and_submit(recorder, "dan", "tea")  # nothing was asked for
    recorder.close()
    table, left_out = read_ubi(tmp_path / "log")
    assert left_out == {}
    assert table.select(["user", "query", "selected"]).to_pylist() == [
        {"user": "ada", "query": "soup", "selected": 2},
        {"user": "bob", "query": "soup", "selected": None},
        {"user": "bo", "query": "Soup", "selected": 2},
        {"user": "bea", "query": "Soup", "selected": None},
        {"user": "cyd", "query": "tea", "selected": None},
    ]
    strokes = table["keystrokes"].to_pylist()
    assert [stroke["prefix"] for stroke in strokes[4]] == ["t", "te?"]
    seconds = (strokes[0][1]["at"] - strokes[0][0]["at"]).total_seconds()
    assert seconds == 1.0
    assert recorder.lost == 0
    assert not caplog.records


def test_files_are_their_owners_alone(tmp_path):
    recorder = started(tmp_path / "log")
    type_and_submit(recorder, "ada", "soup", "s")
    recorder.close()
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in recorded(tmp_path / "log")} == {0o600}


def test_what_is_too_old_is_deleted(tmp_path):
    old, young = "queries-20240101T000000000000-7.jsonl", "events-20240101T000000000000-7.jsonl"
    ages = {old: 3, young: 1, "notes.txt": 9, "queries-2023.jsonl": 9, "events-all.jsonl": 9}
    for name, days in ages.items():
        (tmp_path / name).write_text("{}\n")
        os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)
    recorder = started(tmp_path, days=2)
    type_and_submit(recorder, "ada", "soup", "s")
    recorder.close()
    # Another system's records, or an export of them, may lie in the same folder.
    assert [name for name in ages if not (tmp_path / name).exists()] == [old]


def test_the_oldest_of_what_is_too_much_is_deleted(tmp_path):
    recorder = started(tmp_path, megabytes=0.02)
    for i in range(100):
        type_and_submit(recorder, f"u{i}", "soup", "s", "so", "sou")
        assert recorder.flush(10.0)  # a busy machine would write many at once
    recorder.close()
    files = recorded(tmp_path)
    assert len(files) > 2
    sizes = sorted(file.stat().st_size for file in files)
    assert sum(sizes) < 0.02e6 * 1.6
    assert sizes[len(sizes) // 2] < 2 * 0.02e6 / 20  # so little is deleted at a time
    assert "u99" in "".join(file.read_text() for file in files)


def test_a_disk_that_fails_is_said_once_and_loses_whole_compositions(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(composition_recorder, "CALM", 0.0)
    folder = tmp_path / "log"
    recorder = started(folder)
    first = recorder.begin("ada")
    folder.rename(tmp_path / "away")
    recorder.keystroke(first, "s", 0.0, ["soup"])
    deadline = time.monotonic() + 10
    while not recorder.lost and time.monotonic() < deadline:
        time.sleep(0.01)
    recorder.keystroke(first, "so", 1.0, ["soup"])
    while recorder.lost < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    (tmp_path / "away").rename(folder)
    recorder.keystroke(first, "sou", 2.0, ["soup"])
    recorder.submission(first, "soup")
    type_and_submit(recorder, "bob", "soup", "s")
    recorder.close()
    table, left_out = read_ubi(folder)
    assert table["user"].to_pylist() == ["bob"]
    assert left_out == {"submissions with a keystroke missing": 1}
    assert caplog.text.count("nothing is recorded") == 1
    assert "it is recorded again; 2 records were lost" in caplog.text
    assert "ada" not in caplog.text


def test_a_disk_that_is_full_for_moments_leaves_no_half_line_and_says_so_once(
    tmp_path, caplog, monkeypatch
):
    now, full = [0.0], [False]
    monkeypatch.setattr(composition_recorder.time, "monotonic", lambda: now[0])
    fdopen = os.fdopen

    class Disk:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def fileno(self):
            return self.file.fileno()

        def write(self, given):
            if full[0] and len(given) < 30:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(given[: len(given) // 2 + 1])  # a part, as systems may

    monkeypatch.setattr(os, "fdopen", lambda *given: Disk(fdopen(*given)))
    recorder = Recorder(tmp_path)
    for number in range(40):
        full[0] = number % 4 == 1
        recorder._write("queries", [{"number": number}, {"text": "x" * 60}])
    now[0] += composition_recorder.CALM
    recorder._write("queries", [{"number": 40}])
    assert recorder.lost == 20
    (file,) = recorded(tmp_path)
    numbers = [json.loads(line).get("number") for line in file.read_text().splitlines()]
    assert [each for each in numbers if each is not None] == [
        number for number in range(41) if number % 4 != 1
    ]
    assert [record.getMessage() for record in caplog.records] == [
        "nothing is recorded: No space left on device",
        "it is recorded again; 20 records were lost",
    ]


@pytest.mark.parametrize("vanishes", ["stat", "unlink"])
def test_files_that_other_workers_delete_meanwhile_cost_no_record(
    tmp_path, monkeypatch, caplog, vanishes
):
    for number in range(3):
        old = tmp_path / f"queries-20200101T00000000000{number}-1.jsonl"
        old.touch()
        os.utime(old, (0, 0))
    does, gone = getattr(Path, vanishes), []

    def too_late(self, **options):
        if self.name.startswith("queries-2020") and not gone:
            gone.append(self)
            os.unlink(self)
        return does(self, **options)

    monkeypatch.setattr(Path, vanishes, too_late)
    recorder = Recorder(tmp_path)
    recorder._write("queries", [{"number": 1}])
    assert (recorder.lost, len(gone), caplog.text) == (0, 1, "")
    assert len(recorded(tmp_path)) == 1


def test_old_files_that_cannot_be_deleted_are_said_and_cost_no_record(
    tmp_path, monkeypatch, caplog
):
    old = tmp_path / "queries-20200101T000000000000-1.jsonl"
    old.touch()
    os.utime(old, (0, 0))

    def refuse(self, **options):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    recorder = Recorder(tmp_path)
    recorder._write("queries", [{"number": 1}])
    assert recorder.lost == 0
    assert "old records are not deleted: Operation not permitted" in caplog.text


def test_a_half_written_line_is_erased_whoever_it_is_of(tmp_path):
    """As a process that was killed may leave it."""
    whole = json.dumps({"client_id": "ann", "user_query": "tea"})
    half = json.dumps({"client_id": "ada", "user_query": "what nobody may read"})[:-5]
    file = tmp_path / "queries-20260101T000000000000-1.jsonl"
    file.write_text(f"{whole}\n{half}\n[1]\n{half[:10]}")
    assert erase(tmp_path, "ada") == 0
    assert file.read_text() == whole + "\n"


def test_records_of_keystrokes_are_no_searches(tmp_path):
    recorder = started(tmp_path)
    type_and_submit(recorder, "zoe", "soup", "s", "so")
    recorder.close()
    (file,) = tmp_path.glob("queries-*")
    with pytest.raises(InputError, match=r"queries-.*: holds a service's records.*Give the folder"):
        fit_files(file)


def test_a_user_is_erased_and_nobody_else(tmp_path):
    recorder = started(tmp_path)
    type_and_submit(recorder, "zoe", "soup", "s", "so")
    type_and_submit(recorder, "bob", "soup", "s")
    recorder.close()
    with next(tmp_path.glob("queries-*")).open("a") as file:
        file.write("half a li")
    assert erase(tmp_path, "zoe") == 3
    assert erase(tmp_path, "zoe") == 0
    left = [file.read_text() for file in recorded(tmp_path)]
    assert not any("zoe" in text for text in left)  # letters that no random id holds
    assert not any("half a li" in text for text in left)  # it may be anybody's
    table, _ = read_ubi(tmp_path)
    assert table["user"].to_pylist() == ["bob"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in recorded(tmp_path)} == {0o600}


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be recorded to"):
        Recorder(tmp_path / "file" / "log")


def test_records_are_lines_of_json(tmp_path):
    recorder = started(tmp_path)
    type_and_submit(recorder, "ada", "a\nb", "a\n")
    recorder.close()
    for file in recorded(tmp_path):
        assert all(isinstance(json.loads(line), dict) for line in file.read_text().splitlines())


def test_a_composition_that_goes_on_was_begun_as_long_ago_as_is_said(tmp_path):
    recorder = Recorder(tmp_path)
    typing = recorder.begin("ada", tenant="shop", arm=Arm("model", 0.5))
    further = recorder.again(typing, 3600.0)
    assert further.composition != typing.composition
    assert (further.user, further.tenant, further.arm) == ("ada", "shop", Arm("model", 0.5))
    late = further.time(3600.0) - typing.time(0.0)  # of its next keystroke, which is now
    assert abs(late.total_seconds()) < 600


def test_networks_are_recorded_by_digests_that_take_the_folders_key(tmp_path):
    first = started(tmp_path / "log", networks=True)
    another = started(tmp_path / "log", networks=True)  # a worker beside it
    plain = started(tmp_path / "log")
    addresses = ["192.0.2.7", "192.0.2.7", "192.0.2.8", "2001:db8::1", "2001:db8::2", ""]
    for number, address in enumerate(addresses):
        recorder = (first, another)[number % 2]
        typing = recorder.begin(f"u{number}", address=address, tenant="shop" if number else None)
        recorder.keystroke(typing, "s", 0.0, ["soup"])
        typing = recorder.again(typing, 1.0)
        recorder.keystroke(typing, "so", 2.0, ["soup"])
        recorder.submission(typing, "soup")
    typing = plain.begin("ada", address="192.0.2.7")
    plain.keystroke(typing, "s", 0.0, ["soup"])
    plain.submission(typing, "soup")
    for recorder in (first, another, plain):
        recorder.close()
    table, _ = read_ubi(tmp_path / "log")
    found = {row["user"]: row for row in table.to_pylist()}
    a, b, c, d, e, f = (found[f"u{number}"]["network"] for number in range(6))
    assert a == b
    assert d == e  # one subscriber's
    assert len({a, c, d, f, found["ada"]["network"]}) == 4
    assert f is None
    assert found["u0"]["tenant"] is None
    assert found["u1"]["tenant"] == "shop"
    key = tmp_path / "log" / "network.key"
    assert a == network_digest("192.0.2.7", key.read_bytes())
    assert a != network_digest("192.0.2.7", b"another" * 4)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sorted(file.name for file in (tmp_path / "log").glob("network*")) == ["network.key"]
    assert "192.0.2" not in "".join(file.read_text() for file in recorded(tmp_path / "log"))


def test_an_id_that_the_form_of_records_has_no_room_for_is_not_recorded(tmp_path):
    recorder = Recorder(tmp_path)
    assert recorder.begin("u" * MAX_ID).user == "u" * MAX_ID
    assert recorder.begin("u" * (MAX_ID + 1)) is None


def test_records_that_wait_for_the_disk_are_bounded_and_what_is_lost_is_counted(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(composition_recorder, "MAX_WAITING", 2)
    recorder = Recorder(tmp_path)  # whose thread has not begun
    typing = recorder.begin("ada")
    for at in range(3):
        recorder.keystroke(typing, "s", float(at), ["soup"])
    assert recorder.lost == 1


def test_a_file_is_a_twentieth_of_all_at_most_and_64_mb(tmp_path):
    assert Recorder(tmp_path)._part == 64_000_000
    assert Recorder(tmp_path, megabytes=100)._part == 5_000_000
    assert Recorder(tmp_path, megabytes=100, days=2)._limits == (2 * 86_400, 100_000_000)


def test_a_folder_that_is_there_but_not_ones_own_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(InputError, match=r"cannot be recorded to\. Name a folder of your own"):
        Recorder(tmp_path)


def test_each_day_has_a_file_of_its_own_so_that_no_record_outlives_its_days(tmp_path, monkeypatch):
    class Clock(datetime):
        today = datetime(2026, 1, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz=None):
            return cls.today

    monkeypatch.setattr("telic.serve.state.composition_recorder.datetime", Clock)
    recorder = Recorder(tmp_path)
    for hours in (0, 1, 24):
        Clock.today = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        recorder._write("queries", [{"hour": hours}])
    files = sorted(recorded(tmp_path))
    assert [file.read_text() for file in files] == ['{"hour": 0}\n{"hour": 1}\n', '{"hour": 24}\n']


def test_an_interleaved_composition_has_the_probability_of_the_list_that_it_tells_of(tmp_path):
    recorder = started(tmp_path)
    for teams in (("011", 0.25), ("10", 0.5)), (("1", 0.5), None), (None, None):
        typing = recorder.begin("u", arm=Arm("a", 0.75))
        for at, drawn in enumerate(teams):
            recorder.keystroke(typing, "s", float(at), ["salad"], drawn and Teams(*drawn))
        recorder.submission(typing, "salad")
    recorder.close()
    rows = read_ubi(tmp_path)[0].to_pylist()
    assert (rows[0]["teams"], rows[0]["propensity"]) == ("10", 0.5)
    assert rows[2]["propensity"] == 0.75
