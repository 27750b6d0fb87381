"""How good search boxes are: on a held-out log, beside each other, and in a trial."""
