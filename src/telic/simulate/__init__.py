"""Simulated people: typists. Everything they produce is marked as simulated."""
