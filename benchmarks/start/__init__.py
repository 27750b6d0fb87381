"""How long telic takes to start."""
