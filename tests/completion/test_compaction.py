"""Changes built into a list: what is suggested stays, and what lies beside it is left alone."""

import io
import json
import os
import runpy
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import Completer, DenyList, PrefixIndex, fit_files, fold
from telic.completion.box import compaction
from telic.completion.box.compaction import keep, with_kept
from telic.completion.box.live_changes import compacted
from telic.errors import ModelError

PHRASES = ["a", "A", "ab", "aB", "abc", "b", "á b", "ba"]
TITLES = "title,views,id,language\nTea,3,1,en\nTee,9,2,de\nCup,5,3,\nTeapot,4,4,en\n"


@pytest.fixture
def box(tmp_path):
    (tmp_path / "titles.csv").write_text(TITLES)
    completer = fit_files(tmp_path / "titles.csv")
    completer.save(tmp_path / "box")
    (tmp_path / "kept").mkdir()
    return Completer.load(tmp_path / "box")


def kept(completer, tmp_path, number, before=None):
    """Keep a completer's list with its changes; give the folder."""
    model, digest = completer.stored or Completer.load(tmp_path / "box").stored
    out = str(tmp_path / "kept" / f"{digest[:16]}-{number:012}-{'0' * 16}")
    live = json.loads(json.dumps(completer.live.as_json()))
    keep(str(model), digest, before, live, out)
    return out


def listed(completer, typed="", **where):
    return [(s.text, s.id, s.relevance) for s in completer.suggest(typed, where=where or None)]


STEP = st.tuples(
    st.sampled_from(["put", "delete", "compact"]),
    st.sampled_from(PHRASES),
    st.integers(0, 1),
)


@settings(max_examples=60)
@given(
    start=st.dictionaries(st.sampled_from(PHRASES), st.integers(0, 1), min_size=2),
    steps=st.lists(STEP, min_size=3, max_size=12),
    prefix=st.sampled_from(["", "a", "ab", "b"]),
    n=st.integers(1, 8),
)
def test_a_list_is_the_same_whenever_changes_are_built_in(
    start, steps, prefix, n, tmp_path_factory
):
    """Equal weights come in the order of an index that has the phrases, built in or not."""
    folder = tmp_path_factory.mktemp("box")
    (folder / "titles.csv").write_text("title,views\nTea,3\n")
    known = {phrase: float(count) for phrase, count in start.items()}
    index = PrefixIndex.build(list(known), np.log1p(list(known.values())))
    template = fit_files(folder / "titles.csv")
    completer = replace(template, index=index, words=None, merged=False, n=n)
    for step, phrase, count in steps:
        if step == "compact":
            completer = compacted(completer)
        elif step == "delete":
            completer.live.delete(phrase)
            known = {p: c for p, c in known.items() if fold(p) != fold(phrase)}
        else:
            completer.live.put(phrase, count)
            known[phrase] = float(count)
    matching = sorted((p for p in known if fold(p).startswith(prefix)), key=lambda p: (fold(p), p))
    expected = sorted(matching, key=lambda p: -known[p])[:n]
    assert [s.text for s in completer.suggest(prefix, show=n)] == expected


def test_a_kept_list_suggests_what_the_changes_do(box, tmp_path):
    for phrase, count in (("Teaspoon", 50), ("Tea", 20)):
        box.live.put(phrase, count)
    box.live.delete("Teapot")
    first = kept(box, tmp_path, 1)
    found = with_kept(Completer.load(tmp_path / "box"), first)
    for typed, where in (("", {}), ("te", {}), ("", {"language": "de"}), ("teapot", {})):
        assert listed(found, typed, **where) == listed(box, typed, **where)
    assert not len(found.live)
    assert found.live.deleted == {b"teapot"}
    assert [s.text for s in found.suggest("taespoon")] == ["Teaspoon"]
    found.live.delete("cup")
    found.live.increment("Tea", 1)
    second = with_kept(Completer.load(tmp_path / "box"), kept(found, tmp_path, 2, before=first))
    assert listed(second) == listed(found)
    assert second.live.deleted == {b"teapot", b"cup"}
    assert [folder.name[17:29] for folder in (tmp_path / "kept").iterdir()] == ["000000000002"]


def test_a_list_that_is_denied_now_is_of_another_model(box, tmp_path):
    denying = box.denying(DenyList(("tea",)))
    denying.save(tmp_path / "denying")
    assert Completer.load(tmp_path / "denying").stored[1] != box.stored[1]
    box.live.put("Tea", 20)
    shutil.rmtree(tmp_path / "box")
    denying.save(tmp_path / "box")
    with pytest.raises(ModelError, match="holds another model by now"):
        kept(box, tmp_path, 1)
    assert list((tmp_path / "kept").iterdir()) == []
    assert fit_files(tmp_path / "titles.csv").stored is None
    assert replace(box).stored is None  # what it was loaded from may not be what it is


def test_a_model_that_is_replaced_while_it_is_read_is_of_no_folder(box, monkeypatch):
    both = iter([{"index.ends.npy": "1"}, {"index.ends.npy": "2"}])
    monkeypatch.setattr("telic.completion.box.completer.hashes", lambda folder: next(both))
    assert Completer.load(box.stored[0]).stored is None


def test_what_a_killed_process_left_goes_and_what_is_no_list_stays(box, tmp_path):
    box.live.put("Teaspoon", 50)
    (tmp_path / "kept" / f"{compaction.BEGUN}x" / "list").mkdir(parents=True)
    of_another_model = tmp_path / "kept" / f"{'a' * 16}-{'0' * 12}-{'0' * 16}"
    of_another_model.mkdir()
    theirs = tmp_path / "kept" / "photos"
    theirs.mkdir()
    digest = box.stored[1]
    of_another_store = tmp_path / "kept" / f"{digest[:16]}-{7:012}-{'1' * 16}"
    of_another_store.mkdir()
    damaged = tmp_path / "kept" / f"{digest[:16]}-{1:012}-{'0' * 16}"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    out = kept(box, tmp_path, 1)
    assert str(damaged) == out
    assert listed(with_kept(box, out)) == listed(box)
    assert set((tmp_path / "kept").iterdir()) == {damaged, theirs, of_another_store}


def test_a_process_that_builds_a_list_says_what_is_wrong_and_quotes_nothing(
    box, tmp_path, monkeypatch
):
    """Its last line goes to the service's log, where what people typed must not be."""
    nice = []
    monkeypatch.setattr(os, "nice", nice.append)

    def built(**given):
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
        runpy.run_path(compaction.__file__, run_name="__main__")

    model, digest = box.stored
    box.live.put("Teaspoon", 50)
    out = tmp_path / "kept" / f"{digest[:16]}-{1:012}-{'0' * 16}"
    given = {"model": str(model), "digest": digest, "before": None, "out": str(out)}
    with pytest.raises(SystemExit) as stopped:
        built(**given | {"digest": "another"}, live=box.live.as_json())
    assert "holds another model by now" in str(stopped.value.code)
    with pytest.raises(SystemExit) as stopped:
        built(**given, live={"secret": ["a phrase"]})
    assert stopped.value.code == "KeyError"
    built(**given, live=box.live.as_json())
    assert listed(with_kept(Completer.load(model), out)) == listed(box)
    assert nice == [10] * 3  # keystrokes go before
