"""The command; see the package."""

from __future__ import annotations

import sys
from pathlib import Path

from reference import pages

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def main(arguments: list[str]) -> int:
    """Exit code."""
    stale = {
        name: text
        for name, text in pages().items()
        if not (REFERENCE / name).exists() or (REFERENCE / name).read_text() != text
    }
    if "--check" in arguments:
        for name in stale:
            print(f"docs/reference/{name} is out of date")
        return int(bool(stale))
    for name, text in stale.items():
        (REFERENCE / name).write_text(text)
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
