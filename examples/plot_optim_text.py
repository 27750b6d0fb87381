"""
The same model sooner, and rows drawn by their norm
===================================================

``ElasticNetClassifier`` minimises what ``LogisticRegression(solver="saga")`` minimises; one import
changes. It stops by a duality gap, so its tolerance bounds the error of the objective.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from telic.optim import ElasticNetClassifier, minimize
from telic.simulate.text_corpora import rcv1_like

# %%
# Documents from a topic model, of the kind of rcv1 but smaller.
X, y = rcv1_like(n=3000, d=8000, words=50)
settings = {"C": 1.0, "l1_ratio": 0.5, "fit_intercept": False}


def objective(coef):
    """What both minimise, per document."""
    losses = np.logaddexp(0.0, -y * (X @ coef)).mean()
    return losses + (0.5 * np.abs(coef).sum() + 0.25 * coef @ coef) / y.size


ElasticNetClassifier(**settings).fit(X, y)  # compiles, once per machine
began = time.perf_counter()
ours = ElasticNetClassifier(**settings, tol=1e-8).fit(X, y)
ours_time = time.perf_counter() - began
best = objective(ours.coef_[0])
print(f"telic: {ours_time:.3f} s, certified gap {ours.gap_[0]:.1e}")
for epochs in (5, 20, 80):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(solver="saga", max_iter=epochs, tol=0.0, **settings)
        began = time.perf_counter()
        model.fit(X, y)
    seconds = time.perf_counter() - began
    print(f"saga, {epochs} epochs: {seconds:.3f} s, {objective(model.coef_[0]) - best:.1e} above")

# %%
# Rows of very different norm: drawing the long ones more often allows longer steps.
lengths = np.sqrt(1.0 + np.random.default_rng(0).pareto(1.5, size=y.size))
skewed = (sparse.diags(lengths) @ X).tocsr()
figure, axes = plt.subplots(figsize=(6, 3.6))
for rows, name, style in ((X, "rows of norm 1", "--"), (skewed, "skewed norms", "-")):
    for sampling in ("uniform", "optimal"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = minimize(
                rows,
                y,
                l1=1e-4,
                l2=1e-4,
                method="asbcd",
                sampling=sampling,
                max_passes=60,
                tol=1e-9,
                check_every=1,
            )
        passes = [record.passes for record in result.history]
        axes.semilogy(
            passes, [record.gap for record in result.history], style, label=f"{sampling}, {name}"
        )
axes.set(xlabel="component gradients / n", ylabel="duality gap", title="ASBCD, two ways to draw")
axes.legend(fontsize=8)
figure.tight_layout()
plt.show()
