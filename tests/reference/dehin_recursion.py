"""DeHIN as Algorithms 3 and 4 say it (with their two misprints set right), slow and obvious.

Extended to in-links, to nodes of other types, and to neighbours who are one node in every link
type. It speaks of nodes as (type, position) and knows nothing of how the package lays them out.
"""

from fractions import Fraction
from functools import cache


def candidate_sets(auxiliary, target, adversary, distance, *, errors=None, links=None):
    """Return, for every target position, the set of auxiliary positions DeHIN gives back."""
    names = list(adversary.links) if links is None else links
    ways = [(name, way) for name in names for way in ("out", "in")[: 1 + adversary.in_links]]
    published, known = neighbours(target), neighbours(auxiliary)
    profiles, people = profiles_of(target, adversary), profiles_of(auxiliary, adversary)

    def fits(rule, old, new):
        if rule is None or rule.kind == "ignore":
            return True
        if old is None or new is None:
            return old is new
        if rule.kind == "exact":
            return old == new
        low, high = rule.bounds(old)
        return low <= new <= high

    @cache
    def attributes_match(t, v):
        if t[0] != v[0]:
            return False
        if t[0] in adversary.known_ids and profiles[t]["id"] != people[v]["id"]:
            return False
        rules = adversary.attributes[t[0]]
        return all(fits(rule, profiles[t][name], people[v][name]) for name, rule in rules.items())

    def like(n, friend, other):
        return attributes_match(friend, other) and (n == 1 or link_match(n - 1, friend, other))

    @cache
    def link_match(n, t, v):
        if adversary.joint:
            wanted = sorted({f for way in ways for f in published[way].get(t, {})})
            offered = sorted({o for way in ways for o in known[way].get(v, {})})
            return matched(
                [
                    {o: _linked_alike(f, t, o, v) for o in offered if linked_too(f, t, o, v, n)}
                    for f in wanted
                ],
                len(offered),
            )
        for way in ways:
            wanted, offered = published[way].get(t, {}), known[way].get(v, {})
            rule = adversary.links[way[0]]
            fitting = [
                {o: fits(rule, old, new) for o, new in offered.items() if like(n, f, o)}
                for f, old in wanted.items()
            ]
            if not matched(fitting, len(offered)):
                return False
        return True

    def matched(fitting, there):
        if errors is None:
            only = [[o for o, right in row.items() if right] for row in fitting]
            return largest_matching(only) == len(fitting)
        return within_budgets(fitting, there, errors)

    def linked_too(f, t, o, v, n):
        there = [way for way in ways if f in published[way].get(t, {})]
        return all(o in known[way].get(v, {}) for way in there) and like(n, f, o)

    def _linked_alike(f, t, o, v):
        for way in ways:
            old, new = published[way].get(t, {}), known[way].get(v, {})
            if f in old and not (o in new and fits(adversary.links[way[0]], old[f], new[o])):
                return False
        return True

    kind = adversary.node_type
    return [
        {
            v
            for v in range(auxiliary.size(kind))
            if attributes_match((kind, t), (kind, v))
            and (distance == 0 or link_match(distance, (kind, t), (kind, v)))
        }
        for t in range(target.size(kind))
    ]


def within_budgets(fitting, there, errors):
    """Try every way to match: is one within the budgets (`LinkErrors`)?

    `fitting` maps, for every published neighbour, the known ones who may be its counterpart to
    whether the strength fits; `there` is how many known ones there are.
    """

    def budget(share, links):
        return Fraction(str(share)) * links // 1

    size = len(fitting)
    added, changed = budget(errors.added, size), budget(errors.changed, size)
    missing = budget(errors.missing, there)

    @cache
    def possible(i, used, left_out, misfits):
        if left_out > added or misfits > changed:
            return False
        if i == size:
            return there - len(used) <= missing
        return possible(i + 1, used, left_out + 1, misfits) or any(
            possible(i + 1, used | {o}, left_out, misfits + (not right))
            for o, right in fitting[i].items()
            if o not in used
        )

    return possible(0, frozenset(), 0, 0)


def views(network, adversary, distance):
    """Return what is seen of every protected node, as nested tuples that are equal if it is."""
    around = neighbours(network)
    profiles = profiles_of(network, adversary)
    ways = [(name, way) for name in adversary.links for way in ("out", "in")]
    ways = [way for way in ways if way[1] == "out" or adversary.in_links]
    seen = {}
    for node, profile in profiles.items():
        names = [*adversary.attributes[node[0]], *["id"] * (node[0] in adversary.known_ids)]
        seen[node] = (node[0], tuple(profile[name] for name in names))
    view = dict(seen)
    for _ in range(distance):
        codes = {value: number for number, value in enumerate(dict.fromkeys(view.values()))}
        label = {node: codes[value] for node, value in view.items()}
        view = {}
        for node in seen:
            if adversary.joint:
                linked = {}
                for way in ways:
                    rule = adversary.links[way[0]]
                    for other, strength in around[way].get(node, {}).items():
                        shown = None if rule is None or rule.kind == "ignore" else strength
                        linked.setdefault(other, []).append((way, shown))
                met = [(repr(how), label[o], o == node) for o, how in linked.items()]
            else:
                met = [
                    (way, label[o], repr(None if adversary.links[way[0]] is None else s))
                    for way in ways
                    for o, s in around[way].get(node, {}).items()
                ]
            view[node] = (seen[node], tuple(sorted(met)))
    return [view[adversary.node_type, v] for v in range(network.size(adversary.node_type))]


def largest_matching(fitting):
    """Size of a maximum bipartite matching (Kuhn)."""
    owner = {}

    def seat(i, seen):
        for other in fitting[i]:
            if other not in seen:
                seen.add(other)
                if other not in owner or seat(owner[other], seen):
                    owner[other] = i
                    return True
        return False

    return sum(seat(i, set()) for i in range(len(fitting)))


def profiles_of(network, adversary):
    """Return each node's row."""
    return {
        (kind, v): row
        for kind in adversary.attributes
        for v, row in enumerate(network.nodes[kind].to_pylist())
    }


def neighbours(network):
    """Return, by link type and direction, each node's neighbours and the strengths."""
    out = {}
    for link in network.schema.links:
        links = network.links[link.name]
        there, back, sources = {}, {}, links.sources  # which are made at every asking
        for e in range(len(links)):
            s, t = (link.source, int(sources[e])), (link.target, int(links.indices[e]))
            strength = None if links.strength is None else int(links.strength[e])
            there.setdefault(s, {})[t] = strength
            back.setdefault(t, {})[s] = strength
        out[link.name, "out"], out[link.name, "in"] = there, back
    return out
