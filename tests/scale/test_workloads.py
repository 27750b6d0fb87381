"""Every workload in memory, on threads with small partitions, and on worker processes: the same."""

import errno
import json
import os
import re
import shutil
from dataclasses import fields, is_dataclass, replace
from functools import partial, update_wrapper
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.reference.random_networks import random_network
from tests.scale.cluster import Cluster, wait_for
from typer.testing import CliRunner

import telic
from telic.auc import (
    SPAM,
    ConjugateGradientAUC,
    ExactAUC,
    FileDesign,
    auc_in_pieces,
    cg_in_pieces,
    exact_in_pieces,
    file_design,
    moments_of,
    spam_in_pieces,
    table_in_pieces,
)
from telic.auc.drawn_rows import Draws
from telic.auc.file_design import BLOCK
from telic.auc.methods.spam import centred, spam_pass, step_sizes
from telic.auc.optimality_bound import certified
from telic.auc.partitioned import partitions
from telic.auc.passes import columns_of
from telic.auc.table_in_pieces import design_of, fit_measured_in_pieces
from telic.auc.table_ranker import Ranker
from telic.cli import app
from telic.completion import CAREFUL, PAPER, Replay, fit_completer, fit_files
from telic.completion.fit import from_pieces, static_box
from telic.completion.fit.from_pieces import CountedLog, count_logs
from telic.completion.fit.log_parts import CHUNK
from telic.completion.fit.merged_phrases import Gathered
from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.fit.phone_models import fit_phone_models
from telic.completion.fit.sources import read_sources
from telic.data.compositions import read_compositions
from telic.data.pieces import open_pieces
from telic.data.queries import read_query_log
from telic.data.recognised_columns import shape_of
from telic.errors import InputError, JobError
from telic.evaluate.classification import roc_auc
from telic.hin import Schema, write_network
from telic.optim.admm import consensus_admm
from telic.privacy import Adversary, Auxiliary, attack, risks
from telic.privacy.attacks import dehin_in_pieces
from telic.privacy.risk import views_in_pieces
from telic.scale import Dask, Local, row_ranges
from telic.scale.cluster_check import check_cluster
from telic.simulate import Affinity, Catalogue, simulate_phones, simulate_typists
from telic.simulate.hospital import simulate_hospital
from telic.specialty import GibbsLDA
from telic.specialty.discovery import by_topics
from telic.specialty.log.log_files import read_log
from telic.specialty.recognition.recognise import recognise

DAY = 24 * 3600 * 1_000_000


def query_log(path, rows=3000, *, seed=0):
    """Write a log whose spellings merge, whose times tie, and in which some name nobody."""
    rng = np.random.default_rng(seed)
    texts = ["Tea", "tea", "TÉA ", "new  york", "New York", "são paulo", "Sao Paulo", "\ttea"]
    texts += [f"item {i}" for i in range(120)]
    share = 1 / np.arange(1, len(texts) + 1)
    user = np.array([f"u{i}" for i in rng.integers(0, 150, rows)], object)
    user[rng.random(rows) < 0.01] = None
    at = 1_700_000_000_000_000 + rng.integers(0, 100, rows) * DAY
    table = pa.table(
        {
            "query": pa.array(rng.choice(texts, rows, p=share / share.sum())),
            "at": pa.array(at, pa.timestamp("us", tz="UTC")),
            "user": pa.array(user, pa.string()),
            "count": rng.integers(0, 4, rows).astype(float),
        }
    )
    pq.write_table(table, path, row_group_size=250)
    return table


@pytest.fixture
def small_pieces(monkeypatch):
    """Let every engine cut a log of some thousand rows into many pieces."""

    def plan(work, rows, executor):
        work.mkdir(parents=True, exist_ok=True)
        return {"rows": 600, "buckets": 3}

    monkeypatch.setattr(from_pieces, "_plan", plan)
    monkeypatch.setattr(static_box, "HELD_OUT", 60)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder by a relative name: this process's, not a worker's."""
    monkeypatch.chdir(tmp_path)
    return Path()


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_a_query_log_in_pieces_gives_the_same_search_box(engine, small_pieces, tmp_path):
    query_log(tmp_path / "log.parquet")
    (tmp_path / "list.csv").write_text("phrase,weight\nItem 1,5\nnever searched,2\nTokyo,1\n")
    files = tmp_path / "log.parquet", tmp_path / "list.csv"
    whole = fit_files(*files)
    work = tmp_path / "job"
    pieces = fit_files(*files, executor=engine, work=work)
    assert whole.found == pieces.found
    for name, completer in (("whole", whole), ("pieces", pieces)):
        completer.save(tmp_path / name)
    assert contents(tmp_path / "whole") == contents(tmp_path / "pieces")
    assert [list(user.history) for user in pieces.users.values()] == [
        list(user.history) for user in whole.users.values()
    ]
    fit_files(*files, executor=engine, work=work)
    again = engine.reports[len(engine.reports) // 2 :]
    assert all(report.facts()["attempts"] == 0 for report in again), "the second fit went on"
    (tmp_path / "list.csv").write_text("phrase,weight\nItem 2,5\n")
    with pytest.raises(InputError, match="holds results of another job"):
        fit_files(*files, executor=engine, work=work)


@pytest.mark.parametrize("user", [None, "empty", "some"])
def test_a_log_that_names_few_users_or_none_is_counted_in_pieces(small_pieces, tmp_path, user):
    table = query_log(tmp_path / "log.parquet").drop("user")
    if user is not None:
        named = np.arange(len(table)) < (3 if user == "some" else 0)
        table = table.append_column("user", pa.array(np.where(named, "u", None), pa.string()))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=250)
    files = [tmp_path / "log.parquet"]
    if user == "some":  # what they alone hold is not suggested, but what a catalogue has
        files.append(tmp_path / "catalogue.csv")
        files[1].write_text("query,at\nitem 7,2023-11-20\nitem 8,2024-02-01\n")
    whole = fit_files(*files)
    pieces = fit_files(*files, executor=Local(threads=1))
    assert len(whole.index) == {"some": 2, "empty": 0}.get(user, 123)
    assert pieces.found == whole.found
    for name, completer in (("whole", whole), ("pieces", pieces)):
        completer.save(tmp_path / name)
    assert contents(tmp_path / "whole") == contents(tmp_path / "pieces")


def test_who_vouches_does_not_hang_on_rows_that_are_left_out(small_pieces, tmp_path, monkeypatch):
    """Whatever cannot be read of those who are named, what others searched for is kept back."""
    log = tmp_path / "log.csv"
    rows = [f"u{i},tea,2026-01-01\n" for i in range(9)] + [",my secret,2026-01-02\n"] * 9
    log.write_text("".join(["user,query,at\n", *(row.replace("2026-01-01", "?") for row in rows)]))
    for executor in (None, Local(threads=1)):
        box = fit_files(log, on_bad_row="skip", executor=executor)
        assert len(box.index) == 0
        assert box.found["queries kept back that rows without a user hold, too"] == 1
    log.write_text("".join(["user,query,at\n", *rows]))
    table = pyarrow.csv.read_csv(log)
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=9)
    monkeypatch.setattr(from_pieces, "_plan", lambda *_: {"rows": 9, "buckets": 2})
    bucket = from_pieces.bucket

    def broken(buckets, latest, on_bad_row, source, out):
        if source.rows.first == 0:
            raise OSError(5, "the disk is broken")
        bucket(buckets, latest, on_bad_row, source, out)

    monkeypatch.setattr(from_pieces, "bucket", broken)
    box = fit_files(tmp_path / "log.parquet", executor=Local(threads=1), skip_bad=True)
    assert box.found["partitions skipped"]
    assert len(box.index) == 0


@pytest.mark.parametrize("min_users", [1, 3])
def test_pieces_know_at_each_moment_what_is_known_in_memory(small_pieces, tmp_path, min_users):
    rng = np.random.default_rng(3)
    for number, named in enumerate([0.6, 0.0]):  # the second is a catalogue
        rows = 700 >> 3 * number
        user = np.where(rng.random(rows) < named, rng.integers(0, 6, rows).astype(str), None)
        at = 1_700_000_000_000_000 + rng.integers(0, 60, rows) * DAY
        columns = {"query": [f"item {i}" for i in (rng.exponential(20, rows)).astype(int)]}
        columns |= {"at": pa.array(at, pa.timestamp("us", tz="UTC")), "user": user.tolist()}
        columns["count"] = rng.integers(0, 4, rows).astype(float)
        if not named:
            del columns["user"]
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    whole = Gathered(None, read_sources(files).logs, min_users=min_users)
    counts = count_logs(
        read_sources(files, in_pieces=True).unread,
        Local(threads=1),
        tmp_path / "job",
        min_users=min_users,
        latest=150,
    )
    pieces = CountedLog(None, counts, memory=2**30)
    assert pieces.kept_back() == whole.kept_back()
    split = whole.held_out(150).split
    assert split == counts.moments.split
    for until in (None, split):
        one, other = whole.counts(until=until), pieces.counts(until=until)
        assert (one.shy, one.unnamed) == (other.shy, other.unnamed)
        assert one.unnamed < one.shy or min_users == 1
        for name in ("popular", "recent"):
            a, b = (
                {
                    form: getattr(found, name)[place]
                    for form, place in of.forms.items()
                    if found.opened[place]
                }
                for of, found in ((whole, one), (pieces, other))
            )
            assert a == b
            assert len(a) < len(whole.forms) or until is None


def test_lists_and_objects_of_json_are_told_from_text_in_pieces_too(tmp_path, monkeypatch):
    monkeypatch.setattr("telic.data.pieces.PIECE", 3)
    monkeypatch.setattr("telic.completion.fit.counts_in_pieces.BATCH", 4)
    queries = [{"x": i} if i in (1, 4, 8) else f"tea {i}" for i in range(9)]
    rows = [
        {"query": query, "at": "2024-01-01", "user": ["u"] if query == "tea 6" else "u"}
        for query in queries
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    how = {"min_users": 1, "on_bad_row": "skip"}
    whole = fit_files(tmp_path / "log.jsonl", **how)
    pieces = fit_files(tmp_path / "log.jsonl", executor=Local(threads=1), **how)
    assert pieces.found == whole.found
    for found in (whole, pieces):
        phrases = found.index.phrases(range(len(found.index)))
        assert phrases == ["tea 0", "tea 2", "tea 3", "tea 5", "tea 7"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_the_folder_of_a_log_that_was_another_is_refused(small_pieces, tmp_path, ending):
    log = tmp_path / f"log.{ending}"

    def fitted(query):
        line = {"query": query, "at": "2024-01-01", "user": "u"}
        text = ",".join(line) + "\n" + ",".join(line.values()) if ending == "csv" else ""
        log.write_text(text or json.dumps(line))
        return fit_files(log, executor=Local(threads=1), work=tmp_path / "job", min_users=1)

    assert [one.text for one in fitted("tea").suggest("t")] == ["tea"]
    with pytest.raises(InputError, match="holds results of another job"):
        fitted("toast")


def test_a_job_that_is_asked_for_smaller_pieces_begins_anew_with_them(tmp_path, monkeypatch):
    """And one that is asked for larger ones, or for none, goes on with the smallest."""
    monkeypatch.setattr(static_box, "HELD_OUT", 60)
    query_log(tmp_path / "log.parquet", 750)
    found = []
    for piece in (4 * 10**5, 2 * 10**5, 4 * 10**5):
        engine = Local(threads=1)
        monkeypatch.setattr(Local, "piece", piece)
        box = fit_files(tmp_path / "log.parquet", executor=engine, work=tmp_path / "job")
        box.save(tmp_path / f"box-{len(found)}")
        found.append((len(engine.reports[0].tasks), engine.reports[0].facts()["attempts"]))
    assert found == [(2, 2), (3, 3), (3, 0)]
    for other in (1, 2):
        assert contents(tmp_path / f"box-{other}") == contents(tmp_path / "box-0")


def test_pieces_count_sessions(small_pieces, tmp_path):
    minutes = [0, 10, 50, 200, 215, 5]
    table = pa.table(
        {
            "query": ["a", "b", "a", "a", "a", "b"],
            "at": pa.array([m * 60_000_000 for m in minutes], pa.timestamp("us", tz="UTC")),
            "user": ["u", "u", "u", "u", "u", "v"],
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    fit_files(
        tmp_path / "log.parquet", executor=Local(threads=1), work=tmp_path / "job", min_users=1
    )
    files = sorted((tmp_path / "job").glob("*/by-form/*/forms.parquet"))
    found = pa.concat_tables([pq.read_table(file) for file in files])
    # u's pauses after minutes 10 and 50 are longer than half an hour: sessions 0–10, 50, 200–215.
    assert dict(zip(found["form"].to_pylist(), found["sessions"].to_pylist(), strict=True)) == {
        "a": 3,
        "b": 2,
    }


def test_a_row_that_cannot_be_used_is_named_in_pieces_too(engine, small_pieces, tmp_path):
    table = query_log(tmp_path / "log.parquet")
    bad = table.set_column(0, "query", pa.array([*table["query"].to_pylist()[:-1], " "]))
    pq.write_table(bad, tmp_path / "bad.parquet", row_group_size=250)
    with pytest.raises(Exception, match=r"bad\.parquet: row 3000: column 'query'"):
        fit_files(tmp_path / "bad.parquet", executor=engine, work=tmp_path / "job")
    found = fit_files(
        tmp_path / "bad.parquet", executor=engine, work=tmp_path / "skip", on_bad_row="skip"
    ).found
    assert "1 rows skipped" in found["files"][0]


def test_what_does_not_fit_is_said(tmp_path, small_pieces):
    query_log(tmp_path / "log.parquet")
    engine = Local(threads=1)
    engine.own_memory = 2**20
    box = fit_files(tmp_path / "log.parquet", executor=engine)
    assert not box.users
    assert "queries of users would take about" in box.found["personal history"]
    (tmp_path / "aol.txt").write_text("AnonID\tQuery\tQueryTime\n1\ttea\t2006-03-01 07:17:12\n")
    with pytest.raises(InputError, match="rows depend on one another"):
        fit_files(tmp_path / "aol.txt", executor=Local())


def test_the_command_takes_memory_or_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # relative names are this process's, not a worker's
    monkeypatch.setattr(static_box, "HELD_OUT", 60)
    query_log(tmp_path / "log.parquet")
    lines = []
    for number, options in enumerate(([], ["--memory", "1GiB"], ["--cluster", cluster.address])):
        out = Path(f"box{number}")
        arguments = ["completion", "fit", "log.parquet", str(out), *options]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        lines.append(result.stderr)
        assert contents(out) == contents(Path("box0"))
    assert "counts_in_pieces.bucket: 1 partitions; 1 attempts" in lines[1]
    assert "127.0.0.1" in lines[2]
    assert not list(tmp_path.glob("*.job"))


def test_the_recipe_for_spark_takes_and_gives_arrow(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-a-cluster.md").read_text()
    (code,) = re.findall(r"```py\n((?:(?!```).)*def completed.*?)```", page, re.S)
    names = {}
    exec(compile(code, "use-a-cluster.md", "exec"), names)
    (tmp_path / "list.csv").write_text("phrase,weight\ntea,3\nteapot,2\ncoffee,1\n")
    fit_files(tmp_path / "list.csv").save(tmp_path / "box")
    batches = pa.table({"prefix": ["te", "c", "x"]}).to_batches(max_chunksize=2)
    found = pa.Table.from_batches(names["completed"](batches, tmp_path / "box"))
    assert found.to_pydict() == {
        "prefix": ["te", "c", "x"],
        "suggestions": [["tea", "teapot"], ["coffee"], []],
    }


def test_ranges_of_rows_say_where_their_file_is_whoever_reads_them(here):
    query_log(here / "log.parquet")
    (part, *_) = row_ranges("log.parquet", 100)
    assert Path(part.path) == Path("log.parquet").absolute()
    with pytest.raises(InputError, match=r"absent\.parquet: cannot be read"):
        row_ranges("absent.parquet", 100)


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abc"[i] for i in row) for row in rng.integers(0, 3, (40, 9))})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


@pytest.fixture(scope="module")
def typed(catalogue):
    return simulate_typists(catalogue, setting="readers", users=8, compositions=16, seed=1)


def same(one, other):
    """Whether two results hold the same, arrays bit by bit."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if is_dataclass(one):
        names = [part.name for part in fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return one == other


@pytest.mark.parametrize("protocol", [CAREFUL, PAPER], ids=["careful", "paper"])
@pytest.mark.parametrize("chunk", [CHUNK, 30], ids=["one chunk", "chunks"])
def test_users_learn_in_buckets_what_they_learn_in_memory(
    engine, protocol, chunk, typed, tmp_path, monkeypatch
):
    monkeypatch.setattr("telic.completion.fit.log_parts.CHUNK", chunk)
    monkeypatch.setattr("telic.completion.fit.log_parts.RUN", 4 * chunk)
    replay = Replay(read_compositions(typed), min_compositions=4, min_users=1)
    relevance = fit_relevance(replay, "mpc", protocol)
    whole = fit_models(replay, relevance, protocol)
    assert len(np.unique(whole.personal, axis=0)) == 8
    engine.memory = 2**15  # some two users
    pieces = fit_models(replay, relevance, protocol, executor=engine, work=tmp_path)
    assert same(whole, pieces)
    assert all(len(report.tasks) >= 4 for report in engine.reports)
    before = len(engine.reports)
    engine.memory = 2**30  # the buckets stay those with which the job began
    again = fit_models(replay, relevance, protocol, executor=engine, work=tmp_path)
    assert same(whole, again)
    assert {report.facts()["attempts"] for report in engine.reports[before:]} == {0}
    engine.memory = 2**14  # unless it is asked for smaller ones
    buckets = max(len(report.tasks) for report in engine.reports)
    again = fit_models(replay, relevance, protocol, executor=engine, work=tmp_path)
    assert same(whole, again)
    assert max(len(report.tasks) for report in engine.reports) > buckets
    with pytest.raises(InputError, match="name a folder for the choices"):
        fit_models(replay, relevance, protocol, executor=engine)
    other = Replay(read_compositions(typed.slice(16)), min_compositions=4, min_users=1)
    with pytest.raises(InputError, match="holds another job's arrays"):
        fit_models(other, relevance, protocol, executor=engine, work=tmp_path)


def test_penalties_of_appaware_are_fitted_side_by_side(engine, catalogue, tmp_path):
    affinity = Affinity(
        [f"app {i}" for i in range(80)],
        np.ones(80),
        np.arange(81),
        np.arange(80) % len(catalogue.phrases),
        np.ones(80),
    )
    table = simulate_phones(
        catalogue, affinity=affinity, users=12, compositions=8, strength=0.9, seed=1
    )
    replay = Replay(read_compositions(table), min_users=1)
    relevance, variants = fit_relevance(replay, "mpc", CAREFUL), ("appaware-i", "appaware")
    whole = fit_phone_models(replay, relevance, CAREFUL, variants=variants)
    assert whole.models["appaware"].weights.value.any()
    for _ in range(2):
        before = len(engine.reports)
        pieces = fit_phone_models(
            replay, relevance, CAREFUL, variants=variants, executor=engine, work=tmp_path
        )
        assert same(whole, pieces)
        assert [len(report.tasks) for report in engine.reports[before:]] == [3, 1]
    assert {report.facts()["attempts"] for report in engine.reports[before:]} == {0}
    with pytest.raises(InputError, match="name a folder for the choices"):
        fit_phone_models(replay, relevance, CAREFUL, executor=engine)
    for name, options in (("whole", {}), ("pieces", {"executor": engine})):
        fit_completer(replay, model="appaware", **options).save(tmp_path / name)
    assert contents(tmp_path / "whole") == contents(tmp_path / "pieces")


def test_the_command_learns_from_compositions_on_an_engine(cluster, typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(typed, "log.parquet")
    run = CliRunner()
    for number, options in enumerate(([], ["--memory", "1GiB"], ["--cluster", cluster.address])):
        arguments = ["completion", "fit", "log.parquet", f"box{number}", *options]
        result = run.invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert contents(Path(f"box{number}")) == contents(Path("box0"))
        assert ("newton._fit_each" in result.stderr) == (number > 0)
        assert ("127.0.0.1" in result.stderr) == (number == 2)
    assert not list(tmp_path.glob("*.job"))
    result = run.invoke(app, [*arguments, "--overwrite", "--skip-bad-partitions"])
    assert "needs every partition" in str(result.exception)


def test_halves_of_users_are_recognised_side_by_side(engine, tmp_path):
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(40, 0.2), size=3)
    labels = np.repeat(["a", "", "b", "c"], [24, 5, 20, 20])
    kinds = np.repeat([0, 0, 1, 2], [24, 5, 20, 20])
    counts = sparse.csr_array(np.stack([rng.multinomial(9, profiles[k]) for k in kinds]))
    for method, every in (("Decision Trees", True), ("Naive", False)):
        whole = recognise(counts, labels, method=method, every=every)
        options = {"method": method, "every": every, "executor": engine, "work": tmp_path / "w"}
        assert same(whole, recognise(counts, labels, **options))
        assert same(whole, recognise(counts, labels, **options))
    attempts = [report.facts()["attempts"] for report in engine.reports]
    assert attempts == [10, 0, 10, 0]
    assert [str(task.partition) for task in engine.reports[0].tasks][3] == "3 (half 2 of round 2)"
    with pytest.raises(InputError, match="name a folder for the users"):
        recognise(counts, labels, executor=engine)
    with pytest.raises(InputError, match="holds another job's arrays"):
        recognise(counts, labels[::-1], **options)


@pytest.mark.slow
def test_the_command_recognises_on_an_engine(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate_hospital("log", scale=0.002)
    log = read_log("log")
    users = [log.users[u] for u in np.flatnonzero(log.taxonomy == "Dermatology")[:8]]
    found = {"name": "skin", "listed_code": None, "users": users, "diagnoses": [], "stability": 1}
    Path("found.json").write_text(json.dumps({"specialties": [found]}))
    run, told = CliRunner(), []
    arguments = ["specialty", "recognise", "log", "--found", "found.json", "--json"]
    arguments += ["--classifier", "Naive"]
    for options in ([], ["--memory", "1GiB"], ["--cluster", cluster.address]):
        result = run.invoke(app, [*arguments, *options])
        assert result.exit_code == 0, result.output
        told.append(result.stdout)
        assert ("recognise._measured_from_files" in result.stderr) == bool(options)
        assert ("127.0.0.1" in result.stderr) == ("--cluster" in options)
    assert told[0] == told[1] == told[2]
    assert json.loads(told[0])["recognition"]
    assert not list(tmp_path.glob("*.job"))


def test_topics_by_shards_are_those_in_memory_and_go_on(engine, here):
    counts = np.random.default_rng(3).poisson(0.4, (90, 20))

    def fit(n_topics=4, counts=counts, **options):
        model = GibbsLDA(n_topics=n_topics, max_iter=6, shards=3, random_state=5)
        return model.fit(counts, **options).components_.tobytes()

    def stop(job, finished, partitions):
        if len(engine.reports) == 4 and finished == 2:
            raise KeyboardInterrupt

    whole, options = fit(), {"executor": engine, "work": here / "job"}
    engine.watch = stop
    with pytest.raises(KeyboardInterrupt):
        fit(**options)
    engine.watch = None
    assert fit(**options) == whole
    assert [len(report.tasks) for report in engine.reports] == [3] * 8
    kept = [report.facts()["kept from an earlier run"] for report in engine.reports]
    assert kept[4] >= 2  # of the fourth round, which is done twice
    assert kept[5:] == [0, 0, 0]
    assert fit(**options) == whole
    assert len(engine.reports) == 8
    assert fit(5, **options) == fit(5)
    with pytest.raises(InputError, match="name a folder for the documents"):
        fit(executor=engine)
    with pytest.raises(InputError, match="holds another job's arrays"):
        fit(counts=counts[::-1], **options)


def test_the_command_finds_topics_on_an_engine(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate_hospital("log", scale=0.002)
    monkeypatch.setattr(by_topics, "GibbsLDA", partial(by_topics.GibbsLDA, max_iter=12))
    run, told = CliRunner(), []
    arguments = ["specialty", "discover", "log", "--json"]
    lda = ["--method", "lda", "--topics", "6", "--assign", "argmax", "--restarts", "1"]
    lda += ["--shards", "3"]
    for options in ([], ["--memory", "1GiB"], ["--cluster", cluster.address]):
        result = run.invoke(app, [*arguments, *lda, *options])
        assert result.exit_code == 0, result.output
        told.append(result.stdout)
        assert ("gibbs_rounds._round_of_files" in result.stderr) == bool(options)
        assert ("127.0.0.1" in result.stderr) == ("--cluster" in options)
    assert told[0] == told[1] == told[2]
    found = json.loads(told[0])
    assert found["details"]["shards"] == 3
    assert len(found["specialties"]) > 2
    for wrong in (["--memory", "1GiB"], ["--shards", "3"]):
        result = run.invoke(app, [*arguments, *wrong])
        assert "only 'lda' has shards or takes an executor" in str(result.exception)
    assert not list(tmp_path.glob("*.job"))


def test_risk_and_attack_take_memory_or_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    arguments = ["simulate", "world", "--users", "400", "--size", "40", "--density", "0.05"]
    assert run.invoke(app, ["privacy", *arguments]).exit_code == 0
    for command in (["risk", "world/target"], ["attack", "world/auxiliary", "world/target"]):
        plain = run.invoke(app, ["privacy", *command, "--json"])
        for options in (["--memory", "1GiB"], ["--cluster", cluster.address]):
            found = run.invoke(app, ["privacy", *command, "--json", *options])
            assert found.exit_code == 0, found.output
            assert found.stdout == plain.stdout
            assert "in_pieces._" in found.stderr
            assert ("127.0.0.1" in found.stderr) == (options[0] == "--cluster")
    kept = run.invoke(app, ["privacy", *command, "--memory", "1GiB", "--work", "here"])
    again = run.invoke(app, ["privacy", *command, "--cluster", cluster.address, "--work", "here"])
    assert "kept from an earlier run" not in kept.stderr
    assert "0 attempts" in again.stderr
    assert not list(tmp_path.glob("*.job"))


def test_a_cluster_is_checked(cluster, tmp_path):
    command = ["cluster", "check", cluster.address, "--folder", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    workers = json.loads(result.stdout)["workers"]
    assert len(workers) == 2
    assert all(not worker["wrong"] and abs(worker["clock"]) < 5 for worker in workers)
    assert not list(tmp_path.iterdir())


STRANGER = """
import time
from types import SimpleNamespace

import telic
from telic.scale import cluster_check

telic.__version__ = "0.0.9"
cluster_check.time = SimpleNamespace(time=lambda: time.time() + 60)
cluster_check._touch = lambda folder: "in another folder of this name"
"""


def test_a_worker_that_will_not_do_is_named_with_all_its_reasons(cluster, tmp_path):
    (tmp_path / "stranger.py").write_text(STRANGER)
    with Dask(cluster.address) as before:
        there = before.slots
        stranger = cluster.add_worker(str(tmp_path / "stranger.py"), memory="300MiB")
        try:
            wait_for(lambda: before.slots > there, "the stranger")
            command = ["cluster", "check", cluster.address, "--folder", str(tmp_path)]
            shown = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
            told = CliRunner().invoke(app, [*command, "--json"])
        finally:
            stranger.kill()
            stranger.wait()
            wait_for(lambda: before.slots == there, "the stranger's end")
    assert isinstance(told.exception, JobError)
    assert f"{there + 1} workers of {cluster.address}" in shown.stdout
    assert shown.stdout.count("good") == there
    assert f"1 of {there + 1} workers will not do" in str(shown.exception)
    (wrong,) = (one["wrong"] for one in json.loads(told.stdout)["workers"] if one["wrong"])
    assert [re.sub(r"[+]\d+ s$", "+n s", one) for one in wrong] == [
        f"has telic 0.0.9, this process {telic.__version__}",
        "its clock is off by +n s",
        "has 300 MiB for 1 threads",
        f"its {tmp_path} is not this process's: a folder of its own",
    ]


def test_a_cluster_that_cannot_be_checked_is_named(cluster, tmp_path):
    with pytest.raises(InputError, match="nowhere: cannot be written here"):
        check_cluster(cluster.address, tmp_path / "nowhere")
    alone = Cluster(tmp_path, workers=0)
    try:
        with pytest.raises(InputError, match=r"has no worker\. Start one with: dask worker"):
            check_cluster(alone.address)
    finally:
        alone.close()


def design_files(folder, rows=20_000, width=5, offset=1e5):
    """Write rows with a large offset, of few distinct values, as arrays and as Parquet."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (rows, width)) + offset
    y = np.where(X.sum(axis=1) + rng.normal(0, 2, rows) > np.median(X.sum(axis=1)) + 1, 1, 0)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    columns = {f"x{j}": X[:, j] for j in range(width)} | {"name": np.full(rows, "n"), "y": y}
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=3000)
    return X, y


def test_the_exact_ranker_and_its_auc_without_the_rows_in_memory(engine, here):
    X, y = design_files(here)
    arrays = FileDesign.open(here / "X.npy", here / "y.npy")
    table = FileDesign.open(here / "rows.parquet", "y")
    for beta1 in (0.0, 1e-3):
        whole = ExactAUC(beta=1e-3, beta1=beta1).fit(X, y)
        one = exact_in_pieces(arrays, beta=1e-3, beta1=beta1, executor=Local(threads=1))
        # Rounding alone: the offset is a hundred thousand times the spread.
        np.testing.assert_allclose(one.coef, whole.coef_[0], rtol=1e-7)
        engine.memory = 2**20  # three partitions of blocks
        for design in (arrays, table):
            found = exact_in_pieces(design, beta=1e-3, beta1=beta1, executor=engine)
            assert found.coef.tobytes() == one.coef.tobytes()
    coef = np.round(one.coef, 3)  # scores tie
    assert len(np.unique(X @ coef)) < 1000
    for number, design in enumerate((arrays, table)):
        engine.memory = 2**20
        found = auc_in_pieces(design, coef, executor=engine, out=here / f"scores{number}")
        assert found == roc_auc(y, X @ coef)


def test_conjugate_gradients_by_passes_over_a_file(engine, here):
    X, y = design_files(here, offset=1)
    arrays = FileDesign.open(here / "X.npy", here / "y.npy")
    for beta in (0.0, 1e-2):
        whole = ConjugateGradientAUC(beta=beta, tol=1e-10).fit(X, y)
        one = cg_in_pieces(arrays, beta=beta, tol=1e-10, executor=Local(threads=1))
        np.testing.assert_allclose(one.coef, whole.coef_[0], rtol=1e-6)
        assert one.converged is whole.converged_
    engine.memory = 2**20  # three partitions of blocks
    table = FileDesign.open(here / "rows.parquet", "y")
    for run in ("first", "kept"):
        before = len(engine.reports)
        found = cg_in_pieces(table, beta=beta, tol=1e-10, executor=engine, out=here / "passes")
        assert found.coef.tobytes() == one.coef.tobytes()
        assert found.gap == one.gap
        attempts = {report.facts()["attempts"] for report in engine.reports[before:]}
        assert attempts == ({3} if run == "first" else {0})


@pytest.mark.parametrize("beta1", [0.0, 1e-3])
def test_spam_over_a_file_of_one_group_is_spam(here, beta1):
    X, y = design_files(here, 3000, offset=1)
    design = FileDesign.open(here / "rows.parquet", "y")
    whole = SPAM(beta=1e-2, beta1=beta1, max_iter=4, random_state=5).fit(X, y)
    found = spam_in_pieces(design, beta=1e-2, beta1=beta1, max_passes=4, seed=5)
    np.testing.assert_allclose(found.coef, whole.coef_[0], rtol=1e-6)
    assert found.passes == 4
    assert found.converged is None
    assert found.gap == pytest.approx(whole.gap_, rel=1e-4)


def test_spam_over_a_file_steps_on_each_group_in_turn(here, monkeypatch):
    X, y = design_files(here, 20_000, offset=1)
    monkeypatch.setattr(file_design, "NUMBERS", 5 * 9000)
    arrays = FileDesign.open(here / "X.npy", here / "y.npy")
    table = FileDesign.open(here / "rows.parquet", "y")
    assert [tuple(g) for g in arrays.groups()] == [(0, 9000), (9000, 18_000), (18_000, 20_000)]
    assert arrays.groups() == table.groups()  # three of the table's groups of 3,000 rows
    positive, rng = y == 1, np.random.default_rng(5)
    view = centred(X, positive, True)
    order = []
    for _ in range(3):
        for g in rng.permutation(3):
            start, stop = arrays.groups()[g]
            order.append(start + Draws(X[start:stop]).independent(rng, stop - start))
    order = np.concatenate(order)
    steps = step_sizes("linear", np.arange(1.0, 60_001), 1e-2, view.bound, 1.0, 0.5)
    w = np.zeros(5)
    spam_pass(X, positive, view, w, order, steps, beta=1e-2, beta1=0.0)
    sure = certified(X, positive, w, 3, beta=1e-2, tol=None)
    for design in (arrays, table):
        found = spam_in_pieces(design, beta=1e-2, max_passes=3, seed=5)
        np.testing.assert_allclose(found.coef, w, rtol=1e-6)
        assert found.objective == pytest.approx(sure.objective)
    best = exact_in_pieces(arrays, beta=1e-2).objective
    assert 0 <= found.objective - best <= found.gap
    with pytest.raises(InputError, match="step 'linear' needs beta > 0"):
        spam_in_pieces(table, beta=0.0)


def test_spam_is_the_same_whoever_adds_up_its_sums(engine, here):
    design_files(here, 80_000, offset=1)
    design, alone = FileDesign.open(here / "rows.parquet", "y"), Local(threads=1)
    options = {"beta": 1e-2, "max_passes": 2, "seed": 5}
    one = spam_in_pieces(design, executor=alone, **options)
    engine.memory = 2**20
    found = spam_in_pieces(design, executor=engine, **options)
    assert (found.coef.tobytes(), found.gap) == (one.coef.tobytes(), one.gap)
    assert len(engine.reports) == len(alone.reports) == 4
    assert len(engine.reports[0].tasks) > len(alone.reports[0].tasks)


def labelled_table(rows=20_000):
    rng = np.random.default_rng(4)
    X = rng.normal(3, [1, 20, 1e-3], (rows, 3))
    fraud = (X - 3) @ [1, 0.05, 700] + rng.normal(size=rows) > 1.5
    columns = dict(zip("abc", X.T, strict=True)) | {"same": np.ones(rows)}
    return pa.table(
        columns | {"id": np.arange(rows).astype(str), "fraud": np.where(fraud, "y", "n")}
    )


@pytest.mark.parametrize(
    "options",
    [
        "--solver exact --scaling minmax",
        "--solver cg",
        "--penalty elasticnet --beta1 0.01 --threshold youden",
        "--solver cg --scaling raw --threshold top_k=50",
    ],
)
def test_a_table_is_fitted_in_pieces_to_the_same_ranker(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(labelled_table(), "rows.parquet", row_group_size=3000)
    arguments = ["auc", "fit", "rows.parquet", "--label", "fraud", "--drop", "id", "--json"]
    arguments += ["--beta", "0.001", *options.split()]
    found = {}
    for name, more in (("whole", []), ("pieces", ["--memory", "1GiB", "--piece", "1MiB"])):
        result = CliRunner().invoke(app, [*arguments, "--model", name, *more])
        assert result.exit_code == 0, result.output
        found[name] = Ranker.load(name), json.loads(result.stdout)
    (whole, said), (pieces, said_in_pieces) = found.values()
    np.testing.assert_allclose(pieces.coef, whole.coef, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(pieces.scaling.offset, whole.scaling.offset)
    np.testing.assert_allclose(pieces.scaling.factor, whole.scaling.factor)
    scores = np.abs(whole.coef) @ np.ones(4)
    assert pieces.intercept == pytest.approx(whole.intercept, abs=1e-3 * scores)
    assert pieces.positive_label == "y"
    assert set(said) == set(said_in_pieces)
    assert said["auc"] == pytest.approx(said_in_pieces["auc"], abs=0.05)
    assert 3700 < said_in_pieces["rows"] < 4300
    assert pieces.settings() == whole.settings()
    for part in ("rows", "positive"):
        assert pieces.fitted_on[part] == whole.fitted_on[part]


def test_rows_that_are_held_out_are_no_others(tmp_path):
    X, _ = design_files(tmp_path)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    parts = {}
    for seed in (0, 1):
        for held_out in (True, False):
            share = file_design.Share(0.2, seed, held_out)
            blocks = replace(design, share=share).blocks(0, design.rows)
            parts[seed, held_out] = np.concatenate([rows for rows, _ in blocks])
            np.testing.assert_array_equal(parts[seed, held_out], X[share.takes(np.arange(len(X)))])
        held, others = (file_design.Share(0.2, seed, side).takes(np.arange(999)) for side in (1, 0))
        assert (held ^ others).all()
        assert len(parts[seed, True]) == pytest.approx(0.2 * len(X), rel=0.05)
    assert len(parts[0, True]) != len(parts[1, True])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "column 'id' is of type string; a fit in pieces takes numbers"),
        ("--drop id --one-hot same", "--one-hot reads the table whole"),
        ("--drop id --solver vrspam", "solver: 'vrspam', expected auto, exact, cg, spam"),
        ("--drop id --solver cg --penalty elasticnet", "solver 'cg' has no elastic net"),
        ("--drop id --positive z", "holds \\['n', 'y'\\], not 'z'"),
        ("--drop nothing", "no column 'nothing'"),
        ("--drop id --drop fraud --label gaps", "column 'gaps' has missing values. Fill or drop"),
        ("--drop id --test 0.01", "The rows held out are too few to measure a model"),
    ],
)
def test_a_fit_in_pieces_says_what_it_does_not_take(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = labelled_table(100)
    if "gaps" in options:
        table = table.append_column("gaps", pa.array([0, 1, None, 0] * 25))
    pq.write_table(table, "rows.parquet")
    arguments = ["auc", "fit", "rows.parquet", "--label", "fraud", "--model", "m", "--beta", "1"]
    result = CliRunner().invoke(app, [*arguments, "--memory", "1GiB", *options.split()])
    assert re.search(message, str(result.exception))
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": 0.0}, "test: 0.0, expected a share between 0 and 1"),
        ({"test": 1.0}, "test: 1.0, expected a share between 0 and 1"),
        ({"scaling": "log"}, "scaling is 'log', expected one of raw, unit, minmax"),
        ({"penalty": "l1"}, "penalty is 'l1', expected one of l2, elasticnet"),
    ],
)
def test_options_of_a_fit_in_pieces_are_checked_before_any_row_is_read(options, message, tmp_path):
    pq.write_table(labelled_table(100).drop_columns("id"), tmp_path / "rows.parquet")
    design, label = design_of(tmp_path / "rows.parquet", label="fraud")
    given = {"label": "fraud", "positive_label": label, "beta": 1.0, "executor": Local()}
    with pytest.raises(InputError, match=message):
        fit_measured_in_pieces(design, work=tmp_path / "work", **given, **options)
    assert not (tmp_path / "work").exists()


def test_beta_is_chosen_on_some_of_the_rows_that_are_not_held_out(tmp_path, monkeypatch):
    pq.write_table(labelled_table(2000).drop_columns("id"), tmp_path / "rows.parquet")
    design, label = design_of(tmp_path / "rows.parquet", label="fraud")
    seen, most_rows = [], table_in_pieces.SAMPLED_ROWS

    def chosen(rows, **options):
        seen.append((rows, options))
        return 0.5

    monkeypatch.setattr(table_in_pieces, "search_beta", chosen)
    for most in (300, 10**6):
        monkeypatch.setattr(table_in_pieces, "SAMPLED_ROWS", most)
        ranker, *_ = fit_measured_in_pieces(
            design, label="fraud", positive_label=label, beta=None, executor=Local(), seed=3,
            work=tmp_path / str(most), penalty="elasticnet", beta1=0.01, scaling="minmax",
        )  # fmt: skip
        assert ranker.parameters["beta"] == 0.5
    share = file_design.Share(0.2, 3, False)
    X, positive = map(
        np.concatenate, zip(*replace(design, share=share).blocks(0, 2000), strict=True)
    )
    (some, options), (every, _) = seen
    page = Path(__file__).parents[2] / "docs" / "how-to" / "use-a-cluster.md"
    assert f"at most {most_rows:,} of the rows" in page.read_text(encoding="utf-8")
    assert options.pop("progress")
    given = {"scaling": "minmax", "seed": 3, "penalty": "elasticnet", "beta1": 0.01}
    assert options == given
    np.testing.assert_array_equal(every.X, X)
    np.testing.assert_array_equal(every.positive, positive)
    assert 200 < len(some.X) < 400
    assert set(map(tuple, some.X)) < set(map(tuple, X))


@pytest.mark.parametrize("positives", [10_000, 600])
def test_as_many_rows_of_each_label_are_drawn_as_there_are(tmp_path, monkeypatch, positives):
    rng = np.random.default_rng(0)
    y = rng.permutation(20_000) < positives  # in several blocks
    pq.write_table(pa.table({"x": rng.normal(size=20_000), "y": y}), tmp_path / "rows.parquet")
    design, label = design_of(tmp_path / "rows.parquet", label="y", positive="True")
    assert design.positives() == positives
    monkeypatch.setattr(table_in_pieces, "SAMPLED_ROWS", 3000)
    some = table_in_pieces._sample(design, label, 0.2, 0)
    share = replace(design, share=file_design.Share(0.2, 0, False))
    X, positive = map(np.concatenate, zip(*share.blocks(0, 20_000), strict=True))
    assert set(some.X[some.positive, 0]) <= set(X[positive, 0])
    assert set(some.X[~some.positive, 0]) <= set(X[~positive, 0])
    if positives == 600:  # all that are not held out, and others for the rest
        assert some.positive.sum() == positive.sum()
        assert abs((~some.positive).sum() - 2400) < 200
    else:
        assert abs(some.positive.sum() - 1500) < 150
        assert abs((~some.positive).sum() - 1500) < 150


def test_only_a_parquet_file_with_a_named_label_is_fitted_in_pieces(tmp_path):
    with pytest.raises(InputError, match=r"rows\.csv: is read whole, expected Parquet"):
        design_of(tmp_path / "rows.csv", label="fraud")
    with pytest.raises(InputError, match="name the label's column with --label"):
        design_of(tmp_path / "rows.parquet", label=None)


def test_spam_by_passes_is_fitted_to_a_table_by_its_seed(tmp_path):
    pq.write_table(labelled_table(400).drop_columns("id"), tmp_path / "rows.parquet")
    design, label = design_of(tmp_path / "rows.parquet", label="fraud")
    given = {"label": "fraud", "positive_label": label, "beta": 1.0, "executor": Local()}
    coef = [
        fit_measured_in_pieces(design, work=tmp_path / str(i), solver="spam", seed=seed, **given)[
            0
        ].coef
        for i, seed in enumerate((0, 0, 1))
    ]
    np.testing.assert_array_equal(coef[0], coef[1])
    assert (coef[0] != coef[2]).any()


@pytest.mark.parametrize("name", ["X.npy", "y.npy"])
def test_the_folder_of_other_rows_or_labels_is_refused(here, name):
    X, y = design_files(here, 100)
    held = FileDesign.open(here / "X.npy", here / "y.npy")
    exact_in_pieces(held, executor=Local(threads=1), out=here / "job")
    np.save(here / name, X[::-1] if name == "X.npy" else y[::-1].astype(float))
    with pytest.raises(InputError, match=rf"{name}: changed since the job began"):
        list(held.blocks(0, 100))
    with pytest.raises(InputError, match="holds results of another job"):
        exact_in_pieces(
            FileDesign.open(here / "X.npy", here / "y.npy"),
            executor=Local(threads=1),
            out=here / "job",
        )


def test_what_breaks_a_design_is_named(tmp_path):
    X, _ = design_files(tmp_path, 100)
    X[70, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(InputError, match="row 70, column 2: missing"):
        moments_of(design)
    X[70, 2] = 1e101
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(InputError, match=r"column 2: 1e\+101, expected .* at most 1e\+100 in size"):
        moments_of(FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy"))
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    np.save(tmp_path / "X.npy", X[:50])
    with pytest.raises(InputError, match=r"X\.npy: changed since the job began"):
        exact_in_pieces(design)
    with pytest.raises(InputError, match=r"shapes \(50, 5\) and \(100,\) do not fit"):
        FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(InputError, match="no numeric column 'name'"):
        FileDesign.open(tmp_path / "rows.parquet", "y", columns=["name"])
    with pytest.raises(InputError, match=r"none\.parquet: cannot be read .*Check the path"):
        FileDesign.open(tmp_path / "none.parquet", "y")
    pq.write_table(pa.table({"x": [1.0], "y": [1]}).slice(1), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match=r"empty\.parquet: holds no row"):
        FileDesign.open(tmp_path / "empty.parquet", "y")
    np.save(tmp_path / "X.npy", np.minimum(X, 1e6))
    of_nobody = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy", pos_label=7)
    for fit in (moments_of, partial(cg_in_pieces, beta=1.0), partial(spam_in_pieces, beta=1.0)):
        with pytest.raises(InputError, match="one class only"):
            fit(of_nobody)


def test_scores_that_cannot_be_ranked_are_named_and_equal_ones_are_worth_a_half(tmp_path):
    X, y = design_files(tmp_path, 1000)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    of_nobody = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy", pos_label=7)
    for given, coef, message in (
        (design, np.ones(4), r"coef has shape \(4,\), expected \(5,\)"),
        (of_nobody, np.ones(5), "one class only, expected two: pos_label picks one"),
        (design, [np.nan, 0, 0, 0, 0], r"rows .*: a score is no number. Check the weights"),
    ):
        with pytest.raises((InputError, JobError), match=message):
            auc_in_pieces(given, coef, out=tmp_path / message[:9])
    few = Local(threads=1)
    few.memory = 2**12  # ranges of so few scores that some hold none
    ties = np.where(np.arange(5) == 0, 1e-9, 0.0)
    for name, coef in (("none", np.zeros(5)), ("some", ties)):
        found = auc_in_pieces(design, coef, executor=few, out=tmp_path / name)
        assert found == roc_auc(y, X @ coef)


def test_partitions_are_whole_blocks_within_memory_and_enough_for_every_slot():
    for rows in (100, 40_000, 10**6, 10**7):
        for memory in (2**20, 2**28, 2**34):
            local = Local(threads=2)
            local.memory = memory
            parts = partitions(FileDesign("X", "y", 1, (), rows, 5, ((0, 0),)), local)
            assert parts[0][0] == 0
            assert parts[-1][1] == rows
            sizes = {stop - start for start, stop in parts[:-1]}
            assert all(one[1] == other[0] for one, other in pairwise(parts))
            most = max(stop - start for start, stop in parts)
            assert most <= max(BLOCK, memory / (4 * 8 * 6))
            groups = sizes.pop() // BLOCK if sizes else 1
            assert not sizes
            assert groups & (groups - 1) == 0  # a power of two
            # No smaller than they must be: twice as large they were too large or too few.
            doubled = 2 * groups * BLOCK
            assert doubled > memory / (4 * 8 * 6) or groups * BLOCK * 2 * 4 >= rows


def test_a_job_over_rows_goes_on_with_more_or_fewer_slots(tmp_path):
    design_files(tmp_path, 100_000, width=2)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    jobs = {
        "exact": partial(exact_in_pieces, design),
        "cg": partial(cg_in_pieces, design, max_passes=2),
        "auc": partial(auc_in_pieces, design, np.ones(2)),
        "columns": lambda executor, out: columns_of(design, executor, out),
    }
    for name, job in jobs.items():
        for threads in (1, 4, 8):
            engine = Local(threads=threads, memory="1GiB")
            job(executor=engine, out=tmp_path / name)
            ran = [each for each in engine.reports if "_wins" not in each.job]
            assert {len(report.tasks) for report in ran} == {4}  # what one slot is given
            assert all(report.facts()["attempts"] == 0 for report in ran) or threads == 1
        with pytest.raises(InputError, match="holds results of another job"):
            job(executor=Local(threads=1, memory="1GiB", piece="1MiB"), out=tmp_path / name)


def test_a_file_that_was_refused_can_be_mended_and_fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = [float(n % 3) for n in range(200)]
    label = [n % 5 == 0 for n in range(200)]

    def fitted(column):
        pq.write_table(pa.table({"f": column, "y": label}), "rows.parquet")
        options = ["--label", "y", "--model", "m", "--memory", "600MiB", "--beta", "0.01"]
        return CliRunner().invoke(app, ["auc", "fit", "rows.parquet", *options])

    refused = fitted([None, *values[1:]])
    assert "row 1, column 'f'" in str(refused.exception)
    assert not Path("m.job").exists()
    assert fitted(values).exception is None


def test_a_folder_of_another_job_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"f": [float(n % 3) for n in range(200)], "y": [n % 5 == 0 for n in range(200)]}
    pq.write_table(pa.table(rows), "rows.parquet")
    for beta in ("0.01", "0.1"):
        options = ["--label", "y", "--model", f"m{beta}", "--memory", "600MiB", "--work", "work"]
        found = CliRunner().invoke(
            app, ["auc", "fit", "rows.parquet", *options, "--beta", beta, "--solver", "cg"]
        )
    assert str(found.exception).startswith(f"{tmp_path}/work: holds results of another job")


def test_a_disk_that_is_full_at_the_end_costs_no_pieces(here, monkeypatch):
    design_files(here, 100)
    save = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(Ranker, "save", save)
    arguments = ["auc", "fit", "rows.parquet", "--label", "y", "--drop", "name", "--beta", "1"]
    result = CliRunner().invoke(app, [*arguments, "--model", "box", "--memory", "1GiB"])
    assert result.exception is save.side_effect
    assert list(Path("box.job/all-rows/exact").glob("part-*"))


@pytest.mark.parametrize("joint", [False, True])
def test_risk_and_the_attack_over_ranges_of_targets(engine, joint, tmp_path):
    rng = np.random.default_rng(8)
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"kind": "exact"}}},
            "links": [
                {"name": "follow", "source": "user", "target": "user"},
                {"name": "like", "source": "user", "target": "user", "strength": "at_least"},
            ],
        }
    )
    network = random_network(rng, schema, 60, density=0.03)
    adversary = Adversary.of(network, joint=joint)
    auxiliary = Auxiliary(network, adversary)
    engine.memory = 16 * 40  # forty pairs, or some nodes, a task
    whole = attack(auxiliary, network)
    pieces = attack(auxiliary, network, executor=engine, work=tmp_path / "attack")
    assert len(engine.reports[0].tasks) > 3
    np.testing.assert_array_equal(pieces.sizes, whole.sizes)
    for distance in range(len(whole.sizes)):
        for target in range(60):
            np.testing.assert_array_equal(
                pieces.candidates(target, distance), whole.candidates(target, distance)
            )
    before = len(engine.reports)
    expected = list(risks(network, adversary))
    found = list(risks(network, adversary, executor=engine, work=tmp_path / "risk"))
    assert len(engine.reports[before].tasks) > 3
    assert [one.hashes.tobytes() for one in found] == [one.hashes.tobytes() for one in expected]
    other = random_network(rng, schema, 60, density=0.03)
    with pytest.raises(InputError, match="holds another job's arrays"):
        attack(Auxiliary(other, adversary), other, executor=engine, work=tmp_path / "attack")
    with pytest.raises(InputError, match="name a folder"):
        attack(auxiliary, network, executor=engine)


class Failing:
    """Work that fails for every range but the first beyond distance 1; its job stays the same."""

    def __init__(self, work, failed):
        update_wrapper(self, work)
        self.work, self.failed = work, failed

    def __call__(self, given, *more):
        part = more[-2]
        here = given.folder.name if hasattr(given, "folder") else more[0]
        if part.start and not here.endswith("-1"):
            self.failed.append(part)
            raise ValueError("a poisoned range")
        self.work(given, *more)


@pytest.fixture
def failed(monkeypatch):
    """Let every range of nodes, or of targets, but the first fail beyond distance 1."""
    ranges_that_failed = []
    for module, name in ((views_in_pieces, "_add_range"), (dehin_in_pieces, "_refine_targets")):
        monkeypatch.setattr(module, name, Failing(getattr(module, name), ranges_that_failed))
    return ranges_that_failed


def users_only():
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"kind": "exact"}}},
            "links": [{"name": "follow", "source": "user", "target": "user"}],
        }
    )
    return random_network(np.random.default_rng(2), schema, 60, density=0.015)


@pytest.mark.parametrize("joint", [False, True])
def test_users_whose_range_fails_are_alone_and_risk_is_at_most_what_is_given(
    failed, joint, tmp_path
):
    network = users_only()
    adversary = Adversary.of(network, joint=joint)
    engine = Local(threads=2)
    engine.memory = 16 * 80  # some twenty users
    with pytest.raises(JobError, match=r"partition 1 .*: ValueError: a poisoned range"):
        list(risks(network, adversary, executor=engine, work=tmp_path / "strict"))
    failed.clear()
    whole = list(risks(network, adversary))
    found = list(risks(network, adversary, executor=engine, work=tmp_path / "w", skip_bad=True))
    out = np.unique(np.concatenate([np.arange(*part) for part in failed]))
    assert 0 < len(out) < 60
    first = 2 if joint else 3  # links that are seen apart are counted whole at distance 1
    for one, sure in zip(found, whole, strict=False):
        assert one.risk >= sure.risk
        pairs = set(zip(one.hashes.tolist(), sure.hashes.tolist(), strict=True))
        assert len(pairs) == one.cardinality, "who looks alike in pieces does so in truth"
        if one.distance < first:
            assert one.risk == sure.risk
        else:
            assert (one.group_sizes()[out] == 1).all()
    assert (whole[first].group_sizes()[out] > 1).any()
    assert len(found) > first
    assert set(engine.reports[-1].skipped.values()) == {"ValueError: a poisoned range"}


def test_targets_whose_range_fails_keep_their_candidates(failed, tmp_path, monkeypatch):
    network, engine = users_only(), Local(threads=2)
    auxiliary = Auxiliary(network, Adversary.of(network))
    whole = attack(auxiliary, network)
    engine.memory = 16 * 100  # a hundred pairs
    options = {"distance": 2, "executor": engine, "work": tmp_path, "skip_bad": True}
    found, kept = attack(auxiliary, network, **options), 0
    for target in range(60):
        first, second = (set(found.candidates(target, distance)) for distance in (1, 2))
        assert first == set(whole.candidates(target, 1))
        assert second in (first, set(whole.candidates(target, 2)))
        kept += len(second) > whole.sizes[2, target]
    assert kept
    monkeypatch.undo()
    found = attack(auxiliary, network, **options)
    np.testing.assert_array_equal(found.sizes, whole.sizes[:3])
    for target in range(60):
        np.testing.assert_array_equal(found.candidates(target, 2), whole.candidates(target, 2))


def test_the_commands_say_which_pieces_they_left_out(failed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_network(users_only(), tmp_path / "net")
    monkeypatch.setattr(Local, "piece", 16 * 80)
    for command, words in (
        (["risk", "net"], "their users count as alone, so that the risk is at most"),
        (["attack", "net", "net"], "keep the candidates that they had, so that the attack finds"),
    ):
        arguments = ["privacy", *command, "--memory", "1GiB", "--skip-bad-partitions"]
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
        told = CliRunner().invoke(app, [*arguments, "--json"])
        assert words in " ".join(shown.stdout.split()), shown.output
        left_out = json.loads(told.stdout)["left_out"]
        assert all(one.endswith("ValueError: a poisoned range") for one in left_out)
        assert f"{len(left_out)} pieces were left out" in shown.stdout, (left_out, shown.output)


def test_shards_agree_as_they_do_in_memory_and_go_on(engine, here):
    rng = np.random.default_rng(2)
    X, d = rng.normal(size=(90, 6)), 6
    y = np.where(X @ np.repeat([2.0, -1.0], 3) + rng.normal(size=90) > 0, 1.0, -1.0)
    A = np.diff(np.eye(d), axis=0)
    shards = [(X[:20], y[:20]), (X[20:60], y[20:60]), (X[60:], y[60:])]
    options = {"A": A, "l1": 0.02, "l2": 0.01, "tol": 0.05, "seed": 5}
    whole = consensus_admm(shards, **options)
    work = here / "job"
    pieces = consensus_admm(shards, **options, executor=engine, work=work)
    assert pieces.coef.tobytes() == whole.coef.tobytes()
    assert pieces.history == whole.history
    assert whole.rounds > 3
    # As if it had been interrupted in round 3, of which one shard was done.
    for folder in sorted(work.glob("round-*"))[3:]:
        shutil.rmtree(folder)
    (work / "round-00003" / "part-00001.npz").unlink()
    before = len(engine.reports)
    again = consensus_admm(shards, **options, executor=engine, work=work)
    assert again.coef.tobytes() == whole.coef.tobytes()
    steps = [
        report.facts()
        for report in engine.reports[before:]
        if report.job.endswith("consensus._step")
    ]
    kept = [facts["kept from an earlier run"] for facts in steps]
    assert kept == [3, 3, 2, *[0] * (whole.rounds - 3)]
    with pytest.raises(InputError, match="holds results of another job"):
        consensus_admm(shards, **options | {"seed": 6}, executor=engine, work=work)
    with pytest.raises(InputError, match="name a folder"):
        consensus_admm(shards, **options, executor=engine)


@pytest.mark.slow
def test_a_worker_that_dies_while_a_log_is_counted_changes_nothing(cluster, small_pieces, tmp_path):
    query_log(tmp_path / "log.parquet")
    fit_files(tmp_path / "log.parquet").save(tmp_path / "whole")
    killed = []
    with Dask(cluster.address) as dask:
        pids = dask._client.run(os.getpid)

        def begun(key):
            """Whether the ledger has it: a worker that dies at once may not have told."""
            job, number, _ = key.rsplit("-", 2)
            events = [said["task"] for _, said in dask._client.get_events(job)]
            return any(task.startswith(f"{number} (") for task in events)

        def kill(job, finished, partitions):
            """Kill a worker at work: of two, one may have nothing to do while this is told."""
            at_work = dask._client.processing().items()
            busy = {pids[address] for address, keys in at_work if any(map(begun, keys))}
            for worker in cluster.workers:
                if worker.pid in busy and not killed:
                    killed.append(worker)
                    worker.kill()
                    worker.wait()

        dask.watch = kill
        pieces = fit_files(tmp_path / "log.parquet", executor=dask)
        (victim,) = killed
        assert sum(report.facts()["attempts"] for report in dask.reports) >= 14
        assert all(str(victim.pid) not in str(r.facts()["done where"]) for r in dask.reports[1:])
    pieces.save(tmp_path / "pieces")
    assert contents(tmp_path / "whole") == contents(tmp_path / "pieces")
    cluster.workers[cluster.workers.index(victim)] = cluster.add_worker()
    cluster.ready(2).close()


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_any_moment_are_those_of_the_whole_log(small_pieces, seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows = 300
    texts = [f"{word} {i}" for i in range(40) for word in ("Item", "item", "ITEM", "Ítem")]
    user = [None if one == 0 else f"u{one}" for one in rng.integers(0, 60, rows)]
    at = 1_700_000_000_000_000 + rng.integers(0, 12, rows) * 7 * DAY
    columns = {"query": rng.choice(texts, rows), "user": user}
    columns["at"] = pa.array(at, pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table(columns), tmp_path / "log.parquet", row_group_size=60)
    pieces = open_pieces(tmp_path / "log.parquet")
    shape = shape_of(pieces)
    whole = Gathered(None, [read_query_log(pieces, shape)])
    counts = from_pieces.count_logs(
        [(str(tmp_path / "log.parquet"), shape)], Local(threads=2), tmp_path / "job"
    )
    found = from_pieces.CountedLog(None, counts, memory=2**30)
    held = whole.held_out(1000)
    assert found.held_out(1000) == held
    assert (at == held.split).sum() > 5, "the moment ties"
    for until in (None, held.split):
        expected, got = whole.entries(until=until), found.entries(until=until)
        assert got.phrases == expected.phrases
        assert (got.spellings, got.shy) == (expected.spellings, expected.shy)
        for name in ("popular", "recent"):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
        named = {one for one, *_ in held.rows} if until else whole.users
        own = whole.histories(expected, until=until)
        assert {u: own[u] for u in own if own[u] and u in named} == found.histories(
            got, until=until
        )
    assert found.kept_back() == whole.kept_back()
