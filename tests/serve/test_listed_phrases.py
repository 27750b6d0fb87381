"""Phrases in answers are the JSON and the addresses that Python's own libraries write."""

import json
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st

from telic.completion.engine.array_kernels import joined_texts
from telic.serve.requests.listed_phrases import lists_in_json

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=12)


@given(TEXTS, st.sampled_from(["/search?q=", 'http://tea.example/"a\\b"/search?q=']))
@example(["".join(map(chr, range(256))), "", '"\\', "日本 語"], "/?q=")
def test_lists_are_json_of_the_texts_and_of_their_addresses(texts, address):
    table = joined_texts([text.encode() for text in texts])
    written = lists_in_json(table, json.dumps(address)[1:-1].encode()).decode()
    assert json.loads(f"[{written}]") == [
        texts,
        [""] * len(texts),
        [address + quote(text, safe="") for text in texts],
    ]
    if all(" " <= letter <= "~" for text in texts for letter in text):  # as Python writes them
        addresses = [address + quote(text, safe="") for text in texts]
        assert f"[{written}]" == json.dumps([texts, [""] * len(texts), addresses])
