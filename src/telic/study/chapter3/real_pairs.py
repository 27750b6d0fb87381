"""On real query–app pairs: does knowing the app help to rank what people of another group typed?"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_sdca
from telic.completion.engine.folding import fold
from telic.data.query_app_pairs import QueryAppPairs, read_pairs
from telic.evaluate import mean_reciprocal_rank, paired_t_test, reciprocal_ranks

PENALTIES = (Elastic(1e-4, 1e-4), Elastic(3e-4, 1e-4), Elastic(1e-3, 1e-4))
RECOUNTS = (None, *PENALTIES)
Unit = Literal["query", "word"]
Group = Literal["worker", "task"]
LENGTHS = (1, 2, 3)
FOLDS = 5


def held_out_study(*, file: Path, **options: Any) -> list[dict[str, Any]]:
    """Run `pairs_study` on the pairs in a file."""
    return pairs_study(read_pairs(file), **options)


def pairs_study(
    pairs: QueryAppPairs,
    *,
    unit: Unit = "query",
    held_out: Group = "worker",
    shuffled: bool = False,
    n: int = 10,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Rank queries, or their words, by popularity and by AppAware, on people held out.

    Five folds of workers (or tasks). Popularity is counted on the others; in training, without the
    own group; a weight for each text is learned on top where it helps on one of the training folds,
    so that apps that say nothing cannot gain by it. Candidates are the n most popular that begin
    with the first 1, 2 or 3 characters. The apps that the query was meant for are the context, each
    of value 1. The penalty is chosen on one of the training folds. A query that nobody else typed
    cannot be suggested by any model: it counts 0 for both, and `coverage` says how often it can.

    Parameters
    ----------
    pairs : QueryAppPairs
    unit : {"query", "word"}
        Whole queries are hardly ever typed twice; their words are.
    held_out : {"worker", "task"}
        What the folds are made of. Workers of one task share the situation that they were given;
        holding out tasks leaves nothing of it.
    shuffled : bool
        The control: the apps of another query.
    n, seed : int

    Returns
    -------
    list of dict
        One row per prefix length: ``standard``, ``appaware`` (MRR), ``difference`` (per person)
        with its 95 % interval and p-value, ``coverage``, ``n``.
    """
    rng = np.random.default_rng(seed)
    group, worker, texts, apps = _instances(pairs, unit, held_out)
    vocabulary, text = np.unique(texts, return_inverse=True)
    fold_of = rng.permutation(group.max() + 1) % FOLDS
    part = fold_of[group]
    if shuffled:
        apps = [apps[i] for i in rng.permutation(len(apps))]
    found: dict[int, list[tuple[np.ndarray, ...]]] = {length: [] for length in LENGTHS}
    nothing = [[0]] * len(text)  # a context that is the same for all: a weight for each text

    def learned(train: np.ndarray, penalty: Elastic | None) -> np.ndarray:
        if penalty is None:
            return np.zeros(len(vocabulary))
        weights = _Ranking(vocabulary, text, group, nothing, 1, train, n).fitted(penalty)
        return weights[:-1] / max(1 + weights[-1], 0.1)

    def ranking(train: np.ndarray, recount: Elastic | None) -> _Ranking:
        return _Ranking(
            vocabulary, text, group, apps, len(pairs.apps), train, n, learned(train, recount)
        )

    for held in range(FOLDS):
        inner = (held + 1) % FOLDS
        smaller = (part != held) & (part != inner)
        inside = np.flatnonzero(part == inner)

        problems = [ranking(smaller, recount) for recount in RECOUNTS]
        best = int(np.argmax([_accuracy(problem, inside) for problem in problems]))
        tried = [problems[best].fitted(penalty) for penalty in PENALTIES]
        penalty = PENALTIES[int(np.argmax([_accuracy(problems[best], inside, w) for w in tried]))]
        problem = ranking(part != held, RECOUNTS[best])
        weights = problem.fitted(penalty)
        test = np.flatnonzero(part == held)
        for length in LENGTHS:
            found[length].append((*problem.ranks(test, length, weights), worker[test]))
    rows = []
    for length, folds in found.items():
        standard, own, people = (np.concatenate(arrays) for arrays in zip(*folds, strict=True))
        tested = paired_t_test(own, standard, people)
        rows.append(
            {
                "unit": unit,
                "held_out": held_out,
                "shuffled": shuffled,
                "prefix_length": length,
                "n": len(own),
                "coverage": float((standard > 0).mean()),
                "standard": mean_reciprocal_rank(standard),
                "appaware": mean_reciprocal_rank(own),
                "difference": tested.difference,
                "low": tested.low,
                "high": tested.high,
                "p_value": tested.p_value,
            }
        )
    return rows


def _accuracy(problem: "_Ranking", items: np.ndarray, weights: np.ndarray | None = None) -> float:
    """MRR over all prefix lengths, by popularity or with weights of apps."""
    own = np.zeros(problem.size) if weights is None else weights
    ranks = [problem.ranks(items, length, own)[weights is not None] for length in LENGTHS]
    return float(np.mean(ranks))


def _instances(
    pairs: QueryAppPairs, unit: str, held_out: str
) -> tuple[np.ndarray, np.ndarray, list[str], list[list[int]]]:
    """Group, worker, text and apps of everything that was typed."""
    chosen: dict[tuple[int, int, int], list[int]] = {}
    for key, app in zip(
        zip(pairs.worker.tolist(), pairs.task.tolist(), pairs.query.tolist(), strict=True),
        pairs.app.tolist(),
        strict=True,
    ):
        if app not in (own := chosen.setdefault(key, [])):
            own.append(app)
    group, worker, texts, apps = [], [], [], []
    for (person, task, query), own in chosen.items():
        folded = fold(pairs.queries[query])
        words = re.findall(r"\w+", folded) if unit == "word" else [folded]
        for word in dict.fromkeys(words):
            group.append(person if held_out == "worker" else task)
            worker.append(person)
            texts.append(word)
            apps.append(own)
    return np.array(group), np.array(worker), texts, apps


class _Ranking:
    """Popularity, candidates and the conditional logit of one training part."""

    def __init__(
        self,
        vocabulary: np.ndarray,
        text: np.ndarray,
        group: np.ndarray,
        apps: list[list[int]],
        n_apps: int,
        train: np.ndarray,
        n: int,
        learned: np.ndarray | None = None,
    ) -> None:
        self.text, self.group, self.apps, self.n_apps, self.n = text, group, apps, n_apps, n
        self.learned = np.zeros(len(vocabulary)) if learned is None else learned
        self.size = len(vocabulary) * n_apps + 1
        self.vocabulary = vocabulary
        self.train = np.flatnonzero(train)
        self.in_training = train
        count = np.bincount(text[train], minlength=len(vocabulary))
        self.count = count.tolist()
        self.own = Counter(zip(group[train].tolist(), text[train].tolist(), strict=True))
        self.by_prefix: dict[str, list[int]] = {}
        for i in np.argsort(-count, kind="stable"):
            if count[i]:
                for prefix in {vocabulary[i][:length] for length in LENGTHS}:
                    self.by_prefix.setdefault(prefix, []).append(int(i))

    def candidates(self, i: int, length: int) -> list[tuple[int, int]]:
        """Best texts and their counts, without those of the own group if it is in training."""
        typed = self.by_prefix.get(self.vocabulary[self.text[i]][:length], [])
        if not self.in_training[i]:
            return [(q, self.count[q]) for q in typed[: self.n]]
        person = self.group[i]
        left = [(q, self.count[q] - self.own[person, q]) for q in typed[: 2 * self.n]]
        return sorted((pair for pair in left if pair[1] > 0), key=lambda pair: -pair[1])[: self.n]

    def choices(self, items: np.ndarray, lengths: np.ndarray) -> tuple[FactoredChoices, list[int]]:
        """Choices of the items whose text is a candidate."""
        outcome: list[int] = []
        offset: list[float] = []
        start, chosen, context, kept = [0], [], [], []
        for i, length in zip(items.tolist(), lengths.tolist(), strict=True):
            listed = self.candidates(i, length)
            texts = [q for q, _ in listed]
            if self.text[i] not in texts:
                continue
            chosen.append(start[-1] + texts.index(self.text[i]))
            outcome += texts
            offset += (np.log1p([count for _, count in listed]) + self.learned[texts]).tolist()
            start.append(len(outcome))
            context.append(self.apps[i])
            kept.append(i)
        ends = np.cumsum([0, *map(len, context)])
        rows = len(outcome)
        return FactoredChoices(
            len(self.vocabulary),
            self.n_apps,
            1,
            np.array(outcome, int),
            np.array(offset, float),
            np.array(start),
            np.array(chosen, int),
            ends,
            np.array([a for own in context for a in own], int),
            np.ones(ends[-1]),
            np.arange(rows + 1),
            np.zeros(rows, int),
            np.array(offset, float),
        ), kept

    def fitted(self, penalty: Elastic) -> np.ndarray:
        lengths = np.random.default_rng(0).choice(LENGTHS, len(self.train))
        choices, _ = self.choices(self.train, lengths)
        if not len(choices):
            return np.zeros(choices.size)
        return fit_sdca(choices, penalty, tol=1e-3).weights

    def ranks(
        self, items: np.ndarray, length: int, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Reciprocal ranks by popularity and by the model, 0 where it is no candidate."""
        choices, kept = self.choices(items, np.full(len(items), length))
        place = {item: t for t, item in enumerate(items.tolist())}
        at = np.array([place[i] for i in kept], int)
        standard, own = np.zeros(len(items)), np.zeros(len(items))
        if not len(choices):
            return standard, own
        column = np.arange(choices.rows) - choices.start[choices.choice]
        for scores, out in ((choices.offset, standard), (choices.scores(weights), own)):
            table = np.full((len(choices), self.n), -np.inf)
            table[choices.choice, column] = scores
            out[at] = reciprocal_ranks(table, choices.chosen - choices.start[:-1])
        return standard, own
