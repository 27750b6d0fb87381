import gzip
import sys
from collections import defaultdict
from types import SimpleNamespace

import networkx
import numpy as np
import pyarrow as pa
import pytest

from telic.errors import InputError
from telic.hin import (
    LinkType,
    Rule,
    Schema,
    from_igraph,
    from_networkx,
    from_pyg,
    network_from_arrays,
    read_edge_list,
    read_graphml,
    read_kdd_cup_2012,
    to_igraph,
    to_networkx,
    to_pyg,
    write_edge_list,
    write_graphml,
)
from telic.hin.network_files import link_table

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"yob": "exact"}}, "tweet": {"attributes": {}}},
        "links": [
            {"name": "follow", "source": "user", "target": "user"},
            {"name": "post", "source": "user", "target": "tweet", "strength": "at_least"},
        ],
    }
)


@pytest.fixture
def network():
    nodes = {"user": {"id": [1, 2, 3], "yob": [80, 81, 80]}, "tweet": {"id": [7, 8]}}
    links = {"follow": ([1, 3], [2, 1]), "post": ([1, 2], [8, 7], [3, 1])}
    return network_from_arrays(SCHEMA, nodes, links)


def same(a, b):
    for link in SCHEMA.links:
        x, y = a.links[link.name], b.links[link.name]
        assert x.indptr.tolist() == y.indptr.tolist()
        assert x.indices.tolist() == y.indices.tolist()
        assert (x.strength is None) == (y.strength is None)
        assert x.strength is None or x.strength.tolist() == y.strength.tolist()
    for name in SCHEMA.nodes:
        columns = ["id", *SCHEMA.nodes[name]]
        assert (
            a.nodes[name].select(columns).to_pydict() == b.nodes[name].select(columns).to_pydict()
        )
    return True


def test_networkx_and_back(network):
    assert same(network, from_networkx(to_networkx(network), schema=SCHEMA))


def test_graphml_and_back(network, tmp_path):
    write_graphml(network, tmp_path / "net.graphml")
    assert same(network, read_graphml(tmp_path / "net.graphml", schema=SCHEMA))
    (tmp_path / "broken.graphml").write_text("<graphml")
    with pytest.raises(InputError, match="cannot be read as GraphML"):
        read_graphml(tmp_path / "broken.graphml")


def alone(attribute, values):
    """Two users with one attribute, and no link."""
    schema = Schema.parse({"nodes": {"user": {}}, "links": []})
    return network_from_arrays(schema, {"user": {"id": ["a", "b"], attribute: values}}, {})


@pytest.mark.parametrize("name", ["self", "node_for_adding"])
def test_attributes_are_called_as_they_like(name, tmp_path):
    network = alone(name, ["x", "y"])
    back = from_networkx(to_networkx(network)).nodes["user"]
    assert back[name].to_pylist() == ["x", "y"]
    write_graphml(network, tmp_path / "net.graphml")
    with pytest.raises(InputError, match="cannot be read as GraphML"):  # by networkx
        read_graphml(tmp_path / "net.graphml")


def test_an_attribute_called_as_the_node_type_is_refused():
    with pytest.raises(InputError, match="its attribute 'node_type' has the name"):
        to_networkx(alone("node_type", ["x", "y"]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x\x0b", "y"], "'t' holds a control character"),
        (["x\r", "y"], "'t' holds a control character"),  # XML would make \n of it
        ([b"x", b"y"], "does not support"),
    ],
)
def test_what_graphml_cannot_hold_is_not_written(values, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write_graphml(alone("t", values), tmp_path / "net.graphml")
    assert not (tmp_path / "net.graphml").exists()


def test_colons_of_types_and_ids_are_kept_apart_in_graphml(tmp_path):
    link = {"name": "f", "source": "a", "target": "a:b"}
    schema = Schema.parse({"nodes": {"a": {}, "a:b": {}}, "links": [link]})
    nodes = {"a": {"id": ["b:c", "x"]}, "a:b": {"id": ["c", "y"]}}
    network = network_from_arrays(schema, nodes, {"f": (["b:c"], ["c"])})
    write_graphml(network, tmp_path / "net.graphml")
    back = read_graphml(tmp_path / "net.graphml", schema=schema)
    assert {name: back.ids(name).to_pylist() for name in back.nodes} == {
        "a": ["b:c", "x"],
        "a:b": ["c", "y"],
    }
    assert back.links["f"].indices.tolist() == [0]


def test_igraph_and_back(network):
    pytest.importorskip("igraph", reason="igraph is optional (GPL): pip install igraph")
    assert same(network, from_igraph(to_igraph(network), schema=SCHEMA))


def test_pyg_and_back(network):
    pytest.importorskip("torch_geometric", reason="PyTorch Geometric is optional and large")
    assert same(network, from_pyg(to_pyg(network), schema=SCHEMA))


class Tensor(np.ndarray):
    def numpy(self):
        return np.asarray(self)


class Store(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class HeteroData(defaultdict):
    """As much of PyTorch Geometric's as is used; the test above runs with its own."""

    def __init__(self):
        super().__init__(Store)

    node_types = property(lambda self: [key for key in self if isinstance(key, str)])
    edge_types = property(lambda self: [key for key in self if isinstance(key, tuple)])


def test_what_stands_for_pyg_and_back(network, monkeypatch):
    def tensor(values):
        return np.asarray(values).view(Tensor)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(tensor=tensor))
    module = SimpleNamespace(HeteroData=HeteroData)
    monkeypatch.setitem(sys.modules, "torch_geometric.data", module)
    data = to_pyg(network)
    assert data["user", "post", "tweet"].edge_index.tolist() == [[0, 1], [1, 0]]
    assert data["user", "post", "tweet"].strength.tolist() == [3, 1]
    assert "strength" not in data["user", "follow", "user"]
    assert same(network, from_pyg(data, schema=SCHEMA))
    data["user"].x = tensor(np.zeros((3, 2)))  # of two dimensions: no attribute
    del data["tweet"]["node_id"]
    back = from_pyg(data)
    assert back.nodes["user"].column_names == ["id", "yob"]
    assert back.ids("tweet").to_pylist() == [0, 1]
    exact = {"user": {"yob": Rule("exact")}, "tweet": {}}
    assert back.schema == Schema(
        exact,
        (
            LinkType("follow", "user", "user"),
            LinkType("post", "user", "tweet", Rule("at_least")),
        ),
    )
    post = data["user", "post", "tweet"]
    post["edge_weight"] = post.pop("strength")
    assert from_pyg(data).links["post"].strength.tolist() == [3, 1]
    post.edge_index = tensor([[0, 0], [1, 1]])
    assert from_pyg(data, duplicates="sum").links["post"].strength.tolist() == [4]
    with pytest.raises(InputError, match="duplicates='sum'"):
        from_pyg(data)
    data["tweet", "post", "user"].edge_index = tensor([[0], [0]])
    with pytest.raises(InputError, match="another edge type is called 'post', too"):
        from_pyg(data)
    del data["tweet", "post", "user"]
    post.edge_index = tensor([[0, 1], [1, 0]])
    data["user", "follow", "user"].edge_index = tensor([[0, 1], [0, 2]])
    assert from_pyg(data).schema.link("follow").self_links
    for end, message in ((3, "names node 3 of the 3 user nodes, expected 0 to 2"), (-1, "node -1")):
        data["user", "follow", "user"].edge_index = tensor([[0], [end]])
        with pytest.raises(InputError, match=message):
            from_pyg(data)
    del data["user", "follow", "user"]["edge_index"]
    with pytest.raises(InputError, match="has no 'edge_index'"):
        from_pyg(data)
    with pytest.raises(InputError, match="is no HeteroData"):
        from_pyg(SimpleNamespace(edge_index=tensor([[0], [1]])))
    texts = {"user": {"id": ["a", "b"], "city": ["x", "y"]}}
    named = network_from_arrays(Schema({"user": {"city": Rule("exact")}}, ()), texts, {})
    assert to_pyg(named)["user"].city.tolist() == [0, 1]


@pytest.mark.parametrize("directed", [True, False])
def test_what_stands_for_igraph_becomes_a_network(directed):
    def vertex(number, **data):
        return SimpleNamespace(index=number, attributes=lambda: {"_nx_name": "x", **data})

    def edge(source, target, **data):
        return SimpleNamespace(source=source, target=target, attributes=lambda: data)

    graph = SimpleNamespace(
        is_directed=lambda: directed,
        vs=[vertex(0, id="a", yob=80), vertex(1, id="b", yob=None), vertex(2)],
        es=[edge(0, 1, link="f", strength=2), edge(1, 1, link="g", strength=None, _nx_key=0)],
    )
    graph.vs[2].attributes = lambda: {"id": "c", "_nx_name": "x"}
    network = from_igraph(graph)
    assert network.nodes["user"].to_pydict() == {"id": ["a", "b", "c"], "yob": [80, None, None]}
    both = {("a", "b"): 2} | ({} if directed else {("b", "a"): 2})
    assert strengths(network, "f") == both
    assert network.links["g"].strength is None
    assert network.links["g"].indptr.tolist() == [0, 0, 1, 1]


def test_an_undirected_graph_links_both_ways():
    graph = networkx.Graph([("a", "b")])
    assert len(from_networkx(graph).links["link"]) == 2


@pytest.mark.parametrize("directed", [False, True])
def test_an_undirected_edge_between_two_node_types_is_one_link(directed):
    graph = networkx.Graph()
    graph.add_nodes_from(["s", "t"], node_type="shop")
    graph.add_nodes_from(["a", "b"], node_type="customer")
    graph.add_weighted_edges_from([("s", "a", 2.0), ("b", "s", 1.0), ("b", "t", 4.0)])
    links, schema = {("a", "s"): 2, ("b", "s"): 1, ("b", "t"): 4}, None
    if directed:  # as the schema says
        link = LinkType("link", "customer", "shop", Rule("at_least"))
        schema = Schema({"shop": {}, "customer": {}}, (link,))
    else:
        links = {(shop, one): weight for (one, shop), weight in links.items()}
    network = from_networkx(graph, schema=schema)
    source, target, strength = link_table(network, network.schema.link("link")).columns
    ends = zip(source.to_pylist(), target.to_pylist(), strict=True)
    assert dict(zip(ends, strength.to_pylist(), strict=True)) == links


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.5], "row 2 is 2.5, expected positive integers"),
        ([1.0, float("nan")], "row 2 is nan"),
        ([0.0, 1.0], "row 1: strength is 0.0, expected a positive integer up to"),
        ([1.0, float("inf")], "row 2: strength is inf"),
        ([1e30, 1.0], "row 1: strength is 1e[+]30"),
        (["1", "2"], "row 1 is '1'|values are string"),
        ([True, True], "values are bool"),
    ],
)
def test_strengths_are_whole_numbers(values, message):
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([(1, 2, values[0]), (2, 1, values[1])])
    with pytest.raises(InputError, match=message):
        from_networkx(graph)


def test_what_a_graph_says_of_its_links_is_kept():
    graph = networkx.MultiGraph()
    graph.add_node("a", yob=80)
    graph.add_node("b")
    graph.add_node(1, node_type="post")
    graph.add_node("c", id="carl")
    graph.add_edge("a", "b", key="like", weight=3)
    graph.add_edge("b", "b", key="like", strength=2, weight=5)
    graph.add_edge("a", "c")  # its key is a number
    graph.add_edge("c", "b", key="like", link="follow")
    network = from_networkx(graph, link="knows")
    assert network.ids("user").to_pylist() == ["a", "b", "carl"]
    assert network.nodes["user"]["yob"].to_pylist() == [80, None, None]
    assert network.size("post") == 1
    assert strengths(network, "like") == {("a", "b"): 3, ("b", "a"): 3, ("b", "b"): 2}
    for name, ends in (("knows", [[2], [], [0]]), ("follow", [[], [2], [1]])):
        links = network.links[name]
        assert links.strength is None
        assert [part.tolist() for part in np.split(links.indices, links.indptr[1:-1])] == ends
    assert network.schema.nodes == {"user": {"yob": Rule("exact")}, "post": {}}
    itself = {link.name: link.self_links for link in network.schema.links}
    assert itself == {"like": True, "knows": False, "follow": False}


def test_links_of_one_name_join_the_same_types():
    graph = networkx.DiGraph()
    graph.add_node(1, node_type="user")
    graph.add_node(2, node_type="post")
    graph.add_edge(1, 2, link="likes")
    graph.add_edge(2, 1, link="likes")
    with pytest.raises(InputError, match="Give links between different node types different names"):
        from_networkx(graph)


def test_snap_with_comments_gzip_and_weights(tmp_path):
    with gzip.open(tmp_path / "net.txt.gz", "wt") as stream:
        stream.write("# SNAP\n10 1000000000 4\n3 10 2\n")
    network = read_edge_list(tmp_path / "net.txt.gz")
    assert network.ids("user").to_pylist() == [3, 10, 10**9]
    assert network.links["link"].strength.tolist() == [2, 4]


def test_multilayer_and_csv_with_header(tmp_path):
    (tmp_path / "layers.txt").write_text("1 a b 3\n2 b a 1\n")
    columns = ("link", "source", "target", "strength")
    assert set(read_edge_list(tmp_path / "layers.txt", columns=columns).links) == {"1", "2"}
    (tmp_path / "net.csv").write_text("source,target,link\nx,y,follow\n")
    network = read_edge_list(tmp_path / "net.csv", directed=False)
    assert network.links["follow"].indices.tolist() == [1, 0]


def test_a_line_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "net.txt").write_text("1 2 3\n2 3 many\n")
    with pytest.raises(InputError, match="line 2: strength is 'many'"):
        read_edge_list(tmp_path / "net.txt")


def test_kdd_cup_files(tmp_path):
    (tmp_path / "user_profile.txt").write_text("100\t1980\t1\t12\t3;5\n101\t-\t2\t0\t0\n")
    (tmp_path / "user_sns.txt").write_text("100\t101\n")
    (tmp_path / "user_action.txt").write_text("100\t101\t2\t0\t1\n101\t101\t0\t4\t0\n")
    network = read_kdd_cup_2012(tmp_path)
    assert network.nodes["user"].column("tags").to_pylist() == [2, 0]
    assert {name: len(links) for name, links in network.links.items()} == {
        "follow": 1,
        "mention": 1,
        "retweet": 1,
        "comment": 1,
    }
    assert network.links["retweet"].strength.tolist() == [4]
    assert np.diff(network.links["retweet"].indptr).tolist() == [0, 1]


def strengths(network, name):
    links, ids = network.links[name], network.ids("user").to_pylist()
    ends = zip(links.sources, links.indices, strict=True)
    return {(ids[a], ids[b]): int(n) for (a, b), n in zip(ends, links.strength, strict=True)}


def test_edge_lists_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    types = (
        LinkType("call", "user", "user", Rule("at_least"), True),
        LinkType("mail", "user", "user", Rule("at_least"), True),
    )
    links = {}
    for link in types:
        pairs = np.nonzero(rng.random((9, 9)) < 0.3)
        links[link.name] = (*(10 * end for end in pairs), rng.integers(1, 5, len(pairs[0])))
    network = network_from_arrays(
        Schema({"user": {}}, types), {"user": {"id": 10 * np.arange(9)}}, links
    )
    write_edge_list(network, tmp_path / "links.csv")
    back = read_edge_list(tmp_path / "links.csv")
    assert {name: strengths(back, name) for name in links} == {
        name: strengths(network, name) for name in links
    }


@pytest.mark.parametrize(("line", "itself"), [("a,b\n", False), ("b,b\n", True)])
def test_links_lead_to_themselves_where_one_of_an_edge_list_does(tmp_path, line, itself):
    (tmp_path / "links.csv").write_text("source,target\nb,a\n" + line)
    (link,) = read_edge_list(tmp_path / "links.csv").schema.links
    assert link.self_links is itself


def test_edge_lists_hold_one_node_type(network, tmp_path):
    with pytest.raises(InputError, match="one node type"):
        write_edge_list(network, tmp_path / "links.csv")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("\ufeffsource,target\n1,2\n", [1, 2]),
        ("source, target\n1, 2\n", [1, 2]),
        ("Source,Target,Weight\n1,2,3\n", [1, 2]),
        ("src,dst\n1,2\n", [1, 2]),
        ("source,target\n007,7\n", ["007", "7"]),
        ("source,target\n1,99999999999999999999\n", ["1", "99999999999999999999"]),
        ("source,target\n1,--5\n", ["--5", "1"]),
    ],
)
def test_edge_lists_of_other_tools_keep_every_id_apart(tmp_path, text, ids):
    file = tmp_path / "links.csv"
    file.write_text(text, encoding="utf-8")
    network = read_edge_list(file)
    assert network.ids("user").to_pylist() == ids
    assert len(network.links["link"]) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (",2,1", "line 2 lacks the id"),
        ("1,,1", "line 2 lacks the id"),
        ("1,2,1e30", "strength is '1e30'"),
        ("1,2", "line 2 has 2 of 3 columns"),
    ],
)
def test_edge_lists_name_the_line_they_cannot_read(tmp_path, line, message):
    file = tmp_path / "links.csv"
    file.write_text(f"source,target,strength\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_edge_list(file)


@pytest.mark.parametrize("kind", ["", "re/tweet", ".."])
def test_edge_lists_name_the_line_whose_link_type_can_have_no_file(tmp_path, kind):
    file = tmp_path / "links.csv"
    file.write_text(f"source,target,layer\n1,2,follow\n2,1,{kind}\n")
    with pytest.raises(InputError, match=f"links.csv: line 3: '{kind}' cannot be a link type's"):
        read_edge_list(file)


def test_graphs_whose_ids_or_attributes_are_mixed_are_refused():
    for nodes in ([(1, {}), ("a", {})], [(1, {"x": 1}), (2, {"x": "b"})]):
        graph = networkx.Graph()
        graph.add_nodes_from(nodes)
        with pytest.raises(InputError, match="expected values of one type"):
            from_networkx(graph)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("follower,followee\n1,2\n2,3\n", "source,target"),
        ("who,whom\n1,2\n2,3\n", "source,target"),
        ("a,b,c\n1,2,9\n2,3,8\n", "source,target,strength"),
        ("who,whom,times\nann,bob,9\nbob,cy,8\n", "source,target,strength"),
        ("source,target\n1,2\n2,3\n", "source,target"),
        ("from,to\n1,2\n2,3\n", None),
        ("FromNodeId,ToNodeId,weight\n1,2,4\n2,3,5\n", None),
    ],
)
def test_a_header_is_no_link(tmp_path, text, columns):
    file = tmp_path / "links.csv"
    file.write_text(text)
    network = read_edge_list(file, columns=columns and columns.split(","))
    assert len(network.links["link"]) == 2
    assert network.size("user") == 3


def test_where_a_header_cannot_be_told_from_a_link_the_user_is_asked(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("who,whom\nann,bob\nbob,cy\n")
    for columns in (None, ("source", "target")):
        with pytest.raises(InputError, match=r"line 1 .who, whom. may be the columns' names"):
            read_edge_list(file, columns=columns)
    columns = ("source", "target")
    assert len(read_edge_list(file, columns=columns, header=True).links["link"]) == 2
    assert len(read_edge_list(file, columns=columns, header=False).links["link"]) == 3
    file.write_text("who,whom\n1,2\n2,3\n")
    with pytest.raises(InputError, match="may be the columns' names"):
        read_edge_list(file)
    file.write_text("ann,bob\nbob,cy\n")
    assert len(read_edge_list(file).links["link"]) == 2
    file.write_text("source;target\nann, a;bob\nbob;cy\n")
    assert len(read_edge_list(file).links["link"]) == 2
    for ending in ("xlsx", "ods", "parquet"):
        file = tmp_path / f"links.{ending}"
        file.write_bytes(b"PK")
        with pytest.raises(InputError, match=rf"links\.{ending}: its ending .* is of no text file"):
            read_edge_list(file)
    with pytest.raises(InputError, match=r"absent.csv: no such file"):
        read_edge_list(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    "text",
    ["a,b,3.0\nc,d,2.0\ne,f,1.0\n", "ann,bob,1\n1,2,2\n2,3,1\n", "a,b,1e1\nc,d,20\ne,f,30\n"],
)
def test_a_line_with_a_number_for_a_strength_is_not_taken_for_names(tmp_path, text):
    file = tmp_path / "net.csv"
    file.write_text(text)
    columns = ["source", "target", "strength"]
    with pytest.raises(InputError, match=r"line 1 .* may be the columns' names"):
        read_edge_list(file, columns=columns)
    assert len(read_edge_list(file, columns=columns, header=False).links["link"]) == 3


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_comments_say_nothing_of_the_separator(tmp_path, ending):
    file = tmp_path / f"net{ending}"
    text = "\ufeff# made by hand, once\n#\nsource;target;strength\n1;2;3\n2;3;4\n"
    opened = gzip.open if ending.endswith("gz") else open
    with opened(file, "wt", encoding="utf-8") as stream:
        stream.write(text)
    assert read_edge_list(file).links["link"].strength.sum() == 7


def test_parallel_edges_of_a_graph_are_counted_or_added_up(tmp_path):
    graph = networkx.MultiDiGraph()
    graph.add_edges_from([(1, 2), (1, 2), (2, 3)])
    assert from_networkx(graph, duplicates="sum").links["link"].strength.max() == 2
    networkx.write_graphml(graph, tmp_path / "net.graphml")
    with pytest.raises(InputError, match="duplicates='sum'"):
        read_graphml(tmp_path / "net.graphml")
    found = read_graphml(tmp_path / "net.graphml", duplicates="sum")
    assert found.links["link"].strength.sum() == 3
    for *_, data in graph.edges(data=True):
        data["weight"] = 5
    assert from_networkx(graph, duplicates="sum").links["link"].strength.max() == 10


def test_times_are_no_strengths(tmp_path):
    file = tmp_path / "events.txt"
    file.write_text("1 2 1082008561\n1 2 1082155839\n3 1 1082414391\n")
    for duplicates in ("raise", "sum"):
        with pytest.raises(InputError, match=r"third column looks like times .1082008561 … 108241"):
            read_edge_list(file, duplicates=duplicates)
        network = read_edge_list(file, columns=("source", "target", "time"), duplicates=duplicates)
        assert network.links["link"].strength.tolist() == [2, 1]
    # Small times that rise from line to line while links repeat.
    file.write_text("1 2 0\n2 3 20\n1 2 40\n")
    with pytest.raises(InputError, match="looks like times"):
        read_edge_list(file)
    file.write_text("src dst ts\n1 2 0\n2 3 20\n1 2 40\n")
    assert read_edge_list(file).links["link"].strength.tolist() == [2, 1]
    # Events that each occur once are counted too; lines without a time are no events.
    file.write_text("src dst ts\n1 2 0\n2 3 20\n")
    assert read_edge_list(file).links["link"].strength.tolist() == [1, 1]
    file.write_text("src dst\n1 2\n2 3\n")
    assert read_edge_list(file).schema.link("link").strength is None
    # Strengths stay strengths.
    file.write_text("1 2 3\n2 3 1\n3 1 2\n")
    assert read_edge_list(file).links["link"].strength.tolist() == [3, 1, 2]


def test_files_that_are_no_network_are_named(tmp_path):
    file = tmp_path / "links.txt"
    file.write_text("1 2\n")
    with pytest.raises(InputError, match=r"columns \['source', 'time'\] lack 'source' or 'target'"):
        read_edge_list(file, columns=("source", "time"))
    file.write_bytes(b"\xff\xfe1 2\n")
    with pytest.raises(InputError, match=r"links.txt: line 1 is not valid UTF-8"):
        read_edge_list(file)
    with pytest.raises(InputError, match=r"user_profile.txt: no such file"):
        read_kdd_cup_2012(tmp_path)


def test_repeated_links_without_strengths_are_counted(tmp_path):
    file = tmp_path / "links.txt"
    file.write_text("1 2\n1 2\n2 1\n")
    with pytest.raises(
        InputError, match=r"links.txt: line 2 repeats the link of line 1\. .*--duplicates sum"
    ):
        read_edge_list(file)
    assert read_edge_list(file, duplicates="sum").links["link"].strength.tolist() == [2, 1]
    file.write_text("1 2\n3 1\n2 1\n")
    with pytest.raises(InputError, match="line 3 repeats the link of line 1"):
        read_edge_list(file, directed=False)
    file.write_text("1 2\n1 2\n2 1\n")
    both = read_edge_list(file, duplicates="sum", directed=False)
    assert both.links["link"].strength.tolist() == [3, 3]


def test_links_both_ways_keep_strengths_lines_and_links_to_oneself(tmp_path):
    file = tmp_path / "links.txt"
    file.write_text("1 2 5\n3 3 2\n2 3 4\n")
    network = read_edge_list(file, directed=False)
    assert strengths(network, "link") == {
        (1, 2): 5,
        (2, 1): 5,
        (3, 3): 2,
        (2, 3): 4,
        (3, 2): 4,
    }
    file.write_text("1 2 5\n2 3 x\n")
    with pytest.raises(InputError, match="line 2: strength is 'x'"):
        read_edge_list(file, directed=False)


@pytest.mark.parametrize(
    ("text", "columns", "header", "links"),
    [
        ("who whom n\nann bob 3\nbob cy 4\n", "source target strength", None, 2),
        ("who whom 7\nann bob 3\nbob cy 4\n", "source target strength", None, "may be"),
        ("ann bob 7\nbob cy 3\n", "source target strength", None, 2),  # bob comes again
        ("who whom\n1 2\n", "source target", None, 1),
        ("who whom\n1 b\n", "source target", None, "may be"),
        ("1 whom\nann bob\n", "source target", None, 2),
        ("who whom\n", "source target", None, "may be"),
        ("who whom\n", "source target", False, 1),
        ("source target\nann bob\n", None, False, 2),
        ("who whom\nann bob\n", None, True, 1),
    ],
)
def test_whether_the_first_line_is_a_link_is_told_by_the_others(
    tmp_path, text, columns, header, links
):
    file = tmp_path / "links.txt"
    file.write_text(text)
    given = {"columns": columns and columns.split(), "header": header}
    if isinstance(links, str):
        with pytest.raises(InputError, match=links):
            read_edge_list(file, **given)
    else:
        assert len(read_edge_list(file, **given).links["link"]) == links


@pytest.mark.parametrize(
    ("lines", "are_times"),
    [
        ("1 2 100000000\n2 1 100000001", True),
        ("1 2 99999999\n2 1 100000001", False),
        ("1 2 0\n2 3 20\n1 2 40", True),
        ("1 2 0\n2 3 40\n1 2 20", False),  # they fall
        ("1 2 7\n2 3 7\n1 2 7", False),  # all alike
        ("1 2 1\n1 2 2", False),  # too few to tell
        ("1 2 1\n3 2 2\n4 2 3", False),  # they rise, but no link comes again
        ("1 2 1\n1 3 2\n1 4 3", False),
        ("1 2 100000000\n2 1", False),  # not every line has one
        ("1 2 100000000\n2 1 x", False),
    ],
)
def test_a_third_column_is_times_if_it_is_large_or_rises(tmp_path, lines, are_times):
    file = tmp_path / "links.txt"
    file.write_text(lines + "\n")
    try:
        read_edge_list(file, duplicates="sum")
        message = ""
    except InputError as error:
        message = str(error)
    assert ("looks like times" in message) == are_times


@pytest.mark.parametrize(
    ("id", "whole"),
    [("-5", True), ("0", True), ("9" * 18, True), ("9" * 19, False), ("+5", False), ("05", False)],
)
def test_ids_are_whole_numbers_if_all_are_written_as_such(tmp_path, id, whole):
    file = tmp_path / "links.txt"
    file.write_text(f"{id} 1\n")
    expected = sorted([int(id), 1]) if whole else sorted([id, "1"])
    assert read_edge_list(file).ids("user").to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [("2.0", 2), ("2.5", None), ("1e3", 1000), ("0", None), ("-1", None), ("1e10", None)],
)
def test_a_strength_is_a_positive_whole_number_however_it_is_written(tmp_path, text, kept):
    file = tmp_path / "links.txt"
    file.write_text(f"source target weight\n1 2 {text}\n")
    if kept is None:
        with pytest.raises(
            InputError, match=r"links.txt: line 2: strength is .*, expected a positive"
        ):
            read_edge_list(file)
    else:
        assert read_edge_list(file).links["link"].strength.tolist() == [kept]


def test_links_without_strengths_are_written_as_one(tmp_path):
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    network = network_from_arrays(schema, {"user": {"id": [1, 2]}}, {"follow": ([1], [2])})
    write_edge_list(network, tmp_path / "links.csv")
    assert strengths(read_edge_list(tmp_path / "links.csv"), "follow") == {(1, 2): 1}


def test_a_file_is_split_at_commas_blanks_or_what_is_said(tmp_path):
    for name, text, options in (
        ("a.csv.gz", "source,target\nann lee,bob\n", {}),
        ("a.csv", "source;target\nann lee;bob\n", {"delimiter": ";"}),
        ("a.txt", "source\ttarget\nann lee\tbob\n", {"delimiter": "\t"}),
    ):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(tmp_path / name, "wt") as stream:
            stream.write(text)
        assert read_edge_list(tmp_path / name, **options).ids("user").to_pylist() == [
            "ann lee",
            "bob",
        ]


def test_more_columns_than_are_known_must_be_named(tmp_path):
    file = tmp_path / "links.txt"
    file.write_text("1 2 3 1082008561\n2 3 1 1082155839\n")
    with pytest.raises(InputError, match="lines have 4 columns"):
        read_edge_list(file)
    network = read_edge_list(file, columns=("source", "target", "strength", "time"))
    assert network.links["link"].strength.tolist() == [3, 1]


def test_ids_may_begin_with_a_number_sign_in_csv(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("# tags\nsource,target\n#python,bob\namy,bob\n")
    assert read_edge_list(file).ids("user").to_pylist() == ["#python", "amy", "bob"]
    other = tmp_path / "links.txt"
    other.write_text("# tags\n# by whom\namy bob\n#python bob\n")
    with pytest.raises(
        InputError, match=r"links\.txt: line 4 begins with '#' after the first link"
    ):
        read_edge_list(other)


@pytest.mark.parametrize("ids", [["#a", "b"], ["a,b", 'c"d'], ["007", "x\ny"], ["é|", "a b"]])
@pytest.mark.parametrize("name", ["follow", "#follow"])
def test_what_an_edge_list_holds_comes_back(tmp_path, ids, name):
    schema = Schema({"user": {}}, (LinkType(name, "user", "user"),))
    network = network_from_arrays(schema, {"user": {"id": ids}}, {name: (ids[:1], ids[1:])})
    write_edge_list(network, tmp_path / "links.csv")
    again = read_edge_list(tmp_path / "links.csv")
    assert sorted(again.ids("user").to_pylist()) == sorted(ids)
    (source,) = again.links[name].sources.tolist()
    assert again.ids("user")[source].as_py() == ids[0]


@pytest.mark.parametrize(("ids", "name"), [([" a", "a"], "follow"), (["a", "b"], "follow ")])
def test_what_an_edge_list_would_not_keep_is_not_written(tmp_path, ids, name):
    schema = Schema({"user": {}}, (LinkType(name, "user", "user"),))
    network = network_from_arrays(schema, {"user": {"id": ids}}, {name: (ids[:1], ids[1:])})
    with pytest.raises(InputError, match="has blanks around it, which an edge list does not keep"):
        write_edge_list(network, tmp_path / "links.csv")
    assert not (tmp_path / "links.csv").exists()


@pytest.mark.parametrize("text", ["", "# nothing\n", "source,target\n"])
def test_a_file_without_links_is_no_network(tmp_path, text):
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(InputError, match="holds no link"):
        read_edge_list(file)


@pytest.mark.parametrize("header", ["from,to,source", "src,from,to", "source,target,to"])
def test_two_columns_of_one_meaning_are_refused(header, tmp_path):
    path = tmp_path / "net.csv"
    path.write_text(f"{header}\n1,2,3\n4,5,6\n")
    with pytest.raises(InputError, match=r"two columns are the '(source|target)'"):
        read_edge_list(path)
    links = read_edge_list(path, columns=["source", "target", "app"], header=True)
    assert links.ids("user").to_pylist() == [1, 2, 4, 5]


def test_cells_between_tabs_may_hold_blanks(tmp_path):
    (tmp_path / "net.tsv").write_text("source\ttarget\nAda L\tAlan T\nAlan T\tKurt G\n")
    found = read_edge_list(tmp_path / "net.tsv")
    assert found.ids("user").to_pylist() == ["Ada L", "Alan T", "Kurt G"]


@pytest.mark.parametrize("name", ["net.txt.gz", "net.csv.gz"])
def test_a_torn_download_is_refused(name, tmp_path):
    whole = gzip.compress("".join(f"{i},{i * 7 % 1009}\n" for i in range(5000)).encode())
    for content in (whole[: len(whole) // 2], whole[:12], b"no gzip"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            read_edge_list(tmp_path / name)


def test_what_a_graph_lacks_is_empty_where_the_schema_has_it(tmp_path):
    schema = Schema(
        {"user": {"yob": Rule("exact")}, "shop": {}},
        (LinkType("follow", "user", "user"), LinkType("buys", "user", "shop")),
    )
    nodes = {
        "user": {"id": [1, 2], "yob": pa.array([None, None], pa.int64())},
        "shop": {"id": pa.array([], pa.int64())},
    }
    network = network_from_arrays(schema, nodes, {"follow": ([1], [2]), "buys": ([], [])})
    write_graphml(network, tmp_path / "net.graphml")
    for back in (
        read_graphml(tmp_path / "net.graphml", schema=schema),
        from_networkx(to_networkx(network), schema=schema),
    ):
        assert back.schema == schema
        assert back.nodes["user"].to_pylist() == [{"id": 1, "yob": None}, {"id": 2, "yob": None}]
        assert len(back.nodes["shop"]) == len(back.links["buys"]) == 0
    odd = to_networkx(network)
    odd.nodes["user", 1]["YOB"] = 1980
    with pytest.raises(InputError, match="attribute 'yob' of the schema is no column"):
        from_networkx(odd, schema=schema)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({}, "the network has none"),
        ({"l": ([], [])}, "the network has none"),
        ({"l": ([""], ["a"])}, "'' is an empty name"),
    ],
)
def test_an_edge_list_that_would_not_be_read_back_is_not_written(links, message, tmp_path):
    schema = Schema({"u": {}}, tuple(LinkType(name, "u", "u") for name in links))
    network = network_from_arrays(
        schema, {"u": {"id": ["", "a"] if "''" in message else ["a"]}}, links
    )
    with pytest.raises(InputError, match=message):
        write_edge_list(network, tmp_path / "net.csv")
    assert not (tmp_path / "net.csv").exists()
