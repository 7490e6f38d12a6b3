"""What is sent is what is received, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.peers import RefusedError
from tests.support.stdio import Adapter

CONTENTS = {
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f1eb\U0001f1f7 \U0001f9d1\U0001f3fd",
    "combining marks": "e\u0301 is not \u00e9; Z\u0351\u036b\u0343\u0302a\u036b\u033dl\u034fgo",
    "right to left": "\u202eabc\u202c \u05e9\u05dc\u05d5\u05dd \u200f\u0645\u0631\u062d\u0628",
    "line ends of Unicode": "one\u2028two\u2029three\u0085four",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "escapes that are text": '\\u0000 \\n \\" </script> \\\\ %s {"a": [null]}',
    "planes": "\ufeffa\u0000b\uffff\U0010ffff\ufffd",
    "CJK": "京都の桜 東京都 漢字かな交じり文",
    "white space": "  \t\r\n leading and trailing \r\n\t  ",
    "empty": "",
    "framing": '{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","method":"stopping"}\n',
    "60 KiB": "0123456789abcdef" * (60 * 64),
}
REFERENCES = [
    {"kind": "windows_path", "value": "C:\\Users\\Zoë\\new folder\\tab\\u0041.txt"},
    {"kind": "windows_path", "value": "\\\\server\\share\\.\\..\\file name. "},
    {"kind": "unix_path", "value": "/tmp/../etc//a b/\u00fc\u0308/-rf *\n"},
    {"kind": "unix_path", "value": "~/relative/./path"},
    {"kind": "url", "value": "HTTPS://Example.COM:443/%7Euser/?q=a%20b&c=<d>#\u00e9"},
]
METADATA = {
    "text": "\u2028",
    "": "empty key",
    "int": 2**53 - 1,
    "float": 0.1,
    "no": False,
    "nil": None,
}


@pytest.fixture(scope="module")
def pair(bus: Daemon) -> Iterator[tuple[Adapter, Adapter]]:
    with Adapter(bus.environment) as sender, Adapter(bus.environment) as receiver:
        receiver.call("whoami")
        yield sender, receiver


def receive(adapter: Adapter, **arguments: Any) -> dict[str, Any]:
    result = adapter.call("recv", wait_seconds=30, **arguments)
    assert len(result["messages"]) == 1, result
    message: dict[str, Any] = result["messages"][0]
    return message


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_content_survives(pair: tuple[Adapter, Adapter], content: str) -> None:
    sender, receiver = pair
    sent = sender.call("send", channel="general", content=content)
    message = receive(receiver, max_kib=96)
    assert message["content"].encode() == content.encode()
    assert message["message_id"] == sent["message_id"]
    assert message["seq"] == sent["seq"]
    assert "content_truncated" not in message


def test_references_and_metadata_are_returned_as_given(pair: tuple[Adapter, Adapter]) -> None:
    sender, receiver = pair
    sender.call(
        "send",
        channel="general",
        content="see",
        references=REFERENCES,
        metadata=METADATA,
        type="\u00e9",
    )
    message = receive(receiver)
    assert message["references"] == REFERENCES
    assert message["metadata"] == METADATA
    assert message["type"] == "\u00e9"


def test_history_shows_the_same_message_as_recv(pair: tuple[Adapter, Adapter]) -> None:
    sender, receiver = pair
    sender.call("send", channel="general", content=CONTENTS["planes"], references=REFERENCES)
    received = receive(receiver)
    [kept] = receiver.call("history", channel="general", limit=1)["messages"]
    assert kept == received


def test_the_text_part_alone_is_complete(pair: tuple[Adapter, Adapter]) -> None:
    sender, receiver = pair
    sender.call("send", channel="general", content=CONTENTS["CJK"], references=REFERENCES)
    result = receiver.ask("tools/call", name="recv", arguments={"wait_seconds": 30})
    [part] = result["content"]
    assert json.loads(part["text"]) == result["structuredContent"]
    [message] = receiver.structured(result)["messages"]
    assert message["references"] == REFERENCES


def test_the_stored_envelope_is_what_the_socket_delivers(bus: Daemon) -> None:
    with bus.peer() as one, bus.peer() as other:
        sender, receiver = one.attach("envelope-sender"), other.attach("envelope-receiver")
        for number, content in enumerate(CONTENTS.values()):
            sender.send("general", f"envelope-{number}", content, references=REFERENCES)
        messages = receiver.receive(len(CONTENTS))
    assert [message["content"] for message in messages] == list(CONTENTS.values())
    assert all(message["references"] == REFERENCES for message in messages)


def test_nobody_signs_with_anothers_name(bus: Daemon) -> None:
    forged = {
        "sender": "root",
        "agent": "root",
        "application": "root",
        "session": "root",
        "sent_at": "2001-01-01T00:00:00.000Z",
        "seq": 1000,
        "thread": "root",
    }
    with bus.peer() as peer:
        victim = peer.attach("victim", agent="Victor")
        forger = peer.attach("forger", agent="Fay")
        sent = forger.send("general", "forged", "signed", metadata=dict(forged), **forged)
        [message] = forger.call("history", channel="general", limit=1)["messages"]
        assert (message["sender"], message["agent"]) == ("Fay", "Fay")
        assert (message["application"], message["session"]) == ("tests", "forger")
        assert (message["sent_at"], message["seq"]) == (sent["sent_at"], sent["seq"])
        assert message["thread"] == "forged"
        with bus.peer() as other, pytest.raises(RefusedError) as refused:
            other.call("send", attachment=victim.id, channel="general", message_id="x", content="x")
        assert refused.value.code == "stale_attachment"
