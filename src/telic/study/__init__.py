"""The papers' tables and figures, one function each."""
