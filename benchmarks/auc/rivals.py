"""Seconds that rankers of other libraries take to within 0.001 of their own best test AUC."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np

from benchmarks.datasets import covtype_unit_rows
from benchmarks.form import clock
from telic.auc.methods.exact import exact
from telic.auc.objective import moments
from telic.evaluate.classification import roc_auc

ROWS = 100_000
NEAR = 1e-3
LIBAUC_PASSES = 25
Trace = Iterator[tuple[float, np.ndarray]]
"""Seconds of training so far, and the scores of the test rows: one item a pass."""


def xgboost_passes(fit, labels, held) -> Trace:
    """Pass by pass of xgboost's linear booster with its pairwise ranking objective."""
    import xgboost

    pairs = xgboost.DMatrix(fit, labels.astype(float), group=[len(fit)])
    unseen = xgboost.DMatrix(held)
    options = {
        "booster": "gblinear",
        "objective": "rank:pairwise",
        "nthread": 1,
        "eta": 0.5,
        "lambdarank_pair_method": "mean",
        "lambdarank_num_pair_per_sample": 1,
    }
    booster = xgboost.Booster(options, [pairs])
    taken = 0.0
    for step in range(100):
        start = time.process_time()
        booster.update(pairs, step)
        taken += time.process_time() - start
        yield taken, booster.predict(unseen)


def libauc_passes(fit, labels, held, *, rate, batch=1000) -> Trace:
    """Pass by pass of LibAUC's square-loss AUCM on a linear model by its own PESG, float32.

    Batches are slices of a shuffled tensor: no data loader, whose cost is not the method's.
    """
    import torch
    from libauc.losses import AUCMLoss
    from libauc.optimizers import PESG

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, y = torch.tensor(fit, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)
    unseen = torch.tensor(held, dtype=torch.float32)
    model = torch.nn.Linear(X.shape[1], 1, bias=False)
    loss = AUCMLoss(imratio=float(labels.mean()), device="cpu")
    optimizer = PESG(
        model.parameters(),
        loss_fn=loss,
        lr=rate,
        weight_decay=0.0,
        epoch_decay=0.0,
        verbose=False,
        device="cpu",
    )
    taken = 0.0
    for _ in range(LIBAUC_PASSES):
        start = time.process_time()
        order = torch.randperm(len(X))
        for part in order.split(batch):
            optimizer.zero_grad()
            loss(model(X[part]), y[part]).backward()
            optimizer.step()
        taken += time.process_time() - start
        with torch.no_grad():
            yield taken, model(unseen).numpy().ravel()


def rival_runs(repeat: int) -> Iterator[tuple[str, float, str, float]]:
    """(work, our seconds, rival, its seconds) for each rival that is installed."""
    runs: list[tuple[str, str, Callable[..., Trace]]] = [
        ("xgboost", "xgboost gblinear rank:pairwise", xgboost_passes)
    ]
    for rate in (1.0, 10.0):
        name = f"LibAUC AUCMLoss, PESG, learning rate {rate:g}"
        runs.append(("libauc", name, partial(libauc_passes, rate=rate)))
    X, positive, real = covtype_unit_rows()
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:ROWS], order[ROWS : 2 * ROWS]
    fit, labels, held = X[train], positive[train], X[test]
    for library, name, passes in runs:
        if find_spec(library) is None:
            continue
        ours, optimum = clock(lambda: exact(moments(fit, labels), beta=1e-6), repeat)
        auc = roc_auc(positive[test], held @ optimum.coef)
        trace = passes(fit, labels, held)
        found = [(seconds, roc_auc(positive[test], scores)) for seconds, scores in trace]
        best = max(reached for _, reached in found)
        theirs = next(seconds for seconds, reached in found if reached >= best - NEAR)
        data = "covtype" if real else "covtype's shape"
        work = f"exact to AUC {auc:.4f}, {ROWS:,} rows of {data}"
        yield work, ours, f"{name}, to {best:.4f}", theirs
