"""How much a release tells: who looks alike, in figures, limits and words."""
