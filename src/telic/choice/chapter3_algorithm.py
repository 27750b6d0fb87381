"""Chapter 3's algorithm, [Zhang2017] (3.3.5), as printed: one coordinate a step, for small d."""

from typing import Literal, get_args

import numpy as np

from telic.choice.elastic_net import Elastic, Fit, Progress, refuse_no_choices
from telic.choice.factored_choices import FactoredChoices
from telic.choice.logit_kernels import softmax_rows
from telic.errors import InputError, expect_one_of, expect_whole
from telic.kernels import kernel
from telic.optim.prox_kernels import soft

StepSize = Literal["printed", "corrected"]
MAX_SIZE = 2000


def smoothness(choices: FactoredChoices, l2: float) -> tuple[float, float]:
    """Return bounds of the Lipschitz constants of the mean gradient and of the worst component's.

    A softmax over m candidates has a Hessian of at most ``(I - 11'/m) / 2`` (Boehning 1992).

    Returns
    -------
    (L_F, L_max)
    """
    x = choices.matrix().toarray()
    total, largest = np.zeros((choices.size, choices.size)), 0.0
    for first, last in zip(choices.start[:-1], choices.start[1:], strict=True):
        own = x[first:last] - x[first:last].mean(axis=0)
        largest = max(largest, float(np.linalg.norm(own, 2)) ** 2 / 2)
        total += own.T @ own / 2
    return float(np.linalg.eigvalsh(total / len(choices))[-1] + l2), float(largest + l2)


def step_size(
    rule: StepSize,
    *,
    n: int,
    batch_size: int,
    mean_lipschitz: float,
    max_lipschitz: float,
    mu: float,
) -> float:
    """Return eta.

    Parameters
    ----------
    rule : {"printed", "corrected"}
        "printed" is that of 3.7.3; it grows with the batch and diverges for batches.
        "corrected" is ``1 / (4 max{L(b), (n - b) / (b (n - 1)) L_max + mu n / (4 b)})`` with
        ``L(b) = n (b - 1) / (b (n - 1)) L_F + (n - b) / (b (n - 1)) L_max``, the expected
        smoothness of a batch drawn without replacement.
    n, batch_size : int
    mean_lipschitz, max_lipschitz : float
        L_F and L_max, see `smoothness`.
    mu : float
        Strong convexity: lambda_2.

    Examples
    --------
    >>> [round(step_size("printed", n=100, batch_size=b, mean_lipschitz=1.0, max_lipschitz=4.0,
    ...                  mu=1e-4), 2) for b in (1, 10, 50)]
    [0.12, 1.37, 12.34]
    >>> [round(step_size("corrected", n=100, batch_size=b, mean_lipschitz=1.0, max_lipschitz=4.0,
    ...                  mu=1e-4), 2) for b in (1, 10, 50)]
    [0.06, 0.2, 0.24]
    """
    if rule == "printed":
        return batch_size * (n - 1) / (2 * (max_lipschitz + n * mu) * max(n - batch_size, 1e-12))
    single = (n - batch_size) / (batch_size * max(n - 1, 1)) * max_lipschitz
    expected = n * (batch_size - 1) / (batch_size * max(n - 1, 1)) * mean_lipschitz + single
    return 1 / (4 * max(expected, single + mu * n / (4 * batch_size)))


def fit_printed(
    choices: FactoredChoices,
    penalty: Elastic,
    *,
    batch_size: int = 100,
    max_passes: int = 15,
    rule: StepSize = "corrected",
    every_coordinate: bool = False,
    seed: int = 0,
    progress: Progress = lambda step: None,
) -> Fit:
    """Run the printed algorithm, exactly, with a dense table of the products.

    Steps I to VI, with these corrections: the batch is drawn *without* replacement (Lemma 3.3.4
    holds only so); the table keeps each choice's probabilities, and overwriting them changes the
    stored mean gradient on every coordinate, not only on j; the l2 term is taken exactly. A pass is
    [Zhang2017]'s: ``n * d / batch`` iterations, as each updates one of d coordinates.

    Parameters
    ----------
    choices : FactoredChoices
        With at most 2,000 weights; `telic.choice.fit_saga` is for real sizes.
    penalty : Elastic
    batch_size, max_passes : int
    rule : {"printed", "corrected"}
        See `step_size`.
    every_coordinate : bool
        Update all coordinates at every iteration, from the same batch; a pass is then ``n / batch``
        iterations.
    seed : int
    progress : callable
        Told each pass when it is done.
    """
    expect_whole(1, batch_size=batch_size, max_passes=max_passes)
    expect_one_of(get_args(StepSize), rule=rule)
    refuse_no_choices(choices)
    n, d = len(choices), choices.size
    if d > MAX_SIZE:
        raise InputError(
            f"{d:,} weights: the printed algorithm updates one at a step and is kept as the "
            f"reference for at most {MAX_SIZE:,}. Use method='saga'."
        )
    batch_size = min(batch_size, n)
    rows = choices.matrix().toarray(), choices.offset, choices.start
    average, most = smoothness(choices, penalty.l2)
    eta = step_size(
        rule, n=n, batch_size=batch_size, mean_lipschitz=average, max_lipschitz=most, mu=penalty.l2
    )
    rates = eta, penalty.l1, penalty.l2
    w, table = np.zeros(d), choices.probabilities(np.zeros(d))
    mean = choices.gradient(w)
    rng = np.random.default_rng(seed)
    history = [(1.0, penalty.objective(choices, w))]
    iterations = max(1, n // batch_size if every_coordinate else n * d // batch_size)
    for done in range(1, max_passes + 1):
        _iterate(rows, table, mean, w, iterations, batch_size, rates, every_coordinate, rng)
        # A diverging run overflows: that is what it is here to show.
        with np.errstate(all="ignore"):
            history.append((1.0 + done, penalty.objective(choices, w)))
        progress(f"pass {done} of {max_passes}")
    with np.errstate(all="ignore"):
        gap = penalty.gap(choices, w)
    return Fit(w, f"printed ({rule} step)", 1.0 + max_passes, history, gap)


@kernel
def _iterate(rows, table, mean, w, iterations, batch_size, rates, every_coordinate, rng):
    """Run iterations of the printed algorithm, in place."""
    (x, offset, start), (eta, l1, l2) = rows, rates
    n, d = len(start) - 1, x.shape[1]
    order = np.arange(n)
    change = np.empty(d)
    widest = np.diff(start).max()
    p = np.empty(widest)
    for _ in range(iterations):
        change[:] = 0.0
        for i in range(batch_size):
            k = rng.integers(i, n)
            order[i], order[k] = order[k], order[i]
            c = order[i]
            softmax_rows(x, offset, start[c], start[c + 1], w, p)
            for r in range(start[c], start[c + 1]):
                new = p[r - start[c]]
                for j in range(d):
                    change[j] += (new - table[r]) * x[r, j]
                table[r] = new
        first, last = 0, d
        if not every_coordinate:
            first = rng.integers(0, d)
            last = first + 1
        for j in range(first, last):
            slope = change[j] / batch_size + mean[j] + l2 * w[j]
            u = w[j] - eta * slope
            w[j] = soft(u, eta * l1, eta * l1)
        for j in range(d):
            mean[j] += change[j] / n
