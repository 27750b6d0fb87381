"""What chapter 5 prints: Table 5.1."""

PUBLISHED_SIZES = {"20news": (10_066, 100), "a9a": (32_561, 123), "ijcnn1": (49_990, 22)}
"""Training rows and features of each set."""
