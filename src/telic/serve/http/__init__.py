"""Connections, what a request brings, and the one shape of an error."""
