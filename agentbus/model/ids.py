"""Names for the numbers and strings that travel through the bus."""

from __future__ import annotations

from typing import NewType

ChannelId = NewType("ChannelId", int)
"""Row id of a channel; never reused within a bus instance."""

SessionId = NewType("SessionId", int)
"""Row id of a session (application, native id, child id)."""

SubscriptionId = NewType("SubscriptionId", int)
"""Row id of a subscription; subscribing anew after unsubscribing gives a new one."""

Seq = NewType("Seq", int)
"""Position in one channel: 1, 2, 3 ... without holes at commit time."""

CommitId = NewType("CommitId", int)
"""Number of a transaction that inserted or tombstoned message rows; increasing by 1."""

MessageId = NewType("MessageId", str)
"""The operation id of the send that created the row; 1-128 UTF-8 bytes, unique on the bus."""

AttachmentId = NewType("AttachmentId", str)
"""`<gateway incarnation>.<number>`: one live claim on a session; opaque to adapters."""

Epoch = NewType("Epoch", str)
"""Begins with each gateway start and each rebuild; what was prefetched before is void."""
