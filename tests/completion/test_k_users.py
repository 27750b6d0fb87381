"""What k users must have submitted before others see it: people and networks, by definition."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import fit_files
from telic.completion.k_users import BY_TENANT, KEPT_BACK, KS, kept_back
from telic.completion.relevance import Submissions
from telic.errors import InputError
from telic.scale import Local

QUERIES = 3
EVENT = st.tuples(
    st.integers(0, QUERIES - 1),
    st.integers(-1, 6),  # -1: nobody is named
    st.integers(-1, 4),  # -1: somewhere
    st.integers(-1, 1),
    st.integers(1, 5),
)


def support(events, query):
    """How many people in how many places have submitted a query; all that is needed if anybody."""
    own = [(user, network) for q, user, network, *_ in events if q == query]
    if any(user < 0 for user, _ in own):
        return np.inf
    people = {user for user, _ in own}
    places = {network if network >= 0 else ("of", user) for user, network in own}
    return min(len(people), len(places))


def gathered(events, min_users):
    query, user, network, tenant, count = np.array(events, np.int64).reshape(-1, 5).T
    parts = [(np.arange(len(events)), query, user, count.astype(float))]
    return Submissions.gathered(parts, min_users=min_users, network=network), tenant


@given(st.lists(EVENT, min_size=1, max_size=40), st.integers(1, 4))
@settings(deadline=None)
def test_a_query_opens_with_the_submission_that_gives_it_enough_people_and_places(events, k):
    opens = gathered(events, k)[0].opens
    for e, (query, *_) in enumerate(events):
        before, now = support(events[:e], query), support(events[: e + 1], query)
        assert opens[e] == (before < k <= now)


@given(st.lists(EVENT, min_size=1, max_size=40), st.sets(st.integers(0, QUERIES - 1)))
@settings(deadline=None)
def test_what_is_lost_is_what_too_few_have_submitted(events, listed):
    submissions, tenant = gathered(events, 1)
    vouched = np.isin(np.arange(QUERIES), list(listed))
    found = kept_back(submissions, vouched, ["a", "b"], tenant)
    always = listed | {q for q, user, *_ in events if user < 0}
    parts = {None: found} | found[BY_TENANT]
    for name, said in parts.items():
        own = [e for e in events if e[1] >= 0 and name in (None, "ab"[e[3]] if e[3] >= 0 else "")]
        everything = sum(e[4] for e in own)
        for k in KS:
            kept = {q for q in range(QUERIES) if q in always or support(own, q) >= k}
            share = sum(e[4] for e in own if e[0] in kept) / max(everything, 1)
            words = f"{len(kept)} phrases, {share:.1%} of the submissions of named users"
            assert said[str(k)].partition(";")[0] == words


def log(rows, path):
    header = "query,at,user,tenant,network\n"
    path.write_text(header + "".join(f"{q},2026-01-01,{u},{t},{n}\n" for q, u, t, n in rows))
    return path


@pytest.fixture
def flooded(tmp_path):
    """A phrase that nine ids of one network push, and one that three people submitted."""
    rows = [("buy pills", f"x{i}", "shop", "198.51.100.0") for i in range(9)]
    rows += [("tea", f"u{i}", "shop" if i else "club", f"192.0.2.{i}") for i in range(3)]
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
    completer = fit_files(composed, flooded, min_compositions=4)
    assert {"tea"} == {s.text for p in ("t", "b") for s in completer.suggest(p)}
    assert completer.found[KEPT_BACK]["1"].startswith("4 phrases")


def test_in_pieces_networks_are_refused_rather_than_left_out(flooded):
    with pytest.raises(InputError, match="Leave out --memory"):
        fit_files(flooded, executor=Local())
