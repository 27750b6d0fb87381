"""Solvers of telic.optim beside their rivals; two threads; memory."""

from functools import partial

from benchmarks.form import Run, grid
from benchmarks.optim import memory, two_threads
from benchmarks.optim.everyday import everyday_page
from benchmarks.optim.run import HEAD, speed_rows

TITLE = """## Large text-like problems, and ASBCD

Times are processor seconds of one thread, compilation
and conversion of matrices excluded: medians of runs that take turns; the last column says how many
runs. A > marks the last attempt of a rival that was given up because it took too long; the ratio is
then an upper bound. The relative gap is (P(w) − P*)/(P(0) − P*); each solver runs with the least
effort that reaches it (its tolerance in powers of ten, or its passes). rcv1 and E2006 are stand-ins
of the same shape from a topic model (simulated).

"""
THREADS = """
## Two threads

The result is the same to the last bit. Seconds are the clock's, with both of two cores free:
medians of runs that take turns, one thread, then two. "Shared" is the part of one thread's
processor time that is spent in work that threads can share (turns of a kernel, or folds). "Perfect
cores" is the speed-up that two ideal cores would reach: each turn runs alone and is timed, and of
every pair only the longer counts.

This machine's cores are not perfect: the control is two loops that share nothing, and for each line
"two processes" is how much more gets done when two processes run the same one-thread work at once,
each with all it needs of its own. What is missing to 2 is lost to shared caches, shared memory
bandwidth, or a core that is not a whole one. "Bound here" is the speed-up of perfect cores if work
is done at once at this rate, and if each turn that is handed over also takes the time until the
other thread is awake, measured with an empty task.

1.6 is out of reach in three cases. Proximal Newton with a weak λ₁ spends much of its time in
coordinate descent, where every coordinate needs the one before. SVRG shares its full gradients, not
its steps. Five folds on two threads take three turns, so the speed-up is at most 5/3, and then
comes the fit to all rows. In SGD, SBCD, SAGA, MRBCD, ASBCD and SDCA every step needs the one
before: they run on one thread, also where `auto` takes one of them in the first table.

"""
MEMORY = """
## Memory beyond the data

The table gives the peak of Python's allocations (tracemalloc) from building the problem to the
solution, beyond X, y and one transposed copy. The limit is 3 vectors of length n and 6 of length d.
The last column leaves out what is not a vector: Gram descent's d², and the Gram matrix of proximal
Newton's working set with the copy it is summed in.

What remains above the limit: ASBCD holds the table of Remark 4.2.1 (1 of length n), the predictions
while it computes the gap (1), and for draws that are not uniform the probabilities and the alias
table in single precision (1.5), which counts where n is far above d. Proximal Newton holds
predictions, slopes and curvatures (3), and a dense chunk of 256 rows that the Gram matrix is made
from.

"""


FILE = "optim-speed.md"


def page(run: Run) -> str:
    """Return the page in Markdown."""
    text = everyday_page(run) if run.asks_for("everyday") else ""
    text += TITLE + grid(HEAD, speed_rows(run))
    threads = partial(two_threads.thread_rows, run.options.repeat)
    parts = (
        ("threads", THREADS, two_threads.HEAD, threads),
        ("memory", MEMORY, memory.HEAD, memory.memory_rows),
    )
    for name, words, head, measure in parts:
        if run.asks_for(name):
            text += words + grid(head, run.kept(name, measure))
    return text
