"""`python -m benchmarks.auc`: the speed table of telic.auc. One thread, set before NumPy."""

import argparse
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.auc.speed import table  # noqa: E402

TITLE = """# Speed of telic.auc

Written by `python -m benchmarks auc`, in the environment of `make bench` with
`benchmarks/auc/requirements-rivals.txt` beside it: processor seconds of one thread, medians."""
NOTES = """## Near or past the target, and what was tried

- **VRSPAM against SPAM at beta 1e-4.** SPAM is at the gap after two passes, and the class means
  and the one full gradient without which no stage can start already cost more than the target
  allows (the line "bound"): at this beta no variance reduction can win by that much. It does at
  the smaller beta, where SPAM's noise dominates. What VRSPAM takes is one pass of SPAM, that
  gradient, and a stage of n steps. Tried: no pass of SPAM first (twice as slow); a quarter of a
  pass (a fifth faster here, still far from the target); stages of n/4, n/2 and 2n steps and steps
  of 1.4, 2 and 4 times the default (the shortest stages save about a third here and cost as much
  again on sparse rows).
- **VRSPAM against cg.** cg reads rows in order, VRSPAM at random, with one more product with X a
  stage. The same stages and steps were tried: all are slower than the default.
- **exact.** The covariance alone is one X.T @ X; centring and weighting rows in one compiled loop
  took the place of two NumPy calls. Class indicators as two more columns of the product were
  slower, and so were blocks of a quarter or twice the size.

LibAUC's own requirements are not installed: its loss and optimizer do not import them. It runs
in float32 on shuffled slices of a tensor, which flatters it; its default learning rate of 0.1
was still far below after 40 passes; it is given 25 here.
"""

parser = argparse.ArgumentParser(prog="python -m benchmarks.auc", description=__doc__)
parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
parser.add_argument("--only", default="", help="part of the name of the lines to run")
parser.add_argument("--output", type=Path, help="write the table here, in Markdown")
arguments = parser.parse_args()
text = table(repeat=arguments.repeat, only=arguments.only)
if arguments.output:
    arguments.output.write_text(f"{TITLE}\n\n{text}\n{NOTES}", encoding="utf-8")
