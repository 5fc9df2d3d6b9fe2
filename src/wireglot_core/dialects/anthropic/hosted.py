"""Parses and renders server-side tools as blocks: a call and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.anthropic import mcp, tool_search
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.anthropic.outcome import parse_usage, render_usage
from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebPage, WebSource
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.stream import Event, Finish, PartEnd, PartStart

CALL: Final = "server_tool_use"
_PREFIX: Final = "srvtoolu_"
_RESULT: Final = "_tool_result"
_WEB: Final = ("web_search", "web_fetch")
_DIRECT: Final = {"type": "direct"}
"""The model calls the tool itself, rather than code that it wrote."""
_TOOL_SEARCH: Final = "tool_search_tool_"
_CLIENT_SEARCH: Final = "ToolSearch"
"""Claude Code's own search: its results are references to deferred tools."""
_COUNTS: Final = {"web_search": "web_search_requests", "web_fetch": "web_fetch_requests"}


def _announce(call: HostedCall, index: int) -> list[Event]:
    if call.kind == mcp.KIND:
        return _block(mcp.CALL, mcp.render_call(call), index)
    block = {
        "type": CALL,
        "id": _PREFIX + call.id,
        "name": call.name or call.kind,
        "input": call.input,
        "caller": _DIRECT,
    }
    return _block(CALL, block, index)


def _report(ran: RanCall, index: int) -> list[Event]:
    call, result = ran.call, ran.result
    assert call is not None
    assert result is not None
    if call.kind == mcp.KIND:
        return _block(mcp.RESULT, mcp.render_result(call, result), index)
    kind = call.kind + _RESULT
    block = {"type": kind, "tool_use_id": _PREFIX + call.id, "content": _content(call.kind, result)}
    if call.kind in _WEB:
        block["caller"] = _DIRECT
    return _block(kind, block, index)


def _block(kind: str, value: dict[str, Any], index: int) -> list[Event]:
    return [PartStart(index, Foreign(NAME, kind, value)), PartEnd(index)]


def _content(kind: str, result: HostedResult) -> Any:
    if kind == tool_search.KIND:
        return tool_search.render_found(result)
    if result.error:
        return {"type": f"{kind}{_RESULT}_error", "error_code": result.error}
    if result.page is not None:
        return _fetched(result.page)
    return [
        {
            "type": "web_search_result",
            "url": source.url,
            "title": source.title or source.url,
            "encrypted_content": source.sealed,
            "page_age": source.age or None,
        }
        for source in result.sources
    ]


def _fetched(page: WebPage) -> dict[str, Any]:
    if page.data:
        source = {"type": "base64", "media_type": page.mime, "data": page.data}
    else:
        source = {"type": "text", "media_type": "text/plain", "data": page.text}
    cited = {"enabled": False}
    document = {"type": "document", "source": source, "title": page.title or None, "citations": cited}
    return {
        "type": "web_fetch_result",
        "url": page.url,
        "retrieved_at": page.retrieved,
        "content": document,
    }


def _finish(finish: Finish, ran: Sequence[RanCall]) -> Finish:
    """Adds the number of successful calls: failed ones are not billed."""
    counts = dict.fromkeys(_COUNTS.values(), 0)
    for each in ran:
        if each.call is not None and each.call.kind in _COUNTS and each.result and not each.result.error:
            counts[_COUNTS[each.call.kind]] += 1
    usage = render_usage(finish.usage or Usage(), "$.usage", [])
    return replace(finish, usage=parse_usage({**usage, CALL: counts}))


def read_block(part: Foreign) -> RanCall | None:
    """Parses a call of an earlier turn, its result, or a tool that the client found."""
    value = part.value
    if part.type == tool_search.REFERENCE:
        tool = tool_search.reference(value)
        return RanCall("", result=HostedResult(tools=(tool,))) if tool is not None else None
    if part.type in (mcp.CALL, mcp.RESULT):
        return mcp.read_call(part)
    if part.type == CALL:
        id, name, given = value.get("id"), value.get("name"), value.get("input")
        if type(name) is not str or type(id) is not str or type(given) is not dict:
            return None
        id = id.removeprefix(_PREFIX)
        if name.startswith(_TOOL_SEARCH):
            return RanCall(id, HostedCall(tool_search.KIND, id, name, given))
        return RanCall(id, HostedCall(name, id, input=given)) if name in _WEB else None
    kind = part.type.removesuffix(_RESULT)
    id = value.get("tool_use_id")
    if kind == part.type or type(id) is not str:
        return None
    if kind == tool_search.KIND:
        return RanCall(id.removeprefix(_PREFIX), result=tool_search.parse_found(value.get("content")))
    if kind not in _WEB:
        return None
    return RanCall(id.removeprefix(_PREFIX), result=_read_content(value.get("content")))


def _read_content(content: Any) -> HostedResult:
    if type(content) is list:
        return HostedResult(sources=tuple(_source(item) for item in content if type(item) is dict))
    if type(content) is not dict:
        return HostedResult(error="unavailable")
    document = content.get("content")
    if type(document) is not dict:
        return HostedResult(error="unavailable", message=_text(content, "error_code"))
    source = document.get("source")
    data = _text(source, "data") if type(source) is dict else ""
    plain = type(source) is dict and source.get("type") == "text"
    page = WebPage(
        _text(content, "url"),
        _text(document, "title"),
        _text(source, "media_type") if type(source) is dict else "",
        text=data if plain else "",
        data="" if plain else data,
        retrieved=_text(content, "retrieved_at"),
    )
    return HostedResult(page=page)


def _source(item: dict[str, Any]) -> WebSource:
    return WebSource(
        _text(item, "url"),
        _text(item, "title"),
        age=_text(item, "page_age"),
        sealed=_text(item, "encrypted_content"),
    )


def _text(value: dict[str, Any], key: str) -> str:
    item = value.get(key)
    return item if type(item) is str else ""


HOSTED: Final = HostedForm(
    announce=_announce,
    report=_report,
    finish=_finish,
    read=read_block,
    searches_by_pattern=tool_search.searches_by_pattern,
    is_search=lambda tool: tool.name == _CLIENT_SEARCH,
    mcp=mcp.MCP,
    carried=frozenset({*_WEB, tool_search.KIND, mcp.KIND}),
    quotes=True,
    marks=(b'"srvtoolu_w', b'"mcptoolu_wg'),  # of both kinds; not used in ids made by Anthropic
    vendor_marks=(b'_tool_use"',),  # server_tool_use, mcp_tool_use
)
