"""Simulated people: typists. Everything they produce is marked as simulated."""

from telic.simulate.catalogue import Catalogue, geonames_catalogue
from telic.simulate.marginals import marginals
from telic.simulate.parameters import SETTINGS, TypistParameters
from telic.simulate.twin import dwell_twin
from telic.simulate.typists import simulate_typists

__all__ = [
    "SETTINGS",
    "Catalogue",
    "TypistParameters",
    "dwell_twin",
    "geonames_catalogue",
    "marginals",
    "simulate_typists",
]
