"""Finite-sum convex solvers: variance reduction, duality gaps, scikit-learn estimators."""
