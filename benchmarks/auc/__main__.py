"""`python -m benchmarks.auc`: the speed table of telic.auc. One thread, set before NumPy."""

import argparse
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.auc.speed import table  # noqa: E402

parser = argparse.ArgumentParser(prog="python -m benchmarks.auc", description=__doc__)
parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
parser.add_argument("--only", default="", help="part of the name of the lines to run")
parser.add_argument("--output", type=Path, help="write the table here, in Markdown")
arguments = parser.parse_args()
text = table(repeat=arguments.repeat, only=arguments.only)
if arguments.output:
    title = "# Speed of telic.auc\n\nWritten by `python -m benchmarks.auc`: one thread, medians."
    arguments.output.write_text(f"{title}\n\n{text}", encoding="utf-8")
