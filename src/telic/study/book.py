"""Every study of the three documents in turn, and what becomes of what they say."""

import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from telic.data.data_sets import data_folder
from telic.report import Report, Table
from telic.simulate.microblog import TQQ_USERS
from telic.study.claims import Claim, Judged, Printed, Tables, Verdict, judge
from telic.study.sources import LEFT_OUT, SOURCES
from telic.study.steps import Steps

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """A study, and what the documents say that it tries.

    Parameters
    ----------
    name : str
        Its command.
    study, claims : str
        Modules of `telic.study`: one with ``study``, one with ``CLAIMS`` and ``PRINTED``.
    full, quick : mapping
        Settings of a full run, where they are not the study's defaults, and of a quick one.
    seeded : bool
        Whether it takes a seed; else its seeds are fixed.
    needs : tuple of str
        Files in the data folder without which it does not run.
    kept_runs : bool
        Whether it keeps its runs in a file of results instead of steps.
    """

    name: str
    study: str
    claims: str
    quick: Mapping[str, Any]
    full: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    needs: tuple[str, ...] = ()
    kept_runs: bool = False

    def said(self) -> tuple[Sequence[Claim], Sequence[Printed]]:
        """Return the claims, and the published tables."""
        module = import_module(f"telic.study.{self.claims}")
        return module.CLAIMS, module.PRINTED


ADMM_SETS = ("ml/20news_comp_talk.npz", "ml/a9a.npz", "ml/ijcnn1.npz")
SMALL_SETS = ("diabetes", "german")
PARTS = (
    Part(
        "chapter-2",
        "chapter2",
        "chapter2.claims",
        quick={"users": 20, "compositions": 30, "seeds": 2},
        seeded=False,
    ),
    Part(
        "chapter-3",
        "chapter3",
        "chapter3.claims",
        quick={"users": 16, "compositions": 20, "seeds": 2, "real_pairs": False},
        seeded=False,
    ),
    Part(
        "chapter-4",
        "chapter4",
        "chapter4.claims",
        quick={"replications": 2, "passes": 20, "share": 0.01},
    ),
    Part(
        "chapter-5",
        "chapter5",
        "chapter5.claims",
        quick={"replications": 2, "seconds": 0.03},
        needs=ADMM_SETS,
    ),
    Part("chapter-6", "chapter6", "chapter6.claims", quick={"scale": 0.02, "pipeline": "printed"}),
    Part(
        "chapter-7",
        "chapter7",
        "chapter7.claims",
        quick={"users": 11_000, "samples": 1, "only": "simulated"},
        full={"users": TQQ_USERS, "only": "simulated"},
    ),
    *(
        Part(
            f"paper-{paper}",
            f"auc_papers.paper{paper}",
            f"auc_papers.claims{paper}",
            quick={"runs": 2, "only": SMALL_SETS},
            seeded=False,
            needs=("ml",),
            kept_runs=True,
        )
        for paper in ("001", "002")
    ),
)
"""The studies, with the settings of the documents' pages and quick ones."""


@dataclass(frozen=True)
class Outcome:
    """What a study gave.

    Parameters
    ----------
    part : Part
    settings : mapping
        What it was run with.
    report : Report or None
        None where its data are not there, or where it failed.
    judged : sequence of Judged
    seconds : float
    steps : Steps
    why : str
        Why there is no report.
    failed : bool
        Whether there should have been one.
    """

    part: Part
    settings: Mapping[str, Any]
    report: Report | None
    judged: Sequence[Judged]
    seconds: float
    steps: Steps
    why: str = ""
    failed: bool = False

    @property
    def tables(self) -> Tables | None:
        """The tables of its report."""
        return Tables(self.report.tables) if self.report else None


@dataclass(frozen=True)
class Book:
    """All studies in turn.

    Parameters
    ----------
    outcomes : sequence of Outcome
    quick : bool
    seed : int
    """

    outcomes: Sequence[Outcome]
    quick: bool
    seed: int

    def failures(self) -> list[str]:
        """Name the studies that failed, and the claims that should have been tried and were not."""
        studies = [f"{one.part.name}: {one.why}" for one in self.outcomes if one.failed]
        claims = [
            f"{one.part.name}: “{judged.claim.says}”: {judged.why}"
            for one in self.outcomes
            for judged in one.judged
            if judged.broken and not one.failed
        ]
        return studies + claims

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON takes it, numbers in full."""
        return {
            "run": self._run(),
            "seed": self.seed,
            "machine": machine(),
            "studies": [
                {
                    "study": one.part.name,
                    "settings": _plain(one.settings),
                    "seconds": one.seconds,
                    "steps made": one.steps.made,
                    "steps taken over": one.steps.taken,
                    "why not": one.why,
                    "failed": one.failed,
                }
                for one in self.outcomes
            ],
            "claims": [
                {"study": one.part.name, "run": self._run(), **judged.as_json()}
                for one in self.outcomes
                for judged in one.judged
            ],
        }

    def report(self, *, figures: bool = True) -> Report:
        """Return the page: verdicts, every published number beside ours, and the figures."""
        page = Report(
            "What the documents say, tried again",
            "Each row is a claim of the dissertation or of one of the two documents on AUC, in "
            "our words, with the published number beside ours. A rule gives the verdict from "
            "the numbers. The claim of a difference holds if our whole 95 % interval is on the "
            "published side of no effect and reaches the published size. It holds in direction "
            "if the interval falls short of that size. An interval that reaches both no effect "
            "and the published size tells nothing. The claim of a value holds if our interval "
            "meets the published value, give or take what stands after ±. A claim about several "
            "cases holds if it is true in the published share of them, and in direction if it "
            "is true in most. Where there is no interval, the number takes its place.",
            contents=True,
        )
        if self.quick:
            page.note(
                "A quick run: every study at a small size. It shows that everything runs and how "
                "the verdicts are found, but its verdicts are no evidence for or against the "
                "claims. The chapters' own pages show full runs, with their figures."
            )
        page.note(
            "“Simulated” says that the people, the hospital or the network were made by a "
            "simulator, since the documents' own data were never published: such a verdict is "
            "about the method under the simulator's assumptions."
        )
        page.section("Verdicts by study")
        page.table(self._summary())
        page.table(
            Table("Machine", {"": "", "this run": ""}, [[*item] for item in machine().items()])
        )
        if self.failures():
            page.note("Failed: " + " ".join(self.failures()))
        for one in self.outcomes:
            page.section(one.part.name)
            if one.why:
                page.note(one.why)
            page.table(self._verdicts(one))
            for printed in one.part.said()[1]:
                page.table(printed.table(one.tables), folded=True)
            if one.report and figures:
                page.figures_of(one.report)
        page.section("Every table and figure of the documents")
        page.table(self._sources())
        return page

    def _run(self) -> str:
        return "quick" if self.quick else "full"

    def _summary(self) -> Table:
        columns = {
            "study": "",
            "run": "",
            "seed": "",
            "settings": "",
            **dict.fromkeys((verdict.value for verdict in Verdict), ""),
            "seconds": ",.0f",
            "steps made": "",
            "taken over": "",
        }
        rows = [
            [
                one.part.name,
                self._run(),
                str(self.seed) if one.part.seeded else "fixed",
                ", ".join(f"{name} {value}" for name, value in _plain(one.settings).items()),
                *(sum(judged.verdict == verdict for judged in one.judged) for verdict in Verdict),
                one.seconds,
                *([None, None] if one.part.kept_runs else [one.steps.made, one.steps.taken]),
            ]
            for one in self.outcomes
        ]
        note = (
            "The table lists settings that differ from the command's defaults. Fixed seeds are "
            "0, 1 and so on, whatever --seed says; the splits of papers 001 and 002 depend on "
            "the set's name. Seconds count this run alone: steps of an earlier run, and runs of "
            "the papers that are kept in their file, are taken over at no cost."
        )
        return Table("Claims by verdict, and what the run took", columns, rows, note)

    def _verdicts(self, one: Outcome) -> Table:
        columns = ("in", "it says", "tried on", "published", "ours", "verdict", "run", "remark")
        rows = [
            [
                judged.claim.source,
                judged.claim.says,
                judged.claim.on,
                judged.claim.rule.published_words(),
                judged.found_words() or None,
                judged.verdict.value,
                self._run(),
                judged.why or judged.claim.note or None,
            ]
            for judged in one.judged
        ]
        return Table(f"{one.part.name}: claims", dict.fromkeys(columns, ""), rows)

    def _sources(self) -> Table:
        claims = Counter(each.claim.source for one in self.outcomes for each in one.judged)
        tables = [table for one in self.outcomes for table in one.part.said()[1]]
        printed = {name for table in tables for name in table.sources}

        def became(name: str) -> str:
            if name in LEFT_OUT:
                return f"left out: {LEFT_OUT[name]}"
            beside = ["every number beside ours"] if name in printed else []
            return "; ".join([f"{claims[name]} claim{'s' * (claims[name] != 1)}", *beside])

        rows = [[name, shows, became(name)] for name, shows in SOURCES.items()]
        return Table("Tables and figures", dict.fromkeys(("name", "it shows", "here"), ""), rows)


def run_all(
    work: Path | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
    parts: Sequence[Part] | None = None,
) -> Book:
    """Run every study, and judge what the documents say.

    A study whose data are not there is left out; one that fails is named, and the others go on.

    Parameters
    ----------
    work : path, optional
        Folder of finished steps; a run that was stopped goes on from it. By default nothing is
        kept.
    quick : bool
        Small sizes: minutes instead of hours.
    seed : int
        Of the studies that take one.
    progress : callable, optional
        Called with the name of each step when it begins.
    parts : sequence of Part, optional
        By default `PARTS`.
    """
    with TemporaryDirectory() if work is None else nullcontext(work) as folder:
        outcomes = [
            _outcome(part, work, Path(folder), quick, seed, progress)
            for part in (PARTS if parts is None else parts)
        ]
    return Book(outcomes, quick, seed)


def _outcome(
    part: Part,
    work: Path | None,
    folder: Path,
    quick: bool,
    seed: int,
    progress: Callable[[str], None],
) -> Outcome:
    settings = dict(part.quick if quick else part.full)
    extra: dict[str, Any] = {"seed": seed} if part.seeded else {}
    if part.kept_runs:
        extra["results"] = folder / "auc-results.jsonl"
    data = data_folder()
    steps = Steps(work, lambda step: progress(f"{part.name}: {step}"))
    missing = [file for file in part.needs if not (data / file).exists()]
    report, why, failed = None, "", False
    began = time.monotonic()
    if missing:
        why = f"no data: {', '.join(missing)}. Set TELIC_DATA."
    else:
        try:
            report = import_module(f"telic.study.{part.study}").study(steps, **settings, **extra)
        except Exception as error:  # one study's failure is named, and the others go on
            log.exception("%s failed", part.name)
            why, failed = f"the study failed: {type(error).__name__}: {error}", True
    seconds = time.monotonic() - began
    tables = Tables(report.tables) if report else None
    judged = [judge(claim, tables, data, why=why, failed=failed) for claim in part.said()[0]]
    return Outcome(part, settings, report, judged, seconds, steps, why, failed)


def machine() -> dict[str, str]:
    """Return what the run was made on; no names of hosts or people."""
    packages = ("numpy", "scipy", "numba", "scikit-learn")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "telic": version("telic"),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: " ".join(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
    }
