"""
How far must one look to know who somebody is?
==============================================

A simulated microblog: 1,000 of its users are published without names, with four kinds of links.
Profile and links are compared with the whole network, which the attacker knows.
"""

from matplotlib import pyplot

from telic.hin import induced
from telic.privacy import Adversary, Auxiliary, attack, risks, scores
from telic.simulate.microblog import Community, microblog

network, (members,) = microblog(users=20_000, communities=[Community(density=0.001)], seed=0)
release = induced(network, {"user": members})

# %%
# Risk: how many users look alike, if only the number of tags and some link types are known.

views = {}
seen = Adversary.of(release, attributes=["tags"], distance=3)
print(seen.words())
for risk in risks(release, seen):
    views.setdefault(len(risk.links), {}).setdefault(risk.distance, []).append(100 * risk.risk)

figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
for count, by_distance in views.items():
    means = [sum(values) / len(values) for values in by_distance.values()]
    axes.plot(list(by_distance), means, marker="o", label=f"{count} link type(s)")
axes.set(xlabel="links followed", ylabel="risk, %", xticks=range(4), title="simulated microblog")
axes.legend(frameon=False)

# %%
# The attack: one candidate left, and it is the right one.

known = Auxiliary(network, Adversary.of(release))
result = attack(known, release, distance=3)
for score in scores(result, network.size("user"), members):
    print(
        f"distance {score.distance}: {score.precision:.1%} found, "
        f"{score.mean_candidates:.1f} candidates on average"
    )
