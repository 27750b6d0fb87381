import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion.engine.packed_numbers import BLOCK, pack_numbers, read, read_some

numbers = st.integers(0, 2**57 - 1) | st.integers(0, 40) | st.integers(2**40, 2**40 + 3)


@given(kept=st.lists(numbers, max_size=3 * BLOCK), data=st.data())
def test_every_number_comes_back(kept, data):
    packed = pack_numbers(kept)
    assert [read(packed, i) for i in range(len(kept))] == kept
    first, last = sorted(data.draw(st.integers(0, len(kept))) for _ in range(2))
    out = np.zeros(last - first, np.int64)
    read_some(packed, first, last, out)
    assert out.tolist() == kept[first:last]


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 21, 31, 50])
def test_a_number_takes_the_bits_of_its_distance_from_the_least_of_its_block(bits):
    rng = np.random.default_rng(bits)
    kept = rng.integers(0, 2**bits, 100 * BLOCK)
    least = rng.integers(0, 2**57 - 2**bits + 1, 100)
    kept[::BLOCK], kept[1::BLOCK] = 0, 2**bits - 1
    packed = pack_numbers(kept + np.repeat(least, BLOCK))
    assert len(packed) <= 100 * (2 + bits) + 1  # of 64 bits, of which a block has two for itself


@pytest.mark.parametrize("bits", range(1, 58))
def test_numbers_of_every_width_cross_every_bit_of_a_word(bits):
    kept = np.random.default_rng(bits).integers(0, 2**bits, 64 * BLOCK)
    packed, out = pack_numbers(kept), np.zeros(len(kept), np.int64)
    read_some(packed, 0, len(kept), out)
    assert (out == kept).all()
    assert [read(packed, i) for i in range(len(kept))] == kept.tolist()
