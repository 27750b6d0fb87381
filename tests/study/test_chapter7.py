import numpy as np
import pytest

from telic.errors import InputError
from telic.study import chapter7, chapter7_checks, chapter7_networks
from telic.study.chapter7_networks import simulated_world


@pytest.fixture(scope="module")
def world():
    return simulated_world(users=8000, samples=1, densities=(0.003, 0.01), seed=0)


def test_the_tables_have_the_published_trends(world):
    risk = chapter7.risk_table(world, 0.01)
    everything = [float(v.mean()) for v in risk["follow", "mention", "retweet", "comment"]]
    assert round(100 * everything[0], 1) == 1.1
    assert everything[1] > 0.9
    assert 0 <= everything[3] - everything[2] <= 0.03
    assert risk["follow",][1].mean() < everything[1]
    releases = chapter7.attack_by_density(world)
    plain, complete = releases["KDDA"], releases["CGA, re-configured"]
    for density in (0.003, 0.01):
        first = chapter7._means(plain[density], "precision")
        assert first[1] > first[0]
        assert first[3] - first[2] <= 0.03
        assert chapter7._means(complete[density], "precision")[3] <= first[3]
        varying = releases["VW-CGA"][density]
        assert chapter7._means(varying, "empty")[1:] == [1, 1, 1]
        assert max(chapter7._means(varying, "precision")) == first[0]
    same = "CGA at the majority strength, re-configured"
    assert releases[same] == releases["KDDA, re-configured"]
    assert (
        chapter7._means(plain[0.01], "precision")[3] > chapter7._means(plain[0.003], "precision")[3]
    )
    by_links = chapter7.attack_by_links(world, 0.01)
    assert len(by_links) == 15
    assert by_links["follow", "mention"][0][1].precision >= by_links["follow",][0][1].precision


def test_the_ceiling_is_who_has_an_out_link(world):
    rows = {row["links"]: row for row in chapter7_checks.ceiling(world, 0.01)}
    ((target, _),) = world.samples[0.01]
    degree = sum(target.links[name].out_degree for name in ("follow", "mention"))
    row = rows["follow", "mention"]
    assert row["linked"] == np.mean(degree > 0) >= rows["follow",]["linked"]
    precision = chapter7.attack_by_links(world, 0.01)["follow", "mention"][0][3].precision
    assert row["found"] == precision
    few = chapter7_checks.found_by_links(world, 0.01)
    assert np.isclose(sum(part["share"] for part in few), 1)
    assert few[0]["found"] < few[1]["found"] < few[3]["found"]


def test_advice_is_confirmed_from_inside_and_from_the_whole_network(world):
    found = chapter7_checks.advice(world, 0.003, max_risk=0.2)
    assert found["risk_after"] <= 0.2 < found["risk_before"]
    assert found["attack_inside"] <= found["risk_after"]
    assert found["attack_after"] <= found["attack_inside"]
    assert found["attack_after"] < found["attack_before"]


@pytest.fixture
def _data():
    if not (chapter7_networks.data_folder() / "sanremo2016_links.parquet").is_file():
        pytest.skip("real networks are not here: set TELIC_DATA to their folder")


@pytest.mark.usefixtures("_data")
def test_real_growth_is_matched_without_a_wrong_answer():
    world = chapter7_networks.sanremo(users=300)
    target, truth = world.samples[0.0][0]
    prepared = chapter7._prepare(world)
    _, found = chapter7._attacked(prepared, target, truth)
    assert all(score.truth_kept == 1 for score in found)
    assert found[1].precision > 0.5 > found[0].precision
    copenhagen = chapter7_networks.copenhagen()
    risk = chapter7.risk_table(copenhagen, 0.0)
    every = risk[max(risk, key=len)]
    assert np.isclose(every[0].mean(), 1 / copenhagen.network.size("user"))


def test_a_missing_data_set_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TELIC_DATA", str(tmp_path))
    with pytest.raises(InputError, match="Set TELIC_DATA"):
        chapter7_networks.copenhagen()


@pytest.mark.usefixtures("_data")
def test_one_part_of_the_study_runs_alone():
    page, facts = chapter7.report(only="copenhagen")
    assert "Table 7.2" not in page.html()
    assert 0 < facts["copenhagen"]["attack"]["call"]["precision"][1] < 1
    found = facts["copenhagen"]["advice"]
    assert found["attack_inside"] <= found["risk_after"] <= 0.05 < found["risk_before"]


def test_a_part_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="part 'milan' of chapter 7 does not exist"):
        chapter7.report(only="milan")
