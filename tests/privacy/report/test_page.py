"""The report: why somebody is worst off, the frontier, and what a reader is told to do."""

from pathlib import Path

import numpy as np
import pytest
from tests.held import drawn, hold, page

from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.hin import Schema, induced, network_from_arrays
from telic.privacy import (
    Adversary,
    Limits,
    LinkErrors,
    apply_steps,
    measured_attack,
    randomise_ids,
    risk_report,
    risks,
)
from telic.privacy.advice.advise import advise
from telic.privacy.attacks.auxiliary import TooManyPairs
from telic.privacy.report import findings
from telic.privacy.report.findings import gather, reasons, told_apart_by

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"city": "exact"}}},
        "links": [
            {"name": "knows", "source": "user", "target": "user"},
            {"name": "pays", "source": "user", "target": "user", "strength": "at_least"},
        ],
    }
)


@pytest.fixture(scope="module")
def network():
    """Forty users in two cities. 0 pays 1: these two are alone, by that link."""
    nodes = {"id": np.arange(40), "city": np.arange(40) % 2}
    pairs = np.arange(2, 32, 4)
    links = {"knows": (pairs, pairs + 2), "pays": ([0], [1], [7])}
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


def found_in(network, limits=None):
    adversary = Adversary.of(network)
    options = {"auxiliary": None, "limits": limits, "progress": lambda _: None}
    return gather(network, adversary, **options)


def test_who_is_worst_off_is_told_what_sets_them_apart(network):
    found = found_in(network)
    worst = reasons(found, 2)
    assert {one.user for one in worst} == {0, 1}
    for one in worst:
        assert one.alike == 1
        assert one.by_profile == 20
        assert one.told_by.startswith("pays links (without:")
    told = dict(told_apart_by(found))
    assert told["pays links"] == told["all links"] == 2
    assert told["city"] == told["knows links"] == 0


def test_where_all_look_the_same_nothing_tells_anybody_from_the_others():
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "knows", "source": "user", "target": "user"}]}
    )
    everybody = np.nonzero(~np.eye(5, dtype=bool))
    team = network_from_arrays(schema, {"user": {"id": range(5)}}, {"knows": everybody})
    assert {one.told_by for one in reasons(found_in(team), 5)} == {"nothing: all look the same"}


def test_risk_without_a_field_is_that_of_the_network_without_it(network):
    for one in found_in(network).without:
        steps = {
            "city": [{"method": "suppress", "attribute": "city"}],
            "knows links": [{"method": "drop-links", "links": ["knows"]}],
            "pays links": [{"method": "drop-links", "links": ["pays"]}],
            "all links": [{"method": "drop-links", "links": ["knows", "pays"]}],
        }[one.field]
        left = apply_steps(network, steps)
        *_, last = risks(left, links=[[link.name for link in left.schema.links]])
        assert one.risk == last.risk


def test_no_point_of_the_frontier_beats_another(network):
    found = advise(network, Limits(risk=0.1))
    losses = [point.loss for point in found.frontier]
    left = [point.found.risk for point in found.frontier]
    assert losses == sorted(losses)
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == len(left)
    assert losses[0] == 0
    assert left[0] == found.before[-1].risk
    assert losses[-1] == pytest.approx(1)
    # The advised release is proven to be the cheapest below its limit: nothing lies under it.
    assert found.proven
    assert not any(
        point.loss < found.loss - 1e-12 and point.found.risk <= 0.1 for point in found.frontier
    )


def test_the_page_says_what_it_means_and_what_to_do(network):
    with drawn() as outlines:
        report, facts = risk_report(network, limits=Limits(risk=0.08, highest=0.5))
    hold(Path(__file__).parent / "page.jsonl", page(report, outlines))
    text = report.html()
    assert text.count('class="plot"') == 2
    assert "of 100 people whom the intruder looks for" in text
    assert "privacy advise NETWORK --max-risk 0.08 --max-highest 0.5 --out" in text
    assert "privacy anonymise NETWORK RELEASE --steps steps.json --key key.parquet" in text
    assert "Only one row fits this person" in text
    for test in ("Singling out", "Linkability", "Inference"):
        assert test in text
    assert facts["advice"]["highest"] <= 0.5
    assert facts["advice"]["frontier"][0]["loss"] == 0
    plain, _ = risk_report(network)
    assert "--max-risk 0.05 --max-highest 0.2" in plain.html()
    assert plain.html().count('class="plot"') == 1


def test_each_part_of_the_work_is_told_before_it_begins(network):
    told = []
    risk_report(network, limits=Limits(risk=0.08), progress=told.append)
    judged = [step for step in told if step.endswith("releases judged")]
    numbers = [int(step.split()[0]) for step in judged]
    assert numbers == sorted(numbers)  # a release may be judged again, at a farther distance
    assert set(numbers) == set(range(1, max(numbers) + 1))
    assert [step for step in told if step not in judged] == [
        "risk by link types and distance",
        "what each field adds",
        "what can be inferred",
        "running the attack",
        "searching for a release",
        "listing what can be coarsened",
        *(f"what {field} adds" for field in ("city", "knows", "pays")),
        "drawing the frontier",
        "confirming by attack",
    ]
    told.clear()
    steps = [{"method": "drop-links", "links": [name]} for name in ("knows", "pays")]
    steps.insert(1, {"method": "suppress", "attribute": "city"})
    apply_steps(network, steps, only=("drop-links",), progress=told.append)
    assert told == ["drop-links", "drop-links"]
    known = Adversary.of(network)
    measured_attack(network, network, adversary=known, progress=told.append)
    assert told[2:] == ["sorting what is known", "comparing"]


@pytest.fixture(scope="module")
def cinema():
    """Thirty users who saw some of six films, which everybody knows; some know one another."""
    rng = np.random.default_rng(3)
    schema = Schema.parse(
        {
            "nodes": {
                "user": {"attributes": {"city": "exact"}},
                "film": {"attributes": {"year": "at_least"}},
            },
            "links": [
                {"name": "saw", "source": "user", "target": "film", "strength": "at_least"},
                {"name": "knows", "source": "user", "target": "user"},
            ],
        }
    )
    saw = np.nonzero(rng.random((30, 6)) < 0.2)
    knows = np.nonzero(np.triu(rng.random((30, 30)) < 0.05, 1))
    nodes = {
        "user": {"id": np.arange(100, 130), "city": np.arange(30) % 3},
        "film": {"id": np.arange(6), "year": np.arange(6) // 4},
    }
    links = {"saw": (saw[0] + 100, saw[1], rng.integers(1, 3, len(saw[0])))}
    links["knows"] = (knows[0] + 100, knows[1] + 100)
    return network_from_arrays(schema, nodes, links)


def test_a_page_on_several_types_of_nodes_is_what_it_was(cinema):
    published = induced(cinema, {"user": np.arange(2, 30), "film": np.arange(6)})
    known = induced(cinema, {"user": np.arange(27), "film": np.arange(6)})
    adversary = Adversary.of(published, node_type="user", known_ids=("film",))
    with drawn() as outlines:
        report, _ = risk_report(
            published,
            auxiliary=known,
            name="cinema",
            limits=Limits(risk=0.5, unique=0.25),
            adversary=adversary,
            errors=LinkErrors(added=0.2),
            worst=4,
            show_ids=True,
        )
    text = report.markdown()
    assert "3 of the published users are not in it and cannot be found." in text
    assert "--node-type user" in text
    hold(Path(__file__).parent / "page_of_several_types.jsonl", page(report, outlines))


def test_what_is_within_its_limits_is_published_as_it_is(network):
    limits = Limits(risk=1.0)
    text = risk_report(network, limits=limits)[0].markdown()
    assert f"That is within your limits ({limits.words()}): nothing has to be coarsened." in text
    assert "2. Publish under new ids: telic privacy anonymise NETWORK RELEASE --key" in text
    assert "After the release described below" not in text


def test_what_is_within_its_limits_is_published_by_a_command_for_its_node_types(cinema):
    adversary = Adversary.of(cinema, node_type="user", distance=1)
    text = risk_report(cinema, limits=Limits(risk=1.0), adversary=adversary)[0].markdown()
    command = "anonymise NETWORK RELEASE --node-type user --key key.parquet --public film. Lock"
    assert command in text
    assert "Risk today and of the release, looking 1 link far" in text


def test_people_who_are_not_in_the_auxiliary_network_cannot_be_recognised(network):
    renamed, _ = randomise_ids(network, seed=1)
    for known, published in ((renamed, network), (network, renamed)):
        with pytest.raises(InputError, match="auxiliary: none of the network's user ids is in it"):
            risk_report(published, auxiliary=known)


def test_a_simulated_network_is_said_to_be_one(network):
    assert "simulated: no real person" not in risk_report(network)[0].markdown()
    table = network.nodes["user"].replace_schema_metadata({SIMULATED: b"true"})
    made_up = type(network)(network.schema, {"user": table}, network.links)
    assert "simulated: no real person" in risk_report(made_up)[0].markdown()


def test_an_attack_too_large_to_run_is_said_with_what_bounds_it(network, monkeypatch):
    def too_many(*given, **options):
        raise TooManyPairs("too many")

    monkeypatch.setattr(findings, "attack", too_many)
    text = risk_report(network)[0].markdown()
    assert "The attack was not run: too many pairs of users match by profile." in text
    assert "A known attack (DeHIN) was run" not in text


def test_where_profiles_tell_all_the_picture_shows_links_alone(network):
    table = network.nodes["user"]
    column = table.column("id")
    nodes = {"user": table.set_column(1, "city", column)}
    every = type(network)(network.schema, nodes, network.links)
    found = found_in(every)
    assert found.every[0].risk == 1
    assert found.mapped[0].risk == pytest.approx(1 / 40)
    said = "Profiles alone tell nearly everybody apart (100.0%), so the picture shows what links"
    assert said in risk_report(every)[0].markdown()
    assert said not in risk_report(network)[0].markdown()
    assert found_in(network).mapped is not None
    assert found_in(network).mapped[0].risk == pytest.approx(2 / 40)
