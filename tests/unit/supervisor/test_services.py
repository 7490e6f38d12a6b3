from __future__ import annotations

import msgspec
import pytest

from agentbus.supervisor.services import SERVICES, Service, ends
from agentbus.wire import links


def test_every_link_has_its_two_ends():
    assert ends(SERVICES) == {
        links.GATEWAY_WRITER: ("writer", "gateway"),
        links.WRITER_PROJECTOR: ("projector", "writer"),
        links.PROJECTOR_GATEWAY: ("projector", "gateway"),
        links.GATEWAY_INDEXER: ("indexer", "gateway"),
    }


def test_a_link_with_one_end_is_refused():
    with pytest.raises(ValueError, match="a-b"):
        ends([Service("a", "a:run", ("a-b",))])


def test_the_gateway_is_stopped_before_the_writer_and_the_projector_last():
    order = [service.name for service in reversed(SERVICES)]
    assert order == ["gateway", "indexer", "writer", "projector"]


def test_one_service_listens_and_one_saves():
    assert [service.name for service in SERVICES if service.listens] == ["gateway"]
    assert [service.name for service in SERVICES if service.saves_redis] == ["projector"]


def test_rows_are_values():
    assert msgspec.structs.replace(SERVICES[0]) == SERVICES[0]
