"""What happens in the demo, act by act, on a real bus with real crashes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agentbus.cli.demo.agent import Agent
from agentbus.cli.demo.ledger import Ledger
from agentbus.cli.demo.place import Place
from agentbus.cli.demo.story import Story, span

CAST: Final = (("Ada", "claude-code"), ("Ben", "codex"), ("Cleo", "gemini-cli"))
CHANNEL: Final = "parser-bug"
DIALOGUE: Final[tuple[tuple[str, str, int | None], ...]] = (
    ("Ada", "The parser drops the last line when a file ends without a newline.", None),
    ("Ben", "Mine. A failing test first, then the fix.", 0),
    ("Cleo", "I'll review. Please look at CRLF files too.", 1),
    ("Ben", "Fixed, both kinds: 3 tests, see src/parser.py. Ada, run it all?", 2),
)
"""Who says what, and which line it answers."""

MEMORY: Final = "memory"
LEARNT: Final = "Parser: a file may end without a newline. The last line must not get lost."
REVISED: Final = "Parser: a file may end without a newline, LF or CRLF. Tests: tests/test_parser.py"
SOUGHT: Final = "parser newline"

BURST: Final = 30
FIRST: Final = 10
"""Messages of the burst sent before the crash; all bursts together stay below the rate limit."""


class Victim(msgspec.Struct, frozen=True):
    """A process of the bus to be killed; `rescue` tells how the bus gets along."""

    process: str
    title: str
    what: str
    rescue: str


VICTIMS: Final = (
    Victim(
        "writer",
        "The writer dies",
        "it alone may write the database",
        "the gateway submits again what the dead writer has not answered",
    ),
    Victim(
        "gateway",
        "The gateway dies",
        "all adapters are connected to it",
        "the adapters connect again and repeat what was not answered",
    ),
    Victim(
        "redis",
        "Redis dies",
        "it has the hot copy of the messages",
        "a new one is filled from SQLite; what was refused is retried",
    ),
)

PATIENCE: Final = 30.0


class Script:
    """`command` starts an adapter; `agents` are not running yet."""

    def __init__(self, place: Place, story: Story, command: Sequence[str]) -> None:
        self._place = place
        self._story = story
        self._command = command
        self._ledger = Ledger()
        self._agents = {
            name: Agent(name, application, f"{name.lower()}-1") for name, application in CAST
        }

    def run(self) -> bool:
        """True when every accepted message arrived, once and in order."""
        self._story.opening(str(self._place.root))
        self._meet()
        self._talk()
        remembered = self._remember()
        for victim in VICTIMS:
            self._lose(victim)
        self._lose_an_adapter()
        return self._settle() and remembered

    def close(self) -> None:
        """Ends the adapters."""
        for agent in self._agents.values():
            agent.close()

    def _meet(self) -> None:
        self._story.act("Three agents join")
        for index, agent in enumerate(self._agents.values()):
            began = time.monotonic()
            agent.start(self._command)
            shown = agent.call("whoami")["display_name"]
            took = span(time.monotonic() - began)
            if index == 0:
                self._story.does(agent.name, "starts `agentbus mcp`, and that starts the bus")
                self._story.note(f"{took} from nothing to the first answer")
                created = agent.call("create_channel", name=CHANNEL)
                self._story.does(agent.name, f"creates the channel #{created['channel']}")
            else:
                self._story.does(agent.name, f"joins as {shown} ({agent.application}) in {took}")
            agent.call("subscribe", channel=CHANNEL)
            self._ledger.join(agent.name)

    def _talk(self) -> None:
        self._story.act("They talk")
        said: list[str] = []
        for name, text, answers in DIALOGUE:
            reply_to = None if answers is None else said[answers]
            others = [agent for agent in self._agents.values() if agent.name != name]
            waiting = [(agent, agent.begin("recv", wait_seconds=5)) for agent in others]
            began = time.monotonic()
            said.append(self._send(self._agents[name], text, reply_to))
            heard = []
            for agent, number in waiting:
                self._take(agent, agent.outcome(number)["messages"])
                heard.append((agent.name, time.monotonic() - began))
                self._catch_up(agent)
            self._story.says(name, text, reply=answers is not None)
            self._story.hears(heard)

    def _remember(self) -> bool:
        """A memory is made, edited before a third agent has read it, and found again."""
        ada, ben, cleo = self._agents.values()
        self._story.act("They remember")
        made = ben.call("send", channel=MEMORY, content=LEARNT)
        self._story.says(ben.name, LEARNT)
        self._story.note(f"kept in #{MEMORY} until somebody deletes it")
        edited = ada.call("memory_edit", memory_id=made["memory_id"], content=REVISED)
        self._story.says(ada.name, REVISED, reply=True)
        self._story.note(f"revision {edited['revision']} replaces {edited['replaced_revision']}")
        messages = cleo.call("recv", wait_seconds=5)["messages"]
        current = [message["content"] for message in messages if message["channel"] == MEMORY]
        self._story.does(cleo.name, f"reads it only now, and gets revision {edited['revision']}")
        began = time.monotonic()
        found = cleo.call("search", query=SOUGHT)["results"]
        took = span(time.monotonic() - began)
        self._story.does(cleo.name, f"searches “{SOUGHT}”: {len(found)} found in {took}")
        well = current == [REVISED] and REVISED in [result["content"] for result in found]
        if not well:
            self._story.failed("that is not what was remembered")
        return well

    def _lose(self, victim: Victim) -> None:
        """Kills a process in the middle of a burst of sends that nobody waits for."""
        ada, ben = self._agents["Ada"], self._agents["Ben"]
        self._story.act(f"{victim.title} while Ada sends {BURST} messages")
        numbers = self._begin_burst(ada, range(FIRST))
        self._accept(ada, numbers[:3])
        pid = self._place.pid(victim.process)
        os.kill(pid, signal.SIGKILL)
        died = time.monotonic()
        numbers += self._begin_burst(ada, range(FIRST, BURST))
        self._story.crash(f"{victim.process} (pid {pid}): {victim.what}")
        self._accept(ada, numbers[3:])
        accepted = time.monotonic() - died
        self._catch_up(ben)
        received = time.monotonic() - died
        self._story.note(victim.rescue)
        self._story.good(f"all {BURST} accepted {span(accepted)} after the crash")
        self._story.good(f"Ben has received them, in order, after {span(received)}")

    def _lose_an_adapter(self) -> None:
        cleo = self._agents["Cleo"]
        due = self._ledger.missing(cleo.name)
        self._story.act(f"Cleo's adapter dies with {due} messages that she has not read")
        self._story.crash(f"agentbus mcp (pid {cleo.pid}): her only way to the bus")
        cleo.kill()
        began = time.monotonic()
        cleo.start(self._command)
        self._catch_up(cleo)
        took = span(time.monotonic() - began)
        self._story.note("a new adapter resumes her session where she had stopped reading")
        self._story.good(f"Cleo has all {due} after {took}")

    def _settle(self) -> bool:
        self._story.act("The accounts")
        for agent in self._agents.values():
            self._catch_up(agent)
        accounts = self._ledger.accounts()
        accepted = sum(account.sent for account in accounts)
        stored = self._stored()
        self._story.balance(accounts)
        self._story.note(f"{accepted} sends were accepted, and #{CHANNEL} has {stored} messages")
        lost = any(account.lost or account.disordered for account in accounts)
        return not lost and stored == accepted

    def _stored(self) -> int:
        """Messages in the channel: positions have no holes, so the last one counts them."""
        newest = self._agents["Ada"].call("history", channel=CHANNEL, limit=1)["messages"]
        return int(newest[-1]["seq"])

    def _begin_burst(self, agent: Agent, numbers: Iterable[int]) -> list[int]:
        return [
            agent.begin("send", channel=CHANNEL, content=f"test {number} passed")
            for number in numbers
        ]

    def _send(self, agent: Agent, text: str, reply_to: str | None) -> str:
        answer = {"reply_to": reply_to} if reply_to else {}
        number = agent.begin("send", channel=CHANNEL, content=text, **answer)
        return self._accept(agent, [number])[0]

    def _accept(self, agent: Agent, numbers: Iterable[int]) -> list[str]:
        """The message ids that the bus has promised to keep."""
        accepted = [agent.outcome(number) for number in numbers]
        for sent in accepted:
            self._ledger.accept(agent.name, sent["message_id"], sent["seq"])
        return [sent["message_id"] for sent in accepted]

    def _take(self, agent: Agent, messages: Iterable[dict[str, str]]) -> None:
        for message in messages:
            if message["channel"] == CHANNEL:
                self._ledger.receive(agent.name, message["message_id"])

    def _catch_up(self, agent: Agent) -> None:
        """Receives until the agent has all it is due, or PATIENCE is over: then the accounts
        show what is lost."""
        deadline = time.monotonic() + PATIENCE
        while self._ledger.missing(agent.name) and time.monotonic() < deadline:
            self._take(agent, agent.call("recv", wait_seconds=2)["messages"])
