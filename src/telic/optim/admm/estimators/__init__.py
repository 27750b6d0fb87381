"""scikit-learn's estimators whose weights are fused or held together by a linear map."""
