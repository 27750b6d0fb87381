"""Specialties that exist in practice but have no code, and the false alarms they explain."""
