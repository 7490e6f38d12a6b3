"""What harnesses ask of their model and what it answers, in the four wire formats they use.

    dialect     asked at               calls                  their results, at the end
    Anthropic   POST /v1/messages      `tool_use` blocks      `tool_result` blocks
    Responses   POST /v1/responses     `function_call` items  `function_call_output` items
    Chat        .../chat/completions   `tool_calls`           messages of the role `tool`
    Gemini      ...GenerateContent     `functionCall` parts   `functionResponse` parts

Pure: a request's body to a `Question`, a `Reply` to server-sent events. Only the parts that a test
needs are read; what a harness adds is left alone.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

SERVER = "agentbus"
"""The name under which harnesses are told of the MCP server."""

_numbers = itertools.count(1)


class Question(msgspec.Struct, frozen=True):
    """What the model is asked: `tools` that it may call, as the bus names them, and `results` of
    the calls it made last, each as the text it is shown."""

    tools: list[str]
    results: list[str]


class Call(msgspec.Struct, frozen=True):
    """A tool that the model calls: of the bus, or of the harness itself."""

    tool: str
    arguments: dict[str, Any]
    of_bus: bool = True


class Reply(msgspec.Struct, frozen=True):
    """What the model says: a text, calls, or both. Without calls the harness' turn is over."""

    text: str = ""
    calls: tuple[Call, ...] = ()


Events = Iterator[tuple[str, dict[str, Any] | None]]
"""Name and data of server-sent events; without a name the data alone is sent, without data an end.
"""


class Dialect(Protocol):
    """One wire format."""

    path: str

    def read(self, body: dict[str, Any]) -> Question:
        """A request."""

    def write(self, body: dict[str, Any], reply: Reply) -> Events:
        """The answer to it."""


def _text(content: Any) -> str:
    """Of a string, or of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [] if isinstance(content, str) else content


def _identifier(kind: str) -> str:
    return f"{kind}_{next(_numbers):024}"


class Anthropic:
    """Claude Code's."""

    path = "/v1/messages"
    prefix = f"mcp__{SERVER}__"

    def read(self, body: dict[str, Any]) -> Question:
        """Tools that Claude Code keeps back until they are searched for are not among these."""
        names = [tool["name"] for tool in body.get("tools", [])]
        newest = reversed(body["messages"])
        asked = itertools.takewhile(lambda message: message["role"] != "assistant", newest)
        blocks = [block for message in asked for block in _blocks(message["content"])]
        return Question(
            [name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)],
            [_text(block["content"]) for block in blocks if block["type"] == "tool_result"],
        )

    def write(self, body: dict[str, Any], reply: Reply) -> Events:
        """A message, block by block."""
        stop = "tool_use" if reply.calls else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": _identifier("msg"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield "message_start", {"message": message}
        for index, (empty, delta) in enumerate(self._blocks(reply)):
            yield "content_block_start", {"index": index, "content_block": empty}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        yield "message_delta", {"delta": {"stop_reason": stop}, "usage": usage}
        yield "message_stop", {}

    def _blocks(self, reply: Reply) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
        if reply.text:
            yield {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}
        for call in reply.calls:
            name = self.prefix + call.tool if call.of_bus else call.tool
            use = _identifier("toolu")
            arguments = json.dumps(call.arguments)
            yield (
                {"type": "tool_use", "id": use, "name": name, "input": {}},
                {"type": "input_json_delta", "partial_json": arguments},
            )


class Responses:
    """Codex'."""

    path = "/v1/responses"
    namespace = f"mcp__{SERVER}"
    subagents = "multi_agent_v1"
    """The namespace of its tools for subagents; others of its own have none."""

    def read(self, body: dict[str, Any]) -> Question:
        """MCP tools come in a namespace, one for each server."""
        spaces = [tool for tool in body.get("tools", []) if tool.get("name") == self.namespace]
        asked = list(itertools.takewhile(self._is_asked, reversed(body["input"])))
        outputs = [item for item in reversed(asked) if item["type"] == "function_call_output"]
        return Question(
            [tool["name"] for space in spaces for tool in space["tools"]],
            [_text(item["output"]) for item in outputs],
        )

    @staticmethod
    def _is_asked(item: dict[str, Any]) -> bool:
        """Rather than said by the model."""
        return item["type"] != "function_call" and item.get("role") != "assistant"

    def write(self, body: dict[str, Any], reply: Reply) -> Events:
        """A response, item by item."""
        response = {"id": _identifier("resp"), "object": "response", "model": body["model"]}
        yield "response.created", {"response": {**response, "status": "in_progress", "output": []}}
        items = list(self._items(reply))
        for index, item in enumerate(items):
            yield "response.output_item.added", {"output_index": index, "item": item}
            yield "response.output_item.done", {"output_index": index, "item": item}
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        done = {**response, "status": "completed", "output": items, "usage": usage}
        yield "response.completed", {"response": done}

    def _items(self, reply: Reply) -> Iterable[dict[str, Any]]:
        if reply.text:
            part = {"type": "output_text", "text": reply.text, "annotations": []}
            yield {
                "type": "message",
                "id": _identifier("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        for call in reply.calls:
            own = self.subagents if call.tool.endswith("_agent") else None
            namespace = self.namespace if call.of_bus else own
            yield {
                "type": "function_call",
                "id": _identifier("fc"),
                "call_id": _identifier("call"),
                **({} if namespace is None else {"namespace": namespace}),
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }


class Chat:
    """opencode's."""

    path = "/chat/completions"
    prefix = f"{SERVER}_"

    def read(self, body: dict[str, Any]) -> Question:
        """Tools of all servers stand in one list."""
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        newest = reversed(body["messages"])
        asked = list(itertools.takewhile(lambda message: message["role"] == "tool", newest))
        return Question(
            [name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)],
            [_text(message["content"]) for message in reversed(asked)],
        )

    def write(self, body: dict[str, Any], reply: Reply) -> Events:
        """A completion in one piece."""
        base = {"id": _identifier("cc"), "object": "chat.completion.chunk", "model": body["model"]}
        calls = [
            {
                "index": index,
                "id": _identifier("call"),
                "type": "function",
                "function": {
                    "name": self.prefix + call.tool if call.of_bus else call.tool,
                    "arguments": json.dumps(call.arguments),
                },
            }
            for index, call in enumerate(reply.calls)
        ]
        delta = {
            "role": "assistant",
            "content": reply.text,
            **({"tool_calls": calls} if calls else {}),
        }
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        first = {"index": 0, "delta": delta, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        yield "", {**base, "choices": [first]}
        yield "", {**base, "choices": [last], "usage": usage}
        yield "", None


class Gemini:
    """Gemini CLI's."""

    path = ":streamGenerateContent"
    prefix = f"mcp_{SERVER}_"

    def read(self, body: dict[str, Any]) -> Question:
        """A result is an object, of which the model is shown the text."""
        kinds = [tool.get("functionDeclarations", []) for tool in body.get("tools", [])]
        names = [tool["name"] for tools in kinds for tool in tools]
        parts = body["contents"][-1].get("parts", []) if body["contents"] else []
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return Question(
            [name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)],
            [self._shown(each["response"]) for each in responses],
        )

    @staticmethod
    def _shown(response: dict[str, Any]) -> str:
        """A text; for a failure the call, then the whole result, of which the text counts."""
        text: str = response.get("output") or response["error"]
        _, failed, told = text.partition(" with response: ")
        if not (failed and "error" in response):
            return text
        result = json.loads(told)[0]["functionResponse"]["response"]
        return _text(result["content"]) if "content" in result else text

    def write(self, body: dict[str, Any], reply: Reply) -> Events:
        """One chunk."""
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        for call in reply.calls:
            name = self.prefix + call.tool if call.of_bus else call.tool
            parts.append({"functionCall": {"name": name, "args": call.arguments}})
        content = {"role": "model", "parts": parts}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "none"}
