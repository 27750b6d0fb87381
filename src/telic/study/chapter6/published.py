"""Chapter 6's published figures, as printed: counts, and shares in percent."""

PUBLISHED_COUNTS = {
    "accesses": 4_829_376,
    "patients": 291_562,
    "providers": 3_269,
    "encounters": 890_812,
    "taxonomy codes": 165,
    "CCS codes": 603,
}
"""Table 6.1 of the general data set; the number of CCS codes is Section 6.3's."""
PUBLISHED_CONTRAST = {
    "Naive": {"Urology": 70.35, "Anesthesiology": 11.30},
    "SVM": {"Urology": 97.44, "Anesthesiology": 48.98},
}
"""F1 of Section 6.2."""
PUBLISHED_FINE_COUNTS = {
    "accesses": 35_869,
    "patients": 41_603,
    "providers": 2_504,
    "encounters": 62_390,
    "taxonomy codes": 161,
}
"""Table 6.1 of the fine-grained data set."""
PUBLISHED_RECORDS = {
    "provider job titles": {"fine-grained": 167, "general": 171},
    "locations": {"fine-grained": 242, "general": 251},
    "services": {"fine-grained": 101, "general": 104},
    "diagnoses": {"fine-grained": 4_172, "general": 13_566},
    "procedures": {"fine-grained": 740, "general": 2_165},
}
"""Table 6.2; diagnoses and procedures before they were grouped."""
PUBLISHED_TOPICS = {
    "user documents": (
        "Other hypertensive complications",
        "Hypotension",
        "Cancer of ovary",
        "Coma, stupor, and brain damage",
        "Hyposmolality",
        "Ascites",
        "Hematuria",
        "Acute myocardial infarction",
        "Backache, unspecified",
        "Other connective tissue disease",
    ),
    "patient documents": (
        "Calculus of kidney",
        "Elevated prostate specific antigen",
        "Hematuria",
        "Impotence of organic origin",
        "Incomplete bladder emptying",
        "Bladder neck obstruction",
        "Urinary frequency",
        "Hydronephrosis",
        "Unspecified retention of urine",
        "Other testicular hypofunction",
    ),
}
"""Table 6.3."""
_RECOGNITION = {
    "Table 6.7": """
de facto: 86.67/57.14/68.87 89.13/64.16/74.61 77.00/79.09/78.03 92.50/93.11/92.80
mean of core classes: 67.37/58.07/62.38 72.08/67.36/69.64 72.30/74.02/73.15 89.30/86.72/87.99
Urology: 70.59/60.00/64.86 68.42/65.00/66.67 81.82/90.00/85.71 100/95.00/97.44
Neurology: 71.05/57.45/63.53 71.05/57.45/63.53 65.57/85.11/74.07 81.48/93.62/87.13
Pulmonary Disease: 100/54.17/70.27 93.33/58.33/71.79 71.43/83.33/76.92 95.83/95.83/95.83
Orthopaedic Surgery: 93.33/48.28/63.64 93.33/48.28/63.64 69.70/79.31/74.19 100/89.66/94.55
Neonatal-Perinatal Medicine: 87.50/25.00/38.89 89.43/89.29/85.36 92.59/89.29/90.91 96.15/89.29/92.59
Gastroenterology: 67.86/50.00/57.58 69.23/47.37/56.25 69.23/94.74/80.00 95.00/100/97.44
Obstetrics & Gynecology: 42.23/97.25/58.89 49.03/94.50/64.56 87.18/93.58/90.27 98.99/89.91/94.23
Neurological Surgery: 100/35.00/51.85 100/35.00/51.85 33.33/5.00/8.70 100/35.00/51.85
Ophthalmology: 73.91/40.48/52.31 90.04/71.43/79.66 80.56/69.05/74.36 54.67/97.62/70.09
Cardiovascular Disease: 63.93/61.90/62.90 62.12/65.08/63.57 - -/-/96.83
Infectious Disease: 79.17/73.08/76.00 79.17/73.08/76.00 - -/-/92.59
Dermatology: 78.95/39.47/52.63 78.95/39.47/52.63 - -
""",
    "Table 6.8": """
de facto: 95.12/57.35/71.56 91.11/60.29/72.57 82.58/80.88/81.69 96.92/92.65/94.74
mean of core classes: 66.42/53.21/59.08 71.28/63.18/66.99 75.45/76.21/75.83 90.84/88.93/89.88
Urology: 75.00/45.00/56.25 75.00/45.00/56.25 78.26/90.00/83.72 100/95.00/97.44
Neurology: 65.52/40.43/50.00 64.52/42.55/51.28 72.73/85.11/78.43 80.36/95.74/87.38
Pulmonary Disease: 87.50/58.33/70.00 87.50/58.33/70.00 70.37/79.17/74.51 95.65/91.67/93.62
Orthopaedic Surgery: 76.92/34.48/47.62 89.43/79.31/84.07 68.57/82.76/75.00 100/93.10/96.43
Neonatal-Perinatal Medicine: 100/14.29/25.00 100/82.29/90.28 92.59/89.29/90.91 96.15/89.29/92.59
Gastroenterology: 65.38/44.74/53.12 65.38/44.74/53.12 75.00/94.74/83.72 97.44/100/98.70
Obstetrics & Gynecology: 55.80/70.64/62.35 57.03/66.97/61.60 90.83/90.83/90.83 99.02/92.66/95.73
Neurological Surgery: 100/35.00/51.85 88.89/40.00/55.17 50.00/10.00/16.67 100/20.00/33.33
Ophthalmology: 23.12/95.24/37.21 69.36/95.24/80.27 86.11/73.81/79.49 100/88.10/93.67
Cardiovascular Disease: 64.29/57.14/60.50 64.15/53.97/58.62 76.62/93.65/84.29 96.77/95.24/96.00
Infectious Disease: 76.19/61.54/68.09 73.91/65.38/69.39 52.00/50.00/50.98 96.00/92.31/94.12
Dermatology: 75.00/31.58/44.44 82.11/68.42/74.64 - -
""",
    "Table 6.9": """
de facto: 100/40.41/57.56 83.22/56.98/67.64 75.01/82.12/78.40 92.85/94.01/93.43
mean of core classes: 63.18/45.62/52.98 75.62/53.51/62.68 77.12/80.36/78.70 90.23/89.19/89.70
Urology: 100/50.00/66.67 100/55.00/70.97 86.36/95.00/90.48 100/95.00/97.44
Neurology: 85.71/38.30/52.94 70.71/57.45/63.39 63.49/85.11/72.73 82.14/97.87/89.32
Pulmonary Disease: 100/45.83/62.86 100/45.83/62.86 71.43/83.33/76.92 100/87.50/93.33
Orthopaedic Surgery: 100/3.45/6.67 82.15/37.93/51.90 62.16/79.31/69.70 96.43/93.10/94.74
Neonatal-Perinatal Medicine: 100/39.29/56.41 100/39.29/56.41 89.29/89.29/89.29 100/89.29/94.34
Gastroenterology: 82.35/36.84/50.91 82.35/36.84/50.91 76.09/92.11/83.33 94.87/97.37/96.10
Obstetrics & Gynecology: 30.59/99.08/46.75 38.12/93.58/54.17 94.50/94.50/94.50 100/94.50/97.17
Neurological Surgery: 100/40.00/57.14 100/50.00/66.67 33.33/5.00/8.70 100/40.00/57.14
Ophthalmology: 100/4.76/9.09 100/4.76/9.09 88.24/71.43/78.95 86.96/95.24/90.91
Cardiovascular Disease: 76.92/63.49/69.57 76.92/63.49/69.57 75.64/93.65/83.69 95.31/96.83/96.06
Infectious Disease: 78.95/57.69/66.67 78.95/57.69/66.67 66.67/53.85/59.57 88.89/92.31/90.57
Dermatology: 100/2.63/5.13 87.21/39.47/54.34 - -
""",
}
"""Tables 6.7 to 6.9: precision / recall / F1 of each class by classifier, as printed; a dash
for what the text at hand has lost."""


def recognition_scores(table: str) -> dict[tuple[str, int], tuple[float, float, float]]:
    """Return precision, recall and F1 in percent by class and place of the classifier.

    NaN stands for what is lost of a row of which something is left.
    """
    found = {}
    for line in _RECOGNITION[table].strip().splitlines():
        label, cells = line.split(": ")
        for place, cell in enumerate(cells.split()):
            if cell != "-":
                scores = cell.replace("-", "nan").split("/")
                precision, recall, f1 = map(float, scores)
                found[label, place] = precision, recall, f1
    return found
