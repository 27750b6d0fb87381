"""Chapter 6's published figures, as printed: counts, and shares in percent."""

PUBLISHED_COUNTS = {
    "accesses": 4_829_376,
    "patients": 291_562,
    "providers": 3_269,
    "encounters": 890_812,
    "taxonomy codes": 165,
    "CCS codes": 603,
}
"""Tables 6.1 and 6.2."""
PUBLISHED_CONTRAST = {
    "Naive": {"Urology": 70.35, "Anesthesiology": 11.30},
    "SVM": {"Urology": 97.44, "Anesthesiology": 48.98},
}
"""F1 of Section 6.2."""
PUBLISHED_RECOGNITION = {
    "Table 6.7": (
        [
            (86.67, 57.14, 68.87),
            (89.13, 64.16, 74.61),
            (77.00, 79.09, 78.03),
            (92.50, 93.11, 92.80),
        ],
        [
            (67.37, 58.07, 62.38),
            (72.08, 67.36, 69.64),
            (72.30, 74.02, 73.15),
            (89.30, 86.72, 87.99),
        ],
    ),
    "Table 6.8": (
        [
            (95.12, 57.35, 71.56),
            (91.11, 60.29, 72.57),
            (82.58, 80.88, 81.69),
            (96.92, 92.65, 94.74),
        ],
        [
            (66.42, 53.21, 59.08),
            (71.28, 63.18, 66.99),
            (75.45, 76.21, 75.83),
            (90.84, 88.93, 89.88),
        ],
    ),
    "Table 6.9": (
        [
            (100.0, 40.41, 57.56),
            (83.22, 56.98, 67.64),
            (75.01, 82.12, 78.40),
            (92.85, 94.01, 93.43),
        ],
        [
            (63.18, 45.62, 52.98),
            (75.62, 53.51, 62.68),
            (77.12, 80.36, 78.70),
            (90.23, 89.19, 89.70),
        ],
    ),
}
"""Precision, recall and F1 in Tables 6.7 to 6.9, by classifier: of the specialty, and of the mean
of the core classes."""
