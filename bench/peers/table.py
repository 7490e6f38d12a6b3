"""Which buses there are to compare, ours first."""

from __future__ import annotations

from typing import Final

from bench.peers.agent_bus_mcp import AgentBusMcp
from bench.peers.agent_bus_team import AgentBusTeam
from bench.peers.agent_mail import AgentMail
from bench.peers.agentbus_cli import AgentbusCli
from bench.peers.agentchatbus import AgentChatBus
from bench.peers.claude_peers import ClaudePeers
from bench.peers.ours import Ours
from bench.peers.peer import Peer

OTHERS: Final[list[type[Peer]]] = [
    AgentBusMcp,
    AgentBusTeam,
    AgentbusCli,
    AgentChatBus,
    AgentMail,
    ClaudePeers,
]
ALL: Final[list[type[Peer]]] = [Ours, *OTHERS]
