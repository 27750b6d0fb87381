"""
Two phones, one prefix
======================

Whoever runs search on phones knows what is installed and what was just opened. AppAware learns
from a log which apps speak for which queries. Here on *simulated* phones, with named apps.
"""

from matplotlib import pyplot

from telic.completion import fit_completer
from telic.simulate import example_phones, simulate_phones, simulated_replay

catalogue, affinity = example_phones()
log = simulate_phones(catalogue, affinity=affinity, seed=0)
box = fit_completer(simulated_replay(catalogue, log), model="appaware", relevance="mpc")

# %%
# The same letters on four phones. Each bar is a suggestion; its length is its score, relative to
# the best of the list. Without any app the list is the popular one.

PHONES = {
    "no app known": ({}, []),
    "Football Live installed": ({"Football Live": 8.0}, []),
    "Homes installed": ({"Homes": 8.0}, []),
    "both, Football Live just opened": (
        {"Football Live": 8.0, "Homes": 8.0},
        [("Football Live", 2.0)],
    ),
}
figure, axes = pyplot.subplots(1, 4, figsize=(13, 2.6), layout="constrained")
for panel, (title, (installed, opened)) in zip(axes, PHONES.items(), strict=True):
    composition = box.compose(box.user(), box.phone(installed, opened))
    shown = composition.suggest("real", at=0.0)[:4]
    print(f"{title}:", [suggestion.text for suggestion in shown])
    scores = [suggestion.relevance + suggestion.apps for suggestion in shown]
    heights = [score - scores[0] + 3 for score in scores]
    colours = ["tab:green" if "madrid" in s.text else "lightgrey" for s in shown]
    panel.barh(range(len(shown)), heights, color=colours)
    for place, suggestion in enumerate(shown):
        panel.text(0.1, place, suggestion.text, va="center", fontsize=9)
    panel.set(title=title, xlim=(0, 3.1), xticks=[], yticks=[])
    panel.invert_yaxis()
figure.suptitle("“real” typed on four phones (simulated)")
