"""Specialties found in a log: three ways to group users, and the evidence for each group."""
