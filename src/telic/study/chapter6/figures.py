"""Figure 6.1: how many users declare each taxonomy code."""

from matplotlib.figure import Figure


def class_sizes_figure(sizes: list[int]) -> Figure:
    """Draw the users per taxonomy code, most frequent first."""
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    axes.bar(range(1, len(sizes) + 1), sizes, color="#2456c5")
    axes.set(yscale="log", xlabel="rank of the taxonomy code", ylabel="users")
    return figure
