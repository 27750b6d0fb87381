"""`python -m benchmarks`: the speed tables. One thread, so set before NumPy is loaded.

Without a name the solvers of telic.optim are timed; `python -m benchmarks auc …`, `completion …`
and `privacy …` hand their options on to the tables of those products.
"""

import argparse
import os
import runpy
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

if sys.argv[1:2] in (["auc"], ["completion"], ["privacy"]):
    product = sys.argv.pop(1)
    runpy.run_module(f"benchmarks.{product}", run_name="__main__", alter_sys=True)
    sys.exit()

from benchmarks.optim.auto import auto_table  # noqa: E402
from benchmarks.optim.run import speed_table  # noqa: E402

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[1])
parser.add_argument("--only", default="", help="part of the name of the lines to run")
parser.add_argument("--repeat", type=int, default=5, help="runs of each solver; the median counts")
parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a rival is out")
parser.add_argument("--auto", action="store_true", help="what solver='auto' rests on instead")
arguments = parser.parse_args()
if arguments.auto:
    auto_table()
else:
    speed_table(only=arguments.only, repeat=arguments.repeat, limit=arguments.limit)
