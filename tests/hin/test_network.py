import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from telic.errors import InputError
from telic.hin import (
    Links,
    LinkType,
    Network,
    Schema,
    by_ids,
    density,
    induced,
    network_from_arrays,
    read_network,
    sample,
    write_network,
)
from telic.hin.link_kernels import dense_growth
from telic.hin.samples import neighbours

SCHEMA = {
    "nodes": {"user": {"attributes": {"yob": "exact", "tweets": {"tolerance": 2}}}},
    "links": [
        {"name": "follow", "source": "user", "target": "user", "strength": None},
        {
            "name": "mention",
            "source": "user",
            "target": "user",
            "strength": "at_least",
            "self_links": True,
        },
    ],
}


def folder(path, *, ids=(1, 2, 10**9), follow=((1, 2),), mention=((1, 1, 5),), schema=SCHEMA):
    path.mkdir()
    (path / "schema.json").write_text(json.dumps(schema))
    size = len(ids)
    table = {"id": ids, "yob": [1980] * size, "tweets": [3] * size, "extra": ["x"] * size}
    pq.write_table(pa.table(table), path / "nodes_user.parquet")
    for name, rows, columns in (
        ("follow", follow, ("source", "target")),
        ("mention", mention, ("source", "target", "strength")),
    ):
        filled = list(zip(*rows, strict=True)) or [pa.array([], pa.int64())] * len(columns)
        pq.write_table(
            pa.table(dict(zip(columns, filled, strict=True))), path / f"links_{name}.parquet"
        )
    return path


def test_a_network_survives_the_disk(tmp_path):
    network = read_network(folder(tmp_path / "a"))
    write_network(network, tmp_path / "b")
    again = read_network(tmp_path / "b")
    again.validate()
    assert again.schema == network.schema
    assert again.nodes["user"].equals(network.nodes["user"])
    assert again.nodes["user"].column("extra").to_pylist() == ["x"] * 3
    for name, links in network.links.items():
        assert again.links[name].indices.tolist() == links.indices.tolist()
        assert again.links[name].indptr.tolist() == links.indptr.tolist()


def test_csv_stands_in_for_parquet(tmp_path):
    path = folder(tmp_path / "a")
    (path / "links_follow.parquet").unlink()
    (path / "links_follow.csv").write_text("source,target\n1000000000,1\n1,2\n")
    assert read_network(path).links["follow"].indices.tolist() == [1, 0]


BAD = {
    "a dangling id": ({"follow": ((1, 2), (1, 3))}, "follow.*row 2: id 3 is not in the node"),
    "an id beyond the table": ({"follow": ((-5, 2),)}, "id -5 is not in the node table"),
    "a repeated link": ({"follow": ((1, 2), (2, 1), (1, 2))}, "row 3 repeats an earlier link"),
    "a self-link": ({"follow": ((2, 1), (2, 2))}, "row 2: node 2 links to itself"),
    "a negative strength": ({"mention": ((1, 2, -1),)}, "mention.*row 1: strength is -1"),
    "a huge strength": ({"mention": ((1, 2, 2**40),)}, "strength is 1099511627776"),
    "a fractional strength": (
        {"mention": ((1, 2, 0.5),)},
        "mention.parquet: column 'strength': row 1 is 0.5, expected",
    ),
    "mixed id types": ({"follow": (("1", "2"),)}, "ids are string, but the node table's ids are"),
    "a repeated id": (
        {"ids": (3, 1, 2, 1)},
        "user.parquet: column 'id': row 4: id 1 occurs twice, .*row 2",
    ),
    "a missing id": ({"ids": (1, None)}, "user.parquet: column 'id': row 2: no id"),
    "a missing end": ({"follow": ((1, 2), (1, None))}, "row 2 has no id"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(tmp_path, case):
    given, message = BAD[case]
    with pytest.raises(InputError, match=message):
        read_network(folder(tmp_path / "net", **given))


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Is .* a network folder"):
        read_network(tmp_path)
    (tmp_path / "links.csv").write_text("1,2\n")
    for wrong in ("links.csv", "absent"):
        with pytest.raises(InputError, match=f"{wrong}: is no folder. Give a network folder"):
            read_network(tmp_path / wrong)
    path = folder(tmp_path / "net")
    (path / "links_mention.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"links_mention.*: cannot be read"):
        read_network(path)
    (path / "links_mention.parquet").unlink()
    with pytest.raises(InputError, match=r"links_mention.parquet: not found, but the schema names"):
        read_network(path)
    (path / "links_mention.csv").write_text("source,strength\n1,2\n")
    with pytest.raises(InputError, match=r"links_mention.*target"):
        read_network(path)
    (path / "schema.json").write_text("{")
    with pytest.raises(InputError, match=r"schema.json: is not JSON"):
        read_network(path)
    (path / "schema.json").write_text('{"nodes": {"user": {"attributes": {"yob": "nearly"}}}}')
    with pytest.raises(InputError, match="'nearly' is no matching rule"):
        read_network(path)


def test_an_empty_link_type_and_large_strengths_are_fine(tmp_path):
    rows = ((1, 2, 255), (1, 10**9, 65_536), (2, 1, 2**31 - 1))
    network = read_network(folder(tmp_path / "net", follow=(), mention=rows))
    assert len(network.links["follow"]) == 0
    assert network.links["mention"].strength.tolist() == [255, 65_536, 2**31 - 1]


def test_only_a_folder_that_telic_wrote_is_replaced(tmp_path):
    network = read_network(folder(tmp_path / "net"))
    (tmp_path / "other").mkdir()
    for name in ("other", "net"):
        with pytest.raises(InputError, match="telic did not write this folder"):
            write_network(network, tmp_path / name)
    for _ in range(2):
        write_network(network, tmp_path / "new")


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), max_size=40)


def build(rows, *, duplicates="sum"):
    schema = Schema.parse({**SCHEMA, "nodes": {"user": {}}, "links": SCHEMA["links"][1:]})
    columns = list(zip(*rows, strict=True)) or [np.empty(0, int)] * 3
    return network_from_arrays(
        schema, {"user": {"id": np.arange(7)}}, {"mention": columns}, duplicates=duplicates
    )


@given(rows=pairs)
@settings(max_examples=60)
def test_rows_are_sorted_sums_of_what_was_given(rows):
    network = build(rows)
    network.validate()
    expected = np.zeros((7, 7), int)
    for s, t, strength in rows:
        expected[s, t] += strength
    links = network.links["mention"]
    assert (links.matrix(7).toarray() == expected).all()
    assert (links.reverse(7).matrix(7).toarray() == expected.T).all()
    assert density(network) == (expected > 0).sum() / 49


@given(rows=pairs, chosen=st.lists(st.integers(0, 6), unique=True, min_size=1))
@settings(max_examples=60)
def test_an_induced_network_is_a_block_of_the_matrix(rows, chosen):
    network = build(rows)
    part = induced(network, {"user": np.array(chosen)})
    part.validate()
    whole = network.links["mention"].matrix(7).toarray()
    assert (
        part.links["mention"].matrix(len(chosen)).toarray() == whole[np.ix_(chosen, chosen)]
    ).all()
    assert part.ids("user").to_pylist() == chosen


def test_validate_says_what_is_wrong():
    network = build([(0, 1, 2)])
    broken = {
        "leads outside": Links(
            np.array([0, 1] + [1] * 6), np.array([9], np.int32), np.ones(1, int)
        ),
        "repeated or out of order": Links(
            np.array([0, 2] + [2] * 6), np.array([3, 3], np.int32), np.ones(2, int)
        ),
        "has no strengths": Links(np.array([0, 1] + [1] * 6), np.array([1], np.int32)),
        "rows for 7 nodes": Links(np.zeros(3, int), np.array([], np.int32), np.array([], int)),
    }
    for message, links in broken.items():
        with pytest.raises(InputError, match=message):
            Network(network.schema, network.nodes, {"mention": links}).validate()
    parts = network.schema, network.nodes, {"mention": links}
    for message, lacking in (
        ("node type 'user': its table is missing", Network(parts[0], {}, parts[2])),
        ("link type 'mention': its links are missing", Network(parts[0], parts[1], {})),
    ):
        with pytest.raises(InputError, match=message):
            lacking.validate()
    for strengths in ([], [0], [1, 1]):
        links = Links(np.array([0, 1] + [1] * 6), np.array([1], np.int32), np.array(strengths, int))
        with pytest.raises(InputError, match="one positive strength per link"):
            Network(network.schema, network.nodes, {"mention": links}).validate()
    bare = Schema.parse({"nodes": {"user": {}}, "links": [SCHEMA["links"][0]]})
    loop = Links(np.array([0, 1] + [2] * 6), np.array([1, 1], np.int32))
    with pytest.raises(InputError, match="link 1 is a self-link, which its schema bars"):
        Network(bare, network.nodes, {"follow": loop}).validate()
    # Row pointers that end elsewhere, that fall, and that start elsewhere.
    ends = [[0, 1, 2, 2, 2, 2, 2, 2], [0, 2, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]]
    for indptr in ends:
        links = Links(np.array(indptr), np.array([3], np.int32), np.ones(1, int))
        with pytest.raises(InputError, match=r"row pointers do not end|rows for 7 nodes"):
            Network(network.schema, network.nodes, {"mention": links}).validate()


def test_sampling_modes():
    rng = np.random.default_rng(0)
    ring = [(i, (i + 1) % 60) for i in range(60)]
    clique = [(i, j) for i in range(10) for j in range(10) if i != j]
    rows = sorted({*ring, *clique})
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "follow", "source": "user", "target": "user"}]}
    )
    network = network_from_arrays(
        schema, {"user": {"id": rng.permutation(60)}}, {"follow": tuple(zip(*rows, strict=True))}
    )
    taken = {
        mode: sample(network, 10, mode=mode, node_type="user", seed=3)
        for mode in ("uniform", "snowball", "community")
    }
    assert all(part.size("user") == 10 for part in taken.values())
    assert len(taken["snowball"].links["follow"]) >= 9
    assert density(taken["community"]) >= density(taken["uniform"])
    listed = by_ids(network, pa.array([5, 3]), node_type="user")
    assert listed.ids("user").to_pylist() == [5, 3]
    again = sample(network, 10, mode="snowball", node_type="user", seed=3)
    assert again.nodes["user"].equals(taken["snowball"].nodes["user"])
    with pytest.raises(InputError, match="between 1 and 60"):
        sample(network, 61, node_type="user")
    with pytest.raises(InputError, match="mode 'nearby' is unknown"):
        sample(network, 6, mode="nearby", node_type="user")


def test_a_community_grows_from_any_member_to_its_clique():
    clique = [(i, j) for i in range(8) for j in range(8) if i != j]
    tail = [(i, i + 1) for i in range(7, 30)]
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "follow", "source": "user", "target": "user"}]}
    )
    links = {"follow": tuple(zip(*sorted({*clique, *tail}), strict=True))}
    network = network_from_arrays(schema, {"user": {"id": np.arange(31)}}, links)
    best = max(
        density(sample(network, 8, mode="community", node_type="user", seed=s)) for s in range(12)
    )
    assert best == 1.0


def linked(ids, source, target):
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "f", "source": "user", "target": "user"}]}
    )
    return network_from_arrays(schema, {"user": {"id": ids}}, {"f": (source, target)})


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64()])
@pytest.mark.parametrize("first", [-3, 1000, 2**31, 10**12])
def test_ids_of_another_width_are_found_or_named_never_wrapped(kind, first):
    ids = pa.array([first, first + 1, 5])
    network = linked(ids, pa.array([5], kind), ids[:1])
    assert network.ids("user")[network.links["f"].sources[0]].as_py() == 5
    with pytest.raises(InputError, match="row 1: id 6 is not in the node table"):
        linked(ids, pa.array([6], kind), ids[:1])


def test_an_id_that_would_wrap_around_into_the_table_is_no_node():
    ids = pa.array(range(1, 129))
    with pytest.raises(InputError, match="id -128 is not in the node table"):
        linked(ids, pa.array([-128], pa.int8()), ids[:1])  # -128 - 1 is 127 in eight bits


def test_ids_whose_differences_are_wider_than_they_are_found():
    ids = pa.array(range(-100, 101), pa.int8())
    network = linked(ids, pa.array([100], pa.int8()), ids[:1])
    assert network.ids("user")[network.links["f"].sources[0]].as_py() == 100


def test_long_strings_and_strings_are_of_one_kind():
    ids = pa.array(["a", "b"])
    for one, other in ((ids, ids.cast(pa.large_string())), (ids.cast(pa.large_string()), ids)):
        assert linked(one, other[1:], other[:1]).links["f"].indices.tolist() == [0]


def test_ids_of_other_kinds_are_refused_in_one_line():
    with pytest.raises(InputError, match="ids are double, but the node table's ids are string"):
        linked(["a", "b"], [1.0], ["a"])
    with pytest.raises(InputError, match="needs more than 63 bits"):
        linked(pa.array([1, 2**63 + 5], pa.uint64()), [1], [2])
    with pytest.raises(InputError, match="'id': expected values of one type"):
        linked(["a", 1], ["a"], ["a"])
    encoded = pa.array(["b"]).dictionary_encode()
    assert linked(["a", "b"], encoded, ["a"]).links["f"].sources.tolist() == [1]


def test_parts_that_are_not_there_are_named():
    network = linked([1, 2], [1], [2])
    assert by_ids(network, [2], node_type="user").ids("user").to_pylist() == [2]
    for rows in ([-1], [2]):
        with pytest.raises(InputError, match=f"position {rows[0]} is outside its 2 nodes"):
            induced(network, {"user": np.array(rows)})
    with pytest.raises(InputError, match="node type 'x' does not exist"):
        sample(network, 1, node_type="x")
    with pytest.raises(InputError, match="duplicates is 'x'"):
        network_from_arrays(network.schema, network.nodes, {"f": ([1], [2])}, duplicates="x")


USERS = {"nodes": {"user": {}}, "links": [SCHEMA["links"][0]]}
LIKED = {"name": "liked", "source": "user", "target": "post"}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"nodes": {}, "links": []}, "no node type. Name at least one"),
        (USERS | {"links": USERS["links"] * 2}, "two link types are named 'follow'"),
        (USERS | {"links": [LIKED]}, "'liked' joins node type 'post', which does not exist"),
        (
            {"nodes": {"user": {}, "post": {}}, "links": [LIKED | {"self_links": True}]},
            "'user' to 'post', so 'self_links' cannot be true",
        ),
        (USERS | {"links": [SCHEMA["links"][0] | {"self_links": 1}]}, "must be true or false"),
        *(
            ({"nodes": {name: {}}, "links": []}, "cannot be a type's name: it names a file")
            for name in ("", "a/b", ".hidden")
        ),
        ({"nodes": {"user": {"ids": "names"}}, "links": []}, "'ids' of 'user' is 'names'"),
    ],
)
def test_a_schema_that_cannot_hold_is_refused(schema, message):
    with pytest.raises(InputError, match=f"^schema.json: .*{message}"):
        Schema.parse(schema)


def test_pseudonyms_are_those_of_a_type_that_exists():
    with pytest.raises(InputError, match="node type 'post' does not exist"):
        Schema({"user": {}}, (), frozenset({"post"}))


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        ({}, [[1], [2]], "node type 'user': its table is missing"),
        ({"user": {"id": [1, 2]}}, None, "link type 'follow': its links are missing"),
        ({"user": {"id": [1, 2], "yob": [1]}}, [[1], [2]], r"different lengths \[1, 2\]"),
        ({"user": {"id": [1, 2]}}, [[1, 2], [2]], r"different lengths \[1, 2\]"),
        ({"user": {"name": [1, 2]}}, [[1], [2]], "column 'id' is missing"),
        (
            {"user": {"id": [1.5, 2.5]}},
            [[1], [2]],
            "column 'id': row 1 is 1.5, expected integers or strings",
        ),
    ],
)
def test_tables_that_do_not_make_a_network_are_refused(nodes, links, message):
    given = {} if links is None else {"follow": links}
    with pytest.raises(InputError, match=message):
        network_from_arrays(Schema.parse(USERS), nodes, given)


def test_what_is_in_no_schema_is_refused_and_not_left_out():
    users, links = {"user": {"id": [1, 2]}}, {"follow": [[1], [2]]}
    with pytest.raises(InputError, match=r"no link type is called 'folow'. Link types are .'foll"):
        network_from_arrays(Schema.parse(USERS), users, links | {"folow": [[1], [2]]})
    with pytest.raises(InputError, match=r"node type 'post' does not exist. Node types are .'user"):
        network_from_arrays(Schema.parse(USERS), users | {"post": {"id": [1]}}, links)


def test_attributes_are_columns_of_plain_values():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    with pytest.raises(InputError, match="attribute 'yob' of the schema is no column"):
        network_from_arrays(schema, {"user": {"id": [1]}}, {})
    with pytest.raises(InputError, match=r"attribute 'yob' is list.*expected numbers"):
        network_from_arrays(schema, {"user": {"id": [1], "yob": [[1]]}}, {})


def test_a_rule_for_strengths_asks_for_strengths():
    schema = Schema.parse({"nodes": {"user": {}}, "links": [SCHEMA["links"][1]]})
    with pytest.raises(InputError, match="column 'strength' is missing, but the schema has a rule"):
        network_from_arrays(schema, {"user": {"id": [1, 2]}}, {"mention": [[1], [2]]})
    with pytest.raises(InputError, match="row 2: no strength"):
        network_from_arrays(
            schema, {"user": {"id": [1, 2]}}, {"mention": [[1, 2], [2, 1], [1, None]]}
        )


def test_nobody_has_to_be_linked(tmp_path):
    schema = Schema.parse({"nodes": {"user": {}}, "links": [SCHEMA["links"][1]]})
    for nothing in ([], np.empty(0, int), pa.chunked_array([], pa.int32())):
        network = network_from_arrays(schema, {"user": {"id": [1]}}, {"mention": [nothing] * 3})
        assert network.links["mention"].strength.dtype == np.int32
        assert len(network.links["mention"]) == 0
    write_network(network, tmp_path / "net")
    (tmp_path / "net" / "links_mention.parquet").unlink()
    (tmp_path / "net" / "links_mention.csv").write_text("source,target,strength\n")
    assert len(read_network(tmp_path / "net").links["mention"]) == 0


def test_nodes_are_chosen_once_and_from_types_that_exist():
    network = linked([1, 2], [1], [2])
    with pytest.raises(InputError, match=r"node type 'x' does not exist. Node types are"):
        induced(network, {"x": np.array([0])})
    with pytest.raises(InputError, match="node type 'user': a node is chosen twice"):
        induced(network, {"user": np.array([1, 1])})


def test_a_sample_that_needs_links_says_so():
    network = linked([1, 2], [], [])
    with pytest.raises(InputError, match="no two 'user' nodes are linked"):
        sample(network, 1, node_type="user", mode="snowball")


def test_csv_ids_are_read_as_the_node_table_has_them(tmp_path):
    schema = {"nodes": {"user": {}}, "links": [{"name": "f", "source": "user", "target": "user"}]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    (tmp_path / "nodes_user.csv").write_text("id\na1\n2\n3\n")
    (tmp_path / "links_f.csv").write_text("source,target\n2,3\n")
    assert read_network(tmp_path).links["f"].indices.tolist() == [2]
    (tmp_path / "nodes_user.csv").write_text("id\n")
    (tmp_path / "links_f.csv").write_text("source,target\n")
    assert read_network(tmp_path).size("user") == 0


def test_strengths_add_up_to_what_32_bits_hold_and_no_further():
    most = 2**31 - 1
    kept = build([(0, 1, most - 5), (0, 1, 5), (1, 2, most)])
    assert kept.links["mention"].strength.tolist() == [most, most]
    with pytest.raises(InputError, match=f"strengths add up to {most + 1}"):
        build([(0, 1, most - 5), (0, 1, 6)])
    with pytest.raises(InputError, match=f"row 2: strength is {most + 1}"):
        build([(0, 1, 1), (1, 2, most + 1)])


def test_density_counts_self_links_where_they_may_be():
    schema = Schema(
        {"user": {}, "post": {}},
        (
            LinkType("follow", "user", "user"),
            LinkType("mention", "user", "user", None, True),
            LinkType("like", "user", "post"),
        ),
    )
    nodes = {"user": {"id": range(4)}, "post": {"id": range(3)}}
    links = {"follow": ([0], [1]), "mention": ([0, 0], [0, 1]), "like": ([2, 3], [0, 2])}
    network = network_from_arrays(schema, nodes, links)
    assert density(network) == 5 / (4 * 3 + 4 * 4 + 4 * 3)
    nobody = network_from_arrays(
        schema, {kind: {"id": np.empty(0, int)} for kind in nodes}, dict.fromkeys(links, ([], []))
    )
    assert density(nobody) == 0


def two_ways_of_linking(rng, size=40):
    """Two groups and some who are alone, linked in two ways; and links to other nodes."""
    group = rng.integers(0, 3, size)
    schema = Schema(
        {"user": {}, "post": {}},
        (
            LinkType("f", "user", "user"),
            LinkType("g", "user", "user"),
            LinkType("like", "user", "post"),
        ),
    )
    alike = (group[:, None] == group) & (group < 2) & ~np.eye(size, dtype=bool)
    links = {name: np.nonzero(alike & (rng.random((size, size)) < 0.06)) for name in "fg"}
    links["like"] = (np.arange(size), np.zeros(size, int))
    nodes = {"user": {"id": np.arange(size)}, "post": {"id": [0]}}
    network = network_from_arrays(schema, nodes, links)
    around = sum(network.links[name].matrix(size).todense() for name in "fg")
    return network, around + around.T


def test_neighbours_are_linked_either_way_by_any_type():
    network, around = two_ways_of_linking(np.random.default_rng(0))
    assert (neighbours(network, "user").todense() == around).all()
    assert neighbours(network, "post").nnz == 0


def test_a_snowball_takes_the_nearest_first():
    grown = set()
    for seed in range(20):
        network, around = two_ways_of_linking(np.random.default_rng(seed))
        part = sample(network, 12, mode="snowball", node_type="user", seed=seed)
        chosen = part.ids("user").to_numpy()
        far = shortest_path(around > 0, unweighted=True)
        fits = []
        for start in chosen:
            farthest = far[start, chosen].max()
            nearer = np.flatnonzero(far[start] < farthest)
            everybody = np.isfinite(far[start]).sum()
            fits.append(
                np.isfinite(farthest)
                and np.isin(nearer, chosen).all()
                and len(chosen) == min(12, everybody)
            )
        assert any(fits)
        assert len(chosen) > 1
        grown.add(len(chosen))
    assert 12 in grown


def test_a_community_grows_by_who_is_linked_with_most_of_it():
    for seed in range(5):
        _, around = two_ways_of_linking(np.random.default_rng(seed))
        rows, size = csr_array(around), len(around)
        for start in range(size):
            chosen = [start]
            while len(chosen) < 15:
                most = (around[chosen] > 0).sum(axis=0)
                most[chosen] = 0
                if not most.any():
                    break
                chosen.append(int(most.argmax()))
            args = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            assert dense_growth(*args, start, 15).tolist() == chosen


def test_a_sample_is_of_at_least_one_node():
    network, _ = two_ways_of_linking(np.random.default_rng(1))
    assert sample(network, 1, node_type="user").size("user") == 1
    assert sample(network, 40, node_type="user").ids("user").to_pylist() == [*range(40)]
    with pytest.raises(InputError, match=r"sample size 0 is not between 1 and 40 \('user' nodes"):
        sample(network, 0, node_type="user")


def test_a_part_of_a_network_without_strengths_is_a_block_too():
    network, _ = two_ways_of_linking(np.random.default_rng(2))
    part = induced(network, {"user": np.array([7, 3, 20])})
    part.validate()
    for name, columns in (("f", [7, 3, 20]), ("like", [0])):
        block = network.links[name].matrix(network.size("user")).toarray()[[7, 3, 20]][:, columns]
        assert (part.links[name].matrix(len(columns)).toarray() == block).all()
        assert part.links[name].strength is None


@pytest.mark.parametrize("step", [1, 3, 10**6])
def test_ids_are_found_wherever_they_stand(step):
    ids = 5 + step * np.random.default_rng(3).permutation(300)
    network = linked(ids, ids[:-1], ids[1:])
    assert network.links["f"].sources.tolist() == [*range(299)]
    assert network.links["f"].indices.tolist() == [*range(1, 300)]
    for wrong in (4, 5 + step * 300, 5 + step * 299 + 1):
        with pytest.raises(InputError, match=f"row 2: id {wrong} is not in the node table"):
            linked(ids, [ids[0], wrong], [ids[1], ids[2]])


def test_attributes_may_be_numbers_texts_booleans_or_unknown():
    names = {"a": [1], "b": [0.5], "c": [True], "d": ["x"], "e": pa.nulls(1)}
    schema = Schema.parse(
        {"nodes": {"user": {"attributes": dict.fromkeys(names, "exact")}}, "links": []}
    )
    nodes = {"id": pa.array(["u"], pa.large_string()), **names}
    nodes["d"] = pa.array(["x"], pa.large_string())
    network = network_from_arrays(schema, {"user": nodes}, {})
    network.validate()
    assert network.size("user") == 1


@pytest.mark.parametrize(
    "content",
    [
        {"links": []},
        {"nodes": {"user": {}}},
        {"nodes": ["user"], "links": []},
        {"nodes": {"user": None}, "links": []},
        {"nodes": {"user": {}}, "links": 3},
        [],
        "nodes",
        None,
    ],
)
def test_what_is_no_schema_is_refused_with_the_form_expected(content):
    with pytest.raises(InputError, match=r"^net: is not a network schema \(.*Expected \{\"nodes\""):
        Schema.parse(content, "net")


def test_a_missing_column_of_links_is_named(tmp_path):
    schema = Schema({"user": {}}, (LinkType("knows", "user", "user"),))
    network = network_from_arrays(schema, {"user": {"id": [1, 2]}}, {"knows": ([1], [2])})
    write_network(network, tmp_path / "net")
    (path,) = (tmp_path / "net").glob("links_knows*")
    pq.write_table(pq.read_table(path).rename_columns(["from", "target"]), path)
    with pytest.raises(
        InputError, match=r"knows.parquet: column 'source' is missing\. Columns are \['from'"
    ):
        read_network(tmp_path / "net")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "schema.json: is not JSON"),
        (b"\xff", "schema.json: is not JSON"),
        ('{"nodes": 3}', "schema.json"),
        ('{"nodes": {"user": {"attributes": {"yob": "near"}}}, "links": []}', "schema.json"),
    ],
)
def test_a_schema_that_is_none_is_said_once(text, said, tmp_path):
    file = tmp_path / "schema.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=said) as told:
        read_network(tmp_path)
    assert str(told.value).count("schema.json") == 1


@pytest.mark.parametrize("key", ["name", "source", "target"])
def test_link_types_are_called_by_texts(key):
    link = {"name": "follow", "source": "user", "target": "user", key: ["user"]}
    with pytest.raises(InputError, match=rf"'{key}' of a link type is \['user'\]"):
        Schema.parse({"nodes": {"user": {}}, "links": [link]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"nodes": {"user": {"age": "exact"}}, "links": []},
            "node type 'user': nothing reads 'age'",
        ),
        (
            {
                "nodes": {"user": {}},
                "links": [{"name": "f", "source": "user", "target": "user", "strenght": "exact"}],
            },
            "link type 'f': nothing reads 'strenght'",
        ),
    ],
)
def test_what_nothing_reads_of_a_schema_is_refused(content, message):
    with pytest.raises(InputError, match=message):
        Schema.parse(content)
