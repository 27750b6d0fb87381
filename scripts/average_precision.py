"""Average precision of linear rankers beside LibAUC's loss of it: `scripts/average_precision.py`.

It needs LibAUC, see benchmarks/requirements-auc-rivals.txt, and the data sets in TELIC_DATA.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from telic.data import atomic_path
from telic.study.steps import Steps
from telic.study.top_of_list import (
    CASES,
    candidates,
    gains_table,
    measured,
    values_table,
    verdict_table,
)

PAGE = Path(__file__).parents[1] / "docs" / "measured" / "average-precision.md"
RIVAL = "LibAUC's loss"
OURS = ("logistic regression", "ridge", "squared hinge, range chosen")
RATES = 1e-4, 1e-3, 1e-2, 1e-1
MARGINS, MEMORIES, PASSES = (0.6, 1.0), (0.1, 0.9), (10, 50)
HALF_BATCH = 64

HEAD = """# Average precision beside LibAUC

All data are real. LibAUC's `APLoss` is a loss of average precision itself, which is not convex; its
own optimizer SOAP trains a linear model with it here. LibAUC's, telic's and scikit-learn's linear
rankers are fitted on the same third of the rows, their settings are chosen by average precision on
another third, and the figures are measured on the last third, as on [the page about the top of the
list](results-top-of-list.md)."""
NOTES = f"""LibAUC chooses among learning rates {", ".join(f"{rate:g}" for rate in RATES)}, margins
{" and ".join(map(str, MARGINS))}, gamma {" and ".join(map(str, MEMORIES))}, and {PASSES[0]} or
{PASSES[1]} passes over the negative rows; each batch has {HALF_BATCH} positive and {HALF_BATCH}
negative rows, as its documentation asks for. Its column “chosen” gives them in this order.
"""


class LinearAP:
    """A linear model trained by LibAUC's loss of average precision and its own optimizer."""

    def __init__(self, rate: float, margin: float, memory: float, passes: int) -> None:
        self.rate, self.margin, self.memory, self.passes = rate, margin, memory, passes

    def fit(self, X, positive: np.ndarray) -> None:
        """Take as many positive as negative rows in each batch; the positive ones go round."""
        import torch
        from libauc.losses import APLoss
        from libauc.optimizers import SOAP

        torch.set_num_threads(1)
        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        rows = X.astype(np.float32)
        model = torch.nn.Linear(X.shape[1], 1, bias=False)
        loss = APLoss(len(positive), gamma=self.memory, margin=self.margin, device="cpu")
        optimizer = SOAP(model.parameters(), lr=self.rate, verbose=False, device="cpu")
        ones, zeros = np.flatnonzero(positive), np.flatnonzero(~positive)
        labels = torch.tensor(np.repeat([1.0, 0.0], HALF_BATCH), dtype=torch.float32)
        steps = max(len(zeros) // HALF_BATCH, 1)
        for _ in range(self.passes):
            drawn = [np.resize(rng.permutation(each), steps * HALF_BATCH) for each in (ones, zeros)]
            for batch in np.hstack([each.reshape(steps, -1) for each in drawn]):
                optimizer.zero_grad()
                scores = _product(rows[batch], model.weight)
                loss(scores, labels, torch.from_numpy(batch)).backward()
                optimizer.step()
        self.coef = model.weight.detach().numpy().ravel().astype(float)

    def decision_function(self, X) -> np.ndarray:
        """Return a score of each row."""
        return X @ self.coef


def _product(rows, weight):
    import torch

    if sparse.issparse(rows):
        rows = torch.sparse_csr_tensor(rows.indptr, rows.indices, rows.data, rows.shape)
        return torch.sparse.mm(rows, weight.T)
    return torch.from_numpy(rows) @ weight.T


def methods(rows: int) -> dict[str, dict[str, Any]]:
    """Return LibAUC's models, then ours and scikit-learn's, by what is set."""
    grid = product(RATES, MARGINS, MEMORIES, PASSES)
    rival = {", ".join(f"{one:g}" for one in given): LinearAP(*given) for given in grid}
    others = candidates(rows)
    return {RIVAL: rival} | {name: others[name] for name in OURS}


def main() -> None:
    """Write the page."""
    options = argparse.ArgumentParser(description=__doc__.split(":")[0])
    options.add_argument("--rows", type=int, default=30_000, help="rows of each set at most")
    options.add_argument("--resamples", type=int, default=1000, help="for the intervals")
    options.add_argument("--work", type=Path, help="folder that keeps what is finished")
    given = options.parse_args()
    steps = Steps(given.work, lambda name: print(name, flush=True))
    sizes = {"rows": given.rows, "resamples": given.resamples}
    lines = [line for case in CASES for line in steps(case, _measured, case=case, **sizes)]
    tables = [verdict_table(lines, RIVAL), gains_table(lines, RIVAL), values_table(lines)]
    written = "Written by `scripts/average_precision.py`; do not edit.\n"
    text = "\n\n".join([HEAD, *(table.markdown() for table in tables), NOTES, written])
    with atomic_path(PAGE) as path:
        path.write_text(text, encoding="utf-8")


def _measured(*, case: str, rows: int, resamples: int) -> list[dict[str, Any]]:
    found = measured(case=case, data=None, rows=rows, resamples=resamples, seed=0, methods=methods)
    return found["lines"]


if __name__ == "__main__":
    main()
