"""Our sampler beside tomotopy (pip install tomotopy): CPU seconds, held-out perplexity, fold-in."""

import time

import numpy as np

from telic.specialty.access import AccessLog
from telic.specialty.lda import GibbsLDA


def clock(work):
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def theirs(counts):
    """Topics and CPU seconds of tomotopy; no topics where it is not installed."""
    try:
        import tomotopy
    except ImportError:
        return None, None
    model = tomotopy.LDAModel(k=30, alpha=0.1, eta=0.01, seed=1)
    model.optim_interval = 0
    names = [str(word) for word in range(counts.shape[1])]
    for d in range(counts.shape[0]):
        row = counts[[d]]
        words = np.repeat(row.indices, row.data.astype(int))
        if len(words):
            model.add_doc([names[w] for w in words])
    _, seconds = clock(lambda: model.train(100, workers=1))
    topics = np.full((30, counts.shape[1]), 1e-9)
    topics[:, [int(word) for word in model.used_vocabs]] = [
        model.get_topic_word_dist(k) for k in range(30)
    ]
    return topics, seconds


def compare(log: AccessLog) -> list[list[str]]:
    """Rows of the page: what, target, CPU seconds, and a note."""
    counts = log.patient_diagnosis()
    out = np.random.default_rng(0).random(counts.shape[0]) < 0.1
    train, test = counts[~out], counts[out]
    GibbsLDA(n_topics=3, sweeps=1).fit(train[:50]).transform(train[:5])  # compile
    ours, seconds = clock(lambda: GibbsLDA().fit(train))
    _, folding = clock(lambda: ours.transform(counts))
    perplexity = ours.perplexity(test)
    size = f"{train.shape[0]:,} patients, {int(train.sum()):,} diagnoses"
    rows = [
        ["LDA, 30 topics, 100 sweeps", "≤ 20 CPU s", f"{seconds:.1f} CPU s", size],
        ["fold-in of all patients", "≤ 5 s", f"{folding:.1f} CPU s", f"{counts.shape[0]:,}"],
    ]
    topics, rival = theirs(train)
    if topics is not None:
        ours.components_ = topics
        other = ours.perplexity(test)
        rows += [
            [
                "seconds over tomotopy's",
                "≤ 0.5",
                f"{seconds / rival:.2f}",
                f"tomotopy {rival:.1f} CPU s",
            ],
            [
                "perplexity over tomotopy's",
                "within 0.5 %",
                f"{perplexity / other - 1:+.2%}",
                f"{perplexity:.2f} and {other:.2f}",
            ],
        ]
    return rows
