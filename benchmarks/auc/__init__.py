"""Speed of `telic.auc`: `python -m benchmarks.auc`."""
