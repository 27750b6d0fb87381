"""The tools of telic.privacy at the size of a real network."""
