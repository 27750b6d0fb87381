"""The groups of signals, each with a penalty, a gate and an explanation of its own."""

from telic.completion.learning.feedback import FEATURES as FED_BACK

GROUPS: dict[str, tuple[str, ...]] = {
    "popularity": ("submissions", "different users"),
    "time": ("last 28 days", "last 7 days", "last day", "hour of the day", "day of the week"),
    "personal": ("own submissions", "how lately"),
    "session": (
        "submitted before",
        "submitted just before",
        "continues",
        "words kept",
        "words kept of earlier ones",
        "characters shared",
        "follows",
        "follows earlier ones",
    ),
    "match": ("share typed", "ends a word", "is what was typed"),
}
"""Those of a query log: the names of their features, in the order of the columns."""
PAIRS = "pairs"
"""The group of weights for each pair of queries of a session, which are learned by themselves."""
APPS = "apps"
"""The group of logs that say which apps were opened before a query."""
WITH_APPS = GROUPS | {
    PAIRS: ("learned to follow",),
    APPS: ("goes with the last app", "goes with the apps", "goes with one app"),
}
WIDTH = sum(map(len, WITH_APPS.values()))
"""Columns of these."""
FEEDBACK = "feedback"
"""The group of adaQAC's features (Table 2.2), of logs that say what lists were shown."""
EVERY_GROUP = WITH_APPS | {FEEDBACK: FED_BACK}
FEATURES = tuple(name for names in EVERY_GROUP.values() for name in names)
"""All features; those of feedback are the last."""
GROUP_OF = tuple(group for group, names in EVERY_GROUP.items() for _ in names)
"""The group of each feature."""
