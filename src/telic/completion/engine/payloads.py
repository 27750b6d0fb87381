"""What a suggestion carries besides its text: one's own id, and a payload of JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from telic.completion.engine.encoded_phrases import bytes_and_offsets


@dataclass(frozen=True)
class Records:
    """An id and a payload for each phrase of a catalogue, both optional.

    Attributes
    ----------
    text : array of uint8
        Ids and payloads, UTF-8, one after the other: id 0, payload 0, id 1, …
    ends : int64 array of shape (2 n,)
        Where each ends.

    Examples
    --------
    >>> records = Records.of(["a1", None], ['{"url": "/tea"}', None])
    >>> records.id(0), records.payload(0), records.id(1), records.payload(1)
    ('a1', {'url': '/tea'}, None, None)
    """

    text: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, ids: Sequence[str | None], payloads: Sequence[str | None]) -> Self:
        """Keep ids and payloads (JSON as text); None or "" for none."""
        parts = [(part or "").encode() for pair in zip(ids, payloads, strict=True) for part in pair]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.frombuffer(b"".join(parts), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) // 2

    def id(self, number: int) -> str | None:
        """Return a phrase's own id, None if it has none."""
        return self._part(2 * number) or None

    def payload(self, number: int) -> Any:
        """Return a phrase's payload, None if it has none."""
        text = self._part(2 * number + 1)
        # Older lists may have NaN, which no browser reads.
        return json.loads(text, parse_constant=lambda constant: None) if text else None

    def take(self, numbers: np.ndarray) -> Self:
        """Return the records of some phrases, none for -1."""
        bounds = np.concatenate([[0], self.ends]).astype(np.int64)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.asarray(self.text))]
        parts = pa.Array.from_buffers(pa.large_binary(), len(self.ends), buffers)
        places = (2 * numbers[:, None] + [0, 1]).ravel()
        text, offsets = bytes_and_offsets(parts.take(pa.array(places, mask=places < 0)))
        return type(self)(text, offsets[1:])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a model folder keeps."""
        return {"records.text": self.text, "records.ends": self.ends}

    @classmethod
    def stored(cls, arrays: Mapping[str, np.ndarray]) -> Self | None:
        """Read back what `arrays` gave; None if it was never there."""
        if "records.ends" not in arrays:
            return None
        return cls(arrays["records.text"], arrays["records.ends"])

    def _part(self, place: int) -> str:
        if not 0 <= place < len(self.ends):
            return ""
        start = self.ends[place - 1] if place else 0
        return self.text[start : self.ends[place]].tobytes().decode()
