"""DeHIN as Algorithms 3 and 4 say it (with their two misprints set right), slow and obvious."""

from functools import cache


def candidate_sets(auxiliary, target, rules, distance, *, noise=0.0, links=None, node_type="user"):
    """Return, for every target position, the set of auxiliary positions DeHIN gives back."""
    names = list(rules.strengths) if links is None else links
    published, known = _neighbours(target, names), _neighbours(auxiliary, names)
    profiles, people = _profiles(target, rules, node_type), _profiles(auxiliary, rules, node_type)

    def fits(rule, old, new):
        if rule is None:
            return True
        if old is None or new is None:
            return old is new
        if rule.kind == "exact":
            return old == new
        low, high = rule.bounds(old)
        return low <= new <= high

    @cache
    def attributes_match(t, v):
        return all(
            fits(rule, profiles[t][name], people[v][name])
            for name, rule in rules.attributes.items()
        )

    @cache
    def link_match(n, t, v):
        for name in names:
            wanted, offered = published[name][t], known[name][v]
            fitting = [
                [
                    other
                    for other, new in offered.items()
                    if fits(rules.strengths[name], old, new)
                    and attributes_match(friend, other)
                    and (n == 1 or link_match(n - 1, friend, other))
                ]
                for friend, old in wanted.items()
            ]
            if largest_matching(fitting) < len(wanted) - int(noise * len(wanted)):
                return False
        return True

    return [
        {
            v
            for v in range(len(people))
            if attributes_match(t, v) and (distance == 0 or link_match(distance, t, v))
        }
        for t in range(len(profiles))
    ]


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


def _profiles(network, rules, node_type):
    return network.nodes[node_type].select(list(rules.attributes)).to_pylist() or [
        {} for _ in range(network.size(node_type))
    ]


def _neighbours(network, names):
    out = {}
    for name in names:
        links = network.links[name]
        strength = links.strength
        out[name] = [
            {
                int(links.indices[e]): None if strength is None else int(strength[e])
                for e in range(links.indptr[v], links.indptr[v + 1])
            }
            for v in range(len(links.indptr) - 1)
        ]
    return out
