"""Chapter 2 on simulated typists: does implicit negative feedback improve completion?"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from telic.completion.evaluation.report import add_evaluation
from telic.completion.learning.adaqac import CAREFUL, PAPER
from telic.completion.learning.relevance import NAMES
from telic.errors import InputError
from telic.report import Report
from telic.simulate import controls_table
from telic.simulate.replays import TOLD
from telic.study.chapter2.experiments import run
from telic.study.chapter2.figures import attention_figure
from telic.study.chapter2.tables import (
    KNOWLEDGE,
    attention_table,
    candidates_table,
    convergence_table,
    knowledge_table,
    not_submitted_table,
    published_table,
    regulariser_table,
    users_table,
)
from telic.study.line_charts import lines_figure
from telic.study.steps import Steps, each_log

PROTOCOLS = (CAREFUL.name, PAPER.name)
SETTINGS = ("inattentive", "calibrated", "readers")
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of lists looked at."""
MEASURES = ("mrr", "sr@1", "sr@2", "sr@3")
CANDIDATES = (10, 20, 50)


def study(
    steps: Steps,
    *,
    catalogue: Path | None = None,
    min_users: int = 3,
    seeds: int = 10,
    users: int = 200,
    compositions: int = 150,
) -> Report:
    """Regenerate Tables 2.3–2.5 and Figures 2.2, 2.4 and 2.5 on simulated typists, with controls.

    Parameters
    ----------
    steps : Steps
    catalogue : path, optional
        Query log to take phrases from (see `telic.simulate.read_catalogue`).
    min_users : int
        Take a phrase only if so many users of it submitted it.
    seeds : int
        Simulated logs for each control, at least 2; a third of them, at least 2, for lists by a
        system that knows more and for each level of attention.
    users, compositions : int
        Size of each simulated log.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}, expected at least 2: intervals are over seeds.")
    do = partial(
        steps, catalogue=catalogue, min_users=min_users, users=users, compositions=compositions
    )
    report = Report(
        "Chapter 2 on simulated typists",
        lead=f"The simulated log has {users} typists with {compositions} compositions each "
        f"{'over the world’s places' if catalogue is None else 'over the phrases given'} "
        "(a data card describes them). telic.completion.Protocol explains the protocols "
        "“careful” and “paper”; “paper” trains on the union of candidates and submitted query, and "
        "tests on the candidates alone.",
    )
    facts = do("the log", run, experiment="facts")
    found: dict[str, list[Any]] = {}
    for lists, protocol, relevance in product(("own", "shown"), PROTOCOLS, NAMES):
        part = do(
            f"{relevance}, {protocol} protocol, {lists} lists",
            run,
            experiment="accuracy",
            relevance=relevance,
            protocol=protocol,
            lists=lists,
        )
        for name, values in part.items():
            found.setdefault(name, []).extend(values)
    add_evaluation(report, facts, found)
    report.table(not_submitted_table(facts["not_submitted"]))
    report.table(users_table(found["users"]))
    report.section("Beside the published tables")
    report.table(published_table(found["rows"]))

    convergence = do("convergence", run, experiment="convergence")
    regulariser = do("regulariser", run, experiment="regulariser")
    report.section("Convergence and regulariser")
    report.figure(
        lines_figure(
            convergence, "iteration", MEASURES, label="gradient steps", ylabel="on validation"
        ),
        "adaQAC-Batch (TimeSense-S) against gradient steps (as Figure 2.4, left). After "
        f"{convergence[-1]['iteration']} steps {100 * convergence[-1]['gap']:.2g} % of the way to "
        "the optimum is left on average; Newton's method reaches the optimum.",
    )
    report.table(convergence_table(convergence))
    report.figure(
        lines_figure(regulariser, "l2", MEASURES, label="λ", ylabel="on validation", log="x"),
        "adaQAC-Batch (TimeSense-S) against the weight of the penalty (as Figure 2.4, right).",
    )
    report.table(regulariser_table(regulariser))
    report.section("Re-ranking more candidates")
    report.table(
        candidates_table(
            [do(f"{n} candidates", run, experiment="candidates", n=n) for n in CANDIDATES]
        )
    )
    _controls(report, do, seeds)
    return report


def _controls(report: Report, do: Any, seeds: int) -> None:
    few = max(2, seeds // 3)

    def effects(logs: int, **settings: Any) -> list[dict[str, float]]:
        words = ", ".join(
            f"{value:g} attention" if name == "attention" else f"{value} typists"
            for name, value in settings.items()
        )
        return each_log(do, words, run, logs, experiment="dwell", **settings)

    report.section("Controls: do dwell times carry anything?")
    report.text(
        "Each log is compared with its dwell twin: the same lists, positions and queries, dwell "
        "times permuted within each user. adaQAC-UnP (MPC, last keystroke, without the gate), "
        f"{seeds} seeds, 95 % intervals over seeds. Where nobody looks at the lists the difference "
        "must vanish; where everybody reads and dwells in proportion (planted) it must not."
    )
    report.table(controls_table({name: effects(seeds, setting=name) for name in SETTINGS}))
    known = {
        name: each_log(
            *(do, f"{name} typists, lists that know more", run, few),
            experiment="knowledge",
            setting=name,
        )
        for name in SETTINGS
    }
    report.section("Lists by a system that knows more")
    report.text(f"{KNOWLEDGE} Means over {few} seeds.")
    report.table(
        knowledge_table(
            {
                name: {told: [log[told] for log in logs] for told in TOLD}
                for name, logs in known.items()
            }
        )
    )
    curve = [(level, effects(few, setting="calibrated", attention=level)) for level in LEVELS]
    report.section("The gain by attention")
    report.table(attention_table(curve))
    report.figure(
        attention_figure(curve),
        "What feedback is worth depends on how much people look: calibrated typists, who "
        f"look at more and more of the lists, {few} seeds. Bars: two standard errors over seeds.",
    )
