"""Phrases as answers have them."""

import json
from urllib.parse import quote

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from telic.completion import PrefixIndex
from telic.serve.requests import dispatch


def test_phrases_are_written_once_while_they_are_kept(monkeypatch):
    monkeypatch.setattr(dispatch, "WRITTEN", 30)
    names = [f'“{n}” & "co"' for n in range(100)]
    index = PrefixIndex.build(names, np.ones(100))
    phrases = index.phrases(range(100))
    written, asked = dispatch._WrittenPhrases(index), []

    class Counted:
        def phrases(self, numbers):
            asked.append(numbers)
            return index.phrases(numbers)

    written._index = Counted()
    rng = np.random.default_rng(0)
    for _ in range(200):
        numbers = rng.choice(100, rng.integers(0, 11), replace=False).tolist()
        known = written.of(numbers)
        assert [known[n] for n in numbers] == [dispatch._written(phrases[n]) for n in numbers]
        assert len(written._kept) <= 30
        before = len(asked)
        written.of(numbers)
        assert len(asked) == before


@given(st.text(st.characters(max_codepoint=127)) | st.text())
def test_a_phrase_is_written_in_json_and_as_a_part_of_an_address(text):
    text = text.encode(errors="ignore").decode()
    assert dispatch._written(text) == (json.dumps(text), quote(text, safe=""))
