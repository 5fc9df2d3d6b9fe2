"""Responses over a WebSocket: `response.create` messages in, the events of their streams out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.capabilities import Document, SocketEnd, SocketRefusal, SocketRequest, WebSockets
from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.openai_responses.stored import is_reference
from wireglot_core.wire.json import BadJson, decode, encode, encode_text

_CREATE: Final = "response.create"
_SILENT: Final = frozenset({"response.processed"})
"""Messages that some clients send, and no server answers."""
_OWN: Final = frozenset({"type", "stream_id", "generate", "background"})
"""Fields that only a message has, or that have no effect in one."""
_LANE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TYPE: Final = re.compile(rb'"type"\s*:\s*"(response\.[a-z_.]+|error)"')
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
_WITH_RESPONSE: Final = _ENDS | {"response.created", "response.in_progress", "response.queued"}
_WHOLE: Final = frozenset({"response.completed", "response.incomplete"})
_OUTPUT: Final = "_output"
_CALL: Final = "_call"
_STATES: Final = ("encrypted_content", "content")
_HISTORIES: Final = ("conversation", "prompt")
"""Fields that add their own items."""
_UNMARKED: Final = frozenset({"id", "status"})
"""Fields of an item that a client may leave out when it sends the item back."""
_UNSENT: Final = frozenset({"stream", "background"})
"""Fields of a body that define how it is answered: over a WebSocket there is one way."""
_LOST: Final = frozenset({"previous_response_not_found", "websocket_connection_limit_reached"})
# Characters of an unknown error that a client is shown.
_MAX_SHOWN_CHARACTERS: Final = 1000
# Bytes of an event that is parsed to see whether it only repeats the last one.
_MAX_RETOLD_BYTES: Final = 64 * 1024


def lane(message: bytes) -> str:
    named = _decoded(message).get("stream_id") if b'"stream_id"' in message else None
    return named if type(named) is str and _LANE.fullmatch(named) else ""


def read(message: Any) -> SocketRequest | None:
    if type(message) is not dict:
        raise BadField("expected a JSON object", "$")
    kind = message.get("type")
    if kind in _SILENT:
        return None
    if kind != _CREATE:
        raise BadField(f'type: expected "{_CREATE}"', "$.type", "invalid_value")
    named, generate, previous = (
        message.get(key) for key in ("stream_id", "generate", "previous_response_id")
    )
    if named is not None and (type(named) is not str or _LANE.fullmatch(named) is None):
        raise BadField(
            "stream_id: expected 1 to 256 of A-Z a-z 0-9 _ . -", "$.stream_id", "invalid_stream_id"
        )
    if generate is not None and type(generate) is not bool:
        raise BadField("generate: expected true or false", "$.generate")
    if previous is not None and type(previous) is not str:
        raise BadField("previous_response_id: expected a string", "$.previous_response_id")
    if message.get("background"):
        detail = "background: not possible over a WebSocket"
        raise BadField(detail, "$.background", "unsupported_parameter")
    body = {key: value for key, value in message.items() if key not in _OWN}
    return SocketRequest(
        body={**body, "stream": True},
        lane=named or "",
        generates=generate is not False,
        previous=previous or "",
    )


def items(body: Document) -> list[Document]:
    value = body.get("input")
    if type(value) is str:
        return [{"type": "message", "role": "user", "content": value}]
    return [item for item in value if type(item) is dict] if type(value) is list else []


def carried(output: list[Document]) -> list[Document]:
    """The items as input of the next request. OpenAI looks up reasoning without its state by id among stored
    items, and requires it for items with ids: for an answer that is not stored, both would be refused."""
    kept = [item for item in output if not _is_stateless(item)]
    if len(kept) == len(output):
        return output
    return [{key: value for key, value in item.items() if key != "id"} for item in kept]


def continued(body: Document, before: list[Document], stored: str) -> Document:
    given = body.get("input")
    if given is not None and type(given) not in (str, list):
        raise BadField("input: expected a string or an array", "$.input")
    if body.get("previous_response_id") and body.get("conversation") is not None:
        raise BadField(
            "previous_response_id and conversation exclude each other: a conversation has its own history",
            "$.previous_response_id",
            "mutually_exclusive_parameters",
        )
    if not stored and not any(body.get(key) for key in _HISTORIES):
        _check_calls(before, items(body))
    whole = {key: value for key, value in body.items() if key != "previous_response_id"}
    if before:
        whole["input"] = [*before, *(given if type(given) is list else items(body))]
    return {**whole, "previous_response_id": stored} if stored else whole


def _check_calls(before: list[Document], own: list[Document]) -> None:
    """Refuses outputs without their calls: they are meaningless, and few providers would notice."""
    if any(map(is_reference, own)):
        return  # a reference may be to the call
    called = {id for item in (*before, *own) if (id := _call_id(item, _CALL))}
    for number, item in enumerate(own):
        id = _call_id(item, _OUTPUT)
        if id and id not in called:
            raise BadField(
                f"input[{number}].call_id: no call '{id}' comes before its output",
                f"$.input[{number}].call_id",
                "invalid_value",
            )


def _call_id(item: Document, ending: str) -> str:
    """The call id of an item of such a type, "" if it has none."""
    kind, id = item.get("type"), item.get("call_id")
    return id if type(id) is str and type(kind) is str and kind.endswith(ending) else ""


def event(data: bytes, asked: SocketRequest) -> str:
    """Adds the answer that the response continues, which may be known only to the connection."""
    if asked.previous and _kind(data) in _WITH_RESPONSE:
        document = _decoded(data)
        answer = document.get("response")
        if type(answer) is dict and answer.get("previous_response_id") != asked.previous:
            data = encode({**document, "response": {**answer, "previous_response_id": asked.previous}})
    text = data.decode("utf-8", "replace")
    # An object is never empty here: it has its type.
    return f'{{"stream_id":{encode_text(asked.lane)},{text.lstrip()[1:]}' if asked.lane else text


def item(data: bytes) -> Document | None:
    if _kind(data) != "response.output_item.done":
        return None
    found = _decoded(data).get("item")
    return found if type(found) is dict else None


def end(data: bytes) -> SocketEnd | None:
    kind = _kind(data)
    if kind not in _ENDS:
        return None
    answer = _decoded(data).get("response")
    answer = answer if type(answer) is dict else {}
    identifier = answer.get("id")
    return SocketEnd(
        id=identifier if type(identifier) is str else "",
        is_whole=kind in _WHOLE,
        is_stored=answer.get("store") is True,
        is_error=kind == "error",
    )


def is_beginning(data: bytes) -> bool:
    return len(data) <= _MAX_RETOLD_BYTES and _kind(data) == "response.in_progress"


def error(status: int, body: Any, headers: Mapping[str, str], lane: str) -> str:
    """An error message. Codex waits for minutes without a status, and reads the headers next to it."""
    report: dict[str, Any] = {"type": "server_error", "code": None, "message": "", "param": None}
    if type(body) is not dict:
        report["message"] = str(body)[:_MAX_SHOWN_CHARACTERS]
    elif type(inner := body.get("error")) is dict:
        report |= inner
    else:  # the fields of an error event are not nested
        report |= {key: body[key] for key in ("code", "message", "param") if key in body}
    message: dict[str, Any] = {"type": "error", "status": status, "error": report}
    if headers:
        message |= {"headers": dict(headers), "error": {**report, "headers": dict(headers)}}
    if lane:
        message["stream_id"] = lane
    return encode_text(message)


def is_whole(body: Document) -> bool:
    return not body.get("previous_response_id") and not any(map(body.get, _HISTORIES))


def mark(item: Document) -> bytes:
    if _is_stateless(item):
        return b""
    if type(item.get("role")) is str:  # a message, in short or full form
        content = item.get("content")
        if type(content) is str:
            content = [
                {"type": "output_text" if item["role"] == "assistant" else "input_text", "text": content}
            ]
        item = {**item, "type": "message", "content": content}
    return encode(_marked(item))


def _is_stateless(item: Document) -> bool:
    return item.get("type") == "reasoning" and not any(map(item.get, _STATES))


def _marked(item: Document) -> Document:
    """The content of an item, in an order that does not depend on its writer."""
    marked: Document = {}
    for key in sorted(item):
        value = item[key]
        if type(value) is list:
            value = [_marked(part) if type(part) is dict else part for part in value]
        if value not in (None, "", []) and key not in _UNMARKED:
            marked[key] = value
    return marked


def message(body: Document, place: int, previous: str) -> bytes:
    sent = {"type": _CREATE, **{key: value for key, value in body.items() if key not in _UNSENT}}
    if previous:
        sent |= {"previous_response_id": previous, "input": items(body)[place:]}
    return encode(sent)


def refused(data: bytes) -> SocketRefusal | None:
    """The refusal in a message. Azure and older servers send no status: then it is a server error."""
    if _kind(data) != "error":
        return None
    document = _decoded(data)
    status, headers, inner = (document.get(key) for key in ("status", "headers", "error"))
    if type(inner) is not dict:
        inner = {key: document[key] for key in ("code", "message", "param") if key in document}
    return SocketRefusal(
        status=status if type(status) is int and 400 <= status < 600 else 500,
        headers=_stated(headers) if type(headers) is dict else {},
        body=encode({"error": inner}),
        is_lost=text_in(inner.get("code")) in _LOST,
    )


def _stated(headers: Document) -> dict[str, str]:
    """The headers without those about the HTTP body, which differs here."""
    named = {key.lower(): str(value) for key, value in headers.items()}
    return {name: value for name, value in named.items() if not name.startswith("content-")}


def missing(identifier: str) -> Document:
    return _refusal(
        "previous_response_not_found",
        f"Previous response with id '{identifier}' not found.",
        "previous_response_id",
    )


def _refusal(code: str, message: str, param: str | None = None) -> Document:
    return {"error": {"type": "invalid_request_error", "code": code, "message": message, "param": param}}


def _kind(data: bytes) -> str:
    """The type of an event. It comes before any text from the model, which could contain the same
    characters."""
    found = _TYPE.search(data)
    return found[1].decode() if found is not None else ""


def _decoded(data: bytes) -> Document:
    try:
        value = decode(data)
    except BadJson:
        return {}
    return value if type(value) is dict else {}


WEBSOCKETS: Final = WebSockets(
    paths=("/v1/responses", "/openai/v1/responses"),
    lane=lane,
    read=read,
    items=items,
    carried=carried,
    continued=continued,
    event=event,
    item=item,
    end=end,
    is_beginning=is_beginning,
    error=error,
    is_missing=missing,
    expired=_refusal(
        "websocket_connection_limit_reached", "This connection has reached its maximum age: open a new one."
    ),
    is_whole=is_whole,
    mark=mark,
    message=message,
    refused=refused,
)
