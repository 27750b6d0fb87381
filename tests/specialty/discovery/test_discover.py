import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.reference.small_hospital import simulate_small

from telic.errors import InputError
from telic.report import Report
from telic.simulate.hospital import Difficulty, simulate_hospital
from telic.simulate.hospital_families import simulate_family
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.alarms.before_and_after import effect, known_snooping, together
from telic.specialty.alarms.diagnosis_lifts import COVERED, SHRINK
from telic.specialty.alarms.explained_alarms import judge, lines
from telic.specialty.discovery.by_seeds import links_of, path_of
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import lifts, read_discovery
from telic.specialty.log.log_files import read_log
from telic.specialty.pseudonyms import Pseudonyms
from telic.specialty.recognition.recognise import present_core, recognise, with_specialty
from telic.specialty.report.page import specialty_report
from telic.specialty.small_cells import shown


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital") / "log"
    simulate_small(folder, scale=0.022, difficulty=Difficulty(snooping=8e-3))
    truth = pq.read_table(folder / "truth_users.parquet")
    log = read_log(folder)
    return log, np.array(truth["practice"].to_pylist()), known_snooping(folder)


def with_fine_view(log):
    """The log with as many fine-grained accesses as the published size has.

    They name an encounter's alphabetically first diagnosis, which is the reason only sometimes.
    """
    encounter = log.diagnosis[log.access_encounter]
    first = np.minimum(encounter.indptr[:-1], encounter.nnz - 1)
    reason = encounter.indices[first]
    shape = (len(log.users), len(log.codes))
    fine = sparse.coo_array((np.ones(len(reason), int), (log.access_user, reason)), shape)
    return replace(log, fine=sparse.csr_array(fine), fine_patient=log.user_patient())


@pytest.fixture(scope="module")
def found(hospital):
    return discover(hospital[0], method="lda", n_topics=20, restarts=2, threads=2)


def test_a_hidden_specialty_is_found_and_has_no_listed_code(hospital, found):
    _, practice, _ = hospital
    hidden = set(np.flatnonzero(practice == "Breast Cancer"))
    best = max(found.specialties, key=lambda one: len(hidden & set(one.users)))
    overlap = len(hidden & set(best.users))
    assert 2 * overlap / (len(hidden) + len(best.users)) > 0.75
    assert best.listed_code is None
    assert "breast" in best.name.lower()
    assert best.stability > 0.7
    urology = [one for one in found.specialties if one.listed_code == "Urology"]
    assert len(urology) == 1
    assert any(code == "Calculus of kidney" for code, _ in urology[0].diagnoses)


def test_json_keeps_its_contract_and_reads_back(tmp_path, hospital, found):
    log = hospital[0]
    content = found.as_json(log)
    for one in content["specialties"]:
        assert {"name", "listed_code", "users", "diagnoses", "stability"} <= one.keys()
        assert set(one["users"]) <= set(log.users)
        lift = [d["lift"] for d in one["diagnoses"]]
        assert lift == sorted(lift, reverse=True)
    file = tmp_path / "found.json"
    file.write_text(json.dumps(content))
    np.testing.assert_array_equal(read_discovery(file, log).cluster, found.cluster)
    documented = ("name", "listed_code", "users", "diagnoses", "stability")
    least = [{name: one[name] for name in documented} for one in content["specialties"]]
    for one in least:
        one["diagnoses"] = [{"code": d["code"], "lift": d["lift"]} for d in one["diagnoses"]]
    file.write_text(json.dumps({"specialties": least}))
    again = read_discovery(file, log)
    np.testing.assert_array_equal(again.cluster, found.cluster)
    assert again.as_json(log)["specialties"][0]["stability_months"] is None
    for damaged in ("{}", "[]", "null", '{"specialties": [{"name": 1}]}', "\x00"):
        file.write_text(damaged)
        with pytest.raises(InputError, match=r"cannot be read.*discover LOG --out FOLDER"):
            read_discovery(file, log)
    with pytest.raises(InputError, match=r"no such file or folder\. .*discover LOG --out FOLDER"):
        read_discovery(tmp_path / "nothere", log)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: {"users": "ann"}, "must be a list"),
        (lambda one: {"users": []}, "at least one user"),
        (lambda one: {"users": one["users"] * 2}, "a user twice"),
        (lambda one: {"users": [*one["users"], "nobody"]}, "users that the log does not have"),
        (lambda one: {"stability": "high"}, "cannot be read"),
        (lambda one: {"diagnoses": [{"code": "a", "lift": "high"}]}, "cannot be read"),
    ],
)
def test_a_damaged_specialty_is_refused(tmp_path, hospital, found, change, message):
    file, content = tmp_path / "found.json", found.as_json(hospital[0])
    first = content["specialties"][0]
    file.write_text(json.dumps({**content, "specialties": [{**first, **change(first)}]}))
    with pytest.raises(InputError, match=message):
        read_discovery(file, hospital[0])


def test_a_user_of_two_specialties_or_a_strange_number_of_topics_is_refused(
    tmp_path, hospital, found
):
    file, content = tmp_path / "found.json", found.as_json(hospital[0])
    file.write_text(json.dumps({**content, "specialties": content["specialties"][:1] * 2}))
    with pytest.raises(InputError, match="in two specialties"):
        read_discovery(file, hospital[0])
    file.write_text(json.dumps({**content, "details": {"n_topics": "many"}}))
    with pytest.raises(InputError, match="cannot be read"):
        read_discovery(file, hospital[0])


def test_a_discovery_is_read_for_its_own_log_only(tmp_path, hospital, found):
    log = hospital[0]
    file = tmp_path / "found.json"
    file.write_text(json.dumps(found.as_json(log)))
    corrected = replace(log, taxonomy=np.roll(log.taxonomy, 1))
    assert len(read_discovery(file, corrected).specialties) == len(found.specialties)
    shorter = replace(log, access_user=log.access_user[:-1])
    with pytest.raises(InputError, match=f"was found in a log of {len(log.users)} users"):
        read_discovery(file, shorter)
    # As many of everything, but other accesses.
    moved = replace(log, access_encounter=np.roll(log.access_encounter, 1))
    with pytest.raises(InputError, match="and other records"):
        read_discovery(file, moved)


def test_the_default_finds_both_hidden_specialties(hospital):
    log, practice, _ = hospital
    found = discover(log, restarts=1)
    assert found.method == "residuals"
    for name in HIDDEN_SIZES:
        real = set(np.flatnonzero(practice == name))
        assert (
            max(
                2 * len(real & set(one.users)) / (len(real) + len(one.users))
                for one in found.specialties
                if one.listed_code is None
            )
            > 0.7
        )
    assert sum(one.listed_code == "Urology" for one in found.specialties) == 1


@pytest.mark.slow
def test_nothing_is_found_where_nobody_specialises(tmp_path):
    simulate_hospital(tmp_path / "flat", scale=0.05, difficulty=Difficulty(focus=0.0))
    assert discover(read_log(tmp_path / "flat"), restarts=1).specialties == []
    flat = discover(read_log(tmp_path / "flat"), method="lda", n_topics=30, restarts=1)
    assert sum(len(one.users) for one in flat.specialties) < 0.01 * 3269


@pytest.mark.slow
def test_pathselclus_finds_a_hidden_specialty_on_the_fine_view(tmp_path):
    simulate_hospital(tmp_path / "log", scale=0.03, difficulty=Difficulty(snooping=2e-3))
    log = with_fine_view(read_log(tmp_path / "log"))
    practice = np.array(pq.read_table(tmp_path / "log" / "truth_users.parquet")["practice"])
    found = discover(log, method="pathselclus", restarts=2, threads=2)
    assert found.details["view"] == "fine"
    assert found.details["path_contrast"]["U-P-D"] > 2
    seen = np.asarray(log.fine.sum(axis=1)).ravel() > 0
    hidden = set(np.flatnonzero((practice == "Breast Cancer") & seen))
    best = max(found.specialties, key=lambda one: len(hidden & set(one.users)))
    assert 2 * len(hidden & set(best.users)) / (len(hidden) + len(best.users)) > 0.6
    assert best.listed_code is None
    assert best.stability_sizes > 0.4


def test_full_paths_are_user_by_user(hospital):
    log = with_fine_view(hospital[0])
    patient, diagnosis = links_of(log, "fine")
    full = path_of("U-P-D-P-U", patient, diagnosis)
    np.testing.assert_array_equal(
        full[[3]].toarray()[0], (diagnosis @ diagnosis[[3]].T).toarray()[:, 0]
    )
    assert path_of("U-P-U", patient, diagnosis).shape == full.shape
    assert path_of("U-P", patient, diagnosis).shape == patient.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "kmeans", "n_topics": None}, "method is 'kmeans'"),
        ({"document": "page"}, "document is 'page'"),
        ({"method": "pathselclus", "n_topics": None, "view": "x"}, "view is 'x'"),
        ({"method": "pathselclus", "n_topics": None, "paths": ["U-X"]}, "paths names 'U-X'"),
        ({"method": "pathselclus", "n_topics": None, "free": 0}, "free is 0"),
        ({"restarts": 0}, "restarts is 0"),
        ({"method": "residuals", "n_topics": None, "threads": 0}, "threads is 0"),
        ({"n_topics": 0}, "n_topics is 0"),
        ({"n_topics": 577}, "n_topics is 577, expected at most 576"),
        ({"view": "fine"}, "view is 'fine', but method 'lda'"),
        ({"method": "residuals", "n_topics": 3}, "only method 'lda' has topics"),
        ({"naming": "guess"}, "naming is 'guess'"),
        ({"n_topics": "many"}, "n_topics is 'many'"),
        ({"method": "pathselclus", "n_topics": 3}, "only method 'lda' has topics"),
        (
            {"method": "pathselclus", "n_topics": None, "document": "user"},
            "only method 'lda' has documents",
        ),
    ],
)
def test_bad_options_are_named(hospital, options, message):
    with pytest.raises(InputError, match=message):
        discover(hospital[0], **({"method": "lda", "n_topics": 2} | options))


def test_lift_by_hand():
    own, overall = np.array([90, 500, 20, 2]), np.array([100, 800, 100, 9])
    found = dict(lifts(own, overall, np.array([11, 10, 30, 30])))
    base = 100 / 1009
    assert found[0] == pytest.approx((90 + 50 * base) / (612 + 50) / base)
    assert 1 not in found  # fewer than 11 patients, however many accesses
    assert 2 not in found  # less often than everybody
    assert 3 not in found  # less than 1 % of the accesses


def test_patients_of_a_diagnosis_are_counted_once(hospital):
    log = hospital[0]
    users = np.arange(40)
    opened = np.unique(log.access_encounter[np.isin(log.access_user, users)])
    patients = [set() for _ in log.codes]
    for encounter in opened:
        for code in log.diagnosis[[encounter]].indices:
            patients[code].add(log.encounter_patient[encounter])
    np.testing.assert_array_equal(log.diagnosed_patients(users), [len(one) for one in patients])


def test_no_diagnosis_of_few_patients_is_shown(hospital, found):
    log = hospital[0]
    for one in found.specialties:
        patients = log.diagnosed_patients(one.users)
        assert all(patients[np.searchsorted(log.codes, code)] >= 11 for code, _ in one.diagnoses)


def test_a_tiny_topic_run_measures_no_stability(hospital):
    found = discover(hospital[0], method="lda", n_topics=2, restarts=1)
    assert all(one.stability is None for one in found.specialties)


def test_alarms_follow_their_definition(hospital, found):
    log = hospital[0]
    alerts = judge(log, found)
    counts = log.user_diagnosis().toarray()
    base = counts.sum(axis=0) / counts.sum()
    base[base == 0] = 1.0  # diagnoses that nobody saw
    drawn = np.random.default_rng(0).integers(0, len(log.access_user), 40)
    practising = np.flatnonzero(found.cluster[log.access_user] >= 0)
    for a in [*drawn, *practising[:: len(practising) // 15]]:
        u = log.access_user[a]
        same = (log.taxonomy == log.taxonomy[u]) & (log.taxonomy[u] != "")
        same[u] = False
        mine = counts[same].sum(axis=0)
        lift = (mine + SHRINK * base) / (mine.sum() + SHRINK) / base
        codes = log.diagnosis[[log.access_encounter[a]]].indices
        assert alerts.declared[a] == pytest.approx(lift[codes].max())
        k = found.cluster[u]
        assert alerts.specialty[a] == k
        if k >= 0:
            colleagues = np.setdiff1d(found.specialties[k].users, [u])
            mine = counts[colleagues].sum(axis=0)
            lift = (mine + SHRINK * base) / (mine.sum() + SHRINK) / base
        assert alerts.practised[a] == pytest.approx(lift[codes].max())
        assert lift[alerts.reason[a]] == pytest.approx(lift[codes].max())
    assert not (alerts.explained & ~alerts.raised).any()
    assert (alerts.declared[alerts.raised] <= COVERED).all()


def test_de_facto_specialties_explain_alarms_and_keep_snooping_caught(hospital, found):
    log, _, snooping = hospital
    alerts = judge(log, found)
    counted = effect(log, found, alerts, snooping)
    assert counted.unlisted_explained > 0.6 * counted.unlisted_alerts
    both = together(counted.snooping)
    assert both.known >= both.without - 0.02 * both.planted
    assert set(counted.snooping) == {"random patient", "random topic"}
    assert counted.open + counted.explained == counted.alerts == len(alerts.queue())
    undeclared = log.taxonomy[log.access_user] == ""
    assert counted.undeclared_alerts == undeclared.sum() > 0  # nothing is covered for them


def test_every_line_traces_to_its_row_and_hides_names(hospital, found):
    log = hospital[0]
    alerts = judge(log, found)
    first = alerts.queue()[:1]
    (line,) = lines(log, found, alerts, first, pseudonyms=Pseudonyms())
    (open_line,) = lines(log, found, alerts, first, pseudonyms=None)
    a = int(np.flatnonzero(log.access_row == line["row"])[0])
    assert open_line["user"] == log.users[log.access_user[a]]
    assert line["user"] != open_line["user"]
    assert line["at"] == str(log.access_at[a].astype("datetime64[us]")) + "Z"
    assert line["declared"] == (log.taxonomy[log.access_user[a]] or None)
    codes = log.codes[log.diagnosis[[log.access_encounter[a]]].indices]
    assert line["diagnoses"] == [log.label(str(code)) for code in codes]
    assert line["lift"] == pytest.approx(max(alerts.declared[a], alerts.practised[a]), abs=5e-4)
    assert shown(10) == "<11"


def test_the_report_is_whole_and_pseudonymous(hospital, found):
    log, _, snooping = hospital
    cluster = np.where(found.cluster < 10, found.cluster, -1)
    found = replace(found, specialties=found.specialties[:10], cluster=cluster)  # each is drawn
    alerts = judge(log, found)
    k = next(i for i, one in enumerate(found.specialties) if one.listed_code is None)
    labels = with_specialty(log.taxonomy, found.specialties[k].users, "de facto")
    recognition = recognise(log.user_diagnosis(), labels, method="Naive")
    assert recognition.of("de facto")[2] > 0.5
    assert recognition.mean_of(present_core(labels))[2] > 0.5
    page = specialty_report(
        log,
        found,
        alerts,
        effect(log, found, alerts, snooping),
        recognitions={k: recognition},
        pseudonyms=Pseudonyms(),
        queue_lines=5,
    ).html()
    assert "Simulated" in page
    assert found.specialties[k].name in page
    assert not set(log.users) & set(re.findall(">([^<>]*)<", page))
    assert page.count('class="page"') >= len(found.specialties)  # each starts its own page
    for i, title in enumerate(re.findall(r"<h2[^>]*>(.*?)</h2>", page), start=1):
        assert f'<li><a href="#s{i}">{title}</a>' in page
    assert "F1 in shuffled data" in page


def test_explained_alarms_stand_after_the_open_ones_with_their_reason(hospital, found, monkeypatch):
    log = hospital[0]
    alerts = judge(log, found)
    assert alerts.queue("open").tolist() + alerts.queue("explained").tolist() == (
        alerts.queue().tolist()
    )
    best = np.maximum(alerts.declared, alerts.practised)
    for status in ("open", "explained"):  # the least covered first, equals in the log's order
        queue = alerts.queue(status)
        assert queue.tolist() == sorted(queue, key=lambda a: (best[a], a))
    without = alerts.queue_without()
    assert without.tolist() == sorted(without, key=lambda a: (alerts.declared[a], a))
    assert set(without) == set(np.flatnonzero(alerts.raised))
    with pytest.raises(InputError, match="status is 'closed'"):
        alerts.queue("closed")
    monkeypatch.setattr(Report, "figure", lambda *given: None)  # seconds, for what is not asked
    page = specialty_report(
        log, found, alerts, effect(log, found, alerts), recognitions={}, pseudonyms=None,
        queue_lines=4, explained_lines=2,
    ).html()  # fmt: skip
    open_part, explained_part = page.split("Open alarms</h2>")[1].split("Explained alarms</h2>")
    assert open_part.count("<tr>") == explained_part.count("<tr>") == 5
    rows = [int(row) for row in re.findall(r"<tr><td>(\d+)</td>", explained_part)]
    place = {row: a for a, row in enumerate(log.access_row)}
    assert all(alerts.explained[place[row]] for row in rows)
    causes = {(log.access_user[place[r]], alerts.reason[place[r]]) for r in rows}
    assert len(causes) == len(rows)
    for row in rows:
        assert log.label(str(log.codes[alerts.reason[place[row]]])) in explained_part


def test_a_small_specialty_lists_no_pseudonyms(hospital, found):
    log = hospital[0]
    alerts = judge(log, found)
    k = next(i for i, one in enumerate(found.specialties) if one.listed_code is None)
    small = replace(found.specialties[k], users=found.specialties[k].users[:10])
    names = Pseudonyms()
    page = specialty_report(
        log, replace(found, specialties=[small]), alerts, effect(log, found, alerts),
        recognitions={}, pseudonyms=names, queue_lines=0,
    ).html()  # fmt: skip
    assert "Its users are not listed" in page
    assert "The other users have no concentrated practice" in page
    assert not any(names(str(log.users[u])) in page for u in small.users)
    own = np.flatnonzero(np.isin(log.access_user, small.users) & (alerts.specialty == k))[:1]
    specialties = [*found.specialties[:k], small, *found.specialties[k + 1 :]]
    described = replace(found, specialties=specialties)
    (line,) = lines(log, described, alerts, own, pseudonyms=names)
    assert line["practised"] == "a specialty of fewer than 11 users"


@pytest.mark.parametrize("options", [{}, {"method": "lda", "n_topics": 8, "assign": "argmax"}])
def test_users_without_accesses_change_nothing(options):
    log = simulate_family("problem lists", 2).log
    idle = np.array([f"~{number:04d}" for number in range(2000)])
    found = discover(log, restarts=1, **options)
    assert found.specialties
    for codes in (log.taxonomy[log.taxonomy != ""], np.array(["Porter"])):
        more = replace(
            log,
            users=np.concatenate([log.users, idle]),
            taxonomy=np.concatenate([log.taxonomy, np.resize(codes, len(idle))]),
        )
        again = discover(more, restarts=1, **options)
        np.testing.assert_array_equal(again.cluster[: len(log.users)], found.cluster)
        assert (again.cluster[len(log.users) :] == -1).all()
        assert [one.as_json() for one in again.specialties] == [
            one.as_json() for one in found.specialties
        ]


def test_a_view_in_which_nobody_has_a_diagnosis_is_named(hospital):
    log = with_fine_view(hospital[0])
    nothing = [sparse.csr_array(each.shape, dtype=int) for each in (log.fine, log.fine_patient)]
    empty = replace(log, fine=nothing[0], fine_patient=nothing[1])
    with pytest.raises(InputError, match="nobody has a diagnosis in the fine view"):
        discover(empty, method="pathselclus", restarts=1)
