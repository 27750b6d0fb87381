"""Small random networks with several node types and link types, for tests that try everything."""

import numpy as np
import pyarrow as pa

from telic.hin import LinkType, Rule, Schema, network_from_arrays

RULES = (Rule("exact"), Rule("at_least"), Rule("at_most"), Rule("tolerance", 1.0))


def random_schema(rng, kinds=None, strict=False):
    """One to three node types in any order; `user` is linked with the others."""
    names = ("user", "film", "club")[: kinds or int(rng.integers(1, 4))]
    rules = RULES[:1] if strict else RULES
    nodes = {
        name: {f"a{i}": rules[rng.integers(len(rules))] for i in range(rng.integers(0, 3))}
        for name in names
    }
    pairs = [("user", "user"), ("user", "user"), *(("user", name) for name in names[1:])]
    pairs += [(name, "user") for name in names[1:]] + [(names[-1], names[0])]
    types = []
    for number in range(int(rng.integers(1, 5))):
        source, target = pairs[int(rng.integers(len(pairs)))]
        strength = None if rng.random() < 0.4 else rules[rng.integers(len(rules))]
        loops = bool(source == target and rng.random() < 0.5)
        types.append(LinkType(f"l{number}", source, target, strength, loops))
    hidden = frozenset(name for name in names[1:] if rng.random() < 0.5)
    order = [str(name) for name in rng.permutation(names)]
    return Schema({name: nodes[name] for name in order}, tuple(types), hidden)


def random_network(rng, schema, size, density=0.3):
    """Nodes with few distinct values, links with strengths 1 to 3."""
    sizes = {
        name: size if name == "user" else int(rng.integers(2, max(size, 3)))
        for name in schema.nodes
    }
    nodes, links = {}, {}
    for name, attributes in schema.nodes.items():
        n = sizes[name]
        nodes[name] = {"id": rng.permutation(100)[:n]}
        for attribute in attributes:
            gaps = (rng.random(n) < 0.2) & (rng.random() < 0.3)
            nodes[name][attribute] = pa.array(rng.integers(0, 2, n), mask=gaps)
    for link in schema.links:
        shape = sizes[link.source], sizes[link.target]
        source, target = np.nonzero(rng.random(shape) < density * rng.random((shape[0], 1)) * 2)
        if link.source == link.target and not link.self_links:
            keep = source != target
            source, target = source[keep], target[keep]
        ends = nodes[link.source]["id"][source], nodes[link.target]["id"][target]
        strength = rng.integers(1, 4, len(source))
        links[link.name] = ends if link.strength is None else (*ends, strength)
    return network_from_arrays(schema, nodes, links)
