"""Real data sets: where they lie, and labelled ones as arrays."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from telic.data.numpy_files import load_npz
from telic.errors import InputError


class LabelledSet(NamedTuple):
    """Rows with labels."""

    X: sparse.csr_matrix
    y: np.ndarray
    """Labels −1 and 1, or targets."""
    classes: np.ndarray | None
    """The file's own labels where there are several classes."""


def data_folder(given: str | Path | None = None) -> Path:
    """Return the folder of data sets: `given`, or the environment's TELIC_DATA, or beside telic's.

    It holds ``ml`` (labelled sets), ``hin`` (networks) and ``qac`` (query–app pairs).

    Raises
    ------
    InputError
        If `given` is no folder.
    """
    if given is not None and not Path(given).is_dir():
        raise InputError(f"{given}: no such folder. Expected one that holds ml, hin or qac.")
    beside = Path(__file__).parents[4] / "shared" / "data"
    return Path(given or os.environ.get("TELIC_DATA") or beside)


def set_file(name: str, given: str | Path | None = None) -> Path:
    """Return where a labelled set is looked for."""
    return data_folder(given) / "ml" / f"{name}.npz"


def labelled_set(name: str, given: str | Path | None = None) -> LabelledSet:
    """Read a labelled set by its name.

    Raises
    ------
    InputError
        If it is not there.
    """
    file = set_file(name, given)
    if not file.is_file():
        raise InputError(f"{file} not found. Set TELIC_DATA to the folder that holds ml/*.npz.")
    q = load_npz(file)
    X = sparse.csr_matrix(
        (q["data"].astype(float), q["indices"], q["indptr"]), shape=tuple(q["shape"])
    )
    return LabelledSet(X, q["y"].astype(float), q.get("y_raw"))
