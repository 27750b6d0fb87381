import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion.engine.packed_numbers import BLOCK, pack_numbers, read

numbers = st.integers(0, 2**57 - 1) | st.integers(0, 40) | st.integers(2**40, 2**40 + 3)


@given(st.lists(numbers, max_size=3 * BLOCK))
def test_every_number_comes_back(kept):
    packed = pack_numbers(kept)
    assert [read(packed, i) for i in range(len(kept))] == kept


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 21, 31, 50])
def test_a_number_takes_the_bits_of_its_distance_from_the_least_of_its_block(bits):
    rng = np.random.default_rng(bits)
    kept = rng.integers(0, 2**bits, 100 * BLOCK)
    least = rng.integers(0, 2**57 - 2**bits + 1, 100)
    kept[::BLOCK], kept[1::BLOCK] = 0, 2**bits - 1
    packed = pack_numbers(kept + np.repeat(least, BLOCK))
    assert len(packed) <= 100 * (2 + bits) + 1  # of 64 bits, of which a block has two for itself
