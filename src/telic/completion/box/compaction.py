"""Compaction: a list with its changes built in, in a folder and by a process of its own.

``python -m telic.completion.box.compaction`` reads from its standard input, as JSON, what `keep`
takes, and builds while others answer. Whoever starts it holds the lock of the folder of kept lists,
which goes with the open file to the process that builds, and to nobody else until that has ended.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from telic.completion.box.completer import Completer
from telic.completion.box.live_changes import compacted
from telic.data import load_model, save_model
from telic.errors import ModelError

KIND = "kept-list"
NAME = re.compile(r"([0-9a-f]{16})-([0-9]{12})-([0-9a-f]{16})")
"""Of a kept list: what tells the model, and the number and hash of the last batch that it has."""
BEGUN = ".begun-"
"""What the names of folders begin with that are still being written."""


def with_kept(completer: Completer, folder: str | Path) -> Completer:
    """Return a completer with a list that `keep` made of it; ModelError if that is damaged."""
    stored = load_model(folder, kind=KIND)
    made = completer.with_list(stored.arrays, folder)
    made.live.deleted |= {form.encode() for form in stored.meta.get("deleted", [])}
    return made


def keep(model: str, digest: str, before: str | None, live: Mapping[str, Any], out: str) -> None:
    """Build changes into a list and keep it; then delete what nobody will open again.

    Parameters
    ----------
    model : str
        Model folder.
    digest : str
        What `Completer.stored` said of it.
    before : str, optional
        The kept list that the changes were made to, instead of the model's own.
    live : mapping
        The changes, from `Live.as_json`.
    out : str
        The folder to make: there is none of this name, or all of it.

    Raises
    ------
    ModelError
        If the model folder holds another model by now.
    """
    completer = Completer.load(model)
    if completer.stored is None or completer.stored[1] != digest:
        raise ModelError(f"{model}: holds another model by now.")
    if before is not None:
        completer = with_kept(completer, before)
    completer.live.restore(live)
    made, folder = compacted(completer), Path(out).parent
    for left in folder.glob(f"{BEGUN}*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=BEGUN, dir=folder) as begun:
        whole = Path(begun, "list")
        meta = {"deleted": sorted(form.decode() for form in made.live.deleted)}
        save_model(whole, kind=KIND, meta=meta, arrays={}, mapped=made.list_arrays())
        shutil.rmtree(out, ignore_errors=True)  # a damaged one
        os.rename(whole, out)
    for other in folder.iterdir():
        of_model = NAME.fullmatch(other.name)
        if of_model and (of_model[1] != digest[:16] or str(other) == before):
            shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    try:
        os.nice(10)  # keystrokes go before
        keep(**json.load(sys.stdin))
    except (ModelError, OSError) as error:
        sys.exit(str(error))
    except Exception as error:  # its text could quote a phrase
        sys.exit(type(error).__name__)
