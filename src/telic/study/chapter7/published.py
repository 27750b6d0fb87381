"""What chapter 7 prints, in percent: by link types at distance 1 to 3, by density at 0 to 3."""


def _printed(text: str, distances: int) -> list[dict[str, tuple[float, ...]]]:
    """Read lines of a name and measures at so many distances: for each measure, by name."""
    lines = [line.split() for line in text.strip().splitlines()]
    return [
        {name: tuple(map(float, typed[at : at + distances])) for name, *typed in lines}
        for at in range(0, len(lines[0]) - 1, distances)
    ]


PUBLISHED_RISK, PUBLISHED_ATTACK, PUBLISHED_ATTACK_REDUCTION = _printed(
    """
follow                          84.4 93.8 93.8  68.1 77.6 77.7  99.982 99.983 99.983
mention                         85.4 93.6 93.8  80.9 87.8 88.0  99.976 99.976 99.976
comment                         87.6 93.6 93.9  82.8 88.7 88.8  99.975 99.976 99.976
retweet                         90.2 94.2 94.3  81.1 88.7 88.9  99.976 99.976 99.976
follow-mention                  96.0 98.5 98.6  89.3 94.2 94.2  99.989 99.990 99.990
follow-comment                  95.6 98.5 98.5  90.1 94.6 94.6  99.989 99.990 99.990
follow-retweet                  96.8 98.5 98.5  89.2 94.9 95.0  99.989 99.990 99.990
mention-comment                 89.9 94.0 94.2  84.7 89.6 89.7  99.976 99.976 99.976
mention-retweet                 91.2 94.4 94.5  83.2 89.5 89.7  99.976 99.977 99.977
retweet-comment                 91.8 94.4 94.5  85.2 90.3 90.5  99.976 99.976 99.976
follow-mention-comment          96.5 98.5 98.6  91.6 94.8 94.8  99.989 99.990 99.990
follow-mention-retweet          96.9 98.6 98.6  90.6 95.1 95.2  99.989 99.990 99.990
follow-retweet-comment          96.8 98.6 98.6  91.5 95.4 95.5  99.989 99.990 99.990
mention-retweet-comment         92.3 94.5 94.6  86.5 91.0 91.2  99.977 99.977 99.977
follow-mention-retweet-comment  96.9 98.6 98.6  92.5 95.6 95.7  99.989 99.990 99.990
""",
    3,
)
"""Table 7.1's risk, and Table 7.3's precision and reduction rate."""
PUBLISHED_PLAIN, PUBLISHED_PLAIN_REDUCTION = _printed(
    """
0.001   4.1 12.6 12.6 12.6  99.836 99.848 99.848 99.848
0.002   5.1 22.0 22.7 22.7  99.925 99.947 99.948 99.948
0.003   6.5 32.8 33.5 33.5  99.917 99.944 99.945 99.945
0.004   4.3 39.4 40.8 40.9  99.907 99.941 99.942 99.942
0.005   4.3 48.7 49.8 49.9  99.927 99.969 99.969 99.969
0.006   7.0 59.4 61.6 61.7  99.920 99.979 99.980 99.980
0.007   5.1 65.6 68.8 68.9  99.908 99.977 99.978 99.978
0.008   5.3 76.6 78.8 79.0  99.921 99.989 99.989 99.989
0.009   6.4 86.2 88.6 88.8  99.914 99.997 99.997 99.997
0.01    5.4 92.5 95.6 95.7  99.892 99.989 99.990 99.990
""",
    4,
)
"""Table 7.2's precision and reduction rate."""
PUBLISHED_COMPLETE, PUBLISHED_COMPLETE_REDUCTION = _printed(
    """
0.001   4.1 11.5 11.9 11.9  99.836 99.847 99.847 99.847
0.002   5.1 19.7 20.9 20.9  99.925 99.941 99.941 99.941
0.003   6.5 29.8 31.6 31.6  99.917 99.938 99.938 99.938
0.004   4.3 35.8 38.3 38.4  99.907 99.936 99.936 99.936
0.005   4.3 44.1 47.1 47.1  99.927 99.963 99.963 99.963
0.006   7.0 54.3 57.8 57.9  99.921 99.973 99.973 99.973
0.007   5.1 59.5 64.2 64.2  99.908 99.971 99.971 99.971
0.008   5.3 70.3 74.8 74.8  99.921 99.978 99.978 99.978
0.009   6.4 78.1 83.4 83.5  99.914 99.985 99.986 99.986
0.01    5.4 84.4 89.8 89.8  99.892 99.976 99.976 99.976
""",
    4,
)
"""Table 7.4's precision and reduction rate."""
PUBLISHED_PROFILES = {"risk": 1.1, "precision": 5.4, "reduction rate": 99.892}
"""What profiles alone tell in Tables 7.1 and 7.3, at distance 0 and density 0.01."""
