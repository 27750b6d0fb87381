"""What chapter 2 of the dissertation prints: other people, another log."""

PUBLISHED = {
    "mpc": (50.62, 51.83, 61.33, 60.60, 60.92),
    "personal": (61.85, 62.68, 70.97, 69.80, 70.22),
    "personal-s": (66.02, 66.52, 74.43, 73.16, 73.59),
    "timesense": (64.32, 65.14, 73.70, 72.69, 73.05),
    "timesense-s": (65.56, 66.19, 74.69, 73.57, 73.96),
}
"""MRR of Tables 2.3 and 2.4 in percent, in the order of `telic.completion.fit.models.MODELS`."""
PUBLISHED_SUCCESS = {
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
"""Success rates of Tables 2.3 and 2.4 in percent, in the same order."""
PUBLISHED_BY_LENGTH = {
    "1-3": {
        "mpc": (21.76, 22.66, 22.52),
        "personal": (29.34, 30.31, 30.10),
        "personal-s": (31.60, 32.59, 32.36),
        "timesense": (29.98, 31.94, 31.91),
        "timesense-s": (30.93, 32.69, 32.59),
    },
    "4-6": {
        "mpc": (33.64, 38.67, 38.40),
        "personal": (45.41, 49.52, 49.38),
        "personal-s": (50.14, 53.38, 53.30),
        "timesense": (47.75, 52.61, 52.65),
        "timesense-s": (49.27, 53.69, 53.67),
    },
    "7-9": {
        "mpc": (41.60, 52.21, 52.13),
        "personal": (49.81, 56.34, 56.19),
        "personal-s": (53.94, 58.69, 58.57),
        "timesense": (52.48, 58.63, 58.46),
        "timesense-s": (53.65, 59.19, 59.14),
    },
    "10-12": {
        "mpc": (47.28, 55.13, 54.82),
        "personal": (52.16, 57.79, 57.33),
        "personal-s": (55.21, 59.33, 58.77),
        "timesense": (54.91, 59.43, 59.06),
        "timesense-s": (55.73, 59.83, 59.37),
    },
    "13+": {
        "mpc": (55.12, 59.28, 58.94),
        "personal": (56.59, 59.93, 59.32),
        "personal-s": (58.40, 60.85, 60.16),
        "timesense": (58.49, 61.08, 60.54),
        "timesense-s": (58.97, 61.29, 60.76),
    },
    "all": {
        "mpc": (38.19, 44.72, 44.43),
        "personal": (46.67, 51.75, 51.20),
        "personal-s": (49.83, 54.30, 53.66),
        "timesense": (48.59, 53.77, 54.01),
        "timesense-s": (49.48, 54.47, 53.95),
    },
}
"""MRR of Table 2.5 in percent by characters of the prefix: static, adaQAC-Batch, adaQAC-Online."""
