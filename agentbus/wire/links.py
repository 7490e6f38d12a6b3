"""Every message on the pipes inside the daemon: one closed union per link and direction.

    supervisor ──control──▶ each child     ToChild            ◀── FromChild
    gateway ────────writer link──▶ writer  GatewayToWriter    ◀── WriterToGateway
    writer ──────────────────▶ projector   WriterToProjector  ◀── ProjectorToWriter
    projector ───────────────▶ gateway     ProjectorToGateway ◀── GatewayToProjector
    gateway ─────────────────▶ indexer     GatewayToIndexer   ◀── IndexerToGateway

Structs are arrays on the wire: new fields go last and have defaults. `ref` is the gateway's number
for an operation, counted up for as long as that gateway lives; the answer carries it back.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.model.channel import ChannelInfo, Kind
from agentbus.model.ids import AttachmentId, ChannelId, CommitId, Seq, SessionId, SubscriptionId
from agentbus.model.message import Payload, Reference, Scalar
from agentbus.model.session import SessionKey
from agentbus.wire.error_codes import Failure

CONTROL: Final = "control"
GATEWAY_WRITER: Final = "gateway-writer"
WRITER_PROJECTOR: Final = "writer-projector"
PROJECTOR_GATEWAY: Final = "projector-gateway"
GATEWAY_INDEXER: Final = "gateway-indexer"


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all link messages are; `gc=False` since none refers to itself."""


# ---- supervisor to child -------------------------------------------------------------------------


class Hand(Frame, frozen=True, tag=1):
    """The next descriptor (`SCM_RIGHTS`, with this frame's first byte) is the new end of `link`."""

    link: str
    number: int


class RedisUp(Frame, frozen=True, tag=2):
    """The dedicated server runs and listens; whether it is fit is for the projector to say."""

    socket_path: str
    pid: int
    executable: str
    version: str


class RedisDown(Frame, frozen=True, tag=3):
    """The dedicated server has ended; `RedisUp` follows when its successor runs."""

    reason: str


class ProcessInfo(msgspec.Struct, frozen=True, array_like=True):
    """One process of the daemon; `started_at` is wall-clock seconds, `restarts` since start."""

    name: str
    pid: int
    started_at: float
    restarts: int


class Processes(Frame, frozen=True, tag=4):
    """Sent to the gateway whenever the list changes, for `status`. `given_up` are the services that
    died too often and that the daemon goes on without."""

    processes: list[ProcessInfo]
    given_up: list[str] = []


class Ping(Frame, frozen=True, tag=5):
    """Asks for `Pong` with the same number."""

    number: int


class Stop(Frame, frozen=True, tag=6):
    """Finish what was accepted, commit pending reports, close, exit with 0. `snapshot` asks the
    projector to have Redis write its snapshot first."""

    snapshot: bool = False


class Listen(Frame, frozen=True, tag=7):
    """The next descriptor (as with `Hand`) is the listening socket from now on: the one before it
    cannot be reached any more."""


class WriterHindered(Frame, frozen=True, tag=8):
    """The writer has said `Hindered`."""

    failure: Failure


ToChild = Hand | RedisUp | RedisDown | Processes | Ping | Stop | Listen | WriterHindered

# ---- child to supervisor -------------------------------------------------------------------------


class Ready(Frame, frozen=True, tag=1):
    """The child serves its links; sent once."""


class Pong(Frame, frozen=True, tag=2):
    """Answers `Ping`."""

    number: int


class Taken(Frame, frozen=True, tag=3):
    """The handed descriptor is in use; the next transfer may begin."""

    link: str
    number: int


class StopRequested(Frame, frozen=True, tag=4):
    """Somebody asked the gateway for an orderly stop of the daemon."""


class RedisUnfit(Frame, frozen=True, tag=5):
    """The server with this pid must be replaced (`fatal` False) or cannot serve us at all."""

    pid: int
    fatal: bool
    failure: Failure


class Failing(Frame, frozen=True, tag=6):
    """Last words before exit: restarting will not help, the daemon should stop and say this."""

    failure: Failure


class SearchBackend(Frame, frozen=True, tag=7):
    """From the projector, once it knows the server: `indexer` True asks for the indexer to run
    (the server has no query engine of its own)."""

    indexer: bool


class ResetRequested(Frame, frozen=True, tag=8):
    """Somebody confirmed, at the gateway, that everything on the bus be destroyed."""


class Hindered(Frame, frozen=True, tag=9):
    """The child cannot work for the moment and goes on trying; over its links it is seen when it
    can."""

    failure: Failure


FromChild = (
    Ready
    | Pong
    | Taken
    | StopRequested
    | RedisUnfit
    | Failing
    | SearchBackend
    | ResetRequested
    | Hindered
)

# ---- gateway to writer ---------------------------------------------------------------------------


class GatewayHello(Frame, frozen=True, tag=1):
    """First on the link. `incarnation` 0 asks for a new number, which voids all attachments; a
    gateway that greets a restarted writer names the number it has."""

    incarnation: int


class Append(Frame, frozen=True, tag=2):
    """A send. `fingerprint` is `model.message.fingerprint` of channel and payload."""

    ref: int
    attachment: AttachmentId
    channel: str
    message_id: str
    fingerprint: bytes
    payload: Payload


class Register(Frame, frozen=True, tag=3):
    """Claims a session for an attachment named by the gateway; asked again it is the same claim.

    `native` is the application's conversation id, `child` a subagent's id beside it (then
    `parent` is the root's native id and `role` what the child does). `agent` None lets the bus
    pick and remember a name for `repository_root`. `channels` None: the ready-made ones. `again`:
    by itself an adapter takes up a claim that it lost, which is no activity.
    """

    ref: int
    attachment: AttachmentId
    agent: str | None
    application: str
    native: str
    child: str | None = None
    parent: str | None = None
    role: str | None = None
    repository: str | None = None
    repository_root: str | None = None
    channels: list[str] | None = None
    again: bool = False


class Release(Frame, frozen=True, tag=4):
    """Ends an attachment; its reports sent before this still count. Unknown ones are no error."""

    ref: int
    attachment: AttachmentId


class Renew(Frame, frozen=True, tag=5):
    """Explicit activity: all the session's subscriptions live on from now."""

    ref: int
    attachment: AttachmentId


class ChannelCreate(Frame, frozen=True, tag=6):
    """Creates a channel, or finds it."""

    ref: int
    attachment: AttachmentId
    name: str
    kind: Kind


class Subscribe(Frame, frozen=True, tag=7):
    """Subscribes, or renews a subscription."""

    ref: int
    attachment: AttachmentId
    channel: str
    include_own: bool | None
    """None keeps what it is (False for a new subscription)."""


class Unsubscribe(Frame, frozen=True, tag=8):
    """Ends a subscription and its cursor."""

    ref: int
    attachment: AttachmentId
    channel: str


class Report(Frame, frozen=True, tag=9):
    """Positions handed off, or up to which there was nothing to deliver; each moves its cursor
    forward or not at all. Unknown subscriptions are passed over. A stale attachment is refused
    whole."""

    ref: int
    attachment: AttachmentId
    positions: list[tuple[SubscriptionId, Seq]]


class StatusAsk(Frame, frozen=True, tag=10):
    """Asks for `WriterStatus`."""

    ref: int


class MemoryEdit(Frame, frozen=True, tag=12):
    """Replaces the current revision. None keeps what that has; empty values clear."""

    ref: int
    attachment: AttachmentId
    memory_id: str
    operation_id: str
    fingerprint: bytes
    content: str
    message_type: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


class MemoryDelete(Frame, frozen=True, tag=13):
    """Tombstones the current revision."""

    ref: int
    attachment: AttachmentId
    memory_id: str
    operation_id: str
    fingerprint: bytes


class ReceiptAsk(Frame, frozen=True, tag=14):
    """Before anything that could refuse or inspect an operation: was it done already? Answered
    with the original's outcome, `Refused` (conflict) or `NoReceipt`."""

    ref: int
    attachment: AttachmentId
    operation_id: str
    fingerprint: bytes


class DiscoverAsk(Frame, frozen=True, tag=15):
    """Asks for `Discovered`; `agent` None: everybody."""

    ref: int
    attachment: AttachmentId
    agent: str | None


class GapAsk(Frame, frozen=True, tag=16):
    """Retention removed what follows `after` in this subscription: how much, exactly?"""

    ref: int
    subscription: SubscriptionId
    after: Seq


class CountAsk(Frame, frozen=True, tag=11):
    """Asks for `Counted`: what each of a session's subscriptions has not been delivered. A key
    names the session whether anybody holds it or not."""

    ref: int
    of: AttachmentId | SessionKey


GatewayToWriter = (
    GatewayHello
    | Append
    | Register
    | Release
    | Renew
    | ChannelCreate
    | Subscribe
    | Unsubscribe
    | Report
    | StatusAsk
    | MemoryEdit
    | MemoryDelete
    | ReceiptAsk
    | DiscoverAsk
    | GapAsk
    | CountAsk
)

# ---- writer to gateway ---------------------------------------------------------------------------


class Welcome(Frame, frozen=True, tag=1):
    """Answers `GatewayHello`: who we are and every channel there is."""

    incarnation: int
    instance: str
    commit_id: CommitId
    channels: list[ChannelInfo]


class ChannelOpened(Frame, frozen=True, tag=2):
    """A channel was created; comes before any answer that depends on it."""

    channel: ChannelInfo


class MemoryChanged(Frame, frozen=True, tag=4):
    """A memory was edited (`envelope` is the new revision) or deleted (None). Comes before the
    outcome of the mutation, so that whoever holds the old revision is told before it is answered.
    `seq` is the memory's stream position, `commit_id` the commit that the projection needs to
    serve it."""

    channel_id: ChannelId
    memory_id: str
    seq: Seq
    revision: int
    session_id: SessionId
    commit_id: CommitId
    envelope: bytes | None


class ExpiredInfo(msgspec.Struct, frozen=True, array_like=True):
    """A cursor that ran out. It is forgotten when its id is reported, or after 720 hours."""

    id: SubscriptionId
    channel: str
    channel_id: ChannelId
    position: Seq


class CursorsExpired(Frame, frozen=True, tag=5):
    """Cursors of an attached session ran out just now."""

    attachment: AttachmentId
    expired: list[ExpiredInfo]


class CapacityWarning(Frame, frozen=True, tag=6):
    """For every channel's attached subscribers; text for people, complete in itself."""

    text: str


class Outcomes(Frame, frozen=True, tag=3):
    """The answers of one batch, in the order of its operations. `commit_id` is the last commit of
    message rows at that point: what of this batch has rows becomes visible with it."""

    commit_id: CommitId
    outcomes: list[Outcome]


class SubscriptionInfo(msgspec.Struct, frozen=True, array_like=True):
    """A subscription; `position` is its durable cursor, `expires_at` wall-clock seconds."""

    id: SubscriptionId
    channel: str
    channel_id: ChannelId
    position: Seq
    expires_at: float
    include_own: bool
    undelivered: int = 0
    """Messages after `position` in the database, own ones left out unless `include_own`."""


class Refused(Frame, frozen=True, tag=1):
    """Any operation that was not carried out."""

    ref: int
    failure: Failure


class Accepted(Frame, frozen=True, tag=2):
    """Answers `Append`. A duplicate carries the original's facts and no credit is owed for it."""

    ref: int
    message_id: str
    seq: Seq
    sent_at: str
    duplicate: bool
    memory_id: str | None = None
    revision: int | None = None


class Registered(Frame, frozen=True, tag=3):
    """Answers `Register`. `resumed` tells that the session was known before."""

    ref: int
    attachment: AttachmentId
    session_id: SessionId
    display_name: str
    agent: str
    resumed: bool
    subscriptions: list[SubscriptionInfo]
    expired: list[ExpiredInfo] = []


class Done(Frame, frozen=True, tag=4):
    """Answers `Release` and `Report`."""

    ref: int


class Renewed(Frame, frozen=True, tag=5):
    """Answers `Renew`: the subscriptions as they are now."""

    ref: int
    subscriptions: list[SubscriptionInfo]


class ChannelCreated(Frame, frozen=True, tag=6):
    """Answers `ChannelCreate`."""

    ref: int
    channel: ChannelInfo
    created: bool


class Subscribed(Frame, frozen=True, tag=7):
    """Answers `Subscribe`."""

    ref: int
    subscription: SubscriptionInfo
    created: bool
    expired_from: Seq | None = None


class Unsubscribed(Frame, frozen=True, tag=8):
    """`subscription` None: there was none."""

    ref: int
    channel: str
    subscription: SubscriptionId | None


class WriterStatus(Frame, frozen=True, tag=9):
    """Answers `StatusAsk`; sizes in bytes, `sessions` and totals as of now. `projection_bytes` is
    what counts against Redis' budget."""

    ref: int
    path: str
    logical_bytes: int
    file_bytes: int
    wal_bytes: int
    commit_id: CommitId
    synchronous: str
    messages: int
    memories: int
    tombstones: int
    receipts: int
    evicted: int
    sessions: list[SessionRow]
    projection_bytes: int = 0


class Mutated(Frame, frozen=True, tag=10):
    """Answers `MemoryEdit` (`revision` is the new one, `replaced_revision` the one before it) and
    `MemoryDelete` (`revision` None, `replaced_revision` the one deleted)."""

    ref: int
    memory_id: str
    revision: int | None
    replaced_revision: int
    duplicate: bool


class NoReceipt(Frame, frozen=True, tag=11):
    """Answers `ReceiptAsk`: go on."""

    ref: int


class KnownSession(msgspec.Struct, frozen=True, array_like=True):
    """`last_seen` is wall-clock seconds; `child` and `parent` are native ids."""

    display_name: str
    application: str
    session: str
    child: str | None
    parent: str | None
    role: str | None
    repository: str | None
    attached: bool
    last_seen: float


class KnownAgent(msgspec.Struct, frozen=True, array_like=True):
    """A persistent agent and its sessions, the latest first (bounded)."""

    agent: str
    sessions: list[KnownSession]


class Discovered(Frame, frozen=True, tag=12):
    """Answers `DiscoverAsk`."""

    ref: int
    agents: list[KnownAgent]


class GapTold(Frame, frozen=True, tag=13):
    """Answers `GapAsk`: the next message there is has `resumed_at`; `lost` leaves out own ones
    unless the subscription includes them. `resumed_at` is `after` + 1 where nothing is missing."""

    ref: int
    subscription: SubscriptionId
    after: Seq
    resumed_at: Seq
    lost: int


class Counted(Frame, frozen=True, tag=14):
    """Answers `CountAsk`, in one snapshot."""

    ref: int
    session: SessionId
    subscriptions: list[SubscriptionInfo]


class SessionRow(msgspec.Struct, frozen=True, array_like=True):
    """A session as stored; `since` is when it attached or was last seen, wall-clock seconds."""

    display_name: str
    agent: str
    application: str
    native: str
    child: str | None
    repository: str | None
    attachment: AttachmentId | None
    since: float
    subscriptions: list[SubscriptionInfo]


Outcome = (
    Refused
    | Accepted
    | Registered
    | Done
    | Renewed
    | ChannelCreated
    | Subscribed
    | Unsubscribed
    | WriterStatus
    | Mutated
    | NoReceipt
    | Discovered
    | GapTold
    | Counted
)

WriterToGateway = (
    Welcome | ChannelOpened | Outcomes | MemoryChanged | CursorsExpired | CapacityWarning
)

# ---- writer to projector -------------------------------------------------------------------------


class RowInserted(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message row of a commit, as projection and index need it; `envelope` is its JSON, `id` the
    row's, which orders all messages of the bus."""

    channel_id: ChannelId
    seq: Seq
    session_id: SessionId
    envelope: bytes
    memory_id: str | None = None
    revision: int | None = None
    id: int = 0


class Tombstoned(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A revision that a commit tombstoned. Where no row of the same commit has the memory, it was
    deleted."""

    channel_id: ChannelId
    memory_id: str
    seq: Seq
    revision: int


class Committed(Frame, frozen=True, tag=1):
    """A commit and the one before it: where `previous` is not what was applied last, read the
    database instead. The row of a memory's later revision has the memory's own stream position."""

    previous: CommitId
    commit_id: CommitId
    rows: list[RowInserted]
    tombstones: list[Tombstoned] = []


class WriterHello(Frame, frozen=True, tag=2):
    """First on the link: the database is there and holds this instance and commit."""

    instance: str
    commit_id: CommitId


class Boundary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Nothing below `oldest` is left in the database; `oldest` is past the last where all went."""

    channel_id: ChannelId
    oldest: Seq


class Evicted(Frame, frozen=True, tag=3):
    """Retention moved these boundaries; answered with `Measured` of the same round once the
    streams are trimmed. Without boundaries it only asks for the measure."""

    round: int
    boundaries: list[Boundary]


WriterToProjector = WriterHello | Committed | Evicted

# ---- projector to writer -------------------------------------------------------------------------


class Readiness(Frame, frozen=True, tag=1):
    """Whether the projection takes commits. Sent when the link opens and at each change; the
    writer takes none while it has not heard True on the present link."""

    ready: bool
    reason: str


class Applied(Frame, frozen=True, tag=2):
    """The projection holds everything up to this commit."""

    commit_id: CommitId


class Measured(Frame, frozen=True, tag=3):
    """`dataset_bytes` as Redis reports its dataset, after everything up to `commit_id` and the
    trimming of `round`; `with_index` tells that the text index is a part of it."""

    round: int
    commit_id: CommitId
    dataset_bytes: int
    with_index: bool = False


ProjectorToWriter = Readiness | Applied | Measured

# ---- projector to gateway ------------------------------------------------------------------------


class ChannelTop(msgspec.Struct, frozen=True, array_like=True):
    """What the projection holds of a channel: `count` entries, the oldest and newest position
    (0 and 0 where empty), and `sent_at` of the newest (empty string where none).

    Where retention has removed all, `oldest` is past the last there was, which is `top`. Of a
    memory channel `oldest` may be too low and `top` too high by memories that were deleted.
    """

    channel_id: ChannelId
    count: int
    oldest: Seq
    top: Seq
    newest_at: str


class Projection(Frame, frozen=True, tag=1):
    """The projection's state: when the link opens and at each change.

    `rebuilds` counts clear-and-rebuilds within `boot` (a token of the projector process): where
    either differs from what the gateway saw last with `rebuilds` above 0, a new epoch begins.
    `channels` is complete when `ready`; the gateway takes its `top`s from it. `socket_path` is
    where to read the streams, None while there is no server. `search` is `query_engine`, `fts5`
    (the indexer has the index), or empty while the server's own index is still being made.
    """

    boot: str
    ready: bool
    reason: str
    rebuilds: int
    commit_id: CommitId
    socket_path: str | None
    channels: list[ChannelTop]
    search: str = "fts5"


class VisibleMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message that is in its stream now."""

    channel_id: ChannelId
    seq: Seq
    session_id: SessionId
    envelope: bytes
    memory_id: str | None = None


class Visible(Frame, frozen=True, tag=2):
    """Everything up to `commit_id` is in Redis; these are its messages, in stream order. Of
    memories only creations are messages, with the newest content that came along. `channels` are
    those of which memories were edited or deleted, with the messages counted in."""

    commit_id: CommitId
    messages: list[VisibleMessage]
    channels: list[ChannelTop] = []


class RedisStatus(Frame, frozen=True, tag=3):
    """Answers `RedisStatusAsk`. `search` is `query_engine` or `fts5`."""

    ref: int
    healthy: bool
    flavour: str
    version: str
    pid: int
    dataset_bytes: int
    search: str
    commit_id: CommitId


class Trimmed(Frame, frozen=True, tag=4):
    """Streams were trimmed to these boundaries."""

    channels: list[ChannelTop]


ProjectorToGateway = Projection | Visible | RedisStatus | Trimmed

# ---- gateway to projector ------------------------------------------------------------------------


class RedisStatusAsk(Frame, frozen=True, tag=1):
    """Asks for `RedisStatus`."""

    ref: int


GatewayToProjector = RedisStatusAsk

# ---- gateway to indexer --------------------------------------------------------------------------


class IndexUpTo(Frame, frozen=True, tag=1):
    """The database holds this commit: read on."""

    commit_id: CommitId


class SearchFilter(msgspec.Struct, frozen=True, array_like=True):
    """What narrows a search, whatever its text. Times are RFC 3339 as messages carry them."""

    channels: list[str] | None = None
    sender: str | None = None
    since: str | None = None
    until: str | None = None
    thread: str | None = None
    reply_to: str | None = None
    kind: Kind | None = None


class SearchAsk(Frame, frozen=True, tag=2):
    """`after_commit` is the caller's last accepted commit: the index waits until it has it
    (bounded). `max_bytes` bounds the envelopes' sum; at least one comes."""

    ref: int
    query: str
    filters: SearchFilter
    order: str
    limit: int
    cursor: str | None
    after_commit: CommitId
    max_bytes: int


class SearchCancel(Frame, frozen=True, tag=3):
    """Nobody waits for this search any more."""

    ref: int


GatewayToIndexer = IndexUpTo | SearchAsk | SearchCancel

# ---- indexer to gateway --------------------------------------------------------------------------


class IndexState(Frame, frozen=True, tag=1):
    """When the link opens, at each change of `ready`, and now and then for `status`. `missing` are
    commits that the database has lost, as the index showed."""

    ready: bool
    reason: str
    commit_id: CommitId
    documents: int
    text_bytes: int
    missing: int = 0


class SearchHit(msgspec.Struct, frozen=True, array_like=True):
    """A current message; `snippet` shows the place."""

    envelope: bytes
    snippet: str


class SearchFound(Frame, frozen=True, tag=2):
    """Answers `SearchAsk`."""

    ref: int
    hits: list[SearchHit]
    next_cursor: str | None


class SearchRefused(Frame, frozen=True, tag=3):
    """Answers `SearchAsk`."""

    ref: int
    failure: Failure


IndexerToGateway = IndexState | SearchFound | SearchRefused
