"""The estimators and measures of telic.auc beside other libraries."""
