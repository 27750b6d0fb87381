"""Simulated people (typists, their phones, searchers, hospitals, a microblog) and made-up texts.

Everything that they produce is marked as simulated.
"""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.simulate.catalogue import Catalogue, geonames_catalogue, read_catalogue
    from telic.simulate.changing_people import other_tastes, simulate_change
    from telic.simulate.dwell_controls import controls_table, dwell_control, dwell_effect
    from telic.simulate.log_marginals import marginals
    from telic.simulate.phones import phone_marginals, simulate_phones
    from telic.simulate.query_app_affinity import (
        Affinity,
        affinity_of_pairs,
        example_phones,
        made_up_affinity,
    )
    from telic.simulate.replays import simulated_replay
    from telic.simulate.shuffled_dwell_times import dwell_twin
    from telic.simulate.typist_parameters import SETTINGS, TypistParameters
    from telic.simulate.typists import simulate_typists
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "SETTINGS",
    "Affinity",
    "Catalogue",
    "TypistParameters",
    "affinity_of_pairs",
    "controls_table",
    "dwell_control",
    "dwell_effect",
    "dwell_twin",
    "example_phones",
    "geonames_catalogue",
    "made_up_affinity",
    "marginals",
    "other_tastes",
    "phone_marginals",
    "read_catalogue",
    "simulate_change",
    "simulate_phones",
    "simulate_typists",
    "simulated_replay",
]
