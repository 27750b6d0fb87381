"""What the service listens on, where it keeps what it learns, and its limits: one table of all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self


def setting(
    default: Any, about: str, *, least: float | None = None, most: float | None = None
) -> Any:
    """Return a field of `Settings` that says what it means, and what it is at least and at most."""
    return field(default=default, metadata={"about": about, "least": least, "most": most})


@dataclass(frozen=True)
class Settings:
    """Settings of the service; the limits bound what one request, user or flood can take.

    `telic.serve.operation.settings_sources` reads them from a file, the environment and options,
    and writes the table of what each means: docs/reference/service-settings.md.

    Examples
    --------
    >>> Settings.beside("models/places").database
    'sqlite:///models/places.sqlite'
    """

    database: str = setting(
        "",
        "SQLAlchemy URL of the submissions and of what each user taught the model; "
        "empty for MODEL.sqlite beside the model",
    )
    host: str = setting(
        "127.0.0.1", "address to listen on; requests may use it as a host name, too"
    )
    port: int = setting(8000, "0 takes any free port", least=0, most=65535)
    names: tuple[str, ...] = setting(
        (), "further host names that requests may use, such as that of a proxy before the service"
    )
    proxies: tuple[str, ...] = setting(
        ("127.0.0.1",),
        "addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted",
    )
    workers: int = setting(
        1, "processes that answer requests; more than 1 need a model folder", least=1
    )
    keys: str = setting("", "file of tenants and their API keys; see telic completion key")
    without_keys: bool = setting(
        False, "allow other machines to connect although there are no keys"
    )
    origins: tuple[str, ...] = setting(
        (), "where there are no keys, the origins of other sites whose pages may ask (CORS)"
    )
    rate: float = setting(
        0.0, "requests a second of one address (of IPv6 one /64) without a key; 0: any number",
        least=0,
    )  # fmt: skip
    key_rate: float = setting(
        0.0, "requests a second with the keys of one tenant; 0: any number", least=0
    )
    burst: int = setting(
        100, "requests that whoever was silent may send at once; after them the rate holds", least=1
    )
    max_rated: int = setting(10_000, "addresses, and tenants, whose rate is remembered", least=1)
    max_query: int = setting(256, "characters of a query", least=1)
    max_boost: float = setting(
        10.0,
        "largest factor by which a request may boost a value of a context; the least is 1 divided "
        "by it; 1: requests may not boost",
        least=1,
    )
    max_boosts: int = setting(
        4, "values that a request may boost; a keystroke looks their combinations up", least=1
    )
    # Both are in one key of a table, for which PostgreSQL allows some 2,700 bytes.
    max_id: int = setting(128, "characters of a user's or composition's id", least=1, most=256)
    max_body: int = setting(
        64 * 1024, "bytes of a request's body, and of its query string", least=1
    )
    pad_replies: int = setting(
        0,
        "bytes to which each answer to a keystroke or submission is filled up with white space, or "
        "to twice, four times … as many, so that its size tells little of what was typed; 0: not "
        "padded",
        least=0,
        most=2**20,
    )
    max_head: int = setting(64 * 1024, "bytes of a request's first line and headers", least=1)
    max_connections: int = setting(
        1_000, "open connections; one more ends the one that has been waiting longest", least=1
    )
    request_seconds: float = setting(
        10.0,
        "how long a client may take to send a request, from its first byte or from connecting",
        least=0.001,
    )  # fmt: skip
    answer_seconds: float = setting(
        30.0,
        "how long an answer may take, with the time in which the client receives it",
        least=0.001,
    )
    keep_seconds: float = setting(
        60.0, "how long a connection may be idle between two requests", least=0.001
    )
    max_open: int = setting(
        10_000,
        "queries that people may type at once; one more ends the one that was idle longest",
        least=1,
    )
    max_keystrokes: int = setting(
        1_000, "keystrokes of one composition; one more begins it anew", least=1
    )
    max_history: int = setting(
        1_000,
        "distinct queries remembered of a user; one more forgets the one submitted longest ago",
        least=1,
    )
    max_users: int = setting(
        1_000, "users whose state stays in memory after their last composition", least=1
    )
    max_changes: int = setting(
        20_000,
        "phrases that POST /phrases may have changed since the list was built; from then on it "
        "only deletes",
        least=1,
    )
    max_submissions: int = setting(
        10_000_000,
        "submissions that the database keeps; every ten minutes the oldest beyond that are "
        "removed, and one of them that is sent again counts again; 0: any number",
        least=0,
    )
    max_states: int = setting(
        1_000_000,
        "users' states that the database keeps, over all models; every ten minutes those beyond "
        "that are removed, first those that learned longest ago; their users begin anew; 0: any "
        "number",
        least=0,
    )
    max_batches: int = setting(
        1_000_000,
        "batches of changes that the database keeps, since every start may need them; one more is "
        "refused; 0: any number",
        least=0,
    )
    compact_after: int = setting(
        2_000,
        "changed phrases that are built into the list, by a process in the background; 0: never",
        least=0,
    )
    compacted: str = setting(
        "",
        "folder that lists with their changes built in are kept in; empty for MODEL.compacted "
        "beside the model",
    )
    max_waiting: int = setting(
        10_000, "submissions that wait for the database; one more is refused", least=1
    )
    read_seconds: float = setting(
        1.0, "how long a first keystroke waits for the user's state; then it is answered without",
        least=0.001,
    )  # fmt: skip
    fresh_seconds: float = setting(
        1.0, "how long a user's state, once read, serves the user's next compositions too",
        least=0,
    )  # fmt: skip
    write_seconds: float = setting(
        10.0, "how long a submission waits for the database; then it is refused", least=0.001
    )
    idle_seconds: float = setting(
        1_800.0, "an open composition that is idle for so long is forgotten", least=0.001
    )
    stop_seconds: float = setting(
        5.0, "how long requests under way may take after the service was told to stop", least=0
    )
    record: str = setting(
        "", "folder to record keystrokes, lists and submissions in, to learn from; empty: none"
    )
    record_unasked: bool = setting(
        False,
        "also record requests without consent=1; for use only where people agreed to it elsewhere",
    )
    record_networks: bool = setting(
        False,
        "record also a keyed digest of the client's network, so that many ids in one network do "
        "not count as many people; set proxies, or all clients share the proxy's network",
    )
    record_days: float = setting(90.0, "days for which a record is kept", least=0.001)
    record_megabytes: float = setting(
        10_000.0, "megabytes of records; beyond that the oldest are deleted", least=1
    )
    arm: str = setting(
        "", "with record: which arm of a trial this service is; see telic completion trial"
    )
    propensity: float = setting(
        1.0, "with arm: the share of users, over 0 and up to 1, whom the proxy sends to it", least=0
    )
    control: float = setting(
        0.0,
        "with record: the share of recorded compositions, drawn one by one, that keep the static "
        "order: the arm with which a trial compares the model; see telic completion trial",
        least=0,
    )
    interleave: float = setting(
        0.0,
        "with record: the share of recorded compositions whose lists are drawn from the static "
        "order and the model's by turns; see telic completion trial",
        least=0,
    )
    traces: bool = setting(
        False, "send a span of each request to OTEL_EXPORTER_OTLP_ENDPOINT (extra telemetry)"
    )
    log_json: bool = setting(False, "write the log as JSON, an object a line")

    @classmethod
    def beside(cls, model: str | Path, **others: Any) -> Self:
        """Return settings with an SQLite file beside a model folder."""
        return cls(database_beside(model), **({"compacted": compacted_beside(model)} | others))


def compacted_beside(model: str | Path) -> str:
    """Return the name of a folder beside a model folder."""
    return str(_beside(model, ".compacted"))


def database_beside(model: str | Path) -> str:
    """Return the URL of an SQLite file beside a model folder."""
    return f"sqlite:///{_beside(model, '.sqlite')}"


def _beside(model: str | Path, ending: str) -> Path:
    folder = Path(model)
    if folder.name in ("", ".."):  # "." has no name of its own
        folder = folder.resolve()
    return folder.with_name(folder.name + ending) if folder.name else folder / ending
