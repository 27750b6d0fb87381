"""Test AUC of two papers, their published tables run again, the exact optimum beside them."""
