"""What tests may change about a daemon: the one reader of `AGENTBUS_TEST`.

A JSON object, refused unless the runtime directory is overridden too, so that nobody's own bus can
be run with it:

    clock_file   path of a file with `{"wall": seconds, "monotonic": seconds}`, both optional, that
                 are added to what the clocks say; read anew whenever it has changed
    faults_directory
                 path of a directory in which points are armed where processes die, see `faults`
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from agentbus.errors import ConfigInvalid
from agentbus.runtime.paths import RUNTIME_VARIABLE

VARIABLE: Final = "AGENTBUS_TEST"


class Testing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the variable asks for."""

    clock_file: str | None = None
    faults_directory: str | None = None


def requested(environ: Mapping[str, str] = os.environ) -> Testing | None:
    """None in earnest. Raises ConfigInvalid."""
    text = environ.get(VARIABLE)
    if not text:
        return None
    if not environ.get(RUNTIME_VARIABLE):
        raise ConfigInvalid(
            f"{VARIABLE} is for tests and is refused without {RUNTIME_VARIABLE}; unset it"
        )
    try:
        return msgspec.json.decode(text, type=Testing)
    except msgspec.MsgspecError as error:
        raise ConfigInvalid(f"{VARIABLE} cannot be read: {error}") from error
