"""
A ranker that bends: kernels through a pipeline
===============================================

A linear score cannot find a ring. ``Nystroem`` maps rows to the columns of an approximate kernel,
and the exact AUC optimum on those is a kernel ranker, in milliseconds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from telic.auc import ExactAUC
from telic.evaluate.classification import auc_difference, auc_interval

# %%
# One row in twenty-five is positive; positives lie in a ring of noise.
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 2))
ring = np.exp(-((np.linalg.norm(X, axis=1) - 1.5) ** 2) / 0.05)
y = rng.random(6000) < 0.15 * ring
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

models = {
    "linear": ExactAUC(1e-5),
    "kernel": make_pipeline(Nystroem(gamma=1, n_components=150, random_state=0), ExactAUC(1e-5)),
}
scores = {}
for name, model in models.items():
    scores[name] = model.fit(X_train, y_train).decision_function(X_test)
    auc, low, high, _ = auc_interval(y_test, scores[name])
    print(f"{name}: AUC {auc:.3f}, 95 % interval {low:.3f} to {high:.3f}")

# %%
# DeLong's paired test on the same rows says whether the difference is chance.
print(auc_difference(y_test, scores["kernel"], scores["linear"]))

# %%
# What the kernel ranker learnt.
grid = np.linspace(-3, 3, 120)
points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
surface = models["kernel"].decision_function(points).reshape(120, 120)
figure, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
axes.contourf(grid, grid, surface, levels=20)
axes.plot(*X_test[y_test].T, "w.", markersize=4, label="positives")
axes.set(title="Score of the kernel ranker", xlabel="x₁", ylabel="x₂")
axes.legend()
plt.show()
