"""What privacy cannot work with is refused in one line that says what is wrong."""

import numpy as np
import pyarrow as pa
import pytest

from telic.errors import InputError
from telic.hin import LinkType, Network, Rule, Schema, network_from_arrays
from telic.privacy import (
    Adversary,
    Auxiliary,
    Limits,
    LinkErrors,
    UtilityLoss,
    advise,
    apply_steps,
    attack,
    bootstrap_interval,
    inference,
    read_truth,
    risks,
    same_ids,
    scores,
    tuple_risk,
    two_releases,
    utility_loss,
)
from telic.privacy.anonymisers.coarsen import bin_strengths, count_links, generalise
from telic.privacy.anonymisers.complete_graph import complete_graph
from telic.privacy.anonymisers.differential_privacy import noisy_links
from telic.privacy.anonymisers.ids import replace_ids
from telic.privacy.anonymisers.joint_k_degree import joint_k_degree
from telic.privacy.anonymisers.k_degree import k_degree
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.merged_types import flatten
from telic.scale import Local


def people(size=4, *, city=None, links=((0, 1), (1, 2)), age=None):
    """A network of users with a city and an age, who follow and pay each other."""
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"city": "exact", "age": {"tolerance": 1}}}},
            "links": [
                {"name": "follow", "source": "user", "target": "user"},
                {"name": "pay", "source": "user", "target": "user", "strength": "at_least"},
            ],
        }
    )
    source, target = (list(end) for end in zip(*links, strict=True)) if links else ([], [])
    empty = pa.array([], pa.int64())
    nodes = {
        "id": np.arange(size),
        "city": city if city is not None else np.arange(size) % 2,
        "age": age if age is not None else 20 + np.arange(size),
    }
    ends = [source, target] if links else [empty, empty]
    paid = [*ends, [2] * len(source) if links else empty]
    return network_from_arrays(schema, {"user": nodes}, {"follow": ends, "pay": paid})


NETWORK = people()
NOBODY = people(0, links=(), city=pa.array([], pa.int64()), age=pa.array([], pa.int64()))
WORDS = people(city=["a", "b", "a", "b"])
RESULT = attack(Auxiliary(NETWORK, Adversary.of(NETWORK)), NETWORK)


def saw(*kinds):
    """A network in which a user saw a node of the last of these types."""
    schema = Schema.parse(
        {
            "nodes": {kind: {} for kind in kinds},
            "links": [{"name": "saw", "source": kinds[0], "target": kinds[-1]}],
        }
    )
    nodes = {kind: {"id": [1, 2]} for kind in kinds}
    return network_from_arrays(schema, nodes, {"saw": ([1], [2])})


def step(method, network=NETWORK, **options):
    return lambda: apply_steps(network, [{"method": method, **options}])


REFUSED = {
    "nobody to advise on": (
        lambda: advise(NOBODY, Limits(risk=0.5)),
        "'user' is empty: there is nobody to protect",
    ),
    "nobody to guess of": (lambda: inference(NOBODY, "city"), "is empty: there is nobody to guess"),
    "no tuple": (lambda: tuple_risk(np.array([])), "risk of an empty table is not defined"),
    "no folder for pieces": (
        lambda: list(risks(NETWORK, executor=Local())),
        "with an engine of telic.scale, name a folder for the links",
    ),
    "powers of one": (step("bin", base=1.0), "base is 1.0, expected at least 1.001"),
    "counts by powers of one": (
        lambda: count_links(NETWORK, links=["follow"], base=1.0),
        "base is 1.0, expected at least 1.001",
    ),
    "width of a text": (
        step("generalise", WORDS, attribute="city", width=2),
        "attribute 'city' is string: only numbers have widths",
    ),
    "ids of another type": (
        lambda: replace_ids(NETWORK, node_type="post"),
        r"node type 'post' does not exist. Node types are \['user'\]",
    ),
    "a type to protect that is not there": (
        lambda: utility_loss(NETWORK, NETWORK, node_type="post"),
        r"node type 'post' does not exist. Node types are \['user'\]",
    ),
    "a type that the other network lacks": (
        lambda: flatten(people(), Adversary("post", {"post": {}}, {}), "auxiliary"),
        "node type 'post' is missing in the auxiliary network",
    ),
    "people whom the other network lacks": (
        lambda: same_ids(saw("user"), saw("member"), "member"),
        r"node type 'member' is in one of the two networks only: the other has \['user'\]",
    ),
    "releases of other people": (
        lambda: two_releases(saw("user"), saw("member"), later=Adversary.of(saw("member"))),
        "node type 'user' is in one of the two networks only",
    ),
    "links that the other network lacks": (
        lambda: Auxiliary(NETWORK, Adversary.of(saw("user"))),
        r"link type 'saw' is missing in the auxiliary network, which has \['follow', 'pay'\]",
    ),
    "links that lead elsewhere in the other network": (
        lambda: Auxiliary(saw("user", "film"), Adversary.of(saw("user"))),
        "'saw' of the auxiliary network joins 'user' to 'film': no 'film' is compared",
    ),
    "strengths that the other network lacks": (
        lambda: attack(Auxiliary(NETWORK, Adversary.of(NETWORK)), step("drop-strengths")()),
        "link type 'pay' has no strengths in the target network",
    ),
    "an attribute in 16 bits": (
        lambda: network_from_arrays(
            Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []}),
            {"user": {"id": [1], "x": np.ones(1, np.float16)}},
            {},
        ),
        "node type 'user': attribute 'x' is float16. Write it as float32 or float64",
    ),
    "an attribute of another kind": (
        lambda: attack(Auxiliary(NETWORK, Adversary.of(NETWORK)), WORDS),
        "attribute 'city' is int64 in the auxiliary network and string in the target",
    ),
    "part of what is joint": (
        lambda: attack(Auxiliary(NETWORK, Adversary.of(NETWORK)), NETWORK, links=["follow"]),
        "joint matching uses all prepared link types",
    ),
    "truth for others": (
        lambda: scores(RESULT, 4, np.arange(3)),
        "truth names 3 users, the attack 4",
    ),
    "truth for nobody": (
        lambda: scores(RESULT, 4, np.arange(0)),
        "truth names 0 users",
    ),
    "two truths": (
        lambda: read_truth(
            pa.table({"target": [0, 1, 0], "auxiliary": [0, 1, 2]}), NETWORK, NETWORK, "user"
        ),
        "truth: row 3: target 0 is named twice",
    ),
    "truth of another kind": (
        lambda: read_truth(pa.table({"target": ["0"], "auxiliary": [0]}), NETWORK, NETWORK, "user"),
        "truth: column 'target' is string, the ids int64",
    ),
    **{
        f"weights of {share}": (
            lambda share=share: utility_loss(NETWORK, NETWORK).total(
                dict.fromkeys(UtilityLoss.__slots__, share)
            ),
            "utility: weights .* expected numbers from 0, not all 0",
        )
        for share in (-5, float("nan"), float("inf"), 0)
    },
    "no value": (lambda: bootstrap_interval(np.array([])), "no values to draw from"),
    "a value that is none": (lambda: bootstrap_interval(np.array([1, np.nan])), "values: some are"),
    "a level in per cent": (lambda: bootstrap_interval(np.ones(2), level=95), "level: 95"),
    "no draw": (
        lambda: bootstrap_interval(np.ones(2), draws=0),
        "draws is 0, expected a whole number",
    ),
    "a loss that is none": (
        lambda: utility_loss(NETWORK, NETWORK).total({"joy": 1.0}),
        "utility: 'joy' is no loss. Losses are",
    ),
    "a release of others": (
        lambda: utility_loss(NETWORK, people(5)),
        "the release has other user nodes than the network",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_named(case):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        call()


def test_a_complete_graph_that_is_too_large_is_refused_before_it_is_made():
    many = people(10**5, links=())
    with pytest.raises(InputError, match="2 link types of 100000 users are 20000000000 links"):
        complete_graph(many)


def test_strengths_that_a_complete_graph_would_not_use_are_refused():
    types = tuple(
        LinkType(name, "user", "user", strength=rule)
        for name, rule in (("f", None), ("m", Rule("exact")))
    )
    links = {"f": ([1], [2]), "m": ([1], [2], [3])}
    network = network_from_arrays(Schema({"user": {}}, types), {"user": {"id": [1, 2]}}, links)
    with pytest.raises(InputError, match="links of type 'f' have none"):
        complete_graph(network, strengths={"f": 2})
    with pytest.raises(InputError, match="with varying, each link has one of its own"):
        complete_graph(network, varying=True, strengths={"m": 2})
    assert complete_graph(network, strengths={"m": 7}).links["m"].strength.tolist() == [3, 7]


@pytest.mark.parametrize(("column", "row"), [("target", 1), ("target", 3), ("auxiliary", 2)])
def test_who_is_not_there_is_named_with_the_row_of_the_truth(column, row):
    both = {"target": [0, 1, 2, 3], "auxiliary": [3, 2, 1, 0]}
    found = read_truth(pa.table(both | {"target": [2, 0, 3, 1]}), NETWORK, NETWORK, "user")
    assert found.tolist() == [2, 0, 3, 1]
    assert read_truth(
        pa.table({"target": [2], "auxiliary": [3]}), NETWORK, NETWORK, "user"
    ).tolist() == [-1, -1, 3, -1]
    ids = pa.array(range(4), pa.int8())
    narrow = Network(
        NETWORK.schema, {"user": NETWORK.nodes["user"].set_column(0, "id", ids)}, NETWORK.links
    )
    for network, stranger in ((NETWORK, 9), (narrow, 2**40)):
        both[column][row] = stranger
        message = f"truth: row {row + 1}: {stranger} is not in the {column} network"
        with pytest.raises(InputError, match=message):
            read_truth(pa.table(both), network, network, "user")


NEXT = np.nextafter
PREPARED = Auxiliary(NETWORK, Adversary.of(NETWORK))
LIMITS = {
    "distance": (lambda x: Adversary.of(NETWORK, distance=x), [None, 0, 5], [-1]),
    "distance of an attack": (lambda x: attack(PREPARED, NETWORK, distance=x), [None, 0, 2], [-1]),
    "weight": (
        lambda x: advise(NETWORK, Limits(risk=1.0), weights={"city": x}),
        [0, 0.0, 2.5],
        [-1e-9, np.inf, np.nan, "1"],
    ),
    "base": (
        lambda x: bin_strengths(NETWORK, base=x),
        [1.001, 1.5, np.inf],
        [NEXT(1.001, 1), 1.0, -2.0, np.nan],
    ),
    "base of counts": (
        lambda x: count_links(NETWORK, links=["follow"], base=x),
        [1.001, 1.5, np.inf],
        [NEXT(1.001, 1), 1.0, -2.0, np.nan],
    ),
    "width": (
        lambda x: generalise(NETWORK, attribute="age", width=x),
        [1, 0.5, 5],
        [0, -1, np.nan],
    ),
    "k": (lambda x: k_degree(NETWORK, k=x), [1, 4], [0, 5]),
    "k of all degrees": (lambda x: joint_k_degree(NETWORK, k=x), [1, 4], [0, 5]),
    "even": (lambda x: k_degree(NETWORK, k=1, even=x), [0.0, 0.5], [-1e-9, 1.0]),
    "share": (lambda x: perturb_links(NETWORK, share=x), [0.0, 1.0], [-1e-9, NEXT(1.0, 2)]),
    "epsilon": (
        lambda x: noisy_links(NETWORK, epsilon=x),
        [1e-3, 1e3],
        [0.0, -1.0, np.inf, np.nan],
    ),
    "false links": (lambda x: LinkErrors(added=x), [0.0, 1.0], [-1e-9, NEXT(1.0, 2)]),
    "changed links": (lambda x: LinkErrors(changed=x), [0.0, NEXT(1.0, 0)], [-1e-9, 1.0]),
    "links that are missing": (lambda x: LinkErrors(missing=x), [0.0, 1.0], [-1e-9, NEXT(1.0, 2)]),
    "mean risk": (lambda x: Limits(risk=x), [1e-9, 1.0], [0.0, NEXT(1.0, 2)]),
    "unique users": (lambda x: Limits(unique=x), [0.0, 1.0], [-1e-9, NEXT(1.0, 2)]),
    "loss": (
        lambda x: list(risks(NETWORK, loss=np.full(4, x))),
        [0.0, 1.0],
        [-1e-9, NEXT(1.0, 2), np.nan],
    ),
    "losses": (lambda x: list(risks(NETWORK, loss=np.ones(x))), [4], [3, 5]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_are_taken_up_to_their_limits(name):
    call, inside, outside = LIMITS[name]
    for value in inside:
        call(value)
    for value in outside:
        with pytest.raises(InputError):
            call(value)
