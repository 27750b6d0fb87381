"""The solvers: one file for each method, which states beside its loop what it needs."""
