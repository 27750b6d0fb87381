"""scikit-learn's estimators on top of the methods: fitted to all rows, or to a stream."""
