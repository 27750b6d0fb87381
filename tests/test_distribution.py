"""Wheel and sdist: the same bytes from the same commit, and nothing but the package in them."""

import csv
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".gitignore")


def build(tree, out, **options):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", out],
        cwd=tree,
        check=True,
        capture_output=True,
        **options,
    )
    return {path.name: path for path in out.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling")
    return build(ROOT, tmp_path_factory.mktemp("built"))


def by_kind(built):
    """Paths of the wheel and the sdist."""
    (wheel,) = (path for name, path in built.items() if name.endswith(".whl"))
    (sdist,) = (path for name, path in built.items() if name.endswith(".tar.gz"))
    return wheel, sdist


def test_another_place_time_and_umask_give_the_same_bytes(built, tmp_path):
    tree = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, tree / name)
    for path in tree.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    again = build(tree, tmp_path / "again", umask=0o077)
    assert again.keys() == built.keys()
    for name in built:
        assert again[name].read_bytes() == built[name].read_bytes(), name


def test_the_sdist_gives_the_same_wheel(built, tmp_path):
    wheel, sdist = by_kind(built)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    assert build(tree, tmp_path / "out")[wheel.name].read_bytes() == wheel.read_bytes()


def test_they_hold_the_package_and_nothing_else(built):
    wheel, sdist = by_kind(built)
    names = zipfile.ZipFile(wheel).namelist()
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "telic").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "telic/py.typed" in source
    assert {name for name in names if ".dist-info/" not in name} == source
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}
    assert top == {*FILES, "src", "PKG-INFO"}


@pytest.mark.slow
def test_the_wheel_works_with_the_core_dependencies_alone(built, tmp_path):
    """A fit of each product; what needs an extra names it in one line."""
    wheel, _ = by_kind(built)
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / "clean" / "bin" / "python"
    subprocess.run(
        [uv, "venv", "-q", "--python", sys.executable, "clean"], cwd=tmp_path, check=True
    )
    subprocess.run(
        [uv, "pip", "install", "-q", "--python", python, "-c", ROOT / "requirements.lock", wheel],
        check=True,
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def telic(line, code=0):
        done = subprocess.run(
            [python.with_name("telic"), *line.split()],
            cwd=tmp_path,
            env=environment | {"NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stderr if code else done.stdout

    (tmp_path / "titles.csv").write_text("title,views\nTea,3\nTea cup,4\nToast,1\n")
    with (tmp_path / "table.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["a", "b", "y"])
        table.writerows([i % 7, i % 11, "bad" if i % 5 == 0 else "good"] for i in range(200))
    assert telic("--version").startswith("telic ")
    telic("completion fit titles.csv box")
    assert telic("completion inspect box --prefix tea").startswith("Tea cup\nTea\n")
    telic("auc fit table.csv --label y --model ranker --beta 1")
    telic("specialty simulate hospital --scale 0.002")
    telic("specialty discover hospital --restarts 1")
    telic("privacy simulate world --users 300 --size 40 --density 0.05")
    telic("privacy attack world/auxiliary world/target")
    fit = "from telic.optim import ElasticNetRegressor as E; E().fit([[0], [1.0]], [0, 1.0])"
    subprocess.run([python, "-c", fit], check=True, env=environment)
    for line, extra in {
        "completion serve box": "serve",
        "completion key acme --keys keys.toml": "serve",
        "completion simulate log.parquet": "demo",
        "specialty review list --store sqlite:///queue.sqlite": "serve",
        "cluster check tcp://127.0.0.1:1": "scale",
    }.items():
        said = telic(line, code=2)
        assert f"telic[{extra}]" in said
        assert len(said.strip().splitlines()) == 1, said
