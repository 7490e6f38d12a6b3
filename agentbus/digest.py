"""Digests without hashlib, which would bring 3 MiB of OpenSSL into every adapter."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def digest(data: bytes, size: int) -> bytes:
    """BLAKE2b, `size` bytes of it."""
    return blake2b(data, digest_size=size).digest()
