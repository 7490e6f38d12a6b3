"""A model API on loopback whose every answer is a test's.

The test is the model: it takes a turn (what the harness asks of its model), looks at it, and
answers it with calls or a text; the harness waits as it would for a slow model. What a harness asks
beside its conversation, such as a title for it, is answered here. It is also the proxy that the
harness is told to use, so that whoever it would talk to besides is noted, and not reached.
"""

from __future__ import annotations

import gzip
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.harness.dialects import (
    Anthropic,
    Call,
    Chat,
    Dialect,
    Events,
    Gemini,
    Reply,
    Responses,
)

BOUND = 60.0
"""Seconds until a turn that does not come, or is not answered, is given up."""

DIALECTS: tuple[Dialect, ...] = (Anthropic(), Responses(), Chat(), Gemini())


class Turn:
    """The model is asked to go on."""

    def __init__(self, tools: list[str], results: list[str]) -> None:
        self.tools = tools
        self.results = results
        self._reply: queue.Queue[Reply] = queue.Queue()

    @property
    def result(self) -> dict[str, Any]:
        """Of the one call that the model made last, which must be there whole."""
        (text,) = self.results
        return structured(text)

    def call(self, tool: str, **arguments: Any) -> None:
        """The model calls a tool of the bus."""
        self._reply.put(Reply(calls=(Call(tool, arguments),)))

    def call_own(self, tool: str, **arguments: Any) -> None:
        """The model calls a tool that the harness brings."""
        self._reply.put(Reply(calls=(Call(tool, arguments, of_bus=False),)))

    def say(self, text: str) -> None:
        """The model says something and is done."""
        self._reply.put(Reply(text))

    def reply(self) -> Reply:
        """What the test decided. Raises queue.Empty where it does not decide."""
        return self._reply.get(timeout=BOUND)


def structured(text: str) -> dict[str, Any]:
    """The JSON object in what a harness shows its model of a tool's result."""
    document: dict[str, Any]
    document, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    return document


class Model:
    """The API, a context manager. `turns` has None when the harness has ended."""

    def __init__(self) -> None:
        self.turns: queue.Queue[Turn | None] = queue.Queue()
        self.strangers: list[str] = []
        """Who else was asked for: hosts and ports, or addresses."""
        self.log: list[tuple[str, dict[str, Any]]] = []
        """Path and body of all requests."""
        self._server = _Server(self)

    def __enter__(self) -> Model:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, dialect: Dialect, body: dict[str, Any]) -> Events:
        """Waits for the test where the conversation goes on; others it tells nothing of."""
        question = dialect.read(body)
        if not question.tools:
            return dialect.write(body, Reply('{"title": "none"}'))
        turn = Turn(question.tools, question.results)
        self.turns.put(turn)
        return dialect.write(body, turn.reply())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._respond("text/plain", b"")

    def do_GET(self) -> None:
        if not self._is_stranger():
            self._respond("application/json", b'{"object": "list", "data": [], "models": []}')

    def do_CONNECT(self) -> None:
        self._is_stranger()

    def do_POST(self) -> None:
        if self._is_stranger():
            return
        body, path = self._body(), self.path.partition("?")[0]
        self.server.model.log.append((path, body))
        dialect = next((each for each in DIALECTS if path.endswith(each.path)), None)
        if dialect is None:
            self._respond("application/json", b'{"input_tokens": 1}')
            return
        try:
            events = self.server.model.answer(dialect, body)
            self._respond("text/event-stream", b"".join(_encode(*event) for event in events))
        except (queue.Empty, BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _is_stranger(self) -> bool:
        """Refuses what is meant for somebody else."""
        if self.path.startswith("/"):
            return False
        self.server.model.strangers.append(self.path)
        self.send_error(403)
        return True

    def _body(self) -> dict[str, Any]:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        body: dict[str, Any] = json.loads(data or b"{}")
        return body

    def _respond(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _encode(name: str, data: dict[str, Any] | None) -> bytes:
    if not name:
        return f"data: {'[DONE]' if data is None else json.dumps(data)}\n\n".encode()
    assert data is not None
    document = json.dumps({"type": name, **data})
    return f"event: {name}\ndata: {document}\n\n".encode()
