"""Text from outside, made harmless for a terminal; pure."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Text of which nothing can pass for another line or move the cursor."""
    shown = (character if character.isprintable() else " " for character in text)
    return " ".join("".join(shown).split())
