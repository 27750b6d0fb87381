"""What chapter 3 of the dissertation prints: other people, other queries."""

PUBLISHED = {
    "mpc": (35.13, 41.55),
    "personal": (39.06, 43.57),
    "personal-s": (40.48, 44.62),
    "timesense": (39.91, 43.94),
    "timesense-s": (40.88, 44.93),
}
"""MRR of Standard and AppAware in Table 3.5, in percent, on data that are not public."""
PUBLISHED_SHARE, PUBLISHED_DISTINCT = 0.849, 4.0
"""Figure 3.2 at 30 minutes: queries with an app opened before, and how many distinct ones then."""
