"""The whole of chapter 2 on simulated typists: one function, one report."""

from telic.completion.adaqac import PROTOCOLS
from telic.completion.evaluation import evaluate
from telic.report import Report
from telic.simulate import Catalogue, simulate_typists
from telic.study import chapter2, chapter2_controls, chapter2_report
from telic.study.chapter2 import Progress


def chapter2_study(
    catalogue: Catalogue,
    *,
    seeds: int = 10,
    users: int = 200,
    compositions: int = 150,
    progress: Progress | None = None,
) -> tuple[Report, dict]:
    """Run every table and figure of chapter 2 and the controls.

    Parameters
    ----------
    catalogue : Catalogue
    seeds : int
        Simulated logs for each control; a third of them, at least 2, for lists by a system that
        knows more and for each level of attention.
    users, compositions : int
        Size of each simulated log.
    progress : callable, optional
        Called with a short text before each piece of work.

    Returns
    -------
    report : Report
    numbers : dict
        Everything the report shows, as plain JSON.
    """
    tell = progress or (lambda step: None)
    log = simulate_typists(catalogue, seed=0, users=users, compositions=compositions)
    replay = chapter2_controls.simulated_replay(catalogue, log)
    results = evaluate(replay, protocols=tuple(PROTOCOLS.values()), progress=progress)
    report = chapter2_report.evaluation_report(
        replay, results, title="Chapter 2 on simulated typists"
    )

    tell("convergence")
    convergence = chapter2.convergence(replay)
    tell("regulariser")
    regulariser = chapter2.regulariser(replay)
    measures = ("mrr", "sr@1", "sr@2", "sr@3")
    report.section("Convergence and regulariser")
    report.figure(
        chapter2_report.line_figure(
            convergence, "iteration", log=False, label="gradient steps", ys=measures
        ),
        "adaQAC-Batch (TimeSense-S) against gradient steps (as Figure 2.4, left). After "
        f"{convergence[-1]['iteration']} steps {100 * convergence[-1]['gap']:.2g} % of the way to "
        "the optimum is left on average; Newton's method goes all of it.",
    )
    report.figure(
        chapter2_report.line_figure(regulariser, "l2", log=True, label="λ", ys=measures),
        "adaQAC-Batch (TimeSense-S) against the weight of the penalty (as Figure 2.4, right).",
    )

    sizes = chapter2.candidate_study(replay, progress=progress)
    report.section("Re-ranking more candidates")
    report.table(
        ["Candidates", "MRR static", "MRR adaQAC-Online", "µs per keystroke"],
        [
            [
                row["candidates"],
                chapter2_report.percent(row["static"]),
                chapter2_report.percent(row["mrr"]),
                f"{row['microseconds']:.1f}",
            ]
            for row in sizes
        ],
        caption="Personal-S, every keystroke of the test part",
    )

    controls = chapter2_controls.controls(
        catalogue, seeds=seeds, users=users, compositions=compositions, progress=progress
    )
    knowledge = chapter2_controls.knowledge(
        catalogue, seeds=max(2, seeds // 3), users=users, compositions=compositions,
        progress=progress,
    )  # fmt: skip
    curve = chapter2_controls.attention_curve(
        catalogue, seeds=max(2, seeds // 3), users=users, compositions=compositions,
        progress=progress,
    )  # fmt: skip
    report.section("Controls: do dwell times carry anything?")
    report.text(
        "The dwell twin of a log has the same lists, positions and queries, its dwell times "
        "permuted within each user. Where nobody looks at the lists, a model must do no better on "
        "the log than on its twin; where everybody reads and dwells in proportion, it must. "
        "MRR of adaQAC-UnP (MPC, last keystroke, without the gate), 95 % intervals over seeds."
    )
    report.table(*chapter2_report.controls_table(controls))
    report.section("Lists by a system that knows more")
    report.text(chapter2_report.KNOWLEDGE)
    report.table(*chapter2_report.knowledge_table(knowledge))
    report.section("The gain over attention")
    report.figure(
        chapter2_report.attention_figure(curve),
        "What feedback is worth depends on how much people look: calibrated typists, attention "
        "swept. Bars: two standard errors over seeds.",
    )
    return report, {
        "simulated": True,
        "rows": [row for result in results for row in result.rows()],
        "convergence": convergence,
        "regulariser": regulariser,
        "candidates": sizes,
        "controls": controls,
        "knowledge": knowledge,
        "attention": curve,
    }
