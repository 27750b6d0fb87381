"""Our sampler beside tomotopy (pip install tomotopy): CPU seconds, held-out perplexity, fold-in."""

import numpy as np
from scipy import sparse

from benchmarks.form import clock
from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.log.access_log import AccessLog

SEEDS = range(5)
"""Of both samplers: chance decides whether two topics end up as one, so one run says little."""


def theirs(counts: sparse.csr_array, model: GibbsLDA):
    """Topics and CPU seconds of tomotopy, per seed, with the priors and sweeps of our model.

    tomotopy's own optimisation of alpha is off, so that both sample the same posterior.
    """
    import tomotopy

    names = np.array([str(word) for word in range(counts.shape[1])])
    for seed in SEEDS:
        other = tomotopy.LDAModel(
            k=model.n_topics, alpha=model.alpha, eta=model.beta, seed=seed + 1
        )
        other.optim_interval = 0
        for d in range(counts.shape[0]):
            row = counts[[d]]
            if row.nnz:
                other.add_doc(np.repeat(names[row.indices], row.data.astype(int)).tolist())
        seconds, _ = clock(lambda: other.train(model.max_iter, workers=1))  # noqa: B023
        topics = np.full((model.n_topics, counts.shape[1]), 1e-9)
        topics[:, [int(word) for word in other.used_vocabs]] = [
            other.get_topic_word_dist(k) for k in range(model.n_topics)
        ]
        yield topics, seconds


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def compare(log: AccessLog) -> list[list[str]]:
    """Rows of the page: what, target, CPU seconds, and a note."""
    counts = log.patient_diagnosis()
    out = np.random.default_rng(0).random(counts.shape[0]) < 0.1
    train, test = counts[~out], counts[out]
    GibbsLDA(n_topics=3, max_iter=1).fit(train[:50]).transform(train[:5])  # compile
    fits = [clock(lambda seed=seed: GibbsLDA(random_state=seed).fit(train)) for seed in SEEDS]
    model, seconds = fits[0][1], float(np.median([own for own, _ in fits]))
    folding, _ = clock(lambda: model.transform(counts))
    ours = [fitted.perplexity(test) for _, fitted in fits]
    size = f"{train.shape[0]:,} patients, {int(train.sum()):,} diagnoses"
    rows = [
        ["LDA, 30 topics, 100 sweeps", "≤ 20 CPU s", f"{seconds:.1f} CPU s", size],
        ["fold-in of all patients", "≤ 5 s", f"{folding:.1f} CPU s", f"{counts.shape[0]:,}"],
    ]
    try:
        others = list(theirs(train, model))
    except ImportError:
        return rows
    rival, perplexities = float(np.median([own for _, own in others])), []
    for model.components_, _ in others:
        perplexities.append(model.perplexity(test))
    ratio = np.mean(ours) / np.mean(perplexities) - 1
    return [
        *rows,
        [
            "seconds, divided by tomotopy's",
            "≤ 0.5",
            f"{seconds / rival:.2f}",
            f"medians of {len(SEEDS)} runs; tomotopy {rival:.1f} CPU s",
        ],
        [
            "held-out perplexity, against tomotopy's",
            "within 0.5 %",
            f"{ratio:+.2%}",
            f"means of {len(SEEDS)} seeds and their range: {spread(ours)}, {spread(perplexities)}",
        ],
    ]
