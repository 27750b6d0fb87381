"""Query completion that adapts while the user types."""
