"""What the service keeps: submissions, weights, open compositions, recordings, changed phrases."""
