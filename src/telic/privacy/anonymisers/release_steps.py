"""Steps of a release as data: read from JSON, checked, applied in order."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from telic.errors import InputError
from telic.hin import Network, Rule
from telic.privacy.adversary import label_of
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

EXAMPLE = '{"method": "generalise", "attribute": "yob", "width": 5}'
"""A step, as JSON has it."""


def apply_steps(
    network: Network,
    steps: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    only: Sequence[str] = tuple(METHODS),
    node_type: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    where: str = "",
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
    where : str
        What messages begin with, such as the file that the steps are from.

    Raises
    ------
    InputError
        Naming the step. All steps are looked at before the first is applied.
    """
    checked = [_checked(step, f"{where}step {number}") for number, step in enumerate(steps, 1)]
    for number, (method, options, at) in enumerate(checked):
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
        except InputError as error:
            raise InputError(f"{at}: {error}") from None
    return network


def rules_after(
    network: Network,
    steps: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Any],
    *,
    node_type: str,
) -> dict[str, Any]:
    """Return matching rules, named as for `Adversary.of`, as steps that coarsen leave them.

    A tolerance is one of values as they were: where steps round them it changes with them, as the
    schema's own does. Other rules stay, and those of what a step makes.
    """
    parsed = {label: Rule.parse(given, f"rules: {label!r}") for label, given in rules.items()}
    tolerances = {label: rule for label, rule in parsed.items() if rule.kind == "tolerance"}
    nodes = {kind: dict(table) for kind, table in network.schema.nodes.items()}
    for kind, own in nodes.items():
        for name in network.nodes[kind].column_names:
            if rule := tolerances.get(label_of(node_type, kind, name)):
                own[name] = rule
    links = tuple(
        replace(link, strength=link.strength and tolerances.get(link.name, link.strength))
        for link in network.schema.links
    )
    schema = replace(network.schema, nodes=nodes, links=links)
    before = Network(schema, network.nodes, network.links)
    after = apply_steps(before, steps, only=COARSENINGS, node_type=node_type).schema
    found = dict(rules)
    for kind, table in after.nodes.items():
        for name, rule in table.items():
            if label_of(node_type, kind, name) in tolerances and name in schema.nodes[kind]:
                found[label_of(node_type, kind, name)] = rule.dump()
    for link in after.links:
        if link.name in tolerances and link.strength is not None:
            found[link.name] = link.strength.dump()
    return found


def _checked(step: Any, where: str) -> tuple[str, dict[str, Any], str]:
    """Return a step's method, its options, and how messages name it."""
    if not isinstance(step, Mapping):
        raise InputError(f"{where} is {step!r}, expected an object such as {EXAMPLE}.")
    options = dict(step)
    method = options.pop("method", None)
    if not isinstance(method, str) or method not in METHODS:
        found = f"method {method!r}" if "method" in step else "it names no method"
        raise InputError(f"{where}: {found}. Methods are {', '.join(METHODS)}.")
    where = f"{where} ({method})"
    _, *parameters = inspect.signature(METHODS[method]).parameters.values()
    names = ", ".join(one.name for one in parameters)
    lacking = [one.name for one in parameters if one.default is one.empty]
    for name in lacking:
        if name not in options:
            raise InputError(f"{where}: lacks {name!r}. Its options are {names}.")
    for name in options:
        if name not in [one.name for one in parameters]:
            raise InputError(f"{where}: has no option {name!r}. Its options are {names}.")
    _check(options, where)
    return method, options, where


def _check(options: Mapping[str, Any], where: str) -> None:
    expected = {
        **dict.fromkeys(("attribute", "node_type"), (_is_text, "a name")),
        **dict.fromkeys(("base", "epsilon", "even", "share", "width"), (_is_number, "a number")),
        **dict.fromkeys(("plausible", "varying"), (lambda x: isinstance(x, bool), "true or false")),
        "k": (_is_whole, "a whole number"),
        "links": (lambda x: isinstance(x, list) and all(map(_is_text, x)), "a list of names"),
        "seed": (_is_whole, "a whole number >= 0"),
        "strengths": (
            lambda x: (
                isinstance(x, Mapping) and all(_is_whole(y) and 0 < y < 2**31 for y in x.values())
            ),
            "an object of whole numbers from 1 to 2³¹ − 1",
        ),
    }
    for name, value in options.items():
        fits, kind = expected.get(name, (lambda _: True, ""))
        if not fits(value):
            raise InputError(f"{where}: {name!r} is {value!r}, expected {kind}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _is_number(value: Any) -> bool:
    # JSON's readers take NaN and Infinity, too, and numbers of any length.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
