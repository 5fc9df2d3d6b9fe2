"""Parses and renders server-side tools as items and their progress events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.dialects.fields import own_fields
from wireglot_core.dialects.openai_responses import mcp, tool_search
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebSource
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Finish, ForeignEvent, PartEnd, PartStart

_SEARCH: Final = "web_search_call"
_PREFIX: Final = "ws_"
_WEB: Final = ("web_search", "web_fetch")
_NO_IMAGES: Final = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "total_tokens": 0,
}
"""Required by the types of openai 3.49.0: tools that were not used have zeros."""


def _announce(call: HostedCall, index: int) -> list[Event]:
    if call.kind not in _WEB:
        return mcp.announce(call) if call.kind == mcp.KIND else []
    item = {"type": _SEARCH, "id": _PREFIX + call.id, "status": "in_progress", "action": _action(call, ())}
    return [
        _event("response.output_item.added", item=item),
        _event(f"response.{_SEARCH}.in_progress", item_id=item["id"]),
        _event(f"response.{_SEARCH}.searching", item_id=item["id"]),
    ]


def _report(ran: RanCall, index: int) -> list[Event]:
    call, result = ran.call, ran.result
    assert call is not None
    assert result is not None
    if call.kind == mcp.KIND:
        return mcp.report(call, result, index)
    if call.kind == tool_search.KIND:
        return tool_search.report(call, result, index)
    id = _PREFIX + call.id
    status = "failed" if result.error else "completed"
    item = {"type": _SEARCH, "id": id, "status": status, "action": _action(call, result.sources)}
    done: list[Event] = [PartStart(index, Foreign(NAME, _SEARCH, item)), PartEnd(index)]
    return done if result.error else [_event(f"response.{_SEARCH}.completed", item_id=id), *done]


def _event(kind: str, **value: Any) -> ForeignEvent:
    return ForeignEvent(NAME, kind, {"type": kind, **value})


def _action(call: HostedCall, sources: Sequence[WebSource]) -> dict[str, Any]:
    if call.kind == "web_fetch":
        return {"type": "open_page", "url": call.input.get("url", "")}
    query = call.input.get("query", "")
    action: dict[str, Any] = {"type": "search", "query": query, "queries": [query]}
    if sources:
        action["sources"] = [{"type": "url", "url": source.url} for source in sources]
    return action


def _finish(finish: Finish, ran: Sequence[RanCall]) -> Finish:
    """Adds the number of successful searches. OpenAI does not count pages that were opened."""
    searches = [each for each in ran if each.call is not None and each.call.kind in _WEB]
    if not searches:
        return finish
    count = 0
    for each in searches:
        assert each.call is not None
        is_good = each.result is not None and not each.result.error
        count += is_good and each.call.kind == "web_search"
    usage = {"image_gen": _NO_IMAGES, "web_search": {"num_requests": count}}
    return replace(finish, extra=Extra(NAME, {**own_fields(finish.extra, NAME), "tool_usage": usage}))


def read_item(part: Foreign) -> RanCall | None:
    """Parses a search of an earlier turn. A web search has no contents of its results, only their
    addresses."""
    if part.type in (tool_search.CALL, tool_search.OUTPUT):
        return tool_search.read(part)
    value = part.value
    action, id = value.get("action"), value.get("id")
    if part.type != _SEARCH or type(action) is not dict or action.get("type") != "search":
        return None
    query, listed = action.get("query"), action.get("sources")
    urls = [item.get("url") for item in listed if type(item) is dict] if type(listed) is list else []
    sources = tuple(WebSource(url) for url in urls if type(url) is str)
    failed = value.get("status") == "failed"
    if type(id) is not str:
        return None
    id = id.removeprefix(_PREFIX)
    call = HostedCall("web_search", id, input={"query": query if type(query) is str else ""})
    return RanCall(id, call, HostedResult(error="unavailable" if failed else "", sources=sources))


def _max_calls(request: Request) -> int | None:
    stated = own_fields(request.extra, NAME).get("max_tool_calls")
    return stated if type(stated) is int else None


HOSTED: Final = HostedForm(
    announce=_announce,
    report=_report,
    finish=_finish,
    read=read_item,
    max_calls=_max_calls,
    is_search=lambda tool: tool.native is not None and tool.native.type == tool_search.KIND,
    mcp=mcp.MCP,
    carried=frozenset({tool_search.KIND, mcp.KIND}),
    tool_marks={"tools": (b'"web_search', b'"tool_search"', b'"mcp"')},
    marks=(b'"ws_w', b'"tso_wg'),  # of both kinds; OpenAI's own ids are hexadecimal
    vendor_marks=(b'"web_search_call"', b'"tool_search_output"'),
)
