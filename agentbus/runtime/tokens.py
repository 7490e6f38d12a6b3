"""Unguessable names from the operating system."""

from __future__ import annotations

import os


class SystemTokens:
    """The `Tokens` of real processes."""

    def token(self) -> str:
        """128 random bits as 32 hexadecimal digits."""
        return os.urandom(16).hex()
