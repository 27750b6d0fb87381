"""JSON that people write, whose faults are named in one line, and values that JSON can hold."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from telic.data.tables import no_such_file
from telic.errors import InputError


def read_json(path: Path, kind: type, expected: str) -> Any:
    """Read a JSON file whose content is of a kind (`dict` or `list`).

    Parameters
    ----------
    path : Path
    kind : type
    expected : str
        What the file should hold, in words that follow "expected".

    Raises
    ------
    InputError
        If there is no such file, it is no JSON (with the line and column), or of another kind.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weights.json"
    >>> _ = file.write_text('{"yob": 2}')
    >>> read_json(file, dict, "an object")
    {'yob': 2}
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        reason = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        reason = "is no JSON, as it is no text in UTF-8"
    except RecursionError:
        reason = "is nested too deeply"
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: is no JSON ({error.msg})"
    else:
        if isinstance(content, kind):
            return content
        reason = "holds another kind of JSON"
    raise InputError(f"{path}: {reason}, expected {expected}.")


def for_json(value: Any) -> Any:
    """Return a value with None for the numbers that JSON has not, NaN and the infinite.

    Examples
    --------
    >>> for_json({"auc": float("nan"), "rows": (1, 2.5)})
    {'auc': None, 'rows': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {key: for_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
