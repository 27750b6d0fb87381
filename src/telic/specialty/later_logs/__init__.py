"""Findings of one log, kept to judge later logs of the same hospital."""
