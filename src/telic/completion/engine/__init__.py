"""Phrases found by prefix, word and typo, limited by filters and an editor's rules."""
