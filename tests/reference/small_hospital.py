"""A simulated hospital without most of its users and practices: those that no test looks for."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.simulate.hospital import simulate_hospital
from telic.simulate.hospital_practices import CORE_SIZES, HIDDEN_SIZES

PRACTICES = pa.array([*CORE_SIZES, *HIDDEN_SIZES])


def simulate_small(folder, **options):
    """As `simulate_hospital`, then `shrink`."""
    simulate_hospital(folder, **options)
    shrink(folder)


def shrink(folder):
    """Leave the core and hidden practices of a simulated log, and an eighth of other users.

    All users of these practices stay, and all who declare a code of them, if they opened a record.
    """
    users = pq.read_table(folder / "truth_users.parquet")
    declared = pq.read_table(folder / "providers.parquet", columns=["taxonomy"])["taxonomy"]
    known = pc.or_(
        pc.is_in(users["practice"], PRACTICES), pc.fill_null(pc.is_in(declared, PRACTICES), False)
    )
    users = users["user"].filter(pc.or_(known, pa.array(np.arange(len(users)) % 8 == 0)))
    encounters = pq.read_table(folder / "truth_encounters.parquet")
    encounters = encounters["encounter"].filter(
        pc.is_in(encounters["practice"].cast("string"), PRACTICES)
    )

    def rows(table):
        kept = pa.array(np.ones(len(table), dtype=bool))
        for column, values in (("user", users), ("encounter", encounters)):
            if column in table.column_names:
                known = pc.is_in(table[column].cast("string"), values.cast("string"))
                kept = pc.and_(kept, known)
        return kept

    accesses = pq.read_table(folder / "accesses.parquet")
    kept = rows(accesses)
    users = accesses["user"].filter(kept).unique()
    snooping = pq.read_table(folder / "truth_accesses.parquet")
    row = snooping["row"].to_numpy() - 1
    snooping = snooping.set_column(0, "row", pa.array(np.cumsum(kept)[row]))
    pq.write_table(snooping.filter(kept.take(row)), folder / "truth_accesses.parquet")
    for file in {*folder.glob("*.parquet")} - {folder / "truth_accesses.parquet"}:
        table = pq.read_table(file)
        pq.write_table(table.filter(rows(table)), file)
