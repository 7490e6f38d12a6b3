"""The document of `agentbus status --json`, from facts: pure, every key there whatever is known.

What is not known, because a process did not answer, is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from agentbus import __version__
from agentbus.config import MIB, Settings
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Feed
from agentbus.gateway.events import Usage
from agentbus.gateway.metrics import Metrics, Reservoir
from agentbus.model.delivery import State
from agentbus.model.ids import AttachmentId, ChannelId, Seq
from agentbus.model.message import rfc3339
from agentbus.model.ports import Instant
from agentbus.runtime.paths import log_file
from agentbus.wire.links import (
    IndexState,
    ProcessInfo,
    RedisStatus,
    SessionRow,
    SubscriptionInfo,
    WriterStatus,
)

NEARLY_FULL_PERCENT: Final = 90

Document = dict[str, Any]


class Facts(msgspec.Struct, frozen=True):
    """What there is to tell."""

    now: Instant
    condition: Condition
    settings: Settings
    config_path: str
    processes: Sequence[ProcessInfo]
    usages: Mapping[int, Usage]
    writer: WriterStatus | None
    redis: RedisStatus | None
    channels: Channels
    attachments: Mapping[AttachmentId, Attachment]
    oldest: Mapping[tuple[ChannelId, Seq], str]
    """When the first message after a position was sent."""
    metrics: Metrics
    rejected: int
    index: IndexState | None
    alerts: Sequence[str]
    degraded: Sequence[str]


def document(facts: Facts) -> Document:
    """All of it."""
    budgets = _budgets(facts)
    condition = facts.condition
    return {
        "version": __version__,
        "state": condition.state,
        "instance": condition.instance,
        "uptime_s": _uptime(facts),
        "config_path": facts.config_path,
        "processes": [_process(facts, process) for process in facts.processes],
        "reasons": [*condition.reasons(), *facts.degraded],
        "redis": _redis(facts),
        "index": _index(facts),
        "sqlite": _sqlite(facts),
        "budgets": budgets,
        "totals": _totals(facts),
        "rates": _rates(facts),
        "latency_ms": {
            "accept": _latency(facts, facts.metrics.accept),
            "visible": _latency(facts, facts.metrics.visible),
        },
        "sessions": [_session(facts, row) for row in _rows(facts)],
        "channels": list(_channels(facts)),
        "warnings": list(_warnings(facts, budgets)),
    }


def next_undelivered(
    writer: WriterStatus, channels: Channels, attachments: Mapping[AttachmentId, Attachment]
) -> Iterator[tuple[ChannelId, Seq]]:
    """Where to look for the oldest undelivered message of each subscription that has any."""
    for row in writer.sessions:
        for info in row.subscriptions:
            place = _place(info, channels, _feed(row, info, attachments))
            if place is not None:
                yield place


def _place(
    info: SubscriptionInfo, channels: Channels, feed: Feed | None
) -> tuple[ChannelId, Seq] | None:
    if feed is not None:
        oldest = feed.delivery.oldest_undelivered
        return None if oldest is None else (info.channel_id, Seq(oldest - 1))
    if channels.by_id(info.channel_id).stream.top > info.position:
        return info.channel_id, info.position
    return None


def _feed(
    row: SessionRow, info: SubscriptionInfo, attachments: Mapping[AttachmentId, Attachment]
) -> Feed | None:
    attachment = None if row.attachment is None else attachments.get(row.attachment)
    return None if attachment is None else attachment.feeds.get(info.id)


# ---- parts


def _uptime(facts: Facts) -> float:
    starts = [each.started_at for each in facts.processes if each.name == "supervisor"]
    return round(max(0.0, facts.now.wall - starts[0]), 1) if starts else 0.0


def _process(facts: Facts, process: ProcessInfo) -> Document:
    usage = facts.usages.get(process.pid)
    return {
        "name": process.name,
        "pid": process.pid,
        "uptime_s": round(max(0.0, facts.now.wall - process.started_at), 1),
        "restarts": process.restarts,
        "cpu_percent": None if usage is None else usage.cpu_percent,
        "rss_bytes": None if usage is None else usage.rss_bytes,
    }


def _redis(facts: Facts) -> Document:
    redis = facts.redis
    if redis is None:
        known = ("flavour", "version", "pid", "dataset_bytes", "search")
        unknown = dict.fromkeys((*known, "commit_id", "lag_commits"))
        return {"healthy": False, **unknown}
    return {
        "healthy": redis.healthy,
        "flavour": redis.flavour,
        "version": redis.version,
        "pid": redis.pid,
        "dataset_bytes": redis.dataset_bytes,
        "search": redis.search,
        "commit_id": redis.commit_id,
        "lag_commits": max(0, facts.writer.commit_id - redis.commit_id) if facts.writer else None,
    }


def _index(facts: Facts) -> Document | None:
    """Null where the server searches itself, or as long as the indexer has said nothing."""
    index = facts.index
    if index is None:
        return None
    return {
        "commit_id": index.commit_id,
        "lag_commits": max(0, facts.condition.committed - index.commit_id),
        "documents": index.documents,
    }


def _sqlite(facts: Facts) -> Document:
    keys = ("path", "logical_bytes", "file_bytes", "wal_bytes", "commit_id", "synchronous")
    if facts.writer is None:
        return dict.fromkeys(keys)
    return {key: getattr(facts.writer, key) for key in keys}


def _budgets(facts: Facts) -> Document:
    return {
        "redis": _budget(
            facts.writer.projection_bytes if facts.writer else None,
            facts.settings.redis_budget_mib,
        ),
        "sqlite": _budget(
            facts.writer.logical_bytes if facts.writer else None, facts.settings.sqlite_budget_mib
        ),
    }


def _budget(used: int | None, limit_mib: int) -> Document:
    limit = limit_mib * MIB
    percent = None if used is None else round(used * 100 / limit, 1)
    return {"used": used, "limit": limit, "percent": percent}


def _totals(facts: Facts) -> Document:
    writer, metrics = facts.writer, facts.metrics
    return {
        "messages": writer and writer.messages,
        "memories": writer and writer.memories,
        "tombstones": writer and writer.tombstones,
        "receipts": writer and writer.receipts,
        "accepted": metrics.accepted.total,
        "delivered": metrics.deliveries.total,
        "evicted": writer and writer.evicted,
        "rejected": facts.rejected,
    }


def _rates(facts: Facts) -> Document:
    now = facts.now.monotonic
    return {
        "accepted_per_s": facts.metrics.accepted.per_second(now),
        "delivered_per_s": facts.metrics.deliveries.per_second(now),
        "accepted_recent": facts.metrics.accepted.recent(now),
        "delivered_recent": facts.metrics.deliveries.recent(now),
    }


def _latency(facts: Facts, reservoir: Reservoir) -> Document:
    return {
        "p50": reservoir.percentile_ms(50),
        "p99": reservoir.percentile_ms(99),
        "mean_recent": reservoir.recent_ms(facts.now.monotonic),
    }


def _rows(facts: Facts) -> Sequence[SessionRow]:
    return facts.writer.sessions if facts.writer else ()


def _session(facts: Facts, row: SessionRow) -> Document:
    attachment = None if row.attachment is None else facts.attachments.get(row.attachment)
    share = None if attachment is None else attachment.share
    return {
        "display_name": row.display_name,
        "agent": row.agent,
        "application": row.application,
        "session": row.native,
        "child": row.child,
        "repository": row.repository,
        "attached": row.attachment is not None,
        "since": rfc3339(round(row.since * 1000)),
        "subscriptions": [_subscription(facts, row, info) for info in row.subscriptions],
        "window": {
            "messages": share.messages if share else 0,
            "bytes": share.bytes if share else 0,
        },
    }


def _subscription(facts: Facts, row: SessionRow, info: SubscriptionInfo) -> Document:
    feed = _feed(row, info, facts.attachments)
    place = _place(info, facts.channels, feed)
    return {
        "channel": info.channel,
        "position": info.position,
        "lag": _undelivered(info, feed),
        "oldest_undelivered_at": None if place is None else facts.oldest.get(place),
        "expires_at": rfc3339(round(info.expires_at * 1000)),
    }


def _undelivered(info: SubscriptionInfo, feed: Feed | None) -> int:
    """As the writer has counted, unless the messages are known one by one."""
    if feed is not None and feed.delivery.state is State.LIVE:
        return feed.delivery.undelivered
    return info.undelivered


def _channels(facts: Facts) -> Iterator[Document]:
    subscribers = Counter(info.channel_id for row in _rows(facts) for info in row.subscriptions)
    for channel in facts.channels.all():
        yield {
            "name": channel.name,
            "kind": channel.kind,
            "messages": channel.messages,
            "oldest_seq": channel.stream.oldest,
            "newest_seq": channel.stream.top,
            "subscribers": subscribers[channel.id] if facts.writer else len(channel.feeds),
        }


def _warnings(facts: Facts, budgets: Document) -> Iterator[str]:
    yield from facts.alerts
    if facts.index is not None and facts.index.missing:
        yield (
            f"the database has lost at least its last {facts.index.missing} commits: its WAL was "
            "deleted or cut off, or an older copy was put in its place while the bus did not run; "
            "the bus goes on with what is there"
        )
    for name, budget in budgets.items():
        if budget["percent"] is not None and budget["percent"] >= NEARLY_FULL_PERCENT:
            yield (
                f"{budget['percent']} % of {name}_budget_mib are used; raise it in "
                f"{facts.config_path} and restart, or let cleanup make room"
            )
    for process in facts.processes:
        if process.restarts:
            times = "once" if process.restarts == 1 else f"{process.restarts} times"
            log = log_file(facts.settings, "supervisor")
            yield f"{process.name} was restarted {times}; {log} says why"
