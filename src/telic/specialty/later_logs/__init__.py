"""Findings that are kept and taken to later logs of the same hospital."""
