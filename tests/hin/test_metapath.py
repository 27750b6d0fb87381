from dataclasses import replace

import numpy as np
import pytest

from telic.errors import InputError
from telic.hin import (
    LinkType,
    MetaPath,
    PathMatrix,
    Rule,
    Schema,
    network_from_arrays,
    project,
)

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"yob": "exact"}}, "tweet": {}, "comment": {}},
        "links": [
            {"name": "post", "source": "user", "target": "tweet"},
            {"name": "write", "source": "user", "target": "comment"},
            {"name": "mention", "source": "tweet", "target": "user"},
            {"name": "name", "source": "comment", "target": "user"},
            {"name": "follow", "source": "user", "target": "user"},
        ],
    }
)


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)

    def some(n, m):
        return np.nonzero(rng.random((n, m)) < 0.3)

    nodes = {
        "user": {"id": np.arange(6), "yob": np.arange(6)},
        "tweet": {"id": np.arange(9)},
        "comment": {"id": np.arange(5)},
    }
    follow = some(6, 6)
    keep = follow[0] != follow[1]
    links = {
        "post": some(6, 9),
        "write": some(6, 5),
        "mention": some(9, 6),
        "name": some(5, 6),
        "follow": (follow[0][keep], follow[1][keep]),
    }
    return network_from_arrays(SCHEMA, nodes, links)


def dense(network, name):
    return network.links[name].matrix(network.size(SCHEMA.link(name).target)).toarray()


def test_a_product_kept_factored_is_the_product(network):
    path = MetaPath.parse("post mention ~mention ~post", SCHEMA)
    factored = PathMatrix.of(network, path)
    a = dense(network, "post") @ dense(network, "mention")
    expected = a @ a.T
    vectors = np.random.default_rng(1).random((6, 3))
    np.testing.assert_allclose(factored @ vectors, expected @ vectors)
    np.testing.assert_allclose(factored.row_sums(), expected.sum(axis=1))
    np.testing.assert_allclose(factored.row(2), expected[2])
    product = factored.product()
    np.testing.assert_allclose(product.toarray(), expected)
    for first, last in zip(product.indptr[:-1], product.indptr[1:], strict=True):
        assert (np.diff(product.indices[first:last]) > 0).all()  # in order
    with pytest.raises(InputError, match="more than 1"):
        factored.product(max_links=1)
    twice = PathMatrix.of(network, MetaPath.parse("post mention", SCHEMA))
    upper = int((dense(network, "post") @ (dense(network, "mention") > 0).sum(axis=1)).sum())
    assert twice.product(max_links=upper).nnz <= upper
    with pytest.raises(InputError, match=f"may hold {upper} links, more than {upper - 1}"):
        twice.product(max_links=upper - 1)


def test_projection_adds_the_paths_of_a_link_type(network):
    paths = {"mention": ["post mention", "write name"], "follow": "follow"}
    target = project(network, "user", paths)
    target.validate()
    expected = dense(network, "post") @ dense(network, "mention")
    expected = expected + dense(network, "write") @ dense(network, "name")
    assert (target.links["mention"].matrix(6).toarray() == expected).all()
    assert target.links["follow"] is network.links["follow"]
    assert list(target.schema.nodes) == ["user"]


def test_one_link_is_reproduced_backwards_too():
    follow = LinkType("follow", "user", "user", Rule("exact"))
    plain = LinkType("knows", "user", "user")
    links = {"follow": ([1, 2], [2, 3], [5, 7]), "knows": ([1], [3])}
    network = network_from_arrays(
        Schema({"user": {}}, (follow, plain)), {"user": {"id": [1, 2, 3]}}, links
    )
    back = project(network, "user", {"fans": "~follow", "known": "~knows"})
    assert back.links["fans"].matrix(3).toarray().T.tolist() == [[0, 5, 0], [0, 0, 7], [0, 0, 0]]
    assert back.schema.links == (replace(follow, name="fans"), replace(plain, name="known"))
    with pytest.raises(InputError, match="rules: 'fan' is no new link type"):
        project(network, "user", {"fans": "~follow"}, rules={"fan": Rule("exact")})


def test_paths_that_do_not_fit_are_named(network):
    with pytest.raises(InputError, match="'name' starts at 'comment', but the path stands at"):
        MetaPath.parse("post name", SCHEMA)
    with pytest.raises(InputError, match="no link type is called 'like'"):
        MetaPath.parse("like", SCHEMA)
    with pytest.raises(InputError, match="empty"):
        MetaPath.parse(" ", SCHEMA)
    with pytest.raises(InputError, match="starts and ends at 'user'"):
        project(network, "user", {"x": "post"})
    with pytest.raises(InputError, match=r"node type 'shop' does not exist. Node types are"):
        project(network, "shop", {})
    many = network_from_arrays(
        Schema.parse(
            {
                "nodes": {"user": {}},
                "links": [
                    {"name": "f", "source": "user", "target": "user", "strength": "at_least"}
                ],
            }
        ),
        {"user": {"id": [1, 2, 3]}},
        {"f": ([1, 2], [2, 3], [2**16, 2**15])},
    )
    with pytest.raises(InputError, match="link type 'x': a path count exceeds 2147483647"):
        project(many, "user", {"x": "f f"})


def test_one_link_is_reproduced_and_longer_paths_are_counted(network):
    paths = {"to": "follow", "back": "~follow", "twice": "follow follow"}
    rules = {"to": Rule("exact"), "twice": Rule("tolerance", 2)}
    target = project(network, "user", paths, rules=rules)
    assert {link.name: (link.strength, link.self_links) for link in target.schema.links} == {
        "to": (None, False),  # it has no strengths to compare
        "back": (None, False),
        "twice": (Rule("tolerance", 2), True),
    }
    follow = dense(network, "follow")
    for name, expected in (("to", follow), ("back", follow.T), ("twice", follow @ follow)):
        assert (target.links[name].matrix(6).toarray() == expected).all()
    strong = project(
        target, "user", {"kept": "twice", "new": "twice"}, rules={"new": Rule("exact")}
    )
    assert [link.strength for link in strong.schema.links] == [Rule("tolerance", 2), Rule("exact")]


def test_a_path_count_may_be_as_large_as_a_strength():
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", Rule("at_least"), True),))
    chain = network_from_arrays(
        schema, {"user": {"id": [1, 2, 3]}}, {"f": ([1, 2], [2, 3], [2**31 - 1, 1])}
    )
    assert project(chain, "user", {"x": "f f"}).links["x"].strength.tolist() == [2**31 - 1]


@pytest.mark.parametrize("strength", [2**16, 2**22, 2**31 - 1])
def test_counts_of_more_than_64_bits_are_refused(strength):
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", Rule("at_least"), True),))
    links = {"f": ([1, 2], [2, 1], [strength, strength])}
    pair = network_from_arrays(schema, {"user": {"id": [1, 2]}}, links)
    with pytest.raises(InputError, match="counts more than"):
        project(pair, "user", {"x": "f f f f"})
    with pytest.raises(InputError, match="counts more than"):
        PathMatrix.of(pair, MetaPath.parse("f f f f", schema)).row(0)


def test_a_path_may_pass_a_type_again(network):
    assert MetaPath.parse("follow follow", SCHEMA).types == ("user", "user", "user")
    twice = PathMatrix.of(network, MetaPath.parse("follow follow", SCHEMA)).product()
    follow = dense(network, "follow")
    assert (twice.toarray() == follow @ follow).all()


@pytest.mark.parametrize("paths", range(1, 6))
def test_paths_that_are_too_many_for_64_bits_are_refused(paths):
    """Products of 2⁶² each, whose sums wrap around."""
    most = 2**31 - 1
    schema = Schema({"u": {}}, (LinkType("a", "u", "u", Rule("at_least"), True),))
    network = network_from_arrays(
        schema, {"u": {"id": [1, 2]}}, {"a": ([1, 2], [2, 1], [most, most])}
    )
    with pytest.raises(InputError, match="a path count exceeds"):
        project(network, "u", {"x": ["a a"] * paths})
