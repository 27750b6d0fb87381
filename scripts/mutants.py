"""Mutation test: change the behaviour of one line at a time and see whether a test fails.

    .venv/bin/python scripts/mutants.py --draw 120 --seed 7 --out mutants.json

draws changes evenly over the rooms of src/telic (flipped inequalities, swapped operators, guards
and calls dropped, numbers altered), makes each in a copy of the tree, and runs the tests that pass
through the changed line, of the nearest files first, until one fails; if none does, the slow tests
that reach its file, too. The file named by --out keeps what was tried: the same command goes on
where it stopped. Changes that no test sees are listed at the end.

First it runs every test under coverage, for a quarter of an hour, to learn which tests pass through
which line; --map names the file that keeps this, until the code or a test changes.
"""

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/telic")
NOTHING_FAILED = 0, 5
"""Return codes of pytest: all passed, or there was nothing to run."""
LIMIT = 600  # seconds of one test; a change that makes a loop endless is seen by the clock
LIBRARIES = ["numpy", "scipy.stats", "sklearn.linear_model", "numba", "pyarrow", "pandas", "pytest"]
"""What tests import that takes long: each test process is forked from one that has done so."""
CHANGED = {
    ast.Lt: ("<", ">"),
    ast.Gt: (">", "<"),
    ast.LtE: ("<=", ">"),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Pow: ("**", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""Operators, and what takes their place."""


class Change(NamedTuple):
    """Characters start to end of a file, and what stands there instead."""

    path: str
    start: int
    end: int
    new: str

    def key(self, text: str) -> str:
        """Say the change in one line; the key under which its outcome is kept."""
        line = text.count("\n", 0, self.start) + 1
        old = " ".join(text[self.start : self.end].split())
        return f"{self.path}:{line}: {old} -> {self.new}"


def changes(path: Path) -> list[Change]:
    """Every change that can be made in a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def offset(line, column):  # ast counts columns in bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node):
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    found: list[Change] = []

    def add(start, end, new):
        if text[start:end] != new:
            found.append(Change(str(path), start, end, new))

    def between(left, right, old, new):
        """Replace the operator that stands between two nodes."""
        start, end = span(left)[1], span(right)[0]
        at = text.find(old, start, end)
        if at >= 0:
            add(at, at + len(old), new)

    tree = ast.parse(text)
    words = [part for part in map(_words, ast.walk(tree)) if part]
    counted = {id(inner) for node in ast.walk(tree) for inner in _numbers(node)}
    skipped = {id(inner) for part in words for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            between(node.left, node.comparators[0], *CHANGED[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in CHANGED and not _texts(node):
            between(node.left, node.right, *CHANGED[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            between(node.values[0], node.values[1], *CHANGED[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            add(*span(node), f"bool({ast.get_source_segment(text, node.operand)})")
        elif isinstance(node, ast.AugAssign) and type(node.op) in CHANGED:
            between(node.target, node.value, *(f"{one}=" for one in CHANGED[type(node.op)]))
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Continue):
            add(*span(node.test), "False")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            add(*span(node), "pass")
        elif id(node) in counted:
            add(*span(node), repr(_altered(node.value)))
    return found


def _altered(number: float) -> float:
    """Return another number; 0 for a tiny one, since ten times as much would guard as well."""
    if isinstance(number, int):
        return number + 1
    if number < 1e-200:
        return 0.0 if number else 1.0
    return number * 10


def _words(node: ast.AST) -> ast.AST | None:
    """The part of a node that is words for people or for the type checker."""
    if isinstance(node, ast.AnnAssign | ast.arg):
        return node.annotation
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.returns
    return node if isinstance(node, ast.Raise | ast.JoinedStr) else None


def _numbers(node: ast.AST) -> list[ast.Constant]:
    """Numbers that a formula, a comparison or an index holds; sizes and limits stand elsewhere."""
    if not isinstance(node, ast.BinOp | ast.Compare | ast.Subscript):
        return []
    return [
        inner
        for inner in ast.iter_child_nodes(node)
        if isinstance(inner, ast.Constant)
        and (inner.value in (0, 1, 2) or (isinstance(inner.value, float) and inner.value))
        and not isinstance(inner.value, bool)
    ]


def _texts(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def draw(count: int, seed: int, rooms: list[str]) -> list[Change]:
    """Draw changes, as many in one room as in another."""
    everywhere: dict[str, list[Change]] = {}
    for path in sorted((ROOT / SOURCE).rglob("*.py")):
        relative = path.relative_to(ROOT)
        room = relative.parts[2] if len(relative.parts) > 3 else "core"
        if "published" in path.stem:
            continue  # figures copied from the sources: a test could only copy them again
        if not rooms or room in rooms:
            everywhere.setdefault(room, []).extend(changes(relative))
    rng = random.Random(seed)
    order = {room: rng.sample(each, len(each)) for room, each in everywhere.items() if each}
    drawn: list[Change] = []
    while len(drawn) < count and any(order.values()):
        drawn += [each.pop() for each in order.values() if each]
    return drawn[:count]


def imported(path: Path, tree: Path) -> set[Path]:
    """The files of a tree's src/telic that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            base = tree / "src" / Path(*name.split("."))
            found |= {p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()}
    return found


def _compiled_as(function: ast.FunctionDef) -> str:
    """The name that compiled code is called by, "" where the function is not compiled."""
    for decorator in map(ast.unparse, function.decorator_list):
        if decorator.startswith("overload("):
            return decorator.removeprefix("overload(").split(",")[0].rstrip(")")
        if decorator.startswith(("kernel", "register_jitable", "intrinsic")):
            return function.name
    return ""


class Tests:
    """Which tests pass through a line, the nearest file first.

    Parameters
    ----------
    lines : dict of str to dict of int to set of str
        By file and line the tests that pass through it, as coverage saw them.
    tree : Path
        The copy that they ran in: the work goes on in the repository meanwhile.
    """

    def __init__(self, lines: dict[str, dict[int, set[str]]], tree: Path):
        self.lines = lines
        self.tree = tree
        tests = sorted((tree / "tests").rglob("test_*.py"))
        sources = sorted((tree / SOURCE).rglob("*.py"))
        self.imports = {path: imported(path, tree) for path in [*tests, *sources]}
        self.files = tests
        self.kernels: dict[str, list[tuple[range, str]]] = {}
        self.bodies: dict[str, set[int]] = {}
        self.mentions: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for source in sources:
            path = str(source.relative_to(tree))
            nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
            self.kernels[path] = [
                (range(node.lineno, (node.end_lineno or node.lineno) + 1), name)
                for node in nodes
                if isinstance(node, ast.FunctionDef) and (name := _compiled_as(node))
            ]
            self.bodies[path] = {
                line
                for node in nodes
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
            }
            for node in nodes:
                if isinstance(node, ast.Name | ast.Attribute):
                    name = node.id if isinstance(node, ast.Name) else node.attr
                    self.mentions[name].add((path, node.lineno))
        # A test that calls compiled code itself passes through no line that coverage sees.
        self.callers: dict[str, set[str]] = defaultdict(set)
        compiled = {name for each in self.kernels.values() for _, name in each}
        for test in tests:
            for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
                for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                    if alias.name in compiled:
                        self.callers[alias.name].add(str(test.relative_to(tree)))

    def through(self, path: str, lines: range) -> set[str]:
        """Tests that pass through any of some lines, or call the compiled function they are of."""
        found: set[str] = set()
        open_ = [(path, line) for line in lines]
        called = set()
        while open_:
            file, line = open_.pop()
            name = next((name for inside, name in self.kernels[file] if line in inside), None)
            if line not in self.bodies[file]:  # it ran at import, for whichever test came first
                found |= set().union(*self.lines.get(file, {}).values())
            elif name is None:
                found |= self.lines.get(file, {}).get(line, set())
            elif name not in called:
                called.add(name)
                found |= self.callers[name]
                open_ += [
                    (other, at)
                    for other, at in self.mentions[name]
                    if other == file or self.tree / file in self.imports[self.tree / other]
                ]
        return found

    def distance(self, start: Path, goal: Path) -> int | None:
        """How many imports lead from a file to another."""
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            path, steps = queue.popleft()
            if path == goal:
                return steps
            for following in self.imports.get(path, set()) - seen:
                seen.add(following)
                queue.append((following, steps + 1))
        return None

    def order(self, path: str, lines: range) -> list[str]:
        """The tests that pass through lines of a file: its examples, its room's tests, others."""
        goal, room = self.tree / path, Path(path).parts[2]

        def place(test):
            file = self.tree / test.split("::")[0]
            steps = self.distance(file, goal)
            near = room in file.parts, goal.stem in file.stem
            return file != goal, not near[1], not near[0], steps is None, steps or 0, test

        return sorted(self.through(path, lines), key=place)

    def reaching(self, path: str) -> list[str]:
        """The files of tests that import a file, over however many others."""
        goal = self.tree / path
        return [str(t.relative_to(self.tree)) for t in self.files if self.distance(t, goal)]


def learn(tree: Path, kept: Path) -> dict[str, dict[int, set[str]]]:
    """Run every test in a copy of the tree and return which tests pass through which line."""
    from coverage import Coverage

    digest = hashlib.sha256()
    for file in sorted([*(tree / "src").rglob("*.py"), *(tree / "tests").rglob("*.py")]):
        digest.update(file.read_bytes())
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if known.get("tree") != digest.hexdigest():
        settings = tree / ".coveragerc"
        settings.write_text(
            f"[run]\nsource = {tree}/src/telic\ndata_file = {tree}/.coverage\nparallel = true\n"
            "sigterm = true\ncontext = ${PYTEST_CURRENT_TEST-}\n"  # for what a test starts
        )
        # This file is the plugin that tells coverage which test runs.
        code = run(["-n", "2"], tree, COVERAGE_PROCESS_START=str(settings))
        if code not in (0, 1):
            sys.exit(f"The tests do not run before any change is made:\n{output(tree)[-3000:]}")
        failing = {line.split(" - ")[0].split(" ", 1)[1] for line in failures(tree)}
        seen = Coverage(config_file=str(settings))
        seen.combine()
        seen = seen.get_data()
        names = sorted(seen.measured_contexts())
        number = {name: k for k, name in enumerate(names)}
        lines = {
            str(Path(file).relative_to(tree)): {
                line: [number[n] for n in found if n and _test(n) not in failing]
                for line, found in seen.contexts_by_lineno(file).items()
            }
            for file in seen.measured_files()
        }
        known = {"tree": digest.hexdigest(), "names": names, "lines": lines}
        kept.write_text(json.dumps(known))
        for test in sorted(failing):
            print(f"fails before any change is made, so it is left out: {test}", flush=True)
    tests = [_test(name) for name in known["names"]]
    return {
        file: {int(line): {tests[k] for k in found} for line, found in lines.items()}
        for file, lines in known["lines"].items()
    }


def _test(context: str) -> str:
    """The test of a context, which for what a test starts ends with its phase."""
    return re.sub(r" \((setup|call|teardown)\)$", "", context)


def pytest_runtest_protocol(item):
    """Tell coverage which test runs; end a test that does not end."""
    from coverage import Coverage

    if measured := Coverage.current():
        measured.switch_context(item.nodeid)
    else:
        signal.alarm(LIMIT)


def run(options: list[str], tree: Path, **environment: str) -> int:
    """Run pytest in a copy of the tree, in a process forked from one that has the libraries.

    Returns its exit code, negative where a signal ended it.
    """
    child = multiprocessing.get_context("forkserver").Process(
        target=_pytest, args=(options, str(tree), environment)
    )
    (tree / ".output").unlink(missing_ok=True)
    child.start()
    child.join()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what it started and left
    return child.exitcode


def _pytest(options: list[str], tree: str, environment: dict[str, str]) -> None:
    os.setsid()  # what its tests start ends with it
    os.chdir(tree)
    os.environ |= {
        "PYTHONPATH": f"{tree}/src:{tree}/scripts",
        "NUMBA_CACHE_DIR": f"{tree}/.numba",
        **environment,
    }
    import numba
    import pytest

    numba.config.CACHE_DIR = f"{tree}/.numba"
    sys.path[:0] = [f"{tree}/src", tree]
    sys.dont_write_bytecode = False  # every change reads the same tests
    with open(".output", "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(pytest.main(["-p", "no:cacheprovider", "-p", "mutants", *options]))


def output(tree: Path) -> str:
    """What the last run in a copy of the tree printed."""
    file = tree / ".output"
    return file.read_text(errors="replace") if file.exists() else ""


def failures(tree: Path) -> list[str]:
    """The lines of the last run in a copy of the tree that name a failed test."""
    return [line for line in output(tree).splitlines() if line.startswith(("FAILED", "ERROR"))]


def seen(change: Change, tree: Path, tests: Tests, *, slow: bool) -> str:
    """Make a change in a copy of the tree, run the tests, take it back; say which test saw it."""
    file = tree / change.path
    text = file.read_text(encoding="utf-8")
    times = file.stat()
    first, last = (text.count("\n", 0, at) + 1 for at in (change.start, change.end))
    try:
        file.write_text(text[: change.start] + change.new + text[change.end :], encoding="utf-8")
        names = tests.order(change.path, range(first, last + 1))
        (tree / ".tests").write_text("\n".join(names))
        code = run(["-x", "-n", "0", "@.tests"], tree) if names else 5
        if slow and code in NOTHING_FAILED and (files := tests.reaching(change.path)):
            code = run(["-x", "-n", "0", "-m", "slow", *files], tree, TELIC_SLOW="1")
    finally:
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled code is fresh again
    if code in NOTHING_FAILED:
        return ""
    if code < 0:
        return "no end" if code == -signal.SIGALRM else f"ended by signal {-code}"
    failed = failures(tree)
    return failed[0].split(" - ")[0] if failed else "pytest did not start"


def copies(folder: Path, count: int) -> list[Path]:
    """Copy what git tracks, once for each worker."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    trees = [folder / str(worker) for worker in range(count)]
    for tree in trees:
        for name in filter(None, listed.stdout.split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return trees


def share_compiled(first: Path, others: list[Path]) -> None:
    """Give the other copies of the tree the kernels that were compiled in the first."""
    from numba.core.caching import UserProvidedCacheLocator as Locator

    for source in (first / SOURCE).rglob("*.py"):
        for tree in others:
            folder, new = (
                each
                / ".numba"
                / Locator.get_suitable_cache_subpath(str(each / source.relative_to(first)))
                for each in (first, tree)
            )
            if folder.is_dir():
                shutil.copytree(folder, new, dirs_exist_ok=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--draw", type=int, default=120, help="how many changes")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--rooms", default="", help="comma-separated; default: all")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--out", type=Path, default=Path("mutants.json"))
    options.add_argument("--map", type=Path, default=Path("tests-by-line.json"))
    options.add_argument("--no-slow", action="store_true", help="leave out the slow tests")
    given = options.parse_args()
    drawn = draw(given.draw, given.seed, [room for room in given.rooms.split(",") if room])
    texts = {change.path: (ROOT / change.path).read_text(encoding="utf-8") for change in drawn}
    kept = json.loads(given.out.read_text()) if given.out.exists() else {}
    os.environ |= {"OMP_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}
    os.environ.setdefault("TELIC_DATA", str(ROOT.parent / "shared" / "data"))
    multiprocessing.set_forkserver_preload(LIBRARIES)
    with tempfile.TemporaryDirectory() as folder:
        copied = copies(Path(folder), given.workers)
        tests = Tests(learn(copied[0], given.map), copied[0])
        share_compiled(copied[0], copied[1:])
        trees: SimpleQueue = SimpleQueue()
        for tree in copied:
            trees.put(tree)

        def attempt(change):
            key = change.key(texts[change.path])
            if key not in kept:
                tree = trees.get()
                try:
                    kept[key] = seen(change, tree, tests, slow=not given.no_slow)
                finally:
                    trees.put(tree)
                given.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False))
                print(f"{'seen  ' if kept[key] else 'UNSEEN'} {key}  {kept[key]}", flush=True)
            return key

        with ThreadPoolExecutor(given.workers) as pool:
            keys = list(pool.map(attempt, drawn))
    unseen = [key for key in keys if not kept[key]]
    print(f"\nseed {given.seed}: {len(keys) - len(unseen)} of {len(keys)} changes seen")
    for key in unseen:
        print("unseen:", key)


if __name__ == "__main__":
    main()
