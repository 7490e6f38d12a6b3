"""The command `agentbus`: some ways are direct, all others go through the CLI.

One adapter runs for each session of each harness, and what the daemon's first process has loaded
stays in all of its children, so neither pays for the CLI's libraries.
"""

from __future__ import annotations

import sys

from agentbus import __version__

HELP = frozenset({"--help", "-h"})


INTERRUPTED = 130
"""As a shell counts an end by Ctrl-C."""


def main() -> int:
    """The exit code; the arguments are those of the process."""
    try:
        return _run()
    except KeyboardInterrupt:  # while libraries are loaded; commands heed it themselves
        return INTERRUPTED


def _run() -> int:
    command, *rest = sys.argv[1:] or [""]
    if command == "mcp" and HELP.isdisjoint(rest):
        from agentbus.adapter.main import main as adapter  # noqa: PLC0415 - see above

        return adapter(rest)
    if command == "hook" and HELP.isdisjoint(rest):
        from agentbus.harness.hook import main as hook  # noqa: PLC0415 - see above

        return hook(rest)
    if command == "daemon" and "--foreground" in rest:
        from agentbus.cli import foreground  # noqa: PLC0415 - see above

        plain = foreground.parse(rest)
        if plain is not None:
            return foreground.run(plain)
    if command == "--version" and not rest:
        sys.stdout.write(f"agentbus {__version__}\n")
        return 0
    from agentbus.cli.app import main as cli  # noqa: PLC0415 - see above

    return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
