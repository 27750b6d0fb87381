import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from telic import cli
from telic.cli.privacy.files import find_truth
from telic.errors import InputError
from telic.hin import Network, Schema, network_from_arrays, read_network, write_network
from telic.privacy import Adversary, two_releases

run = CliRunner()


def telic(*words):
    result = run.invoke(cli.app, ["privacy", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    out = tmp_path_factory.mktemp("privacy") / "world"
    telic("simulate", out, "--users", 800, "--size", 120, "--density", 0.03, "--seed", 2)
    return out


def test_risk_prints_one_row_per_subset_and_distance(world):
    found = json.loads(
        telic("risk", world / "target", "--attributes", "tags", "--max-distance", 2, "--json")
    )
    assert len(found["rows"]) == 15 * 3
    assert found["rows"][0]["links"] == ["follow"]
    assert {"links", "distance", "risk"} <= set(found["rows"][0])
    assert all(0 < row["risk"] <= 1 for row in found["rows"])
    assert sum(found["k_histogram"].values()) == 120


def test_ids_are_printed_on_request_only(world):
    shown = json.loads(telic("risk", world / "target", "--worst", 3, "--show-ids", "--json"))
    hidden = json.loads(telic("risk", world / "target", "--worst", 3, "--json"))
    ids = read_network(world / "target").ids("user").to_pylist()
    named = [ids[row["user"] - 1] for row in hidden["worst"]]  # rows are counted from 1
    assert [row["user"] for row in shown["worst"]] == named


def test_what_users_may_lose_weighs_their_risk(world, tmp_path):
    net = read_network(world / "target")
    loss = np.linspace(0.1, 1, 120)
    users = net.nodes["user"].append_column("harm", pa.array(loss))
    users = users.append_column("name", pa.array(["x"] * 120))
    write_network(Network(net.schema, {"user": users}, net.links), tmp_path / "net")
    plain = json.loads(
        telic("risk", world / "target", "--max-distance", 0, "--worst", 120, "--json")
    )
    weighed = json.loads(
        telic(
            "risk", tmp_path / "net", "--max-distance", 0, "--worst", 3, "--loss", "harm", "--json"
        )
    )
    group = {row["user"]: row["k"] for row in plain["worst"]}
    assert all(row["risk"] == pytest.approx(1 / row["k"]) for row in plain["worst"])
    expected = sorted((loss[user - 1] / k for user, k in group.items()), reverse=True)
    assert [row["risk"] for row in weighed["worst"]] == pytest.approx(expected[:3])
    assert all(row["k"] == group[row["user"]] for row in weighed["worst"])
    assert "meaning" in plain
    assert "meaning" not in weighed, "the sentence is about a risk that is not weighed"
    for column, message in (("shoe", "no column 'shoe'"), ("name", "is string, expected")):
        with pytest.raises(InputError, match=message):
            telic("risk", tmp_path / "net", "--loss", column)


def test_a_file_that_is_no_truth_or_no_steps_is_named(world, tmp_path):
    attack = ["attack", world / "auxiliary", world / "target", "--max-distance", 0]
    (tmp_path / "bad").write_text("no parquet, no JSON")
    for name, truth, steps in (
        ("bad", "cannot be read", "line 1, column 1: is no JSON .*, expected a list of steps"),
        ("missing", "no such file, expected ids", "no such file"),
    ):
        with pytest.raises(InputError, match=f"--truth .*{name}: {truth}"):
            telic(*attack, "--truth", tmp_path / name)
        with pytest.raises(InputError, match=f"{name}: {steps}"):
            telic(*attack, "--steps", tmp_path / name)
    for text, message in (
        ("{}", "holds another kind of JSON, expected a list of steps such as"),
        ('[{"method": "complete"}, 3]', "step 2 is 3, expected an object such as"),
        ('[{"metod": "complete"}]', "step 1: it names no method. Methods are complete, k-degree"),
        ('[{"method": "suppress", "attribute": "hat"}]', "step 1 .suppress.: attribute 'hat' does"),
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(InputError, match=f"bad: {message}"):
            telic(*attack, "--steps", tmp_path / "bad")


def test_ids_are_no_truth_where_all_were_replaced():
    """Everybody would count as not found: a release would look safe that is not."""
    known, kept, release = (
        network_from_arrays(Schema({"user": {}}, ()), {"user": {"id": ids}}, {})
        for ids in (["a", "b"], ["b", "new"], ["x", "y"])
    )
    with pytest.raises(InputError, match="--truth ids: none of the target's ids is in"):
        find_truth("ids", known, release, "user")
    assert find_truth("ids", known, kept, "user")[0].tolist() == [1, -1]
    assert find_truth("auto", known, release, "user")[0] is None


def test_a_truth_that_cannot_be_read_is_refused_before_the_attack(world, tmp_path, monkeypatch):
    def attacked(*given, **options):
        raise AssertionError("attacked first")

    monkeypatch.setattr("telic.privacy.attacks.measured_attack.attack", attacked)
    (tmp_path / "truth").write_text("no Parquet", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        telic("attack", world / "auxiliary", world / "target", "--truth", tmp_path / "truth")


def test_attack_writes_every_candidate_set(world, tmp_path):
    out = tmp_path / "candidates.parquet"
    found = json.loads(
        telic(
            "attack",
            world / "auxiliary",
            world / "target",
            "--max-distance",
            2,
            "--candidates",
            out,
            "--json",
        )
    )
    assert pq.ParquetFile(out).num_row_groups == 3  # one for each distance: these sets are small
    table = pq.read_table(out)
    assert table.column_names == ["target", "distance", "candidates"]
    assert table.num_rows == 120 * 3
    sizes = np.array([len(c) for c in table.column("candidates").to_pylist()])
    for row in found["rows"]:
        here = sizes[table.column("distance").to_numpy() == row["distance"]]
        assert row["unique"] == pytest.approx(np.mean(here == 1))
        assert row["mean_candidates"] == pytest.approx(here.mean())
        assert row["reduction_rate"] == pytest.approx(1 - here.mean() / 800)
        assert row["unique_wrong"] == row["empty"] == 0
    # Pure growth: everyone is among their own candidates.
    rows = table.to_pylist()
    assert all(row["target"] in row["candidates"] for row in rows)


def test_rules_come_from_a_file(world, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text('{"yob": {"tolerance": 3}, "tweets": "ignore", "mention": "exact"}')
    loose = json.loads(
        telic(
            "attack",
            world / "auxiliary",
            world / "target",
            "--rules",
            rules,
            "--max-distance",
            0,
            "--json",
        )
    )
    strict = json.loads(
        telic("attack", world / "auxiliary", world / "target", "--max-distance", 0, "--json")
    )
    assert loose["rows"][0]["mean_candidates"] > strict["rows"][0]["mean_candidates"]
    rules.write_text('{"yob": "roughly"}')
    with pytest.raises(InputError, match="'roughly' is no matching rule"):
        telic("attack", world / "auxiliary", world / "target", "--rules", rules)


def test_a_release_is_anonymised_attacked_and_scored_by_its_key(world, tmp_path):
    steps, release, key = tmp_path / "steps.json", tmp_path / "release", tmp_path / "key.parquet"
    steps.write_text(
        json.dumps(
            [{"method": "generalise", "attribute": "yob", "width": 10}, {"method": "complete"}]
        )
    )
    lost = json.loads(
        telic("anonymise", world / "target", release, "--steps", steps, "--key", key, "--json")
    )
    assert lost["utility_loss"]["false_links"] > 0.9
    assert lost["utility_loss"]["lost_links"] == 0
    words = ["attack", world / "auxiliary", release, "--truth", key, "--steps", steps, "--json"]
    blind = json.loads(telic(*words))
    wise = json.loads(telic(*words, "--reconfigured"))
    assert blind["rows"][1]["precision"] == 0
    assert blind["rows"][1]["empty"] == 1
    assert wise["rows"][1]["precision"] > wise["rows"][0]["precision"]
    assert wise["links_removed"]["follow"] == 120 * 119
    unknown = json.loads(telic("attack", world / "auxiliary", release, "--truth", "none", "--json"))
    assert "precision" not in unknown["rows"][0]


def test_targets_that_nobody_knows_are_counted(world, tmp_path):
    network = read_network(world / "target")
    for stem in ("schema.json", *(f"links_{name}.parquet" for name in network.links)):
        (tmp_path / stem).write_bytes((world / "target" / stem).read_bytes())
    ids = network.ids("user").to_pylist()
    first = read_network(world / "auxiliary").ids("user")[0].as_py()
    assert first not in ids
    renamed = [10**9, first, *ids[2:]]  # one is known to nobody, one is the first of the known
    for stem, columns in [
        ("nodes_user", ["id"]),
        *((f"links_{name}", ["source", "target"]) for name in network.links),
    ]:
        table = pq.read_table(world / "target" / f"{stem}.parquet")
        for column in columns:
            swap = dict(zip(ids, renamed, strict=True))
            values = pa.array([swap[i] for i in table.column(column).to_pylist()], pa.int64())
            table = table.set_column(table.column_names.index(column), column, values)
        pq.write_table(table, tmp_path / f"{stem}.parquet")
    found = json.loads(telic("attack", world / "auxiliary", tmp_path, "--truth", "ids", "--json"))
    assert found["not_in_auxiliary"] == 1
    assert json.loads(telic("attack", world / "auxiliary", tmp_path, "--json"))["truth"].startswith(
        "not given (1 target ids"
    )


def test_advice_is_confirmed_by_the_attack(world, tmp_path):
    found = json.loads(
        telic(
            "advise",
            world / "target",
            "--max-risk",
            0.25,
            "--out",
            tmp_path / "steps.json",
            "--json",
        )
    )
    assert found["risk_after"][-1] <= 0.25 < found["risk_before"][-1]
    assert found["attack_precision"] <= found["risk_after"][-1]
    assert json.loads((tmp_path / "steps.json").read_text()) == found["steps"]
    assert {effect["field"] for effect in found["effects"]} >= {"gender", "follow"}


def test_the_report_is_one_page_without_ids(world, tmp_path):
    out = tmp_path / "report.html"
    facts = json.loads(
        telic(
            "report",
            world / "target",
            out,
            "--auxiliary",
            world / "auxiliary",
            "--max-risk",
            0.25,
            "--json",
        )
    )
    page = out.read_text()
    for words in ("Singling out", "Linkability", "not cover", "simulated", "risk today without"):
        assert words in page
    assert facts["advice"]["risk"] <= 0.25
    assert f"{facts['risk']:.1%}" in page


def test_a_release_with_added_links_is_not_called_safe(world, tmp_path):
    steps = tmp_path / "steps.json"
    steps.write_text('[{"method": "k-degree", "k": 3, "plausible": false}]')
    release, key = tmp_path / "release", tmp_path / "key.parquet"
    telic("anonymise", world / "target", release, "--steps", steps, "--key", key)
    given = ("attack", world / "auxiliary", release, "--truth", key)
    assert "match nobody. That is no protection" in telic(*given)
    assert "no protection" not in telic(*given, "--added", 0.5)
    exact, added = (json.loads(telic(*given, *more, "--json")) for more in ((), ("--added", 0.5)))
    assert exact["link_errors"]["added"] == 0
    assert "added" in added["extensions"]
    assert "up to 50 may be false" in added["link_errors"]["words"]
    assert added["rows"][1]["precision"] > exact["rows"][1]["precision"] + 0.3
    telic("report", release, tmp_path / "page.html", "--added", 0.2)
    assert "up to 20 may be false or unknown" in (tmp_path / "page.html").read_text()


def test_profiles_that_match_nobody_are_told_from_links(world, tmp_path):
    steps = tmp_path / "steps.json"
    steps.write_text('[{"method": "generalise", "attribute": "yob", "width": 7}]')
    release, key = tmp_path / "release", tmp_path / "key.parquet"
    telic("anonymise", world / "target", release, "--steps", steps, "--key", key)
    given = ("attack", world / "auxiliary", release, "--max-distance", 1, "--truth", key)
    said = telic(*given)
    assert "match nobody by profile alone" in said
    assert "links may have been added" not in said
    assert "match nobody" not in telic(*given, "--steps", steps)
    part = tmp_path / "part.parquet"
    pq.write_table(pq.read_table(key).slice(0, 50), part)
    known = "70 of the targets are not in the auxiliary network as far as the truth says"
    assert known in telic(*given[:-1], part)
    assert known not in said


def test_two_releases_and_inference_are_measured(world):
    target = world / "target"
    twice = json.loads(telic("again", target, target, "--json"))
    assert twice["people"] == 120
    assert twice["joined"] == twice["first"]
    found = json.loads(telic("infer", target, "gender", "--json"))["inference"][0]
    assert found["gains"]["row"][0] > 0.2 > 0.1 > found["control"]["row"][0]
    assert "guessed from" in telic("infer", target, "gender")


def test_two_releases_are_seen_each_as_it_is_published(world, tmp_path, monkeypatch):
    target, later = world / "target", tmp_path / "later"
    net = read_network(target)
    schema = replace(net.schema, nodes={"user": {"yob": net.schema.nodes["user"]["yob"]}}, links=())
    write_network(Network(schema, {"user": net.nodes["user"].select(["id", "yob"])}, {}), later)
    found = json.loads(telic("again", target, later, "--json"))
    seen = [Adversary.of(read_network(folder)) for folder in (target, later)]
    assert found["adversary"] == seen[0].dump() != seen[1].dump()
    expected = two_releases(net, read_network(later), adversary=seen[0], later=seen[1])
    for name in ("first", "second", "joined"):
        assert found[name] == pytest.approx(getattr(expected, name)._asdict())
    assert found["second"]["risk"] < found["first"]["risk"] <= found["joined"]["risk"]
    said = telic("again", target, later)
    assert said.startswith(seen[0].words())
    names = "first", "second", "both, rows joined"
    for name, one in zip(names, (found[key] for key in ("first", "second", "joined")), strict=True):
        measures = one["risk"], one["tail"], one["highest"], one["unique"]
        assert [name, *(f"{value:.1%}" for value in measures)] in cells(said)
    assert f"joins the rows of {found['matched']:.1%} of these people" in said
    unmatched = replace(expected, matched=None)
    monkeypatch.setattr("telic.privacy.two_releases", lambda *given, **options: unmatched)
    assert "The attack was not run: too many users are alike." in telic("again", target, later)


def test_an_intruder_repeats_steps_on_the_first_release_and_rules_widen_with_them(tmp_path):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    known = {"id": range(20), "yob": range(1903, 2003, 5)}
    write_network(network_from_arrays(schema, {"user": known}, {}), tmp_path / "fine")
    later = {"id": range(20), "yob": [year + 2 for year in known["yob"]]}
    write_network(network_from_arrays(schema, {"user": later}, {}), tmp_path / "later")
    steps, rules = tmp_path / "steps.json", tmp_path / "rules.json"
    steps.write_text('[{"method": "generalise", "attribute": "yob", "width": 5}]')
    rules.write_text('{"yob": {"tolerance": 2}}')
    telic("anonymise", tmp_path / "fine", tmp_path / "coarse", "--steps", steps, "--keep-ids")
    releases = tmp_path / "fine", tmp_path / "coarse"
    assert "The rows of 100% match none of the second release." in telic("again", *releases)
    said = telic("again", *releases, "--steps", steps)
    assert "joins the rows of 100.0% of these people" in said
    assert "match none" not in said
    given = tmp_path / "later", tmp_path / "coarse", "--rules", rules, "--json"
    (row,) = json.loads(telic("attack", *given, "--steps", steps))["rows"]
    assert row["truth_kept"] == 1  # 1903 became 1900, and 1905 is so


def cells(said):
    """The rows of the tables in what a command printed."""
    return [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in said.splitlines()
        if "│" in line
    ]


def test_tables_say_what_json_says(world):
    risk = "risk", world / "target", "--max-distance", 1, "--worst", 3
    found, said = json.loads(telic(*risk, "--json")), telic(*risk)
    for row in found["rows"]:
        shares = (row[name] for name in ("risk", "worst_1_percent", "highest", "unique"))
        shown = ["-".join(row["links"]), str(row["distance"]), *(f"{one:.1%}" for one in shares)]
        assert shown in cells(said)
    for one in found["worst"]:
        assert [str(one["user"]), f"{one['k']:,}", f"{one['risk']:.3f}"] in cells(said)
    assert found["meaning"] in said.replace("\n", " ")
    attack = "attack", world / "auxiliary", world / "target", "--max-distance", 1
    found, said = json.loads(telic(*attack, "--json")), telic(*attack)
    assert found["extensions"] == ["in_links", "joint"]
    for row in found["rows"]:
        shown = [cell for cell in cells(said) if cell[0] == str(row["distance"])]
        assert shown[0][2:] == [
            *(f"{row[name]:.1%}" for name in ("unique_wrong", "unique", "empty")),
            f"{row['reduction_rate']:.3%}",
            f"{row['mean_candidates']:.1f}",
        ]
        assert shown[0][1].startswith(f"{row['precision']:.1%} [")
    allowing = ("--changed", 0.1, "--missing", 0.9, "--eliminate", "--truth", "none")
    found, said = json.loads(telic(*attack, *allowing, "--json")), telic(*attack, *allowing)
    assert found["extensions"] == ["in_links", "joint", "eliminate", "changed", "missing"]
    assert all(cell[1:3] == ["unknown", "unknown"] for cell in cells(said) if cell[0] in "01")


def test_tables_are_for_people(world):
    assert "Privacy risk of 120 users" in telic("risk", world / "target", "--links", "follow")
    said = telic("attack", world / "auxiliary", world / "target", "--changed", 0.1)
    assert "DeHIN" in said
    assert "up to 10 may have a strength that does not fit" in said
    assert "Field by field" in telic("advise", world / "target", "--max-risk", 0.5)


def test_what_exists_is_not_overwritten(world):
    with pytest.raises(InputError, match="exists already"):
        telic("simulate", world)


def test_releases_cannot_be_repeated_without_their_seed(world, tmp_path):
    def ids(name, *words):
        telic("anonymise", world / "target", tmp_path / name, *words)
        return read_network(tmp_path / name).ids("user")

    assert not ids("a").equals(ids("b"))
    assert ids("c", "--seed", 3).equals(ids("d", "--seed", 3))


def test_a_release_holds_no_column_that_the_schema_does_not_name(world, tmp_path):
    shutil.copytree(world / "target", tmp_path / "net")
    file = tmp_path / "net" / "nodes_user.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("email", pa.array(["x"] * len(table))), file)
    schema = json.loads((tmp_path / "net" / "schema.json").read_text())
    schema["nodes"]["film"] = {"attributes": {}}
    (tmp_path / "net" / "schema.json").write_text(json.dumps(schema))
    films = pa.table({"id": [1], "gender": [0]})  # a name that users have, too
    pq.write_table(films, tmp_path / "net" / "nodes_film.parquet")
    for name, words in (("new", []), ("kept", ["--keep-ids"])):
        out = str(tmp_path / name), "--node-type", "user"
        done = run.invoke(cli.app, ["privacy", "anonymise", str(tmp_path / "net"), *out, *words])
        assert "Left out, since the schema does not name them: email, gender\n" in done.stderr
        columns = read_network(tmp_path / name).nodes["user"].column_names
        assert columns == ["id", "gender", "yob", "tags", "tweets"]


def test_simulate_and_convert_say_as_json_what_they_wrote(world, tmp_path):
    made = json.loads(telic("simulate", tmp_path / "w", "--users", 50, "--size", 10, "--json"))
    assert made["simulated"] is True
    assert made["target"]["nodes"] == {"user": 10}
    out = tmp_path / "net.graphml"
    written = json.loads(telic("convert", world / "target", out, "--json"))
    assert written["nodes"] == {"user": 120}
    assert set(written["links"]) == {"follow", "mention", "retweet", "comment"}


@pytest.fixture(scope="module")
def cinema(tmp_path_factory):
    """Users and films, and who saw, follows and made what."""
    from telic.hin import Schema, network_from_arrays, write_network

    rng = np.random.default_rng(0)
    schema = Schema.parse(
        {
            "nodes": {
                "user": {"attributes": {"country": "exact", "age": "exact"}},
                "film": {"attributes": {"year": "exact"}},
            },
            "links": [
                {"name": "saw", "source": "user", "target": "film", "strength": "at_least"},
                {"name": "made", "source": "film", "target": "user"},
                {"name": "follow", "source": "user", "target": "user"},
            ],
        }
    )
    nodes = {
        "user": {"id": np.arange(90), "country": np.arange(90) % 3, "age": np.arange(90) // 9},
        "film": {"id": [f"tt{i}" for i in range(30)], "year": 1990 + np.arange(30) % 10},
    }
    seen, made, follow = (
        np.unique(rng.integers(0, most, size))
        for most, size in ((90 * 30, 400), (30 * 90, 40), (90 * 89, 200))
    )
    s, t = np.divmod(follow, 89)
    links = {
        "saw": (seen // 30, [f"tt{i}" for i in seen % 30], rng.integers(1, 4, len(seen))),
        "made": ([f"tt{i}" for i in made // 90], made % 90),
        "follow": (s, t + (t >= s)),
    }
    out = tmp_path_factory.mktemp("cinema") / "net"
    write_network(network_from_arrays(schema, nodes, links), out)
    return out


def test_risk_attack_and_advice_are_about_one_adversary(cinema, tmp_path):
    who = ["--node-type", "user"]
    words = set()
    risk = json.loads(telic("risk", cinema, *who, "--json"))
    words.add(risk["adversary"]["words"])
    attack = json.loads(telic("attack", cinema, cinema, *who, "--json"))
    words.add(attack["adversary"]["words"])
    advice = json.loads(telic("advise", cinema, *who, "--max-risk", 0.4, "--json"))
    words.add(advice["adversary"]["words"])
    page = tmp_path / "report.html"
    report = json.loads(telic("report", cinema, page, *who, "--max-risk", 0.4, "--json"))
    words.add(report["adversary"]["words"])
    (said,) = words
    assert said in page.read_text()
    for seen in (
        "country, age",
        "out-links and in-links of type saw",
        "made, follow",
        "Of every film: ids, year",
        "until nothing changes",
    ):
        assert seen in said
    for command in (["risk"], ["advise", "--max-risk", "0.4"]):
        shown = telic(command[0], cinema, *who, *command[1:])
        assert said in shown.replace("\n", " ")
    assert said in telic("attack", cinema, cinema, *who).replace("\n", " ")
    assert "advise NETWORK --node-type user --max-risk 0.4" in page.read_text()
    assert risk["rows"][-1]["risk"] == report["risk"] == advice["risk_before"][-1]
    assert report["advice"]["risk"] == advice["risk_after"][-1]
    assert advice["attack_precision"] <= advice["alone_after"] <= 0.4


@pytest.mark.parametrize("public", [True, False])
def test_the_attack_on_the_advised_release_keeps_the_promise(cinema, tmp_path, public):
    steps, release, key = tmp_path / "steps.json", tmp_path / "release", tmp_path / "key.parquet"
    who = ["--node-type", "user"]
    found = json.loads(telic("advise", cinema, *who, "--max-risk", 0.3, "--out", steps, "--json"))
    words = ["--public", "film"] if public else []
    made = telic(
        "anonymise", cinema, release, *who, "--steps", steps, "--key", key, *words, "--json"
    )
    ids = read_network(release).ids("film").to_pylist()
    as_they_are = found["choice"]["ids of film"] == "as they are"
    named = as_they_are and public
    told = telic("advise", cinema, *who, "--max-risk", 0.3)
    assert ("anonymise --public film" in told) == as_they_are
    assert all(i.startswith("tt") for i in ids) == named
    assert json.loads(made)["adversary"]["known_ids"] == (["film"] if named else [])
    shown = json.loads(
        telic("attack", cinema, release, *who, "--steps", steps, "--truth", key, "--json")
    )
    assert shown["adversary"] == json.loads(made)["adversary"]
    assert max(row["precision"] for row in shown["rows"]) <= found["alone_after"] <= 0.3
    risk = json.loads(telic("risk", release, *who, "--json"))
    assert risk["rows"][-1]["risk"] <= found["risk_after"][-1] <= 0.3
    # Where the ids are not what the intruder knows, attacks by structure still find people.
    assert telic("report", release, tmp_path / "page.html", *who, "--max-risk", 0.3)


def test_ids_of_other_nodes_are_replaced_unless_they_are_public(cinema, tmp_path):
    who = ["--node-type", "user"]
    telic("anonymise", cinema, tmp_path / "a", *who)
    telic("anonymise", cinema, tmp_path / "b", *who, "--public", "film")
    hidden, shown = read_network(tmp_path / "a"), read_network(tmp_path / "b")
    before = set(read_network(cinema).ids("film").to_pylist())
    assert not before & set(hidden.ids("film").to_pylist())
    assert before == set(shown.ids("film").to_pylist())
    assert hidden.schema.pseudonyms == {"user", "film"}
    assert shown.schema.pseudonyms == {"user"}
    with pytest.raises(InputError, match="public: 'club' is no other node type"):
        telic("anonymise", cinema, tmp_path / "c", *who, "--public", "club")


@pytest.mark.slow
def test_what_k_degree_reached_is_said_degree_by_degree(world, tmp_path, monkeypatch):
    # Degrees are the same after any round; each takes a second.
    monkeypatch.setattr("telic.privacy.anonymisers.fake_links.ROUNDS", 1)
    steps = tmp_path / "steps.json"
    drop = '{"method": "drop-links", "links": ["retweet", "comment"]}'
    steps.write_text(f'[{drop}, {{"method": "k-degree", "k": 5}}]')
    made = json.loads(
        telic("anonymise", world / "target", tmp_path / "a", "--steps", steps, "--json")
    )
    assert set(made["fake_links_auc"]) <= {"follow", "mention"}
    assert all(0.3 < auc <= 1 for auc in made["fake_links_auc"].values())
    classes = made["degree_classes"]
    network = read_network(tmp_path / "a")
    for name, links in network.links.items():
        assert classes[f"{name}, out"] == np.unique(links.out_degree, return_counts=True)[1].min()
        assert classes[f"{name}, out"] >= 5
    every = [
        tuple(int(links.out_degree[v]) for links in network.links.values()) for v in range(120)
    ]
    reached = min(every.count(one) for one in every)
    assert classes["out-degrees of all types together"] == reached < 5
    shown = telic("anonymise", world / "target", tmp_path / "b", "--steps", steps)
    assert "for each link type's" in shown
    assert "all degrees together" in shown


def test_what_a_table_for_people_says_beyond_its_rows(world, tmp_path, monkeypatch):
    target = world / "target"
    said = telic("risk", target, "--links", "follow", "--worst", 2)
    assert "At highest risk" in said
    assert "user (row)" in said
    said = telic("attack", world / "auxiliary", target, "--reconfigured", "--max-distance", 0)
    assert "Links removed before the attack, by type: {" in said
    for key in ("out", "out/key", "a/../out/key"):
        with pytest.raises(InputError, match="is in the release, whose readers must not have it"):
            telic("anonymise", target, tmp_path / "out", "--key", tmp_path / key)
    with pytest.raises(InputError, match="is read by this command"):
        telic("anonymise", target, tmp_path / "out", "--key", target / "key")
    monkeypatch.setattr("telic.privacy.utility.utility_loss.STRUCTURE_USERS", 50)
    said = telic("anonymise", target, tmp_path / "out", "--keep-ids")
    assert "a snowball sample of 50 of the 120 users" in said
    (tmp_path / "linked").symlink_to(tmp_path / "out")
    for folder in ("out", "linked"):
        with pytest.raises(InputError, match="is in the release"):
            telic(
                *("anonymise", target, tmp_path / "out", "--overwrite"),
                *("--key", tmp_path / folder / "key"),
            )


def test_folders_and_tables_of_other_tools_are_converted(tmp_path, monkeypatch):
    (tmp_path / "kdd").mkdir()
    monkeypatch.chdir(tmp_path / "kdd")
    Path("user_profile.txt").write_text("100\t1980\t1\t12\t3;5\n101\t-\t2\t0\t0\n")
    Path("user_sns.txt").write_text("100\t101\n")
    Path("user_action.txt").write_text("100\t101\t2\t0\t1\n101\t101\t0\t4\t0\n")
    said = telic("convert", tmp_path / "kdd", tmp_path / "net")
    assert "2 user nodes, 1 follow links, 1 mention links" in said
    (tmp_path / "users.csv").write_text("id\n1\n2\n")
    (tmp_path / "links.csv").write_text("a,b\n1,2\n")
    (tmp_path / "tables.json").write_text(
        '{"nodes": {"user": {"file": "users.csv", "key": "id"}}, "links": [{"name": "follow", '
        '"file": "links.csv", "source": ["a", "user"], "target": ["b", "user"]}]}'
    )
    said = telic("convert", tmp_path / "tables.json", tmp_path / "other")
    assert "2 user nodes, 1 follow links" in said


def test_an_advice_goes_on_from_what_was_judged(cinema, tmp_path):
    options = ("--node-type", "user", "--max-risk", 0.4, "--json")
    resume = ("--resume", tmp_path / "judged.json", "--out", tmp_path / "steps")
    plain = json.loads(telic("advise", cinema, *options))
    first = json.loads(telic("advise", cinema, *options, *resume))
    kept = (tmp_path / "judged.json").read_bytes()
    again = json.loads(telic("advise", cinema, *options, *resume[:2]))
    for found in (plain, first, again):
        del found["tried"]  # counts those of the file and of the frontier
    assert first == plain == again
    assert (tmp_path / "judged.json").read_bytes() == kept
