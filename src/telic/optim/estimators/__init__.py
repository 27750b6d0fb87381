"""scikit-learn's estimators on top of the solvers."""
