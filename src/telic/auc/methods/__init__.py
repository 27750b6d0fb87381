"""What maximises AUC: one file for each method, without scikit-learn's conventions."""
