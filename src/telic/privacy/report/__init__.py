"""The page for whoever decides whether a network may be published."""
