"""Which kind of telic's outputs lies at a path, by its looks: older records say only that it is."""

import json
from pathlib import Path

BEGINNINGS = {
    b"<!doctype html": "page",
    b"# ": "page",  # Markdown
    b"<": "GraphML",
    b"{": "JSON",
    b"[": "JSON",
}
"""How files begin. Parquet files are told by a column, and what is left is CSV."""
COLUMNS = {
    "keystrokes": "composition log",
    "query": "query log",
    "candidates": "candidates",
    "auxiliary": "key",
}
"""Columns of Parquet files, the most telling first."""


def kind_of(path: Path) -> str:
    """Return the kind of a file or folder: a model's own name for it, "network", "page", …

    Examples
    --------
    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "found.html"
    >>> _ = page.write_text("<!doctype html><p>")
    >>> kind_of(page)
    'page'
    """
    if not path.is_dir():
        return _kind_of_file(path)
    if (path / "schema.json").is_file():
        return "network"
    if (path / "target" / "schema.json").is_file():
        return "simulated networks"
    parts = list(path.iterdir())
    if parts and all(part.suffix == ".svg" for part in parts):
        return "figures"
    try:
        return str(json.loads((path / "manifest.json").read_text(encoding="utf-8"))["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return "folder"


def _kind_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(20)
    if head.startswith(b"PAR1"):
        import pyarrow as pa
        from pyarrow import parquet

        try:
            names = parquet.read_schema(path).names
        except (pa.ArrowException, OSError):
            names = []
        return next((kind for name, kind in COLUMNS.items() if name in names), "Parquet")
    return next((kind for start, kind in BEGINNINGS.items() if head.startswith(start)), "CSV")
