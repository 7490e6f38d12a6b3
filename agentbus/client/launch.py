"""Launching the daemon: detached from whoever does, its readiness told over a pipe.

It is started by way of a helper that is gone at once, so that it is nobody's child: nobody but init
has to reap it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentbus.config import Configuration
from agentbus.runtime.paths import RUNTIME_VARIABLE, locate

FOREIGN: Final = ("CLAUDE", "CODEX", "GEMINI", "OPENCODE", "MCP", "ANTHROPIC", "OPENAI")
"""Prefixes of variables that belong to a harness, not to a daemon that serves all of them."""

_HELPER: Final = "import os,sys\nif os.fork(): os._exit(0)\nos.execv(sys.argv[1], sys.argv[1:])\n"


def launch(
    configuration: Configuration, environ: Mapping[str, str], others: Sequence[int] = ()
) -> tuple[int, Any]:
    """Starts `python -m agentbus daemon`; one that runs already makes the new one say so and go.

    The end of the pipe that it reports to, non-blocking, and the helper, to be waited for. The
    report goes to `others` as well, which the daemon keeps open until then. Raises OSError.
    """
    import subprocess  # noqa: PLC0415 - heavy, and hardly ever needed by an adapter

    reading, writing = os.pipe()
    told = [writing, *others]
    try:
        os.set_blocking(reading, False)
        helper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _HELPER, *_command(configuration, told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=told,
            cwd="/",
            env=environ,
            umask=0o077,
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return reading, helper


def _command(configuration: Configuration, told: Sequence[int]) -> list[str]:
    command = [sys.executable, "-P", "-m", "agentbus", "daemon", "--foreground"]
    if configuration.exists:
        command += ["--config", configuration.path]
    return [*command, "--report-fd", ",".join(map(str, told))]


def surroundings(configuration: Configuration, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a daemon; it lives in `/`, where a relative path means another place."""
    given = clean(environ)
    if RUNTIME_VARIABLE in given:
        given[RUNTIME_VARIABLE] = locate(configuration.settings, environ).runtime_directory
    return given


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what belongs to a harness."""
    return {name: value for name, value in environ.items() if not name.startswith(FOREIGN)}
