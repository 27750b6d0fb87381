"""The Arrow schemas that data files keep; `docs/reference/data-contracts.md` explains them."""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")

KEYSTROKE = pa.struct(
    [
        pa.field("at", TIMESTAMP),
        pa.field("prefix", pa.string()),
        pa.field("suggestions", pa.list_(pa.string())),
    ]
)


def _texts(*names: str) -> list[pa.Field]:
    """Return columns of text without nulls."""
    return [pa.field(name, pa.string(), nullable=False) for name in names]


INSTALLED_APP = pa.struct([pa.field("app", pa.string()), pa.field("daily_opens", pa.float32())])
OPENED_APP = pa.struct([pa.field("app", pa.string()), pa.field("at", TIMESTAMP)])

COMPOSITIONS = pa.schema(
    [
        *_texts("user", "composition", "query"),
        pa.field("submitted_at", TIMESTAMP, nullable=False),
        pa.field("selected", pa.int16()),
        pa.field("keystrokes", pa.list_(KEYSTROKE), nullable=False),
        pa.field("installed", pa.list_(INSTALLED_APP)),
        pa.field("opened", pa.list_(OPENED_APP)),
        pa.field("tenant", pa.string()),
        pa.field("network", pa.string()),
    ]
)
"""One row per query composition, as far as `OPTIONAL` columns are there."""

QUERIES = pa.schema(
    [
        *_texts("query"),
        pa.field("at", TIMESTAMP, nullable=False),
        pa.field("user", pa.string()),
        pa.field("count", pa.float64()),
        pa.field("tenant", pa.string()),
        pa.field("network", pa.string()),
    ]
)
"""A query log for popularity. All columns but `query` and `at` may be absent."""

GROUPS = ("tenant", "network")
"""Columns of either log that say more of a user: whose the user is, and where."""
OPTIONAL = ("selected", "installed", "opened", *GROUPS)
"""Columns that a composition log need not have."""

MAX_TEXT = 1000
"""Longest query, prefix or suggestion accepted, in characters."""
MAX_COUNT = 1e12
"""Most submissions that a row may stand for: sums of such counts stay exact enough to subtract."""

ACCESSES = pa.schema(
    [*_texts("user", "patient", "encounter"), pa.field("at", TIMESTAMP, nullable=False)]
)
"""Who opened which patient's record, during which encounter, and when."""

DIAGNOSES = pa.schema(_texts("patient", "encounter", "code"))
"""The diagnoses of each encounter."""

PROVIDERS = pa.schema([*_texts("user"), pa.field("taxonomy", pa.string())])
"""The specialty code each provider declared; null for none."""

ACCESS_DIAGNOSES = pa.schema(_texts("user", "patient", "encounter", "code"))
"""The fine-grained view: which diagnosis an access was about. The file may be absent."""

NAMES = pa.schema(_texts("code", "name"))
"""What codes of specialties, and of diagnoses outside a known system, are called. The file may be
absent."""

SIMULATED = b"telic.simulated"
"""Key in a Parquet file's schema metadata; `b"true"` says that people were simulated."""
