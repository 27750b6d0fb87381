"""What the service listens on, where it keeps what it learns, and its limits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Settings:
    """Settings of the service; the limits bound what one request, user or flood can take.

    Examples
    --------
    >>> Settings.beside("models/places").database
    'sqlite:///models/places.sqlite'
    """

    database: str
    """SQLAlchemy URL of the submissions and of what each user taught the model."""
    host: str = "127.0.0.1"
    """Address to listen on; also a name that requests may call us by."""
    names: tuple[str, ...] = ()
    """Further names that requests may call us by, such as that of a proxy before us."""
    port: int = 8000
    """0 takes any free port."""
    max_query: int = 256
    """Characters of a query."""
    max_id: int = 128
    """Characters of a user's or composition's id."""
    max_body: int = 64 * 1024
    """Bytes of a request's body, and of its query string."""
    max_head: int = 64 * 1024
    """Bytes of a request's first line and headers."""
    max_connections: int = 1_000
    """Open connections; one more ends the one that has been waiting longest."""
    request_seconds: float = 10.0
    """What a client may take to send a request, from its first byte or from connecting."""
    answer_seconds: float = 30.0
    """What an answer may take, the client's taking it included."""
    keep_seconds: float = 60.0
    """How long a connection may do nothing between two requests."""
    max_open: int = 10_000
    """Open compositions; one more ends the one that has been idle longest."""
    max_keystrokes: int = 1_000
    """Keystrokes of one composition; one more begins it anew."""
    max_history: int = 1_000
    """Distinct queries remembered of a user; one more forgets the one submitted longest ago."""
    max_users: int = 1_000
    """Users whose state is kept at hand after their last composition."""
    max_waiting: int = 10_000
    """Submissions that wait for the database; one more is refused."""
    read_seconds: float = 1.0
    """What a first keystroke waits for the user's state; then it is answered without."""
    fresh_seconds: float = 1.0
    """A user's state that was read so lately is not read again for the next composition."""
    write_seconds: float = 10.0
    """What a submission waits for the database; then it is refused."""
    idle_seconds: float = 1_800.0
    """An open composition that is idle for so long is forgotten."""

    @classmethod
    def beside(cls, model: str | Path, **others: Any) -> Self:
        """Return settings with an SQLite file beside a model folder."""
        folder = Path(model)
        return cls(f"sqlite:///{folder.with_name(folder.name + '.sqlite')}", **others)
