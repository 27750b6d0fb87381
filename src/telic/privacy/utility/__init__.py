"""How much less use a release is than the network it was made from."""
