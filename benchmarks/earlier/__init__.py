"""How fast telic is beside an earlier commit of itself."""
