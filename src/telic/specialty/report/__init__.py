"""The compliance officer's report."""
