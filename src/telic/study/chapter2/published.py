"""What chapter 2 of the dissertation prints: other people, another log."""

PUBLISHED = {
    "mpc": (50.62, 51.83, 61.33, 60.60, 60.92),
    "personal": (61.85, 62.68, 70.97, 69.80, 70.22),
    "personal-s": (66.02, 66.52, 74.43, 73.16, 73.59),
    "timesense": (64.32, 65.14, 73.70, 72.69, 73.05),
    "timesense-s": (65.56, 66.19, 74.69, 73.57, 73.96),
}
"""MRR of Tables 2.3 and 2.4 in percent, in the order of `telic.completion.fit.models.MODELS`."""
