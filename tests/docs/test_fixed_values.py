"""Values that are no settings: what the contract says of them is what the code has.

Tests elsewhere show what each of them does, by its name; a value that was changed would be changed
for them as well.
"""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.adapter import bindings, calls, link, notices, reports, session
from agentbus.adapter.tools import schema as tools
from agentbus.config import KIB, MIB
from agentbus.gateway import accept, attachments, inspect, lanes, pending, programs
from agentbus.gateway import reports as batches
from agentbus.model import names
from agentbus.model import session as sessions
from agentbus.runtime import logs
from agentbus.search import query, request
from agentbus.supervisor import services
from agentbus.wire import rpc
from agentbus.wire.mcp import server
from agentbus.writer import ages, retention, tidy


@pytest.mark.parametrize(
    ("what", "found", "said"),
    [
        ("heartbeat", link.HEARTBEAT_SECONDS, 10),
        ("expiry of an attachment", attachments.EXPIRY_SECONDS, 30),
        ("how long somebody else's claim is waited out", session.EXPIRY_SECONDS, 30),
        ("reports wait", batches.DELAY_SECONDS, 0.02),
        ("reports go together", batches.MOST, 100),
        ("grace of a stop", services.GRACE, 5),
        ("grace of a snapshot", services.SNAPSHOT_GRACE, 30),
        ("automatic retries", calls.RETRY_SECONDS, 30),
        ("an operation waits for a writer", pending.PATIENCE_SECONDS, 30),
        ("most of a result", accept.RESULT_BYTES, 4 * MIB),
        ("most that a call may ask for", tools.MAX_KIB * KIB, 4 * MIB),
        ("a line from an adapter", rpc.MAX_LINE, 8 * MIB),
        ("a line from a harness", server.MAX_LINE, 8 * MIB),
        ("most of a page", accept.PAGE, 1000),
        ("most of a page, to agents", tools.MAX_PAGE, 1000),
        ("most of a page of a search", request.MAX_LIMIT, 1000),
        ("a query", (accept.QUERY_BYTES, query.MAX_BYTES), (4 * KIB, 4 * KIB)),
        ("output of a hook", programs.OUTPUT_BYTES, 64 * KIB),
        ("hooks side by side", inspect.SIDE_BY_SIDE, 8),
        ("names", (names.NAME_BYTES, tools.MAX_NAME), (128, 128)),
        ("log files of a process", (logs.FILES, logs.FILE_BYTES), (4, 16 * MIB)),
        ("a lane", (lanes.LANE_OPERATIONS, lanes.LANE_BYTES), (64, 8 * MIB)),
        ("notices", notices.MAX_NOTICES, 64),
        ("renewals by recv", reports.RENEW_SECONDS, 60),
        ("bindings end", bindings.LIFE_SECONDS, 3600),
        ("expired cursors are remembered", sessions.EXPIRY_MARKER_HOURS, 720),
        ("a jump of the clock", (ages.JUMP_SECONDS, ages.SUSPENDED_SECONDS), (300, 3600)),
        ("capacity warnings", retention.WARN_SECONDS, 15 * 60),
        ("the WAL", tidy.WAL_LIMIT_BYTES, 64 * MIB),
    ],
)
def test_a_fixed_value_is_what_the_contract_says(what: str, found: Any, said: Any) -> None:
    assert found == said, what
