"""A search for tools that the server ran, as two items.

Source: the types of openai-python 3.49.0, read 2026-11-15.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_responses.tools import parse_tools, render_tools
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall
from wireglot_core.ir.request import Tool
from wireglot_core.ir.stream import Event, PartEnd, PartStart

KIND: Final = "tool_search"
CALL: Final = "tool_search_call"
OUTPUT: Final = "tool_search_output"
_CALL_PREFIX: Final = "tsc_"
_OUTPUT_PREFIX: Final = "tso_"


def report(call: HostedCall, result: HostedResult, index: int) -> list[Event]:
    """There is no field for an error: the output has no tools."""
    run = {"call_id": None, "execution": "server", "status": "incomplete" if result.error else "completed"}
    asked = {"type": CALL, "id": _CALL_PREFIX + call.id, **run, "arguments": call.input}
    tools = render_tools(result.tools, [])
    found = {"type": OUTPUT, "id": _OUTPUT_PREFIX + call.id, **run, "tools": tools}
    return [
        PartStart(index, Foreign(NAME, CALL, asked)),
        PartEnd(index),
        PartStart(index + 1, Foreign(NAME, OUTPUT, found)),
        PartEnd(index + 1),
    ]


def read(part: Foreign) -> RanCall | None:
    value = part.value
    id = value.get("id")
    if type(id) is not str:
        return None
    if part.type == CALL:
        given = value.get("arguments")
        asked = given if type(given) is dict else {}
        id = id.removeprefix(_CALL_PREFIX)
        return RanCall(id, HostedCall(KIND, id, input=asked))
    result = HostedResult(tools=_tools(value))
    if value.get("status") == "incomplete":
        result = HostedResult(error="unavailable", message="the search failed.")
    return RanCall(id.removeprefix(_OUTPUT_PREFIX), result=result)


def _tools(value: dict[str, Any]) -> tuple[Tool, ...]:
    listed = value.get("tools")
    try:
        tools = parse_tools(listed if type(listed) is list else [], "$.tools", OUTPUT)
    except BadField:
        return ()
    return tuple(tool for tool in tools if isinstance(tool, Tool))
