"""Benchmarks: objective, datasets and solvers as small files, in benchopt's form."""
