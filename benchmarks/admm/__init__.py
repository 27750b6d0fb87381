"""SVR-ADMM-D against its family, CVXPY and copt."""
