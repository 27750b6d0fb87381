"""Specialties: speed and memory at full size, and how well the simulated truth is found."""
