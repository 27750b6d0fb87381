"""Finished runs of the AUC tables, kept in a file: it is gone on from where it ended, even cut.

Every result is a line of a file as soon as it is known, with a fingerprint of the code, the
settings and the data that made it, so that a run can be resumed and what other code made is
computed again. `telic.study.steps.Steps` is too coarse for that: a table has hundreds of cells of
minutes each, whose methods change one at a time, and more runs are added to what is there.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from telic.errors import InputError

log = logging.getLogger(__name__)

_LINE = '{"key": "'
"""How each line of the stored results begins."""


class NotStored(LookupError):
    """A result is not in the file, and computing it was not allowed."""


@dataclass
class Results:
    """Everything computed so far, kept in a file of one JSON object a line.

    A line whose fingerprint is not that of today's code and settings counts as not there.
    """

    file: Path
    compute: bool = True
    """Whether what is not in the file is computed; otherwise `NotStored` is raised."""
    found: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Value and fingerprint by key."""

    def __post_init__(self) -> None:
        if self.file.is_file():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self.found[entry["key"]] = entry["value"], entry.get("made", "")
                except (ValueError, KeyError, TypeError):
                    if not line.startswith(_LINE[: len(line)]):
                        raise InputError(
                            f"{self.file}: is not a file of finished runs, so nothing is added to "
                            "it. Choose another name."
                        ) from None
                    continue  # the line that an interruption cut

    def get(self, key: str, compute: Callable[[], Any], *, made: str) -> Any:
        """Return what is stored under the key, computing and storing it first if need be.

        Parameters
        ----------
        key : str
        compute : callable
        made : str
            `telic.study.code_fingerprint` of what computes it.
        """
        value, by = self.found.get(key, (None, None))
        if by == made:
            return value
        if not self.compute:
            raise NotStored(key)
        if by is not None:
            log.warning("%s: %s was made by other code or settings: computed again", self.file, key)
        value = compute()
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write("\n" if self._is_cut() else "")
            stream.write(json.dumps({"key": key, "value": value, "made": made}) + "\n")
        self.found[key] = value, made
        return value

    def _is_cut(self) -> bool:
        size = self.file.stat().st_size
        if size == 0:
            return False
        with self.file.open("rb") as stream:
            stream.seek(size - 1)
            return stream.read(1) != b"\n"
