"""`python -m benchmarks.auc`: the speed table of telic.auc. One thread, set before NumPy."""

import argparse
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.auc.rivals import LIBAUC_PASSES  # noqa: E402
from benchmarks.auc.speed import table  # noqa: E402

TITLE = """# Speed of telic.auc

Written in one run by `make bench ARGS="auc --output docs/auc-speed.md"`, with
`benchmarks/auc/requirements-rivals.txt` installed: processor seconds of one thread, medians."""
NOTES = f"""## Near or past the target, and what was tried

- **VRSPAM against SPAM at the larger beta.** The line "bound" is what the class means and one full
  gradient take, without which no stage can start: where it is above the target already, no
  variance reduction meets it. At the smaller beta, where SPAM's noise dominates, it does. What
  VRSPAM takes is one pass of SPAM, that gradient, and a stage of n steps. Tried: no pass of SPAM
  first (slower), a quarter of a pass (faster here, far from enough), stages of n/4, n/2 and 2n
  steps and steps of 1.4, 2 and 4 times the default (the shortest stages save time here and cost
  as much again on sparse rows).
- **VRSPAM against cg.** cg reads rows in order, VRSPAM at random, with one more product with X a
  stage. The same stages and steps were tried: all are slower than the default.
- **exact.** The covariance alone is one X.T @ X; centring and weighting rows in one compiled loop
  took the place of two NumPy calls. Class indicators as two more columns of the product were
  slower, and so were blocks of a quarter or twice the size.

LibAUC's own requirements are not installed: its loss and optimizer do not import them. It runs
in float32 on shuffled slices of a tensor, which flatters it, for {LIBAUC_PASSES} passes; its
default learning rate of 0.1 needs many more.
"""

parser = argparse.ArgumentParser(prog="python -m benchmarks.auc", description=__doc__)
parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
parser.add_argument("--only", default="", help="part of the name of the lines to run")
parser.add_argument("--output", type=Path, help="write the table here, in Markdown")
arguments = parser.parse_args()
text = table(repeat=arguments.repeat, only=arguments.only)
if arguments.output:
    arguments.output.write_text(f"{TITLE}\n\n{text}\n{NOTES}", encoding="utf-8")
