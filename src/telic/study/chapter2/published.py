"""What chapter 2 of the dissertation prints: other people, another log."""

PUBLISHED = {
    "mpc": (50.62, 51.83, 61.33, 60.60, 60.92),
    "personal": (61.85, 62.68, 70.97, 69.80, 70.22),
    "personal-s": (66.02, 66.52, 74.43, 73.16, 73.59),
    "timesense": (64.32, 65.14, 73.70, 72.69, 73.05),
    "timesense-s": (65.56, 66.19, 74.69, 73.57, 73.96),
}
"""MRR of Tables 2.3 and 2.4 in percent, in the order of `telic.completion.fit.models.MODELS`."""
PUBLISHED_ACCURACY = {
    "MRR": PUBLISHED,
    "SR@1": {
        "mpc": (40.74, 42.27, 55.86, 54.54, 55.06),
        "personal": (51.31, 52.45, 64.27, 62.27, 62.98),
        "personal-s": (55.30, 56.24, 67.09, 64.87, 65.59),
        "timesense": (53.77, 54.92, 66.82, 65.00, 65.61),
        "timesense-s": (55.02, 56.11, 67.57, 65.65, 66.26),
    },
    "SR@2": {
        "mpc": (52.03, 53.19, 63.17, 62.75, 62.99),
        "personal": (64.02, 64.78, 73.71, 72.76, 73.06),
        "personal-s": (68.51, 68.92, 77.73, 76.83, 77.11),
        "timesense": (66.54, 67.45, 76.41, 75.69, 75.97),
        "timesense-s": (67.83, 68.27, 77.76, 76.78, 77.13),
    },
    "SR@3": {
        "mpc": (58.09, 59.21, 66.09, 66.01, 66.11),
        "personal": (70.34, 71.09, 76.94, 76.64, 76.77),
        "personal-s": (74.58, 74.97, 80.97, 80.65, 80.81),
        "timesense": (72.39, 73.28, 79.81, 79.64, 79.74),
        "timesense-s": (73.68, 74.11, 80.97, 80.74, 80.91),
    },
}
"""MRR and success rates of Tables 2.3 and 2.4 in percent, in the same order."""
RANGES = ("1-3", "4-6", "7-9", "10-12", "13+", "all")
"""Of characters of the prefix; the last is all of them."""
PUBLISHED_BY_LENGTH = {
    "static": {
        "mpc": (21.76, 33.64, 41.60, 47.28, 55.12, 38.19),
        "personal": (29.34, 45.41, 49.81, 52.16, 56.59, 46.67),
        "personal-s": (31.60, 50.14, 53.94, 55.21, 58.40, 49.83),
        "timesense": (29.98, 47.75, 52.48, 54.91, 58.49, 48.59),
        "timesense-s": (30.93, 49.27, 53.65, 55.73, 58.97, 49.48),
    },
    "adaqac-batch": {
        "mpc": (22.66, 38.67, 52.21, 55.13, 59.28, 44.72),
        "personal": (30.31, 49.52, 56.34, 57.79, 59.93, 51.75),
        "personal-s": (32.59, 53.38, 58.69, 59.33, 60.85, 54.30),
        "timesense": (31.94, 52.61, 58.63, 59.43, 61.08, 53.77),
        "timesense-s": (32.69, 53.69, 59.19, 59.83, 61.29, 54.47),
    },
    "adaqac-online": {
        "mpc": (22.52, 38.40, 52.13, 54.82, 58.94, 44.43),
        "personal": (30.10, 49.38, 56.19, 57.33, 59.32, 51.20),
        "personal-s": (32.36, 53.30, 58.57, 58.77, 60.16, 53.66),
        "timesense": (31.91, 52.65, 58.46, 59.06, 60.54, 54.01),
        "timesense-s": (32.59, 53.67, 59.14, 59.37, 60.76, 53.95),
    },
}
"""MRR of Table 2.5 in percent by model and, as `RANGES` are, by length of the prefix."""
