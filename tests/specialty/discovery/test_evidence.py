import json
from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery.declared_codes import declaration
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.evidence import (
    CODES_USERS,
    DECLARE_IT,
    HOME,
    LEVEL,
    NAMINGS,
    Evidence,
    by_overlap,
    evidence_from,
    evidence_of,
    over_represented,
    shares_shown,
)
from telic.specialty.discovery.result import Specialty, read_discovery
from telic.specialty.discovery.user_patient_units import units_of
from telic.specialty.report.tables import deviations_shown, specialties_table


@given(declared=st.integers(1, 200), data=st.data())
def test_the_interval_is_wilsons(declared, data):
    declaring = data.draw(st.integers(0, declared))
    low, high = Evidence("a", declaring, declared, 0.5, 0.1, 3.0).interval()
    p, z = declaring / declared, 1.959963984540054
    middle = (p + z**2 / (2 * declared)) / (1 + z**2 / declared)
    half = z * sqrt(p * (1 - p) / declared + z**2 / (4 * declared**2)) / (1 + z**2 / declared)
    assert low == pytest.approx(middle - half, abs=1e-9)
    assert high == pytest.approx(middle + half, abs=1e-9)


def test_nobody_who_declares_says_nothing():
    assert Evidence(None, 0, 0, 0.5, 0.1, 3.0).interval() == (0.0, 1.0)


@pytest.mark.parametrize("code", ["Urology", None])
def test_what_was_written_is_read_back(code):
    evidence = Evidence(code, 8, 10, 0.5, 0.125, 3.5)
    assert evidence_from(json.loads(json.dumps(evidence.as_json()))) == evidence


def group(taxonomy, users):
    """A clustering whose group 0 are these users, without another group."""
    return np.where(np.isin(np.arange(len(taxonomy)), users), 0, -1)


def tail(here, members, total, coded):
    """Chance that `members` of `coded` drawn at random hold at least `here` of `total`."""
    ways = sum(
        comb(total, i) * comb(coded - total, members - i)
        for i in range(here, min(total, members) + 1)
    )
    return Fraction(ways, comb(coded, members))


@given(st.data())
def test_naming_by_its_definition(data):
    # Each user's code and group; the first group is asked about.
    person = st.tuples(st.sampled_from(["a", "b", "c", ""]), st.sampled_from([-1, 0, 0, 1, 2]))
    people = data.draw(st.lists(person, min_size=8, max_size=40))
    declared, groups = (list(one) for one in zip(*people, strict=True))
    own = [code for code, group in people if code and not group]
    coded = [code for code in declared if code]
    f1, speaks = {}, {}
    for code in set(own):
        here, total = own.count(code), coded.count(code)
        most = max(people.count((code, group)) for group in (0, 1, 2))
        chance = tail(here, len(own), total, len(coded)) * len(set(own))
        if total == len(coded):  # no draw would differ
            chance = 0 if 2 * here >= total else 1
        f1[code] = 2 * here / (total + groups.count(0))
        if chance <= Fraction(str(LEVEL)) and here >= max(CODES_USERS * total, HOME * most, 2):
            speaks[code] = here
    code, named = over_represented(np.array(declared), np.array(groups), 0)
    if not own:
        assert (code, named) == (None, False)
        return
    assert named == (bool(speaks) and sum(speaks.values()) >= DECLARE_IT * len(own))
    assert f1[code] == max(f1[one] for one in (speaks if named else f1))


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=4, max_size=20), st.data())
def test_naming_by_overlap_by_its_definition(declared, data):
    taxonomy = np.array(declared)
    everyone = range(len(declared))
    users = data.draw(st.lists(st.sampled_from(everyone), min_size=1, unique=True))
    view = data.draw(st.none() | st.just(users + [u for u in everyone if u % 2 and u not in users]))
    own = [declared[u] for u in users if declared[u]]
    seen = [declared[u] for u in (everyone if view is None else view)]
    scores = {c: Fraction(2 * own.count(c), seen.count(c) + len(own)) for c in sorted(set(own))}
    code, named = by_overlap(
        taxonomy, group(taxonomy, users), 0, None if view is None else np.array(view)
    )
    if not own:
        assert (code, named) == (None, False)
        return
    assert scores[code] == max(scores.values())
    here = own.count(code)
    assert named == (2 * here >= seen.count(code) and 5 * here >= len(own))


@pytest.mark.parametrize(
    ("members", "others", "named"),
    [
        (["a"] * 6, ["b"] * 20, True),
        (["a"], ["b"] * 20, False),  # one is no group, rare as the code is
        (["a"] * 2, ["a"] + ["b"] * 5, False),  # 2 of 3 by chance: 3/28
        (["a"] * 2 + ["b"], ["c"] * 9, False),  # 1/22, but two codes were tried
        (["a"] * 2, ["c"] * 9, True),
        (["a"] * 3, ["b"] * 3, True),  # 1/20, which is the level
        (["a"] * 6, ["a"] * 18 + ["b"] * 80, True),
        (["a"] * 6, ["a"] * 19 + ["b"] * 80, False),  # over-represented, but 6 of 25 users
        (["a"] * 5 + ["c"] * 10, ["b"] * 80 + ["c"] * 41, True),
        (["a"] * 5 + ["c"] * 11, ["b"] * 80 + ["c"] * 44, False),  # 5 of 16 members
    ],
)
def test_each_condition_of_naming_decides(members, others, named):
    taxonomy = np.array(members + others)
    cluster = group(taxonomy, np.arange(len(members)))
    assert over_represented(taxonomy, cluster, 0)[1] == named


@pytest.mark.parametrize(
    ("here", "elsewhere", "named"), [(6, 6, True), (6, 9, True), (6, 10, False), (6, 0, True)]
)
def test_a_code_names_the_group_where_most_of_its_users_are(here, elsewhere, named):
    taxonomy = np.array(["a"] * (here + elsewhere) + ["b"] * 60)
    cluster = np.repeat([0, 1, -1], [here, elsewhere, 60])
    assert over_represented(taxonomy, cluster, 0)[1] == named
    # Users of the code who belong to no group do not take its name away.
    assert over_represented(taxonomy, np.where(cluster == 1, -1, cluster), 0)[1]
    if elsewhere:
        assert over_represented(taxonomy, cluster, 1) == ("a", True)


def test_where_all_declare_one_code_shares_decide():
    """No draw of declared users would differ, so that no code could ever name its users' group."""
    taxonomy = np.array(["T1"] * 20 + [""] * 45)
    cluster = np.where(np.arange(65) < 20, 0, 1)
    assert over_represented(taxonomy, cluster, 0) == ("T1", True)
    assert over_represented(taxonomy, np.where(np.arange(65) < 9, 0, 1), 0) == ("T1", False)
    others = np.append(taxonomy, ["T2"] * 3)
    view, groups = np.arange(65), np.append(cluster, [-1] * 3)
    assert over_represented(others, groups, 0, view) == ("T1", True)


def test_several_codes_name_a_group_together():
    codes = ["a"] * 5 + ["b"] * 5 + ["c"] * 16
    taxonomy = np.array([*codes, *["c"] * 120, *["d"] * 60])
    cluster = group(taxonomy, np.arange(26))
    # 5 of 26 are too few for one code; 10 of 26 are enough for two. The other code is everywhere.
    assert over_represented(taxonomy, cluster, 0) == ("a", True)
    taxonomy[5:10] = "c"
    assert over_represented(taxonomy, cluster, 0)[1] is False


@pytest.mark.parametrize("naming", NAMINGS.values())
def test_where_no_member_declares_a_code_none_names_them(naming):
    assert naming(np.array(["a", "a", "", ""]), np.array([-1, -1, 0, 0]), 0) == (None, False)


def test_a_code_names_a_cluster_by_its_users_in_view():
    # Ten declare the code; six never appear in the view, three of the other four are together.
    taxonomy, users = np.array(["Urology"] * 10 + [""] * 5), [0, 1, 2, 10]
    cluster = group(taxonomy, users)
    assert by_overlap(taxonomy, cluster, 0) == ("Urology", False)
    assert by_overlap(taxonomy, cluster, 0, np.array([0, 1, 2, 3, 10, 11])) == ("Urology", True)
    # Three of thirteen are too few; of the twelve in view they are enough beside all others.
    taxonomy = np.array(["Urology"] * 13 + ["Surgery"] * 40)
    cluster = group(taxonomy, users[:3])
    assert over_represented(taxonomy, cluster, 0) == ("Urology", False)
    view = np.delete(np.arange(53), 12)
    assert over_represented(taxonomy, cluster, 0, view) == ("Urology", True)
    assert over_represented(taxonomy, cluster, 0, np.arange(12)) == ("Urology", False)


@pytest.fixture(scope="module")
def found():
    hospital = simulate_family("problem lists", 6)
    return hospital, discover(hospital.log, restarts=1)


def test_every_specialty_says_what_its_members_declare(tmp_path, found):
    hospital, discovery = found
    log = hospital.log
    assert len(discovery.specialties) > 5
    for one in discovery.specialties:
        own = log.taxonomy[one.users]
        shown = one.evidence
        assert shown.declared == (own != "").sum()
        assert shown.declaring == (own == shown.code).sum()
        if one.listed_code is None:
            counts = np.unique(own[own != ""], return_counts=True)[1]
            assert shown.declaring == counts.max()
        else:
            assert shown.code == one.listed_code
        assert shown.share > shown.by_chance
        assert shown.deviations > 3
    content = discovery.as_json(log)
    first = content["specialties"][0]["evidence"]
    assert {"declaring", "declared", "declaring_95", "share", "share_by_chance"} <= first.keys()
    file = tmp_path / "found.json"
    file.write_text(json.dumps(content))
    again = read_discovery(file, log)
    assert again.as_json(log)["specialties"] == content["specialties"]
    table = specialties_table(log, discovery)
    assert table.rows[0][3] == declaration(log, discovery.specialties[0])


def test_the_share_is_what_the_simulator_gave_and_nothing_for_random_groups(found):
    hospital, _ = found
    units, n = units_of(hospital.log), hospital.plan.practices
    rng = np.random.default_rng(0)
    share, by_chance = shares_shown(units, hospital.practice, n, rng)
    # Specialists do `focus` of their work in their practice, beside what chance gives.
    assert abs(share.mean() - hospital.plan.focus) < 0.15
    assert by_chance.shape[1] == n
    assert (by_chance.max(axis=0) < share).all()
    mixed, _ = shares_shown(units, rng.permutation(hospital.practice), n, rng)
    assert mixed.mean() < 0.15
    assert mixed.mean() < share.mean() / 2


def test_deviations_are_those_of_the_deals():
    taxonomy = np.array(["a", "a", "b", ""])
    shown = evidence_of(taxonomy, np.arange(4), None, 0.5, np.array([0.1, 0.2, 0.3]))
    assert (shown.code, shown.declaring, shown.declared) == ("a", 2, 3)
    assert shown.deviations == pytest.approx((0.5 - 0.2) / 0.1)


def test_what_members_declare_is_withheld_where_the_table_withholds_it():
    class Log:
        def __init__(self, *sizes):
            self.taxonomy = np.repeat([name for name, _ in sizes], [n for _, n in sizes])

    def said(log, code):
        users = np.arange(len(log.taxonomy))
        shown = evidence_of(log.taxonomy, users, code, 0.5, np.array([0.1, 0.2]))
        return declaration(log, Specialty("x", code, code, users, [], None, None, None, shown))

    assert said(Log(("Urology", 29), ("", 20)), "Urology").startswith(
        "29 of 29 declared members declare Urology (95 %: 88% to 100%)"
    )
    assert said(Log(("Urology", 29), ("", 7)), "Urology") == (
        "Withheld: how many declared members declare Urology"
    )
    assert said(Log(("Urology", 4), ("Surgery", 20), ("", 30)), "Urology") == (
        "<11 declared members declare Urology"
    )
    assert said(Log(("", 30)), None) == "No member declares a code"


def test_what_members_declare_is_counted_in_the_log_that_is_shown():
    class Log:
        taxonomy = np.repeat(["Urology", "Surgery", ""], [40, 20, 20])

    then = evidence_of(Log.taxonomy, np.arange(25), "Urology", 0.5, np.array([0.1, 0.2]))
    one = Specialty("x", "Urology", "Urology", np.arange(80), [], None, None, None, then)
    assert declaration(Log, one) == ("40 of 60 declared members declare Urology (95 %: 54% to 77%)")


@pytest.mark.parametrize(("deviations", "text"), [(3.4, "3"), (100.0, "100"), (17e6, "> 100")])
def test_a_spread_of_almost_nothing_gives_no_number_of_deviations(deviations, text):
    assert deviations_shown(deviations) == text
