import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from telic.specialty.pseudonyms import Pseudonyms

IDS = st.text(min_size=1, max_size=20)


@given(IDS, st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=40))
@settings(max_examples=60, derandomize=True)
def test_a_pseudonym_is_the_keys_and_not_the_ids_alone(identifier, key, other):
    names = Pseudonyms(key)
    assert names(identifier) == Pseudonyms(key)(identifier)
    assert names(identifier) != names(identifier + "x")
    if key.rstrip(b"\0") != other.rstrip(b"\0"):  # HMAC fills a key up with zeros
        assert names(identifier) != Pseudonyms(other)(identifier)


@given(IDS)
@settings(max_examples=30, derandomize=True)
def test_without_a_key_nobody_can_repeat_the_names(identifier):
    one, two = Pseudonyms(), Pseudonyms()
    assert one(identifier) == one(identifier) != two(identifier)
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        digest = hashlib.new(name, identifier.encode()).hexdigest()
        assert one(identifier).removeprefix("user-") not in digest
