"""Our sampler beside tomotopy (pip install tomotopy): CPU seconds, held-out perplexity, fold-in.

Usage: python benchmarks/specialty/lda_speed.py SCALE
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tomotopy

from telic.simulate.hospital import simulate_hospital
from telic.specialty.access import read_log
from telic.specialty.lda import GibbsLDA


def clock(work):
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def theirs(counts):
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


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "log"
    simulate_hospital(path, scale=float(sys.argv[1]))
    counts = read_log(path).patient_diagnosis()
out = np.random.default_rng(0).random(counts.shape[0]) < 0.1
train, test = counts[~out], counts[out]
GibbsLDA(n_topics=3, sweeps=1).fit(train[:50]).transform(train[:5])  # compile
ours, seconds = clock(lambda: GibbsLDA().fit(train))
print(f"{train.shape[0]} documents, {int(train.sum())} tokens, 30 topics, 100 sweeps, one thread")
print(f"telic     {seconds:6.1f} CPU s, perplexity {ours.perplexity(test):.2f}")
_, folding = clock(lambda: ours.transform(counts))
print(f"telic     {folding:6.1f} CPU s to fold in all {counts.shape[0]} documents")
topics, seconds = theirs(train)
ours.components_ = topics
print(f"tomotopy  {seconds:6.1f} CPU s, perplexity {ours.perplexity(test):.2f}")
