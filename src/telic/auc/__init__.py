"""Linear rankers that maximise AUC: exact, by the pass, and from a stream."""
