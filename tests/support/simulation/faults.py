"""What happens to a machine: one table of faults, from which chance draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentbus.runtime.faults import Point
from tests.support.simulation.operators import Operator
from tests.support.simulation.processes import Process
from tests.support.simulation.writer import Writer

if TYPE_CHECKING:
    from tests.support.simulation.world import World

CHILDREN: Final = ("writer", "projector", "gateway", "indexer")
PROCESSES: Final = (*CHILDREN, "redis", "supervisor")
MOST_AGENTS: Final = 8
LONG: Final = 0.1
"""How often a process is halted for longer than the others have patience."""

DAY: Final = 86_400.0
ALONE: Final = 0.7
TOGETHER: Final = 0.03
"""How often a fault comes alone; else the next one follows within about so many seconds."""

Fault = Callable[["Faults"], None]


class Faults:
    """Draws faults while `active`."""

    def __init__(self, world: World) -> None:
        self.active = False
        self.drawn: dict[str, int] = {}
        """How often each was."""
        self.calm = True
        """Whether there never was one."""
        self._world = world
        self._scheduler = world.scheduler
        self._machine = world.machine
        self._chance = world.scheduler.chance("faults")
        self._jumped = 0.0
        self._pace = 1.0

    def begin(self, pace: float) -> None:
        """One about every `pace` seconds."""
        self.active, self.calm = True, False
        self._pace = pace
        self._next(pace)

    def _next(self, pace: float) -> None:
        self._scheduler.after(self._chance.expovariate(1 / pace), self._draw)

    def _draw(self) -> None:
        if not self.active:
            return
        (name,) = self._chance.choices(list(TABLE), [weight for weight, _ in TABLE.values()])
        self.inject(name)
        self._next(self._pace if self._chance.random() < ALONE else TOGETHER)

    def inject(self, name: str) -> None:
        """This one, now."""
        self.calm = False
        self.drawn[name] = self.drawn.get(name, 0) + 1
        self._scheduler.trace.note(self._scheduler.now, f"FAULT {name}")
        TABLE[name][1](self)

    def _some(self, names: tuple[str, ...]) -> Process | None:
        return self._machine.find(self._chance.choice(names))

    def _some_adapter(self) -> Process | None:
        return self._chance.choice(self._world.agents).client.adapter

    # ---- processes

    def kill(self) -> None:
        """SIGKILL between two events."""
        process = self._some(PROCESSES)
        if process is not None:
            process.kill()

    def doom(self) -> None:
        """SIGKILL in the middle of a write, soon."""
        process = self._some(PROCESSES)
        if process is not None:
            process.doom(self._chance.randrange(4))

    def kill_writer_at_commit(self) -> None:
        """SIGKILL in the middle of a transaction, or between a commit and its answers."""
        writer = self._machine.application("writer")
        if isinstance(writer, Writer):
            writer.dies_at = self._chance.choice((Point.UNCOMMITTED, Point.COMMITTED))

    def kill_adapter(self) -> None:
        """SIGKILL of an adapter, at once or in the middle of a write."""
        adapter = self._some_adapter()
        if adapter is not None:
            if self._chance.random() < 0.5:
                adapter.kill()
            else:
                adapter.doom(self._chance.randrange(3))

    def halt(self) -> None:
        """The scheduler of the system forgets a process."""
        process = self._some(PROCESSES) if self._chance.random() < 0.8 else self._some_adapter()
        if process is not None:
            long = self._chance.random() < LONG
            process.halt(self._chance.uniform(5, 70) if long else self._chance.random() ** 2 * 2)

    def stop(self) -> None:
        """SIGSTOP, and SIGCONT some time later, unless it was replaced by then."""
        process = self._some(CHILDREN)
        if process is not None:
            process.halt(self._chance.uniform(0.1, 8), stopped=True)

    def refuse_forks(self) -> None:
        """The next fork fails."""
        daemon = self._machine.daemon
        if daemon is not None:
            daemon.refused_forks = 1
            self.kill()

    def stop_daemon(self) -> None:
        """Somebody stops the daemon in order."""
        daemon = self._machine.daemon
        if daemon is not None:
            daemon.stop()

    def join(self) -> None:
        """A new agent comes, in the middle of all this."""
        if len(self._world.agents) < MOST_AGENTS:
            agent = self._world.add_agent()
            agent.join()
            agent.begin()

    def block_harness(self) -> None:
        """A harness does not read."""
        self._chance.choice(self._world.agents).client.block(self._chance.random() ** 2 * 2)

    # ---- the machine

    def lock_database(self) -> None:
        """Another program writes to the database."""
        self._machine.disk.lock()
        self._scheduler.after(self._chance.random() ** 2, self._machine.disk.unlock)

    def fill_disk(self) -> None:
        """No space is left."""
        self._machine.disk.fill(full=True)
        self._mend_later()

    def break_disk(self) -> None:
        """Writes fail, soon, perhaps in the middle of a transaction."""
        self._machine.disk.break_writes(int(self._chance.random() ** 2 * 20_000))
        self._mend_later()

    def run_out_of_descriptors(self) -> None:
        """No process can open a file."""
        self._machine.disk.break_opens()
        self._mend_later()

    def protect_disk(self) -> None:
        """The database becomes read-only."""
        self._machine.disk.protect(protected=True)
        self._mend_later()

    def _mend_later(self) -> None:
        self._scheduler.after(self._chance.random() ** 2 * 2, self._machine.disk.mend)
        if self._chance.random() < 0.3:
            self._scheduler.after(self._chance.random() ** 2, self._kill_in_trouble)

    def _kill_in_trouble(self) -> None:
        if self.active:
            self.kill()

    def lose_index(self) -> None:
        """The index is removed while nobody has it."""
        indexer = self._machine.find("indexer")
        if indexer is not None:
            indexer.kill()
            self._machine.disk.lose_index()

    def suspend(self) -> None:
        """The machine stands still: the wall clock goes on, and on some systems all clocks do."""
        seconds = 10 ** self._chance.uniform(0, 4)
        if self._chance.random() < 0.5:
            self._scheduler.leap(seconds)
        elif abs(self._jumped + seconds) < DAY:
            self._scheduler.jump(seconds)
            self._jumped += seconds

    def jump(self) -> None:
        """The clock is set; never more than a day from the true time."""
        small = self._chance.random() < 0.5
        far = 10 ** self._chance.uniform(0, 3) if small else DAY
        target = self._chance.uniform(-far, far)
        self._scheduler.jump(target - self._jumped)
        self._jumped = target

    # ---- Redis

    def fill_redis(self) -> None:
        """It takes nothing more."""
        self._machine.redis.model.out_of_memory = True
        self._scheduler.after(self._chance.random() * 0.5, self.free_redis)

    def free_redis(self) -> None:
        """It does again."""
        self._machine.redis.model.out_of_memory = False

    def empty_redis(self) -> None:
        """Somebody empties it."""
        self._machine.redis.model.run((b"FLUSHALL",))

    def save_redis(self) -> None:
        """A snapshot is written."""
        self._machine.redis.model.run((b"SAVE",))

    def lose_snapshot(self) -> None:
        """Its snapshot is removed."""
        self._machine.redis.model.forget_snapshot()

    # ---- people

    def ask_status(self) -> None:
        """Somebody looks how the bus is."""
        Operator(self._machine, "status")

    def reset(self) -> None:
        """Somebody destroys everything on the bus."""
        Operator(self._machine, "reset")

    # ---- the end of it

    def heal(self) -> None:
        """No more faults, and what is lasting of them is over."""
        self.active = False
        for name in PROCESSES:
            process = self._machine.find(name)
            if process is not None:
                process.reprieve()
        for agent in self._world.agents:
            if agent.client.adapter is not None:
                agent.client.adapter.reprieve()
        writer = self._machine.application("writer")
        if isinstance(writer, Writer):
            writer.dies_at = None
        self._machine.disk.unlock()
        self._machine.disk.mend()
        self.free_redis()


TABLE: Final[dict[str, tuple[float, Fault]]] = {
    "kill": (8, Faults.kill),
    "doom": (8, Faults.doom),
    "kill writer at commit": (4, Faults.kill_writer_at_commit),
    "kill adapter": (6, Faults.kill_adapter),
    "halt": (4, Faults.halt),
    "stop": (1, Faults.stop),
    "refuse forks": (1, Faults.refuse_forks),
    "stop daemon": (1, Faults.stop_daemon),
    "join": (1, Faults.join),
    "block harness": (4, Faults.block_harness),
    "lock database": (2, Faults.lock_database),
    "fill disk": (2, Faults.fill_disk),
    "break disk": (3, Faults.break_disk),
    "run out of descriptors": (1, Faults.run_out_of_descriptors),
    "protect disk": (1, Faults.protect_disk),
    "lose index": (1, Faults.lose_index),
    "jump": (2, Faults.jump),
    "suspend": (1, Faults.suspend),
    "fill Redis": (1, Faults.fill_redis),
    "empty Redis": (1, Faults.empty_redis),
    "save Redis": (2, Faults.save_redis),
    "lose snapshot": (1, Faults.lose_snapshot),
    "ask status": (1, Faults.ask_status),
    "reset": (0.7, Faults.reset),
}
"""Weight and action by name."""
