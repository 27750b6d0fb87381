"""The methods that maximise AUC, one file each, without scikit-learn's conventions."""
