"""The command `agentbus`: `mcp` goes straight to the adapter, everything else to the CLI.

One adapter runs for each session of each harness, so it must not pay for the CLI's libraries.
"""

from __future__ import annotations

import sys

from agentbus import __version__

HELP = frozenset({"--help", "-h"})


def main() -> int:
    """The exit code; the arguments are those of the process."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mcp"] and HELP.isdisjoint(arguments):
        from agentbus.adapter.main import main as adapter  # noqa: PLC0415 - see above

        return adapter(arguments[1:])
    if arguments == ["--version"]:
        sys.stdout.write(f"agentbus {__version__}\n")
        return 0
    from agentbus.cli.app import main as cli  # noqa: PLC0415 - see above

    return cli(arguments)


if __name__ == "__main__":
    sys.exit(main())
