"""Measures of ranking and classification, paired tests and intervals."""
