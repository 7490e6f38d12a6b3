from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.digest import digest


@given(st.binary(max_size=300), st.integers(1, 64))
def test_it_is_blake2b(data, size):
    assert digest(data, size) == hashlib.blake2b(data, digest_size=size).digest()


@pytest.mark.parametrize("size", [0, 65])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match="digest_size"):
        digest(b"", size)
