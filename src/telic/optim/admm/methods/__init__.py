"""The ADMM family: one file for each method, and the steps that they share."""
