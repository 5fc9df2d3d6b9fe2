"""Parses and renders server-side tools: a step for the call and one for its result."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.capabilities import CodeForm, HostedForm
from wireglot_core.dialects.fields import object_in, text_in
from wireglot_core.dialects.gemini_interactions.names import MEDIA, OWN
from wireglot_core.ir.content import Foreign, Media
from wireglot_core.ir.hosted import CODE, HostedCall, HostedResult, RanCall, WebSource
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.stream import Event, PartEnd, PartStart

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


_CODE_CALL: Final = "code_execution_call"
_CODE_RESULT: Final = "code_execution_result"


def _read_code(part: Foreign) -> RanCall | None:
    value = part.value
    if part.type == _CODE_CALL:
        given = object_in(value.get("arguments"))
        said = {"code": text_in(given.get("code")), "language": text_in(given.get("language"))}
        id = text_in(value.get("id"))
        return RanCall(id, HostedCall(CODE, id, input=said))
    if part.type != _CODE_RESULT:
        return None
    listed = value.get("result")
    entries = [object_in(entry) for entry in listed] if type(listed) is list else []
    text = text_in(listed) + "".join(text_in(entry.get("text")) for entry in entries)
    media = tuple(
        Media(kind, text_in(entry.get("mime_type")), text_in(entry.get("data")))
        for entry in entries
        for kind in MEDIA
        if entry.get("type") == kind
    )
    failed = value.get("is_error") is True
    result = HostedResult(text, "tool_failed" if failed else "", media=media)
    return RanCall(text_in(value.get("call_id")), result=result)


def _render_code(ran: RanCall, path: str, losses: list[Loss]) -> Foreign:
    result = ran.result
    if result is not None:
        value: dict[str, Any] = {"type": _CODE_RESULT, "call_id": ran.id, "result": result.text}
        if result.error:
            value["is_error"] = True
        if result.error == "execution_time_exceeded":
            detail = "the time limit is an error like any other"
            losses.append(Loss(path, "foreign_part", "approximated", detail))
        return Foreign(OWN, _CODE_RESULT, value)
    assert ran.call is not None
    said = {key: given for key, given in ran.call.input.items() if given or key == "code"}
    return Foreign(OWN, _CODE_CALL, {"type": _CODE_CALL, "id": ran.id, "arguments": said})


HOSTED: Final = HostedForm(
    announce=_announce,
    report=_report,
    read=_read,
    code=CodeForm(
        read=_read_code,
        render=_render_code,
        fields=frozenset({"type", "id", "call_id", "arguments", "result", "is_error"}),
        signature="signature",
    ),
    marks=(b'"call_wg',),
    vendor_marks=(b'_search_call"', b'_search_result"', b'"url_context_call"', b'"url_context_result"'),
)
