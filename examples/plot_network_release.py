"""
A release under a stated risk, confirmed by the attack
======================================================

A simulated microblog: `advise` searches for the release of 1,000 users that loses least while the
risk stays under 5 %. The attack is then run on that release, by someone who knows everybody and
coarsens what they know in the same way.
"""

import json

from matplotlib import pyplot

from telic.hin import induced
from telic.privacy import (
    Adversary,
    Auxiliary,
    Limits,
    advise,
    apply_steps,
    attack,
    scores,
    utility_loss,
)
from telic.simulate.microblog import Community, microblog

network, (members,) = microblog(users=20_000, communities=[Community(density=0.01)], seed=0)
group = induced(network, {"user": members})

found = advise(group, Limits(risk=0.05))
print(
    f"risk {found.before[-1].risk:.1%} → {found.after[-1].risk:.1%}, "
    f"{found.loss:.0%} of the information lost"
)
print(json.dumps(found.steps, indent=1))

# %%
# What the release is like: the fields that stay, and what is gone of the network.

release = apply_steps(group, found.steps)
print(found.choice)
print(utility_loss(group, release))

# %%
# The attack before and after.

figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
for label, known, published in (
    ("as it is", network, group),
    ("advised release", apply_steps(network, found.steps), release),
):
    result = attack(Auxiliary(known, Adversary.of(published)), published, distance=3)
    precision = [100 * score.precision for score in scores(result, network.size("user"), members)]
    axes.plot(precision, marker="o", label=label)
axes.axhline(5, color="grey", linestyle=":", label="stated risk")
axes.set(xlabel="links followed", ylabel="users found, %", xticks=range(4))
axes.set(title="simulated microblog")
axes.legend(frameon=False)
