"""What k users must have submitted before others see it: people and networks, by definition."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telic.completion import Completer, fit_files
from telic.completion.evaluation.compare import _where
from telic.completion.fit import tenants
from telic.completion.fit.lost_below_k_users import KEPT_BACK, KS, kept, said_by_k
from telic.completion.fit.merged_phrases import FEWEST, Gathered
from telic.completion.fit.sources import joined_logs, read_sources
from telic.completion.fit.tenants import GatheredByTenant, _rows_of, name_in
from telic.completion.learning.relevance import Submissions
from telic.data.compositions import read_compositions
from telic.data.queries import QueryLog, read_queries
from telic.errors import InputError
from telic.scale import Local
from telic.serve.callers.user_ids import Caller

QUERIES = 3
EVENT = st.tuples(
    st.integers(0, QUERIES - 1),
    st.integers(-2, 6),  # -1: nobody is named; -2: in a catalogue
    st.integers(-1, 4),  # -1: somewhere
    st.integers(0, 5),
)


def support(events, query):
    """How many people in how many places have submitted it for sure; enough if a catalogue has."""
    own = [(user, network) for q, user, network, count in events if q == query and count]
    if any(user == -2 for user, _ in own):
        return np.inf
    named = [(user, network) for user, network in own if user >= 0]
    people = {user for user, _ in named}
    places = {network if network >= 0 else ("of", user) for user, network in named}
    return max(min(len(people), len(places)), len(own) > 0)


def gathered(events, min_users):
    query, user, network, count = np.array(events, np.int64).reshape(-1, 4).T
    columns = query, np.maximum(user, -1), count.astype(float), user == -2
    parts = [(np.arange(len(events)), *columns)]
    return Submissions.gathered(parts, min_users=min_users, network=network)


@given(st.lists(EVENT, min_size=1, max_size=40), st.integers(1, 4))
@example([(0, 2, -1, 1), (0, 0, 4, 1)], 2)  # in a place that is not known, and in the last known
def test_a_query_opens_with_the_submission_that_gives_it_enough_people_and_places(events, k):
    opens = gathered(events, k).opens
    for e, (query, *_) in enumerate(events):
        before, now = support(events[:e], query), support(events[: e + 1], query)
        assert opens[e] == (before < k <= now)


@given(st.lists(EVENT, min_size=1, max_size=40), st.sets(st.integers(0, QUERIES - 1)))
def test_what_is_lost_is_what_too_few_have_submitted(events, listed):
    submissions = gathered(events, 1)
    vouched = np.isin(np.arange(QUERIES), list(listed))
    said = said_by_k(kept(submissions, vouched))
    always = listed | {q for q, user, _, count in events if user == -2 and count}
    own = [e for e in events if e[1] != -2]
    everything = sum(e[3] for e in own)
    for k in KS:
        left = {q for q in range(QUERIES) if q in always or support(own, q) >= k}
        share = sum(e[3] for e in own if e[0] in left) / max(everything, 1)
        words = f"{len(left)} phrases, {share:.1%} of the submissions in logs that name users"
        assert said[str(k)].partition(";")[0] == words


def log(rows, path):
    header = "query,at,user,tenant,network\n"
    path.write_text(header + "".join(f"{q},2026-01-01,{u},{t},{n}\n" for q, u, t, n in rows))
    return path


@pytest.fixture
def flooded(tmp_path):
    """A phrase that nine ids of one network push, and one that three people submitted."""
    rows = [("buy pills", f"x{i}", "shop", "198.51.100.0") for i in range(9)]
    rows += [("tea", f"u{i}", "shop", f"192.0.2.{i}") for i in range(3)]
    return log(rows, tmp_path / "log.csv")


def test_many_ids_from_one_network_are_one(flooded, tmp_path):
    assert [s.text for s in fit_files(flooded).suggest("")] == ["tea"]
    named_nowhere = tmp_path / "without.csv"
    lines = flooded.read_text().splitlines()
    named_nowhere.write_text("\n".join(line.rpartition(",")[0] for line in lines))
    assert {s.text for s in fit_files(named_nowhere).suggest("")} == {"tea", "buy pills"}


def test_networks_count_beside_a_composition_log_too(flooded, make_table, tmp_path):
    composed = tmp_path / "composed.parquet"
    pq.write_table(make_table(0, phrases=["green", "grey"]), composed)
    with pytest.raises(InputError, match="leave the column 'tenant' out"):
        fit_files(composed, flooded, min_compositions=4)
    rows = [line.split(",") for line in flooded.read_text().splitlines()]
    flooded.write_text("\n".join(",".join([*row[:3], row[4]]) for row in rows))
    completer = fit_files(composed, flooded, min_compositions=4)
    assert {"tea"} == {s.text for p in ("t", "b") for s in completer.suggest(p)}
    assert completer.found[KEPT_BACK]["1"].startswith("4 phrases")


def test_in_pieces_networks_are_refused_rather_than_left_out(flooded):
    with pytest.raises(InputError, match="Leave out --memory"):
        fit_files(flooded, executor=Local())


@pytest.fixture
def two_tenants(tmp_path):
    """What one tenant's users submit, what both do, and what neither does often enough."""
    rows = [
        ("tea secret", "s1", "shop"),
        ("tea secret", "s2", "shop"),
        ("tea secret", "c1", "club"),
    ]
    rows += [("tea for two", f"s{i}", "shop") for i in range(3)]
    rows += [("teapot", f"c{i}", "club") for i in range(4)]
    rows += [("tea", f"{t[0]}{i}", t) for t in ("shop", "club") for i in range(3)]
    rows += [("teal", f"n{i}", "") for i in range(3)]  # of no tenant: everybody's
    path = tmp_path / "log.csv"
    lines = [f"{q},2026-01-01,{u},{t}\n" for q, u, t in rows]
    path.write_text("query,at,user,tenant\n" + "".join(lines))
    return path


def suggested(completer, tenant, user=None):
    composition = completer.compose(completer.user(user), where={"tenant": tenant})
    return {one.text for one in composition.suggest("te", at=0.0)}


@pytest.mark.parametrize("kept", [False, True])
def test_what_a_tenants_users_submit_is_that_tenants_own(two_tenants, tmp_path, kept):
    completer = fit_files(two_tenants)
    if kept:
        completer.save(tmp_path / "box")
        completer = Completer.load(tmp_path / "box")
    assert suggested(completer, "shop") == {"tea", "teal", "tea for two"}
    assert suggested(completer, "club") == {"tea", "teal", "teapot"}
    assert "tea" in suggested(completer, "club", "c0")  # also where it is a user's own
    assert "tea secret" not in {one.text for one in completer.suggest("te")}
    said = completer.found[KEPT_BACK]
    assert said["3"].startswith("5 phrases")  # tea is one of each
    assert said["by tenant"]["club"]["3"].startswith("2 phrases")


def test_popularity_is_each_tenants_own(two_tenants):
    completer = fit_files(two_tenants)
    contexts, index = completer.contexts, completer.index
    weights = {}
    for tenant in ("shop", "club"):
        every = np.arange(len(index))
        for i in np.flatnonzero(contexts.allowed(contexts.wanted({"tenant": tenant}), every)):
            weights[index.phrase(int(i)), tenant] = index.weights_of(i)
    assert weights["teapot", "club"] > weights["tea", "club"] == weights["tea", "shop"]


def test_what_a_list_has_is_limited_but_not_what_users_submit(two_tenants, tmp_path):
    (tmp_path / "list.csv").write_text("phrase,weight,tenant\ntea secret,1,\nteapot,1,shop\n")
    completer = fit_files(tmp_path / "list.csv", two_tenants)
    assert suggested(completer, "shop") == {"tea", "teal", "tea for two", "tea secret", "teapot"}
    assert suggested(completer, "club") == {"tea", "teal", "tea secret", "teapot"}  # its users'
    assert suggested(completer, "pub") == {"teal", "tea secret"}


def test_searches_of_no_tenant_are_not_those_of_a_tenant_without_a_log(two_tenants, tmp_path):
    """They make a phrase for everybody, and leave a row of a list that is limited as it is."""
    (tmp_path / "list.csv").write_text("phrase,weight,tenant\nteal,7,pub\nterrine,1,pub\n")
    completer = fit_files(tmp_path / "list.csv", two_tenants)
    assert suggested(completer, "pub") == {"teal", "terrine"}
    assert suggested(completer, "shop") == {"tea", "teal", "tea for two"}
    for tenant, popularity in (("pub", 7), ("shop", 3)):
        teal = completer.suggest("teal", where={"tenant": tenant})[0]
        assert teal.relevance == pytest.approx(np.log1p(popularity))
    assert completer.found[KEPT_BACK]["3"].startswith("7 phrases")  # teal is pub's and everybody's


def test_what_is_counted_counts_a_phrase_of_two_tenants_as_it_is_held(two_tenants, tmp_path):
    (tmp_path / "list.csv").write_text("phrase,weight\ntea,1\nterrine,1\n")
    alone = GatheredByTenant(None, read_sources([two_tenants]).logs)
    entries = alone.entries()
    assert len(entries.phrases) == 5
    assert set(zip(entries.phrases, entries.contexts["tenant"], strict=True)) == {
        ("tea", "club"), ("tea", "shop"), ("tea for two", "shop"), ("teal", None),
        ("teapot", "club"),
    }  # fmt: skip
    assert (entries.spellings, entries.shy) == (5, 2)  # tea secret is of two tenants
    sources = read_sources([tmp_path / "list.csv", two_tenants])
    both = GatheredByTenant(sources.listed, sources.logs)
    # tea and terrine of the list, tea for two, teapot, teal; at k = 1 tea secret of each tenant
    assert both.kept_back()["1"].startswith("7 phrases")
    assert both.kept_back()["3"].startswith("5 phrases")


def test_a_mix_is_learned_where_a_tenant_could_be_suggested_anything(tmp_path):
    def opened(*tenants):
        rows = [("tea", f"u{i}", tenant) for i, tenant in enumerate(tenants)]
        rows += [(f"rare {i}", f"v{i}", "shop") for i in range(4 * FEWEST)]
        lines = [
            f"{q},2026-01-01T00:{i // 60:02}:{i % 60:02},{u},{t}\n"
            for i, (q, u, t) in enumerate(rows)
        ]
        (tmp_path / "log.csv").write_text("query,at,user,tenant\n" + "".join(lines))
        return (
            GatheredByTenant(None, read_sources([tmp_path / "log.csv"]).logs)
            .held_out(FEWEST)
            .opened
        )

    assert opened("shop", "shop", "shop")
    assert not opened("shop", "club", "shop")


def test_who_vouches_stays_so_when_logs_are_joined_and_cut_by_tenant(tmp_path):
    named = [("rare", "", "shop", ""), *(("tea", f"u{i}", "club", "") for i in range(3))]
    logs = read_sources([log(named, tmp_path / "named.csv"), *catalogue(tmp_path, "cup")]).logs
    assert [one.vouched.tolist() for one in logs] == [[False] * 4, [True]]
    cut = [_rows_of(one, np.array([0]), None) for one in logs]
    assert [one.vouched.tolist() for one in cut] == [[False], [True]]
    untold = [replace(one, groups={}) for one in logs]
    assert joined_logs(untold).vouched.tolist() == [False] * 4 + [True]
    assert joined_logs([joined_logs(untold)]).vouched.tolist() == [False] * 4 + [True]
    box = fit_files(tmp_path / "named.csv", *catalogue(tmp_path, "cup"))
    assert set(box.index.phrases(range(len(box.index)))) == {"tea", "cup"}


def catalogue(folder, query):
    """Write a log that names nobody."""
    file = folder / "catalogue.csv"
    file.write_text(f"query,at\n{query},2026-01-01\n")
    return [file]


@pytest.mark.parametrize("of_tenants", [False, True])
def test_what_is_held_out_are_the_latest_and_what_was_before_is_said_of_them(of_tenants):
    rng = np.random.default_rng(0)
    m, texts, users = 403, ["tea", "Tea", "cup", "pot"], [None, "ann", "ben"]
    names = ["shop", "club"] if of_tenants else []
    query, user = rng.integers(0, 4, m), rng.integers(0, 3, m)
    user[0], at = 1, 1000 + rng.permutation(5 * m)[:m]
    place = rng.integers(-1, 2, m) if of_tenants else np.full(m, -1)
    log = QueryLog(
        texts,
        query.astype(np.int32),
        np.sort(at),
        users,
        user.astype(np.int32),
        np.ones(m),
        groups={"tenant": ([*names, None], (place % 3).astype(np.int32))} if names else {},
    )
    found = (GatheredByTenant if of_tenants else Gathered)(None, [log], min_users=2)
    for most, held in ((60, 60), (1000, m // 4)):
        latest = found.held_out(most)
        rows = []
        for e in range(m - held, m):
            tenant, name = [*names, None][place[e]] if names else None, users[user[e]]
            rows.append((name and name_in(tenant, name), texts[query[e]], tenant))
        assert latest.rows == rows
        assert latest.split == log.at[m - held]
        assert latest.span == log.at[m - held - 1] - log.at[0]
        assert latest.opened
        assert latest.named
    assert found.held_out(FEWEST - 1) is None
    # Where nobody is named before, none of it may be suggested.
    before = np.where(np.arange(m) < m - FEWEST, 0, log.user).astype(np.int32)
    nobody = type(found)(None, [replace(log, user=before)], min_users=2).held_out(FEWEST)
    assert (nobody.opened, nobody.named) == (False, False)
    ann = np.where(before == 0, 1, before).astype(np.int32)
    known = type(found)(None, [replace(log, user=ann)], min_users=2).held_out(FEWEST)
    assert (known.opened, known.named) == (False, True)
    all_at_once = replace(log, at=np.full(m, 7))
    assert type(found)(None, [all_at_once], min_users=2).held_out(FEWEST) is None


@pytest.mark.parametrize("of_tenants", [False, True])
def test_a_log_in_three_files_is_as_in_one(of_tenants):
    rng = np.random.default_rng(1)
    m, users = 90, [None, "ann", "ben", "cem"]
    query, user, place = (rng.integers(0, 4, m).astype(np.int32) for _ in range(3))
    at = np.sort(1000 + rng.permutation(5 * m)[:m])

    def part(first, last):
        own = slice(first, last)
        tenants = (["shop", "club", None, "gym"], place[own])
        groups = {"tenant": tenants} if of_tenants else {}
        texts = ["tea", "Tea", "cup", "pot"]
        return QueryLog(
            texts, query[own], at[own], users, user[own], np.ones(last - first), groups=groups
        )

    kind = GatheredByTenant if of_tenants else Gathered
    whole, parts = (
        kind(None, logs, min_users=2)
        for logs in ([part(0, m)], [part(0, 30), part(30, 32), part(32, m)])
    )
    one, other = whole.entries(), parts.entries()
    assert one.shy == other.shy

    def suggested(entries):
        columns = entries.contexts.values()
        return sorted(zip(entries.phrases, entries.popular, *columns, strict=True), key=str)

    assert suggested(one) == suggested(other)
    assert whole.histories(one) == parts.histories(other)
    assert sum(sum(own.values()) for own in whole.histories(one).values()) == (user > 0).sum()
    assert whole.held_out(60) == parts.held_out(60)
    assert whole.kept_back() == parts.kept_back()


def of_groups(table, **columns):
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, pa.string()))
    return table


def test_a_composition_logs_own_networks_and_tenants_count(make_table, tmp_path):
    whole = make_table(0, phrases=["green", "grey"])
    log, n = tmp_path / "log.parquet", len(whole)
    pq.write_table(of_groups(whole, network=["192.0.2.0"] * n), log)
    assert fit_files(log, min_compositions=4).suggest("gr") == []  # all may be one person
    pq.write_table(of_groups(whole, network=whole["user"].to_pylist()), log)
    both = {one.text for one in fit_files(log, min_compositions=4).suggest("gr")}
    assert both == {"green", "grey"}
    pq.write_table(of_groups(whole, tenant=[None] * (n - 1) + ["shop"]), log)
    with pytest.raises(InputError, match="export-log --tenant"):
        fit_files(log, min_compositions=4)
    # Too few compositions to learn from feedback: a query log, whose tenants are told apart.
    tenants = ["shop" if query == "green" else "club" for query in whole["query"].to_pylist()]
    pq.write_table(of_groups(whole, tenant=tenants), log)
    completer = fit_files(log, min_compositions=10**6)
    found = completer.compose(completer.user(), where={"tenant": "shop"}).suggest("gr", at=0.0)
    assert {one.text for one in found} == {"green"}
    # Typed again, a composition of no tenant finds what belongs to none.
    pq.write_table(of_groups(whole, tenant=[None, *tenants[1:]]), log)
    read = read_compositions(log)
    names, place = read.groups["tenant"]
    where = [_where(completer, read, c) for c in range(len(place))]
    assert where.count(None) == 1
    for of, tenant in zip(where, [names[p] for p in place], strict=True):
        assert of == (None if tenant is None else {"tenant": tenant})


def log_of(rows, tmp_path):
    (tmp_path / "log.csv").write_text(
        "query,at,user,tenant\n"
        + "".join(f"{q},2026-01-{d:02},{u},{t or ''}\n" for d, (q, u, t) in enumerate(rows, 1))
    )
    return read_queries(tmp_path / "log.csv")


def box_of(rows, tmp_path, listed=None):
    log_of(rows, tmp_path)
    files = [tmp_path / "log.csv"]
    if listed:
        files.append(tmp_path / "list.csv")
        files[1].write_text(listed)
    return fit_files(*files)


def in_order(box, prefix, tenant, user=None):
    typing = box.compose(box.user(user), where={"tenant": tenant})
    return [one.text for one in typing.suggest(prefix, at=0.0)]


def test_users_of_one_name_in_two_tenants_are_two(tmp_path):
    rows = [("tea", f"u{i}", "shop") for i in range(3)] + [("secret merger", "ada", "shop")]
    rows += [("salt", f"u{i}", "default") for i in range(3)] + [("sesame", "ada", "default")]
    box = box_of(rows, tmp_path)
    for tenant, own in (("shop", "secret merger"), ("default", "sesame")):
        assert in_order(box, "se", tenant, Caller(tenant).names("ada")) == [own]
    assert in_order(box, "se", "shop", Caller("club").names("ada")) == []
    assert set(box.users) == {f"shop:u{i}" for i in range(3)} | {
        *(f"u{i}" for i in range(3)), "shop:ada", "ada"
    }  # fmt: skip
    assert [name_in(*of) for of in (("shop", "shop:ada"), (None, "a"), ("default", "x:a"))] == [
        "shop:ada", "a", "default:x:a"
    ]  # fmt: skip


def test_a_user_with_and_without_the_tenants_prefix_is_one(tmp_path):
    """As in a shop's own log beside what the service exported of the same people."""
    rows = [("tea", "shop:ada", "shop"), ("tea", "ada", "shop"), ("pot", "x", "web")]
    log = log_of(rows, tmp_path)
    found = GatheredByTenant(None, [log], min_users=2)
    entries = found.entries()
    assert (entries.phrases, entries.shy) == ([], 2)
    assert found.histories(entries) == {"shop:ada": {"tea": 2.0}, "web:x": {"pot": 1.0}}


def test_what_a_user_submitted_to_the_default_tenant_and_to_none_is_added(tmp_path):
    rows = [("tea", "ada", "default"), ("tea", "ada", None), ("tea", "ada", "default")]
    found = GatheredByTenant(None, [log_of(rows, tmp_path)], min_users=1)
    assert found.histories(found.entries()) == {"ada": {"tea": 3.0}}


def test_one_tenants_searches_move_nothing_of_anothers(tmp_path):
    rows = [("Secret", f"v{i}", "b") for i in range(9)]
    rows += [("PROJECT  X™", "boss", "a")] * 9 + [("project xtm", f"v{i}", "b") for i in range(3)]
    rows += [("tin", "q", "a")]
    listed = "phrase,weight,tenant\nsecret,1,a\nsector,3,a\nTEA,9,a\nTea,1,b\nteapot,5,b\n"
    box = box_of(rows, tmp_path, listed)
    assert in_order(box, "se", "a") == ["sector", "secret"]
    assert in_order(box, "se", "b") == ["Secret"]
    assert in_order(box, "pr", "b") == ["project xtm"]
    assert in_order(box, "te", "b") == ["teapot", "Tea"]
    ada = box.user()
    for _ in range(50):
        typing = box.compose(ada, where={"tenant": "b"})
        typing.suggest("te", at=0.0)
        typing.submit("tea")
    assert ada.history == {"Tea": 50.0}
    own = [one.text for one in box.compose(ada, where={"tenant": "b"}).suggest("te", at=0.0)]
    assert own == ["Tea", "teapot"]


def test_of_a_shared_list_popularity_is_each_tenants_own(tmp_path):
    rows = [("layoffs", f"v{i}", "b") for i in range(25)] + [("lamb", "q", "a")]
    listed = "phrase,weight\nlayoffs,1\nlamps,5\n"
    box = box_of(rows, tmp_path, listed)
    assert in_order(box, "la", "a") == ["lamps", "layoffs"]
    assert in_order(box, "la", "b") == ["layoffs", "lamps"]
    said = box.found[KEPT_BACK]
    assert said["1"].startswith("3 phrases, 100.0%")  # the list's two, and lamb
    assert said["3"].startswith("2 phrases")
    assert said["by tenant"]["a"]["3"] == (
        "0 phrases, 0.0% of the submissions in logs that name users; lost: 1, 100.0%"
    )


def test_a_list_of_a_tenant_without_a_log_is_that_tenants(tmp_path):
    rows = [("tea", "u", "shop")]
    box = box_of(rows, tmp_path, "phrase,weight,tenant\nteak,2,pub\nteal,1,\n")
    assert in_order(box, "te", "pub") == ["teak", "teal"]
    assert in_order(box, "te", "shop") == ["teal"]


def test_a_history_is_spelled_as_the_tenants_own_phrase_is(tmp_path):
    rows = [("Tea", f"u{i}", "shop") for i in range(3)] * 2 + [("tea", "ada", "shop")]
    rows += [("TEA", f"u{i}", "club") for i in range(3)] * 2
    box = box_of(rows, tmp_path)
    assert box.users["shop:ada"].history == {"Tea": 1.0}
    assert box.users["club:u0"].history == {"TEA": 2.0}


def test_what_takes_no_tenants_refuses_a_log_that_has_them(two_tenants):
    with pytest.raises(InputError, match="and give each tenant's own rows"):
        joined_logs(read_sources([two_tenants]).logs)


def test_what_k_loses_is_said_of_the_largest_tenants(two_tenants, tmp_path, monkeypatch):
    monkeypatch.setattr(tenants, "MOST", 1)
    two_tenants.write_text(two_tenants.read_text() + "tea,2026-01-01,c0,club\n" * 40)
    assert list(fit_files(two_tenants).found[KEPT_BACK]["by tenant"]) == ["club"]


def test_a_tenant_with_a_colon_is_refused_since_two_tenants_users_would_be_one(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("query,at,user,tenant\ntea,2026-01-01,c,a:b\nten,2026-01-01,b:c,a\n")
    with pytest.raises(InputError, match=r"log.csv: row 1: column 'tenant': 'a:b' has a colon"):
        fit_files(file, min_users=1)
    assert fit_files(file, min_users=1, on_bad_row="skip").suggest("te", where={"tenant": "a"})
    with pytest.raises(InputError, match="tenant 'a:b': has a colon"):
        name_in("a:b", "c")
    file.write_text("title,tenant\ntea,a:b\n")  # names no user
    assert fit_files(file).suggest("te", where={"tenant": "a:b"})
