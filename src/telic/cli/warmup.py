"""`telic warmup`: compile what the first use of each product would wait for."""

import os
import shlex
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from telic.cli.completion.options import Json
from telic.cli.console import print_json

COMMANDS = """
    completion fit titles.csv list
    completion fit titles.csv queries.csv box --min-users 1
    completion inspect box --prefix te
    completion fit many.csv many
    completion inspect box --prefix "cpu tae"
    completion fit queries.csv signals --signals all --min-users 1
    completion inspect signals --prefix te
    completion simulate log.parquet --catalogue queries.csv --min-users 1 --users 9
    completion evaluate log.parquet --relevance personal-s --report log.html
    completion fit log.parquet model
    completion replay log.parquet model model
    completion simulate phones.parquet --phones --catalogue queries.csv --min-users 1 --users 9
    completion fit phones.parquet phone-model --model appaware
    auc fit table.csv --label y --model ranker --beta 1
    auc rank table.csv --model ranker --output ranked.csv
    auc compare table.csv --label y --runs 1
    specialty simulate hospital --scale 0.002
    specialty discover hospital --restarts 1 --out found
    specialty discover hospital --restarts 1 --method lda --topics 5
    specialty explain hospital --found found
    privacy convert tables.json network
    privacy risk network
    privacy simulate world --users 300 --size 40 --density 0.05
    privacy risk world/target
    privacy attack world/auxiliary world/target
    privacy anonymise world/target released --steps steps.json
    privacy attack world/auxiliary released --steps steps.json --truth none
    privacy infer released gender
    privacy advise world/target --max-risk 0.5 --out advised.json
"""
"""What is run on made-up data, in a folder that goes afterwards; later ones read earlier ones'."""


def warmup(as_json: Json = False) -> None:
    """Compile the kernels of each product's first use and keep them.

    Run it once after an installation or an upgrade. If you may write the package's folder, the
    code is kept beside the source, where everybody who uses the installation finds it.
    """
    from rich.console import Console

    from telic import kernels
    from telic.cli import app
    from telic.cli.progress import steps

    began, before = time.perf_counter(), len(kernels.COMPILED)
    lines = [line.strip() for line in COMMANDS.strip().splitlines()]
    out = Console(file=sys.stderr)  # the commands' own bars are not shown
    with (
        steps("warmup", len(lines) + 2, out) as tell,
        TemporaryDirectory() as scratch,
        chdir(scratch),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        _write_tables()
        for line in lines:
            tell(line.partition(" --")[0])
            app(shlex.split(line), standalone_mode=False)
        tell("typing into search boxes")
        _type_into_boxes()
        tell("estimators")
        _fit_estimators()
    files = kernels.COMPILED[before:]
    folder = os.path.commonpath([file.parent for file in files]) if files else None
    seconds = time.perf_counter() - began
    if as_json:
        print_json({"compiled": len(files), "folder": folder, "seconds": round(seconds, 1)})
    elif files:
        typer.echo(f"{len(files)} kernels compiled in {seconds:.0f} s, kept in {folder}")
    else:
        typer.echo("Nothing was left to compile.")


def _write_tables() -> None:
    words = ("tea", "cup", "towel", "toast", "pan", "rug")
    phrases = [f"{a} {b}" for a, b in product(words, words)]
    titles = [f"{phrase},{n + 1},{phrase[0]}\n" for n, phrase in enumerate(phrases)]
    Path("titles.csv").write_text("".join(["title,views,category\n", *titles]))
    # Few phrases are folded one by one, and have no range that is kept with its heaviest.
    many = [f"{word} {n:04}" for word, n in product(("tea", "cup"), range(1024))]
    Path("many.csv").write_text("\n".join(["title", *many]))
    queries = [
        f"user {u},{phrases[(u * i + i * i) % len(phrases)]},2026-03-{i + 1:02}T{u:02}:00\n"
        for u, i in product(range(8), range(31))
    ]
    Path("queries.csv").write_text("".join(["user,query,at\n", *queries]))
    rows = [f"{i % 7},{i % 11},{'bad' if i % 5 == 0 else 'good'}\n" for i in range(200)]
    Path("table.csv").write_text("".join(["a,b,y\n", *rows]))
    Path("steps.json").write_text('[{"method": "generalise", "attribute": "yob", "width": 10}]')
    Path("users.csv").write_text("".join(["id\n", *(f"{n}\n" for n in range(9))]))
    Path("links.csv").write_text(
        "".join(["a,b\n", *(f"{n},{n * n % 8}\n" for n in range(8, 1, -1))])
    )
    Path("tables.json").write_text(
        '{"nodes": {"user": {"file": "users.csv", "key": "id"}}, "links": [{"name": "follow", '
        '"file": "links.csv", "source": ["a", "user"], "target": ["b", "user"]}]}'
    )


def _type_into_boxes() -> None:
    from telic.completion import Completer

    Completer.load("list").suggest("te", where={"category": "t"})
    box = Completer.load("model")
    box.index.top_phrases("t")
    user = box.user()
    for query in ("tea leaf", "tea cup"):  # the first is nobody's, and then the user's own
        composition = box.compose(user)
        for second, prefix in enumerate(["t", "te", "tea", "tea "]):
            composition.suggest(prefix, at=float(second))
        composition.submit(query)


def _fit_estimators() -> None:
    import numpy as np
    from scipy import sparse

    from telic.auc import ConjugateGradientAUC
    from telic.optim import (
        ElasticNetClassifier,
        ElasticNetClassifierCV,
        ElasticNetRegressor,
        ElasticNetRegressorCV,
    )
    from telic.optim.admm import GraphFusedClassifier, GraphFusedRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = rng.normal(X[:, 0])
    two, three = np.signbit(y), np.digitize(y, [-0.5, 0.5])
    for rows in (X, sparse.csr_array(X)):
        ElasticNetRegressor(alpha=0.1).fit(rows, y)
        ElasticNetRegressorCV(alphas=3, cv=2).fit(rows, y)
        ElasticNetClassifier().fit(rows, two)
        ElasticNetClassifier().fit(rows, three)
        ElasticNetClassifierCV(Cs=3, cv=2).fit(rows, two)
        ConjugateGradientAUC().fit(rows, two)
    GraphFusedRegressor("chain").fit(X, y)
    GraphFusedClassifier("chain").fit(X, two)
