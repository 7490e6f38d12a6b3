"""How the bus is, as far as the gateway knows: who is there, what is applied, what may be asked."""

from __future__ import annotations

from agentbus.errors import AgentbusError, Recovering, StorageFailed, Unavailable
from agentbus.model.ids import CommitId, Epoch
from agentbus.wire.links import Projection, Welcome


class Condition:
    """Facts from the writer, the projector and the supervisor."""

    def __init__(self) -> None:
        self.incarnation = 0
        self.instance = ""
        self.writer = False
        """Whether the present writer has said Welcome."""
        self.hindrance = ""
        """What keeps the writer from its work; until it says Welcome."""
        self.committed = CommitId(0)
        self.unheard = CommitId(0)
        """What the writer had when it came: of changes up to here nobody may have told us."""
        self.doubtful = False
        """Whether changes of memories were given up that may have been made all the same."""
        self.visible = CommitId(0)
        self.ready = False
        """Whether the projection holds everything that was announced."""
        self.given_up: frozenset[str] = frozenset()
        """Services that died too often, and that the daemon goes on without."""
        self.stopping = False
        self.ending = "the daemon is stopping"
        """Why, where it is."""
        self._reason = "the projector has not reported yet"
        self._generation: tuple[str, int] | None = None
        self._epochs = 0
        self.epoch = Epoch("0.0")
        """The present one."""

    @property
    def state(self) -> str:
        """`starting`, `recovering`, `ready` or `stopping`."""
        if self.stopping:
            return "stopping"
        if not self.instance:
            return "starting"
        return "ready" if self.writer and self.ready else "recovering"

    @property
    def is_current(self) -> bool:
        """Whether Redis holds no memory that was changed while the gateway could not hear of it."""
        return self.visible >= self.unheard

    def reasons(self) -> list[str]:
        """Why the bus is not ready."""
        reasons = []
        if self.stopping:
            reasons.append(self.ending)
        if not self.writer:
            reasons.append(self.hindrance or "the writer is not there")
        if not self.ready:
            reasons.append(self._reason)
        return reasons

    def require_ready(self) -> None:
        """Raises Recovering or Unavailable where messages cannot be sent or read now."""
        if self.stopping or not (self.writer and self.ready):
            raise self.unready()

    def unready(self) -> AgentbusError:
        """What is said to whoever asks for more than can be done now."""
        if self.stopping:
            return Unavailable(self.ending)
        if self.hindrance and not self.writer:
            return StorageFailed(self.hindrance)
        return Recovering(f"the bus is recovering: {'; '.join(self.reasons())}")

    def require_going_on(self) -> None:
        """Raises Unavailable where nothing new is begun."""
        if self.stopping:
            raise Unavailable(self.ending)

    def welcomed(self, welcome: Welcome) -> None:
        """The writer has said which bus this is."""
        self.writer = True
        self.hindrance = ""
        self.instance, self.incarnation = welcome.instance, welcome.incarnation
        self.committed = self.unheard = welcome.commit_id
        self._name_epoch()

    def projected(self, projection: Projection) -> bool:
        """The projector's report; True where a new epoch begins with it."""
        self.ready = projection.ready
        self._reason = f"the projection is not up to date ({projection.reason})"
        self.visible = max(self.visible, projection.commit_id) if projection.ready else self.visible
        generation = (projection.boot, projection.rebuilds)
        known, self._generation = self._generation, generation
        if known is None or known == generation or not projection.rebuilds:
            return False
        self.begin_epoch()
        return True

    def begin_epoch(self) -> None:
        """What was pushed is void."""
        self.doubtful = False
        self._epochs += 1
        self._name_epoch()

    def _name_epoch(self) -> None:
        self.epoch = Epoch(f"{self.incarnation}.{self._epochs}")

    def unprojected(self) -> None:
        """The projector is gone."""
        self.ready = False
        self._reason = "the projector is being restarted"
