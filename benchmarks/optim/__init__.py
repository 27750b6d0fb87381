"""The solvers of telic.optim against their rivals."""
