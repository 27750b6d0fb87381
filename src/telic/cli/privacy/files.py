"""Files that the privacy commands read and write beside networks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from telic.errors import InputError

if TYPE_CHECKING:
    from telic.hin import Network
    from telic.privacy.attacks.dehin import Attack


def split_names(text: str | None) -> list[str] | None:
    """Split names separated by commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def read_loss(net: "Network", node_type: str, column: str) -> Any:
    """Read each user's loss l(t) from a numeric column."""
    import pyarrow as pa

    table = net.nodes[node_type]
    if column not in table.column_names:
        raise InputError(f"loss: no column {column!r}. Columns are {table.column_names}.")
    kind = table.column(column).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise InputError(f"loss: column {column!r} is {kind}, expected numbers in [0, 1].")
    return table.column(column).to_numpy()


def read_steps(path: Path | None) -> list[Any]:
    """Read the steps of a release; no file, no steps."""
    from telic.data.json_files import read_json
    from telic.privacy.anonymisers.release_steps import EXAMPLE

    return [] if path is None else read_json(path, list, f"a list of steps such as [{EXAMPLE}]")


def find_truth(
    kind: str, known: "Network", published: "Network", node_type: str
) -> tuple[Any, str]:
    """Return the targets' auxiliary positions (None: unknown), and how they are known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from telic.privacy.attacks.score import read_truth, same_ids

    if kind == "none" or not published.size(node_type):
        return None, "not given"
    if kind in ("ids", "auto"):
        found = same_ids(known, published, node_type)
        if kind == "ids" and (found < 0).all():  # nobody would be found, which is no protection
            raise InputError(
                "--truth ids: none of the target's ids is in the auxiliary network. Give the key "
                "that anonymise wrote, or none."
            )
        if kind == "ids" or (found >= 0).all():
            return found, "ids are kept"
        return None, f"not given ({int((found < 0).sum())} target ids are not auxiliary ids)"
    if not Path(kind).exists():
        raise InputError(f"--truth {kind}: no such file, expected ids, auto, none or a file.")
    try:
        table = pq.ParquetFile(kind).read()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"--truth {kind}: cannot be read ({error}).") from None
    return read_truth(table, known, published, node_type), kind


def write_candidates(
    path: Path, result: "Attack", known: "Network", published: "Network", node_type: str
) -> None:
    """Write one row per distance and target: `target`, `distance`, `candidates`."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from telic.data import atomic_path

    users, targets = known.ids(node_type), published.ids(node_type)
    schema = pa.schema(
        [("target", targets.type), ("distance", pa.int32()), ("candidates", pa.list_(users.type))]
    )
    with atomic_path(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for distance, sizes in enumerate(result.sizes):
            # Row groups of bounded size: candidate sets can be as large as the network.
            group = np.cumsum(sizes) // 5_000_000
            for number in np.unique(group):
                rows = np.flatnonzero(group == number)
                offsets = np.append(0, np.cumsum(sizes[rows])).astype(np.int32)
                found = np.concatenate([result.candidates(int(t), distance) for t in rows])
                lists = pa.ListArray.from_arrays(pa.array(offsets), users.take(pa.array(found)))
                columns = [
                    targets.take(pa.array(rows)),
                    pa.array(np.full(len(rows), distance, np.int32)),
                    lists,
                ]
                writer.write_table(pa.table(columns, schema=schema))


def write_key(path: Path, table: Any) -> None:
    """Write who is who, whole or not at all, for its owner alone to read."""
    import pyarrow.parquet as pq

    from telic.data import atomic_path

    with atomic_path(path) as temporary:
        temporary.touch(mode=0o600)
        pq.write_table(table, temporary)
