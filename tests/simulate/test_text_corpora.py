"""Simulated corpora: what their kernels draw has the shares that were asked for."""

import numpy as np

from telic.optim import sampling
from telic.simulate.text_corpora import _draw_words


def test_words_come_from_each_topic_as_often_as_the_document_says():
    """Three topics of one word each, and documents of one word: a word's share is its topic's."""
    share, documents = np.array([0.6, 0.3, 0.1]), 4000
    tables = [sampling.alias_table(one) for one in np.eye(3)]
    threshold, alias = (np.array(part) for part in zip(*tables, strict=True))
    cumulative = np.tile(np.cumsum(share), (documents, 1))
    words, counts = np.empty(documents, np.int32), np.zeros(documents)
    _draw_words(
        *(threshold, alias, cumulative, np.arange(documents + 1), words, counts),
        *(np.full(3, -1, np.int64), sampling.random_state(0)),
    )
    drawn = np.bincount(words, minlength=3) / documents
    error = np.sqrt(share * (1 - share) / documents)
    assert (abs(drawn - share) < 4 * error).all()
    assert (counts == 1).all()
