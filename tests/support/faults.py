"""Arming the points at which a process of the bus dies, and waiting until it has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from agentbus.runtime.faults import FIRED, Fired, Order, Point
from tests.support.daemon import BOUND, wait


class Points:
    """A directory of armed points; `environment` is for the processes that are to look there.

    A daemon and an adapter, or two adapters, that are not to meet each other's get one each.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        os.makedirs(directory, exist_ok=True)

    def environment(self, **more: Any) -> dict[str, str]:
        """`AGENTBUS_TEST`, with more that it is to ask for."""
        asked = {"faults_directory": self._directory, **more}
        return {"AGENTBUS_TEST": msgspec.json.encode(asked).decode()}

    def arm(self, point: Point, **order: Any) -> None:
        """From now on; `order` has the fields of an `Order`. What fired before is forgotten."""
        path = self._path(point)
        Path(path + FIRED).unlink(missing_ok=True)
        Path(path + ".arming").write_bytes(msgspec.json.encode(Order(**order)))
        os.rename(path + ".arming", path)

    def fired(self, point: Point, bound: float = BOUND) -> Fired:
        """Waits until it has happened: the process that came there is dead, or about to be."""
        path = Path(self._path(point) + FIRED)
        assert wait(path.exists, bound), f"no process came to {point.value}"
        return msgspec.json.decode(path.read_bytes(), type=Fired)

    def has_fired(self, point: Point) -> bool:
        """Whether it has happened since it was armed."""
        return os.path.exists(self._path(point) + FIRED)

    def _path(self, point: Point) -> str:
        return os.path.join(self._directory, point.value)
