"""Steps of a release as data: read from JSON, checked, applied in order."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.anonymisers.coarsen import (
    bin_strengths,
    count_links,
    drop_links,
    drop_strengths,
    generalise,
    suppress,
)
from telic.privacy.anonymisers.complete_graph import complete_graph
from telic.privacy.anonymisers.differential_privacy import noisy_links
from telic.privacy.anonymisers.ids import replace_ids
from telic.privacy.anonymisers.joint_k_degree import joint_k_degree
from telic.privacy.anonymisers.k_degree import k_degree
from telic.privacy.anonymisers.perturb_links import perturb_links

METHODS: dict[str, Callable[..., Network]] = {
    "complete": complete_graph,
    "k-degree": k_degree,
    "joint-k-degree": joint_k_degree,
    "edge-dp": noisy_links,
    "perturb": perturb_links,
    "bin": bin_strengths,
    "count-links": count_links,
    "drop-strengths": drop_strengths,
    "drop-links": drop_links,
    "generalise": generalise,
    "suppress": suppress,
    "replace-ids": replace_ids,
}
"""What a step may be called; `randomise_ids` always comes last."""
ADDING = ("complete", "k-degree", "joint-k-degree", "edge-dp", "perturb")
"""Steps that add fake links."""
COARSENINGS = ("bin", "count-links", "drop-strengths", "drop-links", "generalise", "suppress")
"""Steps that anyone can repeat on the auxiliary network, so a good attacker does."""


def apply_steps(
    network: Network,
    steps: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    only: Sequence[str] = tuple(METHODS),
    node_type: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Network:
    """Apply steps such as ``{"method": "generalise", "attribute": "yob", "width": 5}`` in order.

    Parameters
    ----------
    network : Network
    steps : sequence of mappings
    seed : int
        For the steps that draw; step i uses seed + i.
    only : sequence of str
        Apply these methods alone: `COARSENINGS` are those that an attacker can apply to what is
        known.
    node_type : str, optional
        Who is to be protected: what a step is about that names no node type.
    progress : callable
        Told each step's method before it is applied.
    """
    for number, step in enumerate(steps):
        options = dict(step)
        method = options.pop("method", None)
        if method not in METHODS:
            raise InputError(f"step {number + 1}: method {method!r}. Methods are {[*METHODS]}.")
        _check(options, f"step {number + 1} ({method})")
        if method not in only:
            continue
        if method not in COARSENINGS:
            options.setdefault("seed", seed + number)
        parameters = inspect.signature(METHODS[method]).parameters
        if node_type is not None and "node_type" in parameters and method != "replace-ids":
            options.setdefault("node_type", node_type)
        progress(method)
        try:
            network = METHODS[method](network, **options)
        except TypeError as error:  # an option missing or unknown
            raise InputError(f"step {number + 1} ({method}): {error}.") from None
    return network


def _check(options: Mapping[str, Any], where: str) -> None:
    expected = {
        "attribute": (_is_text, "a name"),
        "base": (_is_number, "a number"),
        "epsilon": (_is_number, "a number"),
        "even": (_is_number, "a number"),
        "k": (_is_whole, "a whole number"),
        "links": (lambda x: isinstance(x, list) and all(map(_is_text, x)), "a list of names"),
        "node_type": (_is_text, "a name"),
        "plausible": (lambda x: isinstance(x, bool), "true or false"),
        "seed": (_is_whole, "a whole number >= 0"),
        "share": (_is_number, "a number"),
        "strengths": (
            lambda x: (
                isinstance(x, Mapping)
                and all(_is_whole(strength) and strength > 0 for strength in x.values())
            ),
            "an object of positive whole numbers",
        ),
        "varying": (lambda x: isinstance(x, bool), "true or false"),
        "width": (_is_number, "a number"),
    }
    for name, value in options.items():
        fits, kind = expected.get(name, (lambda _: True, ""))
        if not fits(value):
            raise InputError(f"{where}: {name!r} is {value!r}, expected {kind}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
