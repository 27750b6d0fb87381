"""Discrete choice: which candidate was picked, by conditional logit."""
