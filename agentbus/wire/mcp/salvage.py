"""Finding whom to answer in lines that cannot be read as a whole."""

from __future__ import annotations

from typing import Any

import msgspec

_LAST_ID = rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
"""The end of a line whose last members are the id, and perhaps the version: a quote inside a string
would be escaped, and a nested object would need another brace."""


class Salvaged(msgspec.Struct, frozen=True):
    """What could be made out of a request."""

    id: int | str | None = None
    method: str | None = None
    revision: str | None = None


def salvage(line: bytes) -> Salvaged:
    """Reads a line that msgspec refuses with the lenient decoder of the standard library."""
    import json  # noqa: PLC0415 - hardly ever needed, and adapters start often

    text = line.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Salvaged(id=salvage_ends(line, line))
    if not isinstance(value, dict):
        return Salvaged()
    method = value.get("method")
    return Salvaged(
        _id(value.get("id")), method if isinstance(method, str) else None, _revision(value)
    )


def salvage_ends(head: bytes, tail: bytes) -> int | str | None:
    """The id of a request of which only the beginning and the end are there."""
    found = _first_members(head.decode("utf-8", "replace")).get("id")
    return _id(found) if found is not None else _last_id(tail)


def _last_id(tail: bytes) -> int | str | None:
    import re  # noqa: PLC0415 - as above

    match = re.search(_LAST_ID, tail)
    if match is None:
        return None
    try:
        return _id(msgspec.json.decode(match[1]))
    except msgspec.DecodeError:
        return None


def _first_members(text: str) -> dict[str, Any]:
    """The members of an object up to the first value that is not there whole."""
    from json import JSONDecoder  # noqa: PLC0415 - as above

    decoder = JSONDecoder()
    members: dict[str, Any] = {}
    at = _skip(text, 0, "{")
    while at is not None:
        try:
            key, at = decoder.raw_decode(text, at)
            value_at = _skip(text, at, ":")
            if value_at is None or not isinstance(key, str):
                break
            members[key], at = decoder.raw_decode(text, value_at)
        except (ValueError, RecursionError):
            break
        at = _skip(text, at, ",")
    return members


def _skip(text: str, at: int, mark: str) -> int | None:
    """Past white space, `mark` and white space again; None where something else stands there."""
    rest = text[at : at + 64].lstrip()
    if not rest.startswith(mark):
        return None
    at = text.index(mark, at) + 1
    return at + len(text[at : at + 64]) - len(text[at : at + 64].lstrip())


def _id(value: Any) -> int | str | None:
    if isinstance(value, str):
        return value if _encodable(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _revision(value: dict[str, Any]) -> str | None:
    params = value.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    found = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
    return found if isinstance(found, str) else None
