"""Bus operations for commands, tests and benches, each a question and its answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentbus import __version__
from agentbus.client.asking import Asking
from agentbus.client.operation_ids import operation_id
from agentbus.config import Configuration
from agentbus.runtime.tokens import SystemTokens
from agentbus.wire.rpc import (
    PROTOCOL,
    AttachmentParams,
    ChannelCreateParams,
    ChannelCreateResult,
    ChannelListParams,
    ChannelListResult,
    DeliveredParams,
    DiscoverParams,
    DiscoverResult,
    Empty,
    HeartbeatParams,
    HeartbeatResult,
    HelloParams,
    HelloResult,
    HistoryParams,
    HistoryResult,
    InboxParams,
    InboxResult,
    MemoryDeleteParams,
    MemoryDeleteResult,
    MemoryEditParams,
    MemoryEditResult,
    MemoryListParams,
    MemoryListResult,
    MemoryParams,
    MemoryResult,
    ReadParams,
    ReadResult,
    RegisterParams,
    RegisterResult,
    RenewResult,
    SearchParams,
    SearchResult,
    SendParams,
    SendResult,
    StatusResult,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    UnsubscribeResult,
)


class Client(Asking):
    """A connection that knows the bus; an attachment is what `register` gave."""

    def hello(self, configuration: Configuration | None = None) -> HelloResult:
        """First of all; without a configuration, whatever the daemon's settings are is fine."""
        given = configuration
        params = HelloParams(
            protocol=PROTOCOL,
            version=__version__,
            fingerprint=None if given is None else given.settings.fingerprint(),
            config_path=None if given is None else given.path,
        )
        return self.call("hello", params, HelloResult)

    def register(self, application: str, session: str, **facts: Any) -> RegisterResult:
        """Claims a session; `facts` are further members of RegisterParams."""
        params = RegisterParams(application=application, session=session, **facts)
        return self.call("register", params, RegisterResult)

    def release(self, attachment: str) -> None:
        """Ends a claim."""
        self.call("release", AttachmentParams(attachment=attachment), Empty)

    def heartbeat(self) -> HeartbeatResult:
        """Keeps all claims of this connection."""
        return self.call("heartbeat", HeartbeatParams(), HeartbeatResult)

    def renew(self, attachment: str) -> RenewResult:
        """Keeps the session's subscriptions."""
        return self.call("renew", AttachmentParams(attachment=attachment), RenewResult)

    def create_channel(self, attachment: str, name: str, **wishes: Any) -> ChannelCreateResult:
        """Creates a channel; `wishes` are further members of ChannelCreateParams."""
        params = ChannelCreateParams(attachment=attachment, name=name, **wishes)
        return self.call("channel.create", params, ChannelCreateResult)

    def list_channels(self, attachment: str, **wishes: Any) -> ChannelListResult:
        """One page of channels; `wishes` are further members of ChannelListParams."""
        params = ChannelListParams(attachment=attachment, **wishes)
        return self.call("channel.list", params, ChannelListResult)

    def subscribe(
        self, attachment: str, channel: str, *, include_own: bool | None = None
    ) -> SubscribeResult:
        """Subscribes, or renews."""
        params = SubscribeParams(attachment=attachment, channel=channel, include_own=include_own)
        return self.call("subscribe", params, SubscribeResult)

    def unsubscribe(self, attachment: str, channel: str) -> UnsubscribeResult:
        """Ends a subscription."""
        params = UnsubscribeParams(attachment=attachment, channel=channel)
        return self.call("unsubscribe", params, UnsubscribeResult)

    def new_id(self) -> str:
        """An id for an operation: use it for all tries."""
        return operation_id(self.now(), SystemTokens())

    def send(
        self, attachment: str, channel: str, message_id: str, content: str, **more: Any
    ) -> SendResult:
        """Sends a message; `more` are further members of SendParams."""
        params = SendParams(
            attachment=attachment, channel=channel, message_id=message_id, content=content, **more
        )
        return self.call("send", params, SendResult)

    def history(self, attachment: str, channel: str, **wishes: Any) -> HistoryResult:
        """Messages of a channel; `wishes` are further members of HistoryParams."""
        params = HistoryParams(attachment=attachment, channel=channel, **wishes)
        return self.call("history", params, HistoryResult)

    def delivered(self, attachment: str, epoch: str, positions: Iterable[tuple[int, int]]) -> None:
        """Reports (subscription, position) pairs; returns when they are committed."""
        params = DeliveredParams(attachment=attachment, epoch=epoch, positions=list(positions))
        self.call("delivered", params, Empty)

    # memories

    def get_memory(self, attachment: str, memory_id: str) -> MemoryResult:
        """The current revision."""
        params = MemoryParams(attachment=attachment, memory_id=memory_id)
        return self.call("memory.get", params, MemoryResult)

    def edit_memory(
        self,
        attachment: str,
        memory_id: str,
        content: str,
        operation: str | None = None,
        **more: Any,
    ) -> MemoryEditResult:
        """Replaces the current revision; `more` are further members of MemoryEditParams."""
        params = MemoryEditParams(
            attachment=attachment,
            memory_id=memory_id,
            operation_id=operation or self.new_id(),
            content=content,
            **more,
        )
        return self.call("memory.edit", params, MemoryEditResult)

    def delete_memory(
        self, attachment: str, memory_id: str, operation: str | None = None
    ) -> MemoryDeleteResult:
        """Deletes the current revision."""
        params = MemoryDeleteParams(
            attachment=attachment, memory_id=memory_id, operation_id=operation or self.new_id()
        )
        return self.call("memory.delete", params, MemoryDeleteResult)

    def list_memories(self, attachment: str, channel: str, **wishes: Any) -> MemoryListResult:
        """One page; `wishes` are further members of MemoryListParams."""
        params = MemoryListParams(attachment=attachment, channel=channel, **wishes)
        return self.call("memory.list", params, MemoryListResult)

    # looking around

    def search(self, attachment: str, query: str = "", **wishes: Any) -> SearchResult:
        """One page; `wishes` are further members of SearchParams."""
        params = SearchParams(attachment=attachment, query=query, **wishes)
        return self.call("search", params, SearchResult)

    def read(self, attachment: str, message_id: str) -> ReadResult:
        """A whole message."""
        params = ReadParams(attachment=attachment, message_id=message_id)
        return self.call("read", params, ReadResult)

    def inbox(self, attachment: str | None = None, **session: Any) -> InboxResult:
        """What was not delivered; `session` names one by the members of InboxParams."""
        params = InboxParams(attachment=attachment, **session)
        return self.call("inbox", params, InboxResult)

    def discover(self, attachment: str, agent: str | None = None) -> DiscoverResult:
        """Agents and their sessions."""
        params = DiscoverParams(attachment=attachment, agent=agent)
        return self.call("discover", params, DiscoverResult)

    # administration

    def status(self) -> dict[str, Any]:
        """The document of `agentbus status --json`."""
        return self.call("status", Empty(), StatusResult).status

    def stop(self) -> None:
        """Asks for an orderly stop."""
        self.call("stop", Empty(), Empty)

    def reset(self) -> None:
        """Has everything on the bus destroyed; the daemon hangs up afterwards."""
        self.call("reset", Empty(), Empty)
