"""What the service counts, in Prometheus's form."""

import os
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.parser import text_string_to_metric_families

from telic.completion import Completer
from telic.completion.learning.do_no_harm import gate_facts

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which worker processes know where they count together."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)
__all__ = ["FOLDER", "MEDIA_TYPE", "Metrics", "Seen", "mark_process_dead"]


class Seen(NamedTuple):
    """What a submission says of the list that stood before it."""

    typed: int
    """Characters that stood in the box."""
    rank: int
    """Place of what was submitted in the list; 0 where it was not in it."""
    listed: int
    """Suggestions in the list."""
    accepted: bool
    """Whether it was taken from the list and not typed to its end."""

    def saved(self, query: str) -> int:
        """Return how many keystrokes the list saved: what was not typed of an accepted one."""
        return max(len(query) - self.typed, 0) if self.accepted else 0


def _said(value: bool) -> str:
    return str(value).lower()


class Metrics:
    """Counters and gauges of one process, or of all workers together where `FOLDER` is set.

    Parameters
    ----------
    addresses : collection of str
        Whose requests are counted by name; all others as ``other``.
    """

    def __init__(self, addresses: Collection[str] = ()) -> None:
        self._addresses = frozenset(addresses)
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "telic_requests", "Requests answered.", ["address", "status"], registry=registry
        )
        self._seconds = Histogram(
            "telic_request_seconds",
            "From a request's head to the end of its answer.",
            ["address"],
            buckets=SECONDS,
            registry=registry,
        )
        self._submissions = Counter(
            "telic_submissions",
            "Submissions learned from, by whether a list stood before them and was used; the "
            "running check is open where the user's lists are re-ranked, or held where that did "
            "harm.",
            ["tenant", "listed", "accepted", "running_check"],
            registry=registry,
        )
        self._ranks = Counter(
            "telic_reciprocal_ranks",
            "Sum of 1/place of what was submitted in the last list; MRR by listed submissions.",
            ["tenant"],
            registry=registry,
        )
        self._characters = Counter(
            "telic_characters",
            "Characters of submitted queries before which a list stood.",
            ["tenant"],
            registry=registry,
        )
        self._saved = Counter(
            "telic_keystrokes_saved",
            "Characters of accepted suggestions that were not typed.",
            ["tenant"],
            registry=registry,
        )
        self._cut = Counter(
            "telic_connections_cut", "Connections ended here.", ["reason"], registry=registry
        )
        self._open = Gauge(
            "telic_open_compositions",
            "Queries being typed.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._store = Gauge(
            "telic_store_up",
            "1 while the store works, 0 while it fails.",
            multiprocess_mode="livemin",
            registry=registry,
        )
        self._removed = Counter(
            "telic_store_rows_removed",
            "Oldest rows of the store that were removed, as there were too many.",
            ["table"],
            registry=registry,
        )
        self._full = Gauge(
            "telic_store_bound_reached",
            "1 once the store had as many rows of a table as it may have.",
            ["table"],
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._gate = Gauge(
            "telic_gate_open",
            "1 where feedback re-ranks prefixes of these lengths.",
            ["prefix"],
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._store.set(1)
        self._answers: dict[tuple[str, int], tuple[Callable[[], None], Callable[[float], None]]]
        self._answers = {}

    def exposition(self) -> bytes:
        """Return all of them in Prometheus's text format."""
        registry = self._registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry)

    def latency(self) -> list[dict[str, Any]]:
        """Return, by address, how many answers there were, and the mean, p50 and p99 seconds.

        A quantile lies between the bounds of its bucket as if the bucket's answers were spread
        evenly. In the last, which has no upper bound, it is the lower one.
        """
        sums: dict[str, dict[str, float]] = {}
        below: dict[str, list[float]] = {}
        for family in text_string_to_metric_families(self.exposition().decode()):
            if family.name == "telic_request_seconds":
                for sample in family.samples:
                    kind, address = sample.name.rpartition("_")[2], sample.labels["address"]
                    sums.setdefault(address, {})[kind] = sample.value
                    if kind == "bucket":
                        below.setdefault(address, [0.0]).append(sample.value)
        rows: list[dict[str, Any]] = []
        for address, of in sorted(sums.items()):
            if answers := of["count"]:
                shares = np.array(below[address][:-1]) / answers
                p50, p99 = np.interp([0.5, 0.99], shares, [0.0, *SECONDS]).tolist()
                row = {"address": address, "answers": int(answers), "mean": of["sum"] / answers}
                rows.append(row | {"p50": p50, "p99": p99})
        return rows

    def serves(self, completer: Completer) -> None:
        """Say where this model's feedback acts."""
        facts = gate_facts(completer.gate)
        for each in facts["ranges"]:
            self._gate.labels(each["characters"]).set(float(each["reranks"]))

    def request(self, address: str, status: int, seconds: float) -> None:
        """Count an answer."""
        address = address if address in self._addresses else "other"
        if (address, status) not in self._answers:  # by name they cost more than counting does
            self._answers[address, status] = (
                self._requests.labels(address, str(status)).inc,
                self._seconds.labels(address).observe,
            )
        count, observe = self._answers[address, status]
        count()
        observe(seconds)

    def submission(self, tenant: str, query: str, seen: Seen | None, *, held: bool) -> None:
        """Count a submission that was learned for the first time."""
        accepted = seen is not None and seen.accepted
        check = "held" if held else "open"
        self._submissions.labels(tenant, _said(seen is not None), _said(accepted), check).inc()
        if seen is not None:
            self._characters.labels(tenant).inc(len(query))
            self._ranks.labels(tenant).inc(1 / seen.rank if seen.rank else 0.0)
            self._saved.labels(tenant).inc(seen.saved(query))

    def cut(self, reason: str) -> None:
        """Count a connection that was ended."""
        self._cut.labels(reason).inc()

    def compositions(self, count: int) -> None:
        """Say how many are open."""
        self._open.set(count)

    def removed(self, table: str, rows: int) -> None:
        """Count rows that were removed from the store."""
        self._removed.labels(table).inc(rows)

    def bound_reached(self, table: str) -> None:
        """Say that the store has as many rows as it may have."""
        self._full.labels(table).set(1)

    def store(self, works: bool) -> None:
        """Say whether the store works."""
        self._store.set(float(works))
