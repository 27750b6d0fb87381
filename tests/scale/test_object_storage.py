"""Partitions, results and models on S3, as moto's server plays it on loopback."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem
from tests.scale import functions
from tests.scale.cluster import wait_for
from tests.scale.test_workloads import contents, design_files, query_log
from typer.testing import CliRunner

from telic.auc import FileDesign, auc_in_pieces, exact_in_pieces
from telic.cli import app
from telic.completion import Completer, fit_files
from telic.completion.fit import static_box
from telic.data.object_storage import Remote, _system, place, upload
from telic.errors import InputError, JobError, ModelError
from telic.hin import Schema, network_from_arrays
from telic.optim.admm import consensus_admm
from telic.privacy import Adversary, Auxiliary, attack, risks
from telic.scale import Dask, Local, fetched, row_ranges
from telic.scale.cluster_check import check_cluster

SERVER = """
import sys
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=True)
"""
"""moto's own command also asks at each request which of Amazon's services it is for."""


@pytest.fixture(scope="module")
def bucket(s3_settings, tmp_path_factory):
    """Start a server of S3; the addresses in it begin with what is given."""
    port = int(s3_settings["AWS_ENDPOINT_URL"].rsplit(":")[-1])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_settings.items():
            patch.setenv(name, value)
        log = (tmp_path_factory.mktemp("s3") / "log").open("w")
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(port)],
            stdout=log, stderr=log, env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )  # fmt: skip

        def answers():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True

        try:
            wait_for(answers, "the server of S3")
            S3FileSystem(
                scheme="http", endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True
            ).create_dir("bucket")
            yield "s3://bucket"
        finally:
            server.kill()
            server.wait()
            log.close()


@pytest.fixture(params=["local", "dask"])
def engine(request):
    if request.param == "local":
        yield Local(threads=2, memory="1GiB")
    else:
        with Dask(request.getfixturevalue("cluster").address) as found:
            yield found


def test_results_lie_there_whole_and_the_job_goes_on(engine, bucket):
    out = f"{bucket}/{type(engine).__name__}"
    with pytest.raises(JobError, match=r"partition 2 \(3\): ValueError: three is no number.*kept"):
        engine.map(functions.fail_on_three, [1, 2, 3, 4], out=out)
    found = engine.map(functions.fail_on_three, [1, 2, 3, 4], out=out, skip_bad=True)
    assert [path and fetched(path).read_text() for path in found.values] == ["2", "4", None, "8"]
    assert found.report.facts()["kept from an earlier run"] >= 1
    assert "part-00002" not in [file.name for file in place(out).iterdir()]
    with pytest.raises(InputError, match="holds results of another job"):
        engine.map(functions.write_double, [1], out=out)
    with pytest.raises(InputError, match="holds other files"):
        engine.map(functions.write_double, [1], out=bucket)


def test_sums_and_rounds_there_are_those_of_a_disk(bucket, tmp_path):
    engine = Local()
    blocks = [np.random.default_rng(i).normal(size=50) for i in range(3)]
    start = {"x": np.array(0.0), "rounds": np.array(0)}
    found = []
    for out in (str(tmp_path), f"{bucket}/sums"):
        total, _ = engine.tree_reduce(functions.sums, functions.add, blocks, out=f"{out}/sums")
        shared, rounds = engine.rounds(
            functions.newton_step, functions.newton_combine, ["a", "four"], start,
            out=f"{out}/rounds", max_rounds=20,
        )  # fmt: skip
        again, _ = engine.rounds(
            functions.newton_step, functions.newton_combine, ["a", "four"], start,
            out=f"{out}/rounds", max_rounds=20,
        )  # fmt: skip
        assert rounds == 6
        found.append((total["sum"].tobytes(), shared["x"].tobytes()))
        assert again["x"].tobytes() == shared["x"].tobytes()
    assert found[0] == found[1]
    left = [file.name for file in place(f"{out}/rounds").iterdir()]
    assert left == sorted(file.name for file in (tmp_path / "rounds").iterdir())


def folder_of(value, path):
    (path / "b=1").mkdir(parents=True)
    (path / "b=1" / "one").write_text(str(value))
    (path / "two").write_text(str(value))


def fail_half_way(value, path):
    folder_of(value, path)
    if value == 2:
        raise ValueError("half a folder")


def test_a_folder_is_there_once_all_its_files_are(bucket, monkeypatch):
    out = f"{bucket}/folders"
    write = Remote.write_bytes

    def lost(self, content):
        if self.name == "part-00000.whole":
            raise OSError(30, "the connection is lost")
        write(self, content)

    monkeypatch.setattr(Remote, "write_bytes", lost)
    with pytest.raises(JobError, match="connection is lost"):
        Local(threads=1).map(folder_of, [1], out=out)
    monkeypatch.undo()
    found = Local(threads=1).map(folder_of, [1], out=out)
    assert found.report.facts()["kept from an earlier run"] == 0
    again = Local(threads=1).map(folder_of, [1], out=out)
    assert again.report.facts()["kept from an earlier run"] == 1
    (part,) = found.values
    assert [str(file) for file in part.glob("b=*/*")] == [f"{out}/part-00000/b=1/one"]
    assert found.report.tasks[0].bytes == 2
    here = fetched(part)
    assert sorted(str(f.relative_to(here)) for f in here.rglob("*")) == ["b=1", "b=1/one", "two"]


def test_what_a_task_fetches_is_removed_with_it(bucket, tmp_path):
    (tmp_path / "seven").write_text("7")
    upload(tmp_path / "seven", Remote(f"{bucket}/seven"))
    taken = []

    def read(address):
        taken.append(fetched(address))
        return taken[0].read_text()

    assert Local(threads=1).map(read, [f"{bucket}/seven"]).values == ["7"]
    assert not taken[0].exists()


def test_a_query_log_and_its_pieces_and_its_model_there(engine, bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(static_box, "HELD_OUT", 60)
    here = Remote(f"{bucket}/{type(engine).__name__}-log")
    query_log(tmp_path / "log.parquet", 600)
    upload(tmp_path / "log.parquet", here / "log.parquet")
    whole = fit_files(tmp_path / "log.parquet")
    monkeypatch.setattr(type(engine), "piece", 400 * 300)  # two buckets, several ranges of rows
    pieces = fit_files(str(here / "log.parquet"), executor=engine, work=str(here / "job"))
    assert pieces.found.pop("files") == [
        one.replace(str(tmp_path / "log.parquet"), f"{here}/log.parquet")
        for one in whole.found.pop("files")
    ]
    whole.save(tmp_path / "whole")
    pieces.save(f"{here}/box")
    loaded = Completer.load(f"{here}/box")
    assert loaded.suggest("te") == whole.suggest("te")
    got = contents(fetched(here / "box"))
    assert got == contents(tmp_path / "whole")
    with pytest.raises(InputError, match="telic overwrites nothing on object storage"):
        pieces.save(f"{here}/box")
    with pytest.raises(FileNotFoundError, match="no such file"):
        fetched("s3://bucket/nowhere")
    with pytest.raises(ModelError, match=r"s3://bucket/nowhere: cannot be fetched"):
        Completer.load(f"{bucket}/nowhere")


def test_the_command_reads_and_writes_there(cluster, bucket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(static_box, "HELD_OUT", 60)
    query_log(tmp_path / "log.parquet", 600)
    table = pq.read_table(tmp_path / "log.parquet")
    pa.csv.write_csv(table, tmp_path / "log.csv")
    log = Remote(f"{bucket}/cli/log.csv")
    upload(tmp_path / "log.csv", log)
    fit_files(tmp_path / "log.csv").save(tmp_path / "whole")
    for number, options in enumerate(
        (["--cluster", cluster.address], ["--memory", "1GiB"]),
    ):
        out = f"{bucket}/cli/box{number}"
        arguments = ["completion", "fit", str(log), out, *options]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        index = (tmp_path / "whole" / "arrays.npz").read_bytes()
        assert (fetched(out) / "arrays.npz").read_bytes() == index
    assert not list(tmp_path.glob("*.job"))
    assert not [file for file in place(f"{bucket}/cli").iterdir() if file.name.endswith(".job")]
    again = CliRunner().invoke(app, arguments)
    assert "is there already" in str(again.exception)
    shown = CliRunner().invoke(app, ["completion", "inspect", out, "--prefix", "te", "--json"])
    assert json.loads(shown.stdout)["folder"] == out
    assert "tea" in shown.stdout.lower()


def test_rows_there_are_summed_where_they_lie(bucket, tmp_path):
    design_files(tmp_path, 20_000)
    here, engine = Remote(f"{bucket}/rows"), Local()
    upload(tmp_path / "rows.parquet", here / "rows.parquet")
    disk = FileDesign.open(tmp_path / "rows.parquet", "y")
    there = FileDesign.open(str(here / "rows.parquet"), "y")
    engine.memory = 2**20
    found = exact_in_pieces(there, executor=engine, out=str(here / "sums"))
    assert found.coef.tobytes() == exact_in_pieces(disk, executor=Local()).coef.tobytes()
    assert len([file for file in (here / "sums").iterdir() if file.name != "job.json"]) == 3
    parts = row_ranges(str(here / "rows.parquet"), 6000)
    assert sum(len(t) for part in parts for t in part.batches(["y"], 999)) == 20_000
    upload(tmp_path / "X.npy", here / "rows.parquet")
    with pytest.raises(InputError, match=r"s3://.*rows\.parquet: changed since the job began"):
        exact_in_pieces(there, executor=engine, out=str(here / "later"))


def test_what_must_be_mapped_is_refused(bucket, tmp_path):
    X, y = design_files(tmp_path, 100)
    design, work = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy"), f"{bucket}/work"
    schema = Schema.parse({"nodes": {"user": {"attributes": {}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": [1, 2]}}, {})
    adversary, engine = Adversary.of(network), Local()
    (tmp_path / "list.csv").write_text("phrase,weight\ntea,3\n")
    for call, why in (
        (lambda: FileDesign.open(f"{bucket}/X.npy", "y.npy"), "an array is mapped"),
        (lambda: auc_in_pieces(design, np.ones(5), out=work), "sorted scores are mapped"),
        (lambda: list(risks(network, executor=engine, work=work)), "the links are mapped"),
        (
            lambda: attack(Auxiliary(network, adversary), network, executor=engine, work=work),
            "networks and candidate sets are mapped",
        ),
        (
            lambda: consensus_admm([(X, y)], A=np.eye(5), executor=engine, work=work),
            "the shards are mapped",
        ),
        (
            lambda: fit_files(tmp_path / "list.csv", executor=engine, work=work),
            "sorted on this machine's disk",
        ),
    ):
        with pytest.raises(InputError, match=rf"s3://bucket/.*{why}.* folder of a disk"):
            call()


def test_the_shared_folder_of_a_cluster_may_be_there(cluster, bucket):
    found = check_cluster(cluster.address, f"{bucket}/shared")
    assert [one.wrong for one in found] == [[], []]
    assert not list(place(f"{bucket}/shared").glob("*/*"))


def test_addresses_of_fsspec_do_too(tmp_path):
    out = "memory://jobs/doubled"
    found = Local().map(functions.write_double, [1, 2], out=out)
    assert [fetched(path).read_text() for path in found.values] == ["2", "4"]


def test_an_address_that_nobody_knows_is_named(bucket):
    with pytest.raises(InputError, match="nosuch://bucket: cannot be reached"):
        Local().map(functions.write_double, [1], out="nosuch://bucket/job")
    with pytest.raises(InputError, match=r"s3://bucket/none\.parquet: cannot be read"):
        row_ranges(f"{bucket}/none.parquet", 10)
    with pytest.raises(InputError, match=r"s3://bucket/none\.csv: no such file"):
        fit_files(f"{bucket}/none.csv")
    assert place("C:/here").is_absolute()
    assert place(Path("s3://bucket/a/")) == Remote("s3://bucket/a")


def test_an_address_may_say_the_region():
    system, path = _system("s3://bucket?region=eu-west-1")
    assert (system.region, path) == ("eu-west-1", "bucket")
