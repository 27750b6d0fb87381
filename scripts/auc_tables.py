"""The published AUC tables again, as one page: `scripts/auc_tables.py results.jsonl …`."""

import argparse
from pathlib import Path

from telic.auc.compare import HINGE_ROWS, SEARCH_ROWS, SKETCH_ABOVE, WIDE_SEARCH_ROWS
from telic.report import Report
from telic.study.auc_papers import paper001, paper002
from telic.study.auc_papers.kept_results import Results
from telic.study.auc_papers.side_by_side import add_summary, cells_table, rerun

INTRODUCTION = (
    "The tables give the test AUC, mean and standard "
    "deviation over stratified 80/20 splits. “runs” counts the splits behind “ours”; the optimum "
    "and logistic regression are means over all runs of the set. “Best linear” is the highest "
    "mean of exact optimum, pairwise hinge and logistic regression under any scaling and label "
    "rule tried (three splits; on {some} only some of these rules and scalings). "
    f"Parameters are searched on at most {SEARCH_ROWS:,} rows. {{wide}} Data sets that are "
    "not at hand are left out. Departures from the papers: elastic-net methods search ℓ₁ weights "
    "from .01 to 10 times the ℓ₂ weight; the pairwise hinge sees at most "
    f"{HINGE_ROWS:,} rows; "
    "SPAM, SOLAM and regSOLAM take 5 passes, SPDAM 20 in batches of 1 % of the rows, VRSPAM 10 "
    "stages, OPAUC, OAM and Uni-Exp one pass; OPAUC keeps a sketch of rank 50 above "
    f"{SKETCH_ABOVE:,} columns; regSOLAM's step is searched with its weight, as 0.1, 1 or 10."
)

WIDE = (
    "On news20 and sector (62,061 and 55,197 columns) every step of SPAM-NET and of OPAUC's sketch "
    f"writes all columns, so their parameters are searched on {WIDE_SEARCH_ROWS:,} rows, and they "
    "run once."
)
NO_WIDE = (
    "The sets news20 and sector (62,061 and 55,197 columns) are left out: their searches for "
    "parameters take long."
)


def main() -> None:
    """Write the page from the runs that two studies keep."""
    parser = argparse.ArgumentParser(prog="scripts/auc_tables.py", description=__doc__)
    parser.add_argument(
        "results", type=Path, help="file of `telic study paper-001` and `paper-002`"
    )
    parser.add_argument(
        "--runs", action="append", default=[], metavar="RUNS=SET,SET", required=True
    )
    parser.add_argument(
        "--stored", action="store_true", help="compute nothing that is not in the file"
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    runs_of_set = {
        name: int(count)
        for count, names in (part.split("=") for part in arguments.runs)
        for name in names.split(",")
    }
    results = Results(arguments.results, not arguments.stored)
    wide, some = NO_WIDE, "mnist"
    if {"news20", "sector"} <= runs_of_set.keys():
        wide, some = WIDE, "mnist, news20 and sector"
    introduction = INTRODUCTION.format(wide=wide, some=some)
    report = Report("The published AUC tables, run again", introduction)
    every = []
    for paper, tables in (("001", paper001.TABLES), ("002", paper002.TABLES)):
        for table in tables:
            rows = [
                row
                for name, runs in runs_of_set.items()
                for row in rerun(table, results=results, runs=runs, only=[name])
            ]
            every += rows
            report.section(f"{paper}: {table.title}")
            report.table(cells_table("Test AUC, mean ± sd", rows))
    add_summary(report, every)
    report.written_by("scripts/auc_tables.py")
    report.write(arguments.output)


if __name__ == "__main__":
    main()
