"""Rounds of collapsed Gibbs sampling for LDA, in which shards of documents work side by side.

In a round a shard goes through its documents once, in blocks. Its counts of words change only
between blocks, so documents of one block do not wait for each other: threads share them out, their
integer changes are added up afterwards, and every document draws from a random stream of its own.
The token's own count is taken out exactly, by rejection (see `sample_documents`).

Shards hear of each other between rounds only, when the changes of all are added up: approximate
distributed LDA (AD-LDA; Newman, Asuncion, Smyth and Welling, 2009). So the number of shards is part
of the result, and who works on them is not.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from telic.data.object_storage import Place
from telic.errors import InputError
from telic.kernels import kernel
from telic.scale import Executor
from telic.scale.arrays import Arrays, map_array, store_arrays
from telic.scale.job_folder import identity, mapped_folder

BLOCKS = 32
"""Times per round that a shard brings its counts up to date."""
AVERAGED = 10
"""Last rounds whose counts are averaged into the topics."""
STREAM = 0xD1B54A32D192ED03
"""Between the random streams of neighbouring documents."""


class TopicModel(NamedTuple):
    """What is sampled, and by which random numbers."""

    n_words: int
    n_topics: int
    alpha: float
    beta: float
    seeds: np.ndarray
    """Of each sweep, and the last one of the first topics."""

    @classmethod
    def of(
        cls, n_words: int, n_topics: int, alpha: float, beta: float, sweeps: int, seed: int
    ) -> "TopicModel":
        """Draw the seeds."""
        seeds = np.random.default_rng(seed).integers(0, 2**62, sweeps + 1)
        return cls(n_words, n_topics, alpha, beta, seeds)

    @property
    def sweeps(self) -> int:
        """Rounds after the first, which deals out topics."""
        return len(self.seeds) - 1

    def tables(self, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what `sample_documents` needs of word counts: weight, prior_cumulative, keep."""
        return _tables(count, float(self.alpha), float(self.beta))


class Shard(NamedTuple):
    """Some documents in a row."""

    first: int
    """Number of the first one among all documents."""
    start: np.ndarray
    """Where each document begins in `words`, and where the last one ends."""
    words: np.ndarray


class ShardFiles(NamedTuple):
    """A shard whose arrays are mapped."""

    folder: Path
    number: int
    first: int

    def __str__(self) -> str:
        return f"documents from {self.first + 1}"

    def read(self) -> Shard:
        """Map the arrays."""
        start, words = (
            map_array(self.folder, f"{name}-{self.number}") for name in Shard._fields[1:]
        )
        return Shard(self.first, start, words)


def cut(start: np.ndarray, words: np.ndarray, shards: int) -> list[Shard]:
    """Cut documents into shards of about as many each.

    Raises
    ------
    InputError
        If there are fewer documents.
    """
    n_documents = len(start) - 1
    if shards > n_documents:
        raise InputError(
            f"shards is {shards}, expected at most {n_documents}, the number of documents."
        )
    ends = np.linspace(0, n_documents, shards + 1).astype(int)
    return [
        Shard(int(a), start[a : b + 1] - start[a], words[start[a] : start[b]])
        for a, b in pairwise(ends)
    ]


def averaged_counts(
    model: TopicModel,
    shards: Sequence[Shard],
    *,
    threads: int = 1,
    executor: Executor | None = None,
    work: str | Place | None = None,
) -> np.ndarray:
    """Sample the topics of all documents, and count how often each has each word.

    Returned are counts of shape (n_words, n_topics), averaged over the last rounds. Without an
    executor threads share out the documents of one shard after the other. With one, `work`
    holds the documents, and the state of each shard after each round.
    """
    zeros = np.zeros((model.n_words, model.n_topics), np.int64)
    shared = {"count": zeros, "summed": zeros, "rounds": np.array(0)}
    combine, rounds = partial(_added, model.sweeps), model.sweeps + 1
    if executor is None:
        states: list[Arrays | None] = [None] * len(shards)
        for number in range(1, rounds + 1):
            messages = []
            for s, shard in enumerate(shards):
                states[s], message = one_round(model, shard, states[s], shared, number, threads)
                messages.append(message)
            shared, _ = combine(shared, messages)
    else:
        folder = mapped_folder(work, "the documents")
        for s, shard in enumerate(shards):
            store_arrays(folder, {f"start-{s}": shard.start, f"words-{s}": shard.words})
        files = [ShardFiles(folder, s, shard.first) for s, shard in enumerate(shards)]
        step = partial(_round_of_files, model)
        out = folder / f"rounds-{identity(step, files)}"
        shared, _ = executor.rounds(step, combine, files, shared, out=out, max_rounds=rounds)
    return shared["summed"] / min(AVERAGED, model.sweeps)


def _round_of_files(
    model: TopicModel, files: ShardFiles, state: Arrays | None, shared: Arrays, number: int
) -> tuple[Arrays, Arrays]:
    return one_round(model, files.read(), state, shared, number)


def one_round(
    model: TopicModel,
    shard: Shard,
    state: Arrays | None,
    shared: Arrays,
    number: int,
    threads: int = 1,
) -> tuple[Arrays, Arrays]:
    """Deal out a shard's topics in round 1, or resample each; tell how the counts change."""
    # As if the shard's documents were counted among all of them.
    stream = int(model.seeds[number - 2]) + shard.first * STREAM
    seed = np.int64((stream + 2**63) % 2**64 - 2**63)
    if state is None:
        topics = np.empty(len(shard.words), np.int16)
        start_topics(0, len(shard.start) - 1, shard.start, topics, model.n_topics, seed)
        change = np.zeros_like(shared["count"])
        np.add.at(change, (shard.words, topics), 1)
        return {"topics": topics}, {"change": change}
    topics, count = state["topics"], shared["count"].copy()
    _sweep(model, shard, topics, count, seed, threads)
    return {"topics": topics}, {"change": count - shared["count"]}


def _sweep(
    model: TopicModel,
    shard: Shard,
    topics: np.ndarray,
    count: np.ndarray,
    seed: np.int64,
    threads: int,
) -> None:
    """Resample a shard's topics in place, and bring the counts up to date after each block."""
    n_documents = len(shard.start) - 1
    changes = [np.zeros(count.shape, np.int32) for _ in range(threads)]

    def sample(t: int, parts: np.ndarray, tables: tuple[np.ndarray, ...]) -> None:
        changes[t][:] = 0
        in_document, active = np.zeros(model.n_topics, np.int32), np.empty(model.n_topics, np.int16)
        own = (shard.start, shard.words, topics, *tables, changes[t], in_document, active, seed)
        sample_documents(parts[t], parts[t + 1], *own)

    blocks = np.linspace(0, n_documents, min(BLOCKS, n_documents) + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        run = pool.map if threads > 1 else map  # no thread is begun for a shard of a few documents
        for a, b in pairwise(blocks):
            parts = np.linspace(a, b, threads + 1).astype(int)
            list(run(sample, range(threads), repeat(parts), repeat(model.tables(count))))
            for change in changes:
                count += change


def _added(sweeps: int, shared: Arrays, messages: list[Arrays]) -> tuple[Arrays, bool]:
    """Add up what the shards changed, and sum the counts of the last rounds."""
    count = shared["count"] + np.sum([message["change"] for message in messages], axis=0)
    rounds = shared["rounds"] + 1
    late = rounds > 1 + max(sweeps - AVERAGED, 0)
    summed = shared["summed"] + late * count
    return {"count": count, "summed": summed, "rounds": rounds}, False


@kernel
def _next(state):
    """Advance a splitmix64 stream; returns the new state and a uniform number in [0, 1)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 1.1102230246251565e-16


@kernel
def _tables(count, alpha, beta):
    total, floor = count.sum(axis=0), len(count) * beta
    weight, prior_cumulative, keep = np.empty((3, *count.shape))
    for w in range(len(count)):
        prior = 0.0
        for k in range(len(total)):
            n = count[w, k]
            weight[w, k] = (n + beta) / (total[k] + floor)
            prior += alpha * weight[w, k]
            prior_cumulative[w, k] = prior
            less = (max(n - 1, 0) + beta) / (max(total[k] - 1, 0) + floor)
            keep[w, k] = less / weight[w, k]
    return weight, prior_cumulative, keep


@kernel
def start_topics(first, last, start, topics, n_topics, seed):
    """Give every token of documents first … last − 1 a random topic."""
    for d in range(first, last):
        state = np.uint64(seed) + np.uint64(d) * np.uint64(STREAM)
        for i in range(start[d], start[d + 1]):
            state, u = _next(state)
            topics[i] = int(u * n_topics)


@kernel
def sample_documents(
    first, last, start, words, topics, weight, prior_cumulative, keep, change, count, active, seed
):
    """Resample the topics of documents first … last − 1, given weight[w, k] ≈ P(w | k).

    A topic is proposed ∝ (n_dk + α_k) weight[w, k], with the token taken out of the document but
    not of the word counts; a proposal of the token's old topic k is kept with probability
    keep[w, k], the factor by which taking the token out shrinks the weight. This draws exactly
    from the collapsed conditional given the word counts of the block's start.
    """
    n_topics = weight.shape[1]
    for d in range(first, last):
        state = np.uint64(seed) + np.uint64(d) * np.uint64(STREAM)
        n_active = 0
        for i in range(start[d], start[d + 1]):
            k = topics[i]
            if count[k] == 0:
                active[n_active] = k
                n_active += 1
            count[k] += 1
        for i in range(start[d], start[d + 1]):
            w, old = words[i], topics[i]
            count[old] -= 1
            own = 0.0
            for a in range(n_active):
                own += count[active[a]] * weight[w, active[a]]
            total = own + prior_cumulative[w, n_topics - 1]
            while True:
                state, u = _next(state)
                u *= total
                if u < own:
                    new = old
                    for a in range(n_active):
                        if count[active[a]] > 0:
                            new = active[a]
                            u -= count[new] * weight[w, new]
                            if u < 0.0:
                                break
                else:
                    u -= own
                    low, high = 0, n_topics - 1
                    while low < high:
                        middle = (low + high) >> 1
                        if prior_cumulative[w, middle] > u:
                            high = middle
                        else:
                            low = middle + 1
                    new = low
                if new != old:
                    break
                state, u = _next(state)
                if u < keep[w, old]:
                    break
            if new != old:
                change[w, old] -= 1
                change[w, new] += 1
                topics[i] = new
                listed = False
                for a in range(n_active):
                    listed = listed or active[a] == new
                if not listed:
                    active[n_active] = new
                    n_active += 1
            count[new] += 1
        for a in range(n_active):
            count[active[a]] = 0
