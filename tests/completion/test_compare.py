"""Two completers on one log: the measures by their definitions, and their intervals."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from telic.completion import compare_completers, fit_completer, fit_files
from telic.completion.box.composition import Composition
from telic.completion.evaluation.compare import _phone, _where, walk
from telic.completion.learning.replayed_log import Replay
from telic.data.compositions import read_compositions
from telic.errors import InputError


def listing(tmp_path, **weights):
    """A completer of a list: the static order by weight."""
    file = tmp_path / f"{'-'.join(weights)}.csv"
    rows = (f"{phrase.replace('_', ' ')},{weight}\n" for phrase, weight in weights.items())
    file.write_text("phrase,weight\n" + "".join(rows))
    return fit_files(file)


def typed(query, *prefixes, user="u", day=1):
    at = np.datetime64("2026-01-01T00:00:00", "us") + np.timedelta64(day, "D")
    keystrokes = [
        {"at": (at + np.timedelta64(i, "s")).item(), "prefix": prefix, "suggestions": []}
        for i, prefix in enumerate(prefixes)
    ]
    submitted = (at + np.timedelta64(len(prefixes), "s")).item()
    return {
        "user": user,
        "composition": f"{user}{day}",
        "query": query,
        "submitted_at": submitted,
        "keystrokes": keystrokes,
    }


def logged(*rows):
    table = pa.Table.from_pylist(list(rows))
    at = pa.timestamp("us", "UTC")
    keystroke = pa.struct(
        [("at", at), ("prefix", pa.string()), ("suggestions", pa.list_(pa.string()))]
    )
    for name, kind in (("submitted_at", at), ("keystrokes", pa.list_(keystroke))):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(table[name].to_pylist(), kind))
    return read_compositions(table)


def test_places_and_keystrokes_are_those_of_the_lists(tmp_path):
    a = listing(tmp_path, tea=1, teapot=2, ten=3)
    b = listing(tmp_path, tea=3, teapot=2)
    log = logged(typed("teapot", "t", "te", "tea"), typed("ten", "t", "te", "ten", user="v"))
    first, second = (walk(model, log, show=2) for model in (a, b))
    assert first.rank.tolist() == [2, 2, 1, 1, 1, 1]
    assert second.rank.tolist() == [2, 2, 2, 0, 0, 0]
    # One key and one to take it; three typed and three letters left would be six.
    assert first.keystrokes.tolist() == [2, 2]
    assert second.keystrokes.tolist() == [2, 3]  # never listed: all that were typed


def test_a_composition_knows_what_was_submitted_before_it_began(tmp_path):
    """In two pages at once: what is submitted in one is no habit yet in the other."""
    model = listing(tmp_path, tea=1, ten=2)
    slow = typed("tea", "t", "te", "tea")  # submitted in second 3, after the other one
    quick = typed("tea", "t") | {"composition": "beside"}
    after = typed("tea", "t", day=2)
    found = walk(model, logged(slow, quick, after))
    assert found.rank.tolist() == [2, 2, 2, 1, 1], "the quick one, the slow one, the one after"
    assert walk(model, logged(quick, after)).rank.tolist() == [2, 1]


def test_no_key_is_typed_before_what_was_submitted_before_it(tmp_path, monkeypatch):
    """Else a list would be ranked by weights that were learned from what came later."""
    model, seen = listing(tmp_path, tea=1, ten=2), []

    def listed(self, typed, **how):
        seen.append(typed)
        return list_it(self, typed, **how)

    def submit(self, query):
        seen.append(query.upper())
        return submit_it(self, query)

    list_it, submit_it = Composition.listed, Composition.submit
    monkeypatch.setattr(Composition, "listed", listed)
    monkeypatch.setattr(Composition, "submit", submit)
    slow, quick = typed("tea", "t", "te", "tea"), typed("ten", "t") | {"composition": "beside"}
    walk(model, logged(slow, quick))
    assert seen == ["t", "t", "te", "TEN", "tea", "TEA"]


def test_another_spelling_counts_whether_or_not_a_box_merges_spellings(tmp_path):
    """A box with feedback keeps spellings apart: beside one of a list it must not look worse."""
    merged = listing(tmp_path, Tea=1, ten=2)
    log = logged(typed("tea", "t", "te", "tea"))
    for model in (merged, replace(merged, merged=False)):
        found = walk(model, log)
        assert found.rank.tolist() == [2, 2, 1]
        assert found.keystrokes.tolist() == [2]


def test_what_no_list_has_costs_the_letters_that_were_left(tmp_path):
    model = listing(tmp_path, tea=1)
    found = walk(model, logged(typed("ten pounds", "t", "te")))
    assert found.keystrokes.tolist() == [10]
    assert walk(model, logged(typed("tea", "t"))).keystrokes.tolist() == [2]
    assert walk(model, logged(typed("tea", "tea"))).keystrokes.tolist() == [1]


def test_users_are_the_unit(tmp_path):
    a, b = listing(tmp_path, tea=1, ten=2), listing(tmp_path, tea=2, ten=1)
    log = logged(
        typed("tea", "t"),
        typed("tea", "t", day=2),
        typed("tea", "t", day=3),
        typed("ten", "t", user="v"),
    )
    found = compare_completers(log, a, b)
    assert (found.compositions, found.users) == (4, 2)
    mrr = found.rows()[0]
    # The first user's own query is first from the second time on, with either model.
    assert mrr["a"] == pytest.approx((np.mean([0.5, 1, 1]) + 1) / 2)
    assert mrr["b"] == pytest.approx((1 + 0.5) / 2)
    assert mrr["difference"] == pytest.approx(mrr["b"] - mrr["a"])
    assert mrr["low"] < mrr["difference"] < mrr["high"]
    means = {row["measure"]: (row["a"], row["b"]) for row in found.rows()}
    assert list(means) == ["MRR", *(f"success at {k}" for k in (1, 2, 3, 5, 10)), "keystrokes"]
    assert means["success at 1"] == pytest.approx((np.mean([2 / 3, 1]), np.mean([1, 0])))
    assert means["success at 2"] == (1, 1)
    assert means["keystrokes"] == (2, 2)
    # Both users always succeed: how many others would not, two of them can hardly tell.
    sure = next(row for row in found.rows() if row["measure"] == "success at 2")
    assert (sure["a_low"], sure["a_high"]) == (pytest.approx(0.025**0.5), 1)
    assert (sure["low"], sure["high"]) == pytest.approx((0.025**0.5 - 1, 1 - 0.025**0.5))
    keys = found.rows()[-1]  # of a count nobody knows the most that it can be
    assert keys["a_low"] == keys["a_high"] == keys["a"] == 2
    few = compare_completers(log, a, b, show=2)
    assert [each.name for each in few.measures] == [*list(means)[:3], "keystrokes"]


def test_a_model_is_as_good_as_itself(make_table):
    log = read_compositions(make_table())
    model = fit_completer(Replay(log))
    for row in compare_completers(log, model, model).rows():
        assert row["difference"] == 0
        assert row["a"] == row["b"]


def test_lists_of_no_length_are_refused(tmp_path):
    model = listing(tmp_path, tea=1)
    with pytest.raises(InputError, match="show is 0"):
        compare_completers(logged(typed("tea", "t")), model, model, show=0)


def test_a_composition_is_typed_again_where_its_tenant_is_told_on_both_sides():
    def where(contexts, **groups):
        held = contexts and SimpleNamespace(names=contexts)
        return _where(SimpleNamespace(contexts=held), SimpleNamespace(groups=groups), 1)

    tenants = (["shop", "club", None], [0, 1, 2])
    assert where(["language", "tenant"], tenant=tenants) == {"tenant": "club"}
    assert where(["language", "tenant"], tenant=(["shop", None], [0, 1])) is None
    assert where(["language", "tenant"], network=tenants) is None
    assert where(["language"], tenant=tenants) is None
    assert where(None, tenant=tenants) is None


def test_users_of_two_tenants_are_two_however_they_are_called(tmp_path):
    file = tmp_path / "log.csv"
    rows = ["tea,2025-01-01,u,shop", "ten,2025-01-01,u,club"]
    rows += [f"{q},2025-01-01,v,{tenant}" for q in ("tea", "ten") for tenant in ("shop", "club")]
    file.write_text("\n".join(["query,at,user,tenant", *rows]))
    log = logged(
        typed("tea", "t") | {"tenant": "shop"}, typed("ten", "t", day=2) | {"tenant": "club"}
    )
    model = fit_files(file, min_users=1)
    assert walk(model, log).rank.tolist() == [1, 1], "what each submitted before comes first"


def test_a_composition_is_typed_again_on_the_phone_that_it_was_typed_on():
    minute = 60_000_000
    log = SimpleNamespace(
        apps=["maps", "mail", "news"],
        installed_start=[0, 1, 3], installed_app=[2, 0, 1], daily_opens=[9.0, 1.5, 2.5],
        opened_start=[0, 1, 3], opened_app=[0, 1, 2],
        opened_at=[0, 100 * minute, 107 * minute + minute // 2],
        keystroke_start=[0, 2, 3], at=[5, 6, 110 * minute],
    )  # fmt: skip
    asked = _phone(SimpleNamespace(phone=lambda *given: given), log, 1)
    assert asked == ({"maps": 1.5, "mail": 2.5}, [("mail", 10.0), ("news", 2.5)])
