"""`python -m bench.peers DIR` installs the buses and brokers to compare with below DIR."""

from __future__ import annotations

import os
import sys

from bench.peers.install import install


def main() -> int:
    """Says what could not be installed; exit code 1 then."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    directory = os.path.abspath(sys.argv[1])
    failed = install(directory)
    for name in failed:
        sys.stderr.write(f"not installed: {name}\n")
    sys.stdout.write(f"export AGENTBUS_BENCH_PEERS={directory}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
