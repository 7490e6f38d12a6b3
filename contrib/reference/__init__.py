"""Writes the pages of docs/reference/ that are made from the code. In contrib/:

python -m reference            writes them
python -m reference --check    exit code 1 where one is not what would be written
"""

from __future__ import annotations

from reference.commands import commands
from reference.failures import error_page
from reference.man import man_page
from reference.protocol import protocol
from reference.settings import configuration
from reference.tools import tools


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {
        "commands.md": commands(),
        "agentbus.1": man_page(),
        "tools.md": tools(),
        "protocol.md": protocol(),
        "configuration.md": configuration(),
        "errors.md": error_page(),
    }
