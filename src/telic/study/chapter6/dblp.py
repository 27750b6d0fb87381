"""Chapter 6's question on real data: is a research area that has no seeds found in DBLP?"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy import sparse

from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.discovery.pathselclus import fit_pathselclus
from telic.study.chapter6.hospital import f1

AREAS = ("databases", "data mining", "machine learning", "information retrieval")


def held_out(*, folder: Path, seed: int = 0, threads: int = 1) -> list[dict[str, Any]]:
    """Leave one research area without seeds and ask whether it is found: real data, known truth.

    Author = user, paper = patient, term = diagnosis, area = specialty. A tenth of the labelled
    authors of three areas are seeds; one cluster is free. Its F1 against the area left out stands
    beside LDA on papers (as many topics as areas, no seeds).

    Parameters
    ----------
    folder : path
        Holds ``dblp4area_author_label``, ``_paper_author`` and ``_paper_term``.
    seed, threads : int
    """

    def read(name: str) -> list[np.ndarray]:
        table = pq.read_table(folder / f"dblp4area_{name}.parquet")
        return [column.to_numpy() for column in table.columns]

    author, area = read("author_label")
    paper, writer = read("paper_author")
    termed, term = read("paper_term")
    papers, terms = np.unique(np.concatenate([paper, termed])), np.unique(term)
    order = np.argsort(author)
    author, area = author[order], area[order]
    known = np.isin(writer, author)
    opened = _links(
        np.searchsorted(author, writer[known]),
        np.searchsorted(papers, paper[known]),
        (len(author), len(papers)),
    )
    documents = _links(
        np.searchsorted(papers, termed), np.searchsorted(terms, term), (len(papers), len(terms))
    )
    paths = {"A-P-T": opened @ documents, "A-P": opened}
    model = GibbsLDA(n_topics=len(AREAS), random_state=seed, n_jobs=threads).fit(documents)
    topic = (opened @ model.transform(documents)).argmax(axis=1)
    rng = np.random.default_rng(seed)
    rows = []
    for held_out, name in enumerate(AREAS):
        others = [a for a in range(len(AREAS)) if a != held_out]
        seeds = np.full(len(author), -1)
        for k, a in enumerate(others):
            members = np.flatnonzero(area == a)
            seeds[rng.choice(members, len(members) // 10, replace=False)] = k
        fitted = fit_pathselclus(paths, seeds, n_clusters=len(AREAS), seed=seed, threads=threads)
        truth = set(np.flatnonzero(area == held_out))
        free = f1(truth, set(np.flatnonzero(fitted.labels == len(others))))
        unseeded = max(f1(truth, set(np.flatnonzero(topic == k))) for k in range(len(AREAS)))
        share = fitted.quality["A-P-T"] / sum(fitted.quality.values())
        rows.append(
            {"area": name, "authors": len(truth), "seeded": free, "lda": unseeded, "share": share}
        )
    return rows


def _links(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    matrix = sparse.coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsr()
    matrix.data[:] = 1
    return matrix
