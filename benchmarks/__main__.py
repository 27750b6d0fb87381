"""`python -m benchmarks`: the speed tables. One thread, so set before NumPy is loaded.

Without a name the solvers of telic.optim are timed; `python -m benchmarks admm …`, `auc …`,
`completion …` and `privacy …` hand their options on to the tables of those products.
"""

import argparse
import os
import runpy
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

if sys.argv[1:2] in (["admm"], ["auc"], ["completion"], ["privacy"]):
    product = sys.argv.pop(1)
    runpy.run_module(f"benchmarks.{product}", run_name="__main__", alter_sys=True)
    sys.exit()

from rich.console import Console  # noqa: E402
from rich.markdown import Markdown  # noqa: E402

from benchmarks.optim.auto import auto_page  # noqa: E402
from benchmarks.optim.everyday import everyday_page  # noqa: E402
from benchmarks.optim.page import speed_page, with_everyday  # noqa: E402

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[1])
parser.add_argument("--only", default="", help="part of the name of the lines to run")
parser.add_argument("--repeat", type=int, default=5, help="runs of each solver; the median counts")
parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a rival is out")
parser.add_argument("--done", type=Path, help="keep finished lines here; a later run takes them")
parser.add_argument("--auto", action="store_true", help="what solver='auto' rests on instead")
parser.add_argument("--everyday", action="store_true", help="the first section of the page alone")
parser.add_argument("--output", type=Path, help="write the page here, in Markdown")
arguments = parser.parse_args()
if arguments.auto:
    text = auto_page(done=arguments.done)
elif arguments.everyday:
    text = everyday_page(repeat=arguments.repeat, done=arguments.done)
    if arguments.output:
        text = with_everyday(arguments.output, text)
else:
    text = speed_page(
        only=arguments.only, repeat=arguments.repeat, limit=arguments.limit, done=arguments.done
    )
if arguments.output:
    arguments.output.write_text(text, encoding="utf-8")
Console(width=150).print(Markdown(text))
