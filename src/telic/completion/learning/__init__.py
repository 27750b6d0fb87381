"""What a ranking is learned from, and by: a log replayed, adaQAC, AppAware, and their limits."""
