"""`python -m benchmarks.auc.tables results.jsonl …`: the published tables again, as Markdown."""

import argparse
from pathlib import Path

from telic.study import paper001, paper002
from telic.study.auc_tables import RULES, SEARCH_ROWS, WIDE_SEARCH_ROWS, Results, data_folder
from telic.study.published import COLUMNS, rerun, shown

parser = argparse.ArgumentParser(prog="python -m benchmarks.auc.tables", description=__doc__)
parser.add_argument("results", type=Path, help="file of `telic auc compare --paper`")
parser.add_argument("--runs", action="append", default=[], metavar="RUNS=SET,SET", required=True)
parser.add_argument("--stored", action="store_true", help="compute nothing that is not in the file")
parser.add_argument("--output", type=Path, required=True)
arguments = parser.parse_args()

runs_of_set = {
    name: int(count)
    for count, names in (part.split("=") for part in arguments.runs)
    for name in names.split(",")
}
results, folder = Results(arguments.results, not arguments.stored), data_folder()
text = (
    "# The published AUC tables, run again\n\nWritten by `python -m benchmarks.auc.tables`. "
    "Test AUC, mean±sd over stratified 80/20 splits; “best linear” is the highest mean of exact "
    "optimum, pairwise hinge and logistic regression under any scaling and label rule tried "
    "(three splits; of mnist, news20 and sector only some of them). Parameters are searched on "
    f"at most {SEARCH_ROWS:,} rows. “runs” counts the splits behind “ours”; the optimum and "
    "logistic regression stand on all runs of the set. On news20 and sector (62,061 and 55,197 "
    "columns) a step of SPAM-NET and of OPAUC's sketch writes every column: their parameter is "
    f"searched on {WIDE_SEARCH_ROWS:,} rows and they are run once. Sets not "
    "at hand are left out here.\n"
)
above = []
for paper, tables in (("001", paper001.TABLES), ("002", paper002.TABLES)):
    for table in tables:
        text += f"\n## {paper}: {table.title}\n\n"
        columns = ["runs", *COLUMNS]
        text += f"| {' | '.join(columns)} |\n| {' | '.join(['---'] * len(columns))} |\n"
        for name, runs in runs_of_set.items():
            rows = rerun(table, folder=folder, results=results, runs=runs, only=[name])
            above += [(paper, row) for row in rows if row.above]
            for row in rows:
                text += f"| {row.runs or '–'} | {' | '.join(shown(row))} |\n"
text += "\n## Published figures above every linear optimum tried\n\n"
for paper, row in above:
    text += (
        f"- {paper}, {row.data}, {row.method}: {row.published:.4f}; exact optimum "
        f"{row.exact:.4f}, best linear {row.ceiling:.4f} ({row.ceiling_rule})\n"
        if row.exact
        else ""
    )
text += (
    "\nLabel rules tried: " + "; ".join(f"{k}: {', '.join(v)}" for k, v in RULES.items()) + ".\n"
)
arguments.output.write_text(text, encoding="utf-8")
