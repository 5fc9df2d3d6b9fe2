"""Forces the call of one tool where no choice of tools exists: the answer must follow the tool's schema, and
becomes the arguments of the call (`providers/emulation.py`)."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import OutputFormat, Request, Tool
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.survey import OUTPUT
from wireglot_core.wire.json import encode_text

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def call_by_format(request: Request, fitting: Fitting) -> Request:
    """Does nothing if several tools may be called, if the client requests an output format, or if it has
    begun the answer itself: then the choice is weakened."""
    tool, choice = _forced(request), request.tool_choice
    if tool is None or choice is None or not fitting.context.emulates:
        return request
    if request.output is not None and request.output.kind != "text":
        return request
    if request.messages and request.messages[-1].role == "assistant":
        return request
    schema = tool.schema or _ANY_OBJECT
    detail = f"the answer must follow the schema of {tool.name}, and is returned as its call"
    fitting.lose("$.tool_choice", "tool_choice", "emulated", detail)
    losses_of_extra(choice.extra, "", "$.tool_choice", fitting.losses)
    fitting.emulate(call_tool=tool.name, call_id=fitting.context.new_id("call", tool.name))
    fitting.seen |= OUTPUT
    # A grammar alone does not tell the model what it is to write.
    words = (
        f"Call the function {tool.name}: answer with its arguments, as one JSON object of this JSON Schema, "
    )
    words += f"and nothing else:\n{encode_text(schema)}"
    if tool.description:
        words += f"\n\n{tool.description}"
    head = 0
    while head < len(request.messages) and request.messages[head].role == "system":
        head += 1
    messages = (*request.messages[:head], Message("system", (Text(words),)), *request.messages[head:])
    output = OutputFormat("schema", schema)
    return msgspec.structs.replace(
        request, messages=messages, tools=(), tool_choice=None, parallel_tools=None, output=output
    )


def _forced(request: Request) -> Tool | None:
    """The one tool that the model must call."""
    choice = request.tool_choice
    if choice is None or choice.mode != "required":
        return None
    allowed = [tool for tool in request.tools if choice.allows(tool)]
    tool = allowed[0] if len(allowed) == 1 else None
    return tool if type(tool) is Tool and tool.kind == "function" else None
