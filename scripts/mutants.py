"""Mutation test: change the behaviour of one line at a time and see whether a test fails.

    .venv/bin/python scripts/mutants.py --draw 120 --seed 7 --out mutants.json

draws changes evenly over the rooms of src/telic (flipped inequalities, swapped operators, guards
and calls dropped, numbers altered), makes each in a copy of the tree, and runs the tests that reach
the changed file and are of its room or import it, nearest first, until one fails; if none does, the
slow ones among them, too. The file named by --out keeps what was tried: the same command goes on
where it stopped. Changes that no test sees are listed at the end.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/telic")
NOTHING_FAILED = 0, 5
"""Return codes of pytest: all passed, or there was nothing to run."""
LIMIT = 1200  # seconds; a change that makes a loop endless is seen by the clock
FLIPPED = {
    ast.Lt: ">",
    ast.Gt: "<",
    ast.LtE: ">",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
SWAPPED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*"}


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

    def between(left, right, old_new):
        """Replace the operator that stands between two nodes."""
        start, end = span(left)[1], span(right)[0]
        old, new = old_new
        at = text.find(old, start, end)
        if at >= 0:
            add(at, at + len(old), new)

    symbols = {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Pow: "**",
        ast.Lt: "<",
        ast.Gt: ">",
        ast.LtE: "<=",
        ast.GtE: ">=",
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.In: "in",
        ast.NotIn: "not in",
        ast.Is: "is",
        ast.IsNot: "is not",
    }
    tree = ast.parse(text)
    words = [part for part in map(_words, ast.walk(tree)) if part]
    counted = {id(inner) for node in ast.walk(tree) for inner in _numbers(node)}
    skipped = {id(inner) for part in words for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            kind = type(node.ops[0])
            between(node.left, node.comparators[0], (symbols[kind], FLIPPED[kind]))
        elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not _texts(node):
            between(node.left, node.right, (symbols[type(node.op)], SWAPPED[type(node.op)]))
        elif isinstance(node, ast.BoolOp):
            pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            between(node.values[0], node.values[1], pair)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            add(*span(node), f"bool({ast.get_source_segment(text, node.operand)})")
        elif isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED:
            kind = type(node.op)
            between(node.target, node.value, (symbols[kind] + "=", SWAPPED[kind] + "="))
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Continue):
            add(*span(node.test), "False")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            add(*span(node), "pass")
        elif id(node) in counted:
            add(
                *span(node),
                repr(node.value + 1 if isinstance(node.value, int) else node.value * 10),
            )
    return found


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


def imported(path: Path) -> set[Path]:
    """The files of src/telic that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            base = ROOT / "src" / Path(*name.split("."))
            found |= {p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()}
    return found


class Reach:
    """Which tests reach a file."""

    def __init__(self):
        tests = sorted((ROOT / "tests").rglob("test_*.py"))
        sources = sorted((ROOT / SOURCE).rglob("*.py"))
        self.imports = {path: imported(path) for path in [*tests, *sources]}
        self.tests = tests

    def distance(self, start: Path, goal: Path) -> int | None:
        """How many imports lead from a file to another."""
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            path, steps = queue.popleft()
            if path == goal:
                return steps
            for following in self.imports[path] - seen:
                seen.add(following)
                queue.append((following, steps + 1))
        return None

    def order(self, path: str) -> list[str]:
        """Where a file is tested: its doctests, its room's tests, others that import it.

        Where none of these is, all that reach it.
        """
        goal, room = ROOT / path, Path(path).parts[2]
        reached = [(self.distance(test, goal), test) for test in self.tests]
        reached = [(steps, test) for steps, test in reached if steps is not None]
        near = [(steps, test) for steps, test in reached if room in test.parts or steps <= 1]
        near = sorted(
            (room not in test.parts, steps, goal.stem not in test.stem, str(test))
            for steps, test in near or reached
        )
        return [path, *(str(Path(test).relative_to(ROOT)) for *_, test in near)]


def run(
    tests: list[str], tree: Path, *options: str, limit: float | None = LIMIT
) -> subprocess.CompletedProcess:
    """Run tests in a copy of the tree."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(tree / ".numba"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",  # every change reads the same tests
        "TELIC_SLOW": "1" if "slow" in options else "",
        "TELIC_DATA": os.environ.get("TELIC_DATA", str(ROOT.parent / "shared" / "data")),
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-q", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
    )


def seen(change: Change, tree: Path, reach: Reach) -> str:
    """Make a change in a copy of the tree, run the tests, take it back; say which test saw it."""
    file = tree / change.path
    text = file.read_text(encoding="utf-8")
    times = file.stat()
    try:
        file.write_text(text[: change.start] + change.new + text[change.end :], encoding="utf-8")
        tests = reach.order(change.path)
        done = run(tests, tree, "-x", "-n", "0")
        if done.returncode in NOTHING_FAILED:
            done = run(tests, tree, "-x", "-n", "0", "-m", "slow")
    except subprocess.TimeoutExpired:
        return "no end"
    finally:
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled code is fresh again
    if done.returncode in NOTHING_FAILED:
        return ""
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed:
        raise RuntimeError(f"pytest did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed[0].split(" - ")[0]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--draw", type=int, default=120, help="how many changes")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--rooms", default="", help="comma-separated; default: all")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--out", type=Path, default=Path("mutants.json"))
    given = options.parse_args()
    drawn = draw(given.draw, given.seed, [room for room in given.rooms.split(",") if room])
    texts = {change.path: (ROOT / change.path).read_text(encoding="utf-8") for change in drawn}
    kept = json.loads(given.out.read_text()) if given.out.exists() else {}
    reach = Reach()
    trees: SimpleQueue = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for worker in range(given.workers):
            tree = Path(folder) / str(worker)
            for name in filter(None, tracked.stdout.split("\0")):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
            first = run([], tree, "-x", "-n", "2", limit=None)  # compiles the kernels, too
            if first.returncode:
                sys.exit(f"The tests fail before any change is made:\n{first.stdout[-3000:]}")
            trees.put(tree)

        def attempt(change):
            key = change.key(texts[change.path])
            if key not in kept:
                tree = trees.get()
                try:
                    kept[key] = seen(change, tree, reach)
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
