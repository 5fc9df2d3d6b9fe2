"""Parses and renders server-side tools: a step for the call and one for its result."""

from __future__ import annotations

from typing import Any, Final

from wireglot.dialects.capabilities import HostedForm
from wireglot.dialects.fields import object_in, text_in
from wireglot.dialects.gemini_interactions.names import OWN
from wireglot.ir.content import Foreign
from wireglot.ir.hosted import HostedCall, HostedResult, RanCall, WebSource
from wireglot.ir.stream import Event, PartEnd, PartStart

_STEPS: Final = {"web_search": "google_search", "web_fetch": "url_context", "mcp": "mcp_server_tool"}
_KINDS: Final = {step: kind for kind, step in _STEPS.items()}
_PREFIX: Final = "call_"


def _step(index: int, kind: str, **value: Any) -> list[Event]:
    return [PartStart(index, Foreign(OWN, kind, {"type": kind, **value})), PartEnd(index)]


def _announce(call: HostedCall, index: int) -> list[Event]:
    """Announces the call; its result is another step, sent when it has run."""
    name = _STEPS.get(call.kind)
    if name is None or call.pending:
        return []
    id, given = _PREFIX + call.id, call.input
    if call.kind == "mcp":
        more = {"name": call.name, "server_name": call.server, "arguments": given}
        return _step(index, f"{name}_call", id=id, **more)
    said = [str(given.get("url", ""))] if call.kind == "web_fetch" else [str(given.get("query", ""))]
    arguments = {"urls": said} if call.kind == "web_fetch" else {"queries": said}
    return _step(index, f"{name}_call", id=id, arguments=arguments)


def _report(ran: RanCall, index: int) -> list[Event]:
    call, result = ran.call, ran.result
    assert call is not None
    assert result is not None
    name = _STEPS.get(call.kind)
    if name is None or call.pending:
        return []
    value: dict[str, Any] = {"call_id": _PREFIX + call.id}
    if call.kind == "mcp":
        value |= {"name": call.name, "server_name": call.server}
        value["result"] = [{"type": "text", "text": result.text or result.message}]
    elif call.kind == "web_fetch":
        status = "error" if result.error else "success"
        value["result"] = [{"url": str(call.input.get("url", "")), "status": status}]
    else:
        value["result"] = [{"url": source.url, "title": source.title} for source in result.sources]
    if result.error:
        value["is_error"] = True
    return _step(index, f"{name}_result", **value)


def _read(part: Foreign) -> RanCall | None:
    """Parses a step of an earlier turn."""
    value = part.value
    step, _, end = part.type.rpartition("_")
    kind = _KINDS.get(step)
    id = text_in(value.get("id" if end == "call" else "call_id")).removeprefix(_PREFIX)
    if kind not in ("web_search", "web_fetch") or not id:
        return None
    if end == "call":
        arguments = object_in(value.get("arguments"))
        key, field = ("query", "queries") if kind == "web_search" else ("url", "urls")
        said = arguments.get(field)
        first = text_in(said[0]) if type(said) is list and said else ""
        return RanCall(id, HostedCall(kind, id, input={key: first}))
    listed = value.get("result")
    entries = [object_in(entry) for entry in listed] if type(listed) is list else []
    sources = tuple(
        WebSource(entry["url"], text_in(entry.get("title")))
        for entry in entries
        if type(entry.get("url")) is str
    )
    failed = value.get("is_error") is True
    return RanCall(id, result=HostedResult(error="unavailable" if failed else "", sources=sources))


HOSTED: Final = HostedForm(
    announce=_announce,
    report=_report,
    read=_read,
    marks=(b'"call_wg',),
    vendor_marks=(b'_search_call"', b'_search_result"', b'"url_context_call"', b'"url_context_result"'),
)
