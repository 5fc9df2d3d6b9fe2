"""A JSON schema for the answer toward an endpoint without such formats: a function with that schema, which
the model must call. Its arguments are the answer (`providers/emulation.py`)."""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot_core.dialects.schema import SchemaTarget, object_root, project
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import OutputFormat, Request, Tool, ToolChoice
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.output import reported_notes
from wireglot_core.providers.fit.thinking import thinks

_NAME: Final = "answer"
_DESCRIPTION: Final = "Call this function once, at the end, to answer. Its arguments are the whole answer."


def answer_by_tool(request: Request, fitting: Fitting) -> Request:
    """Does nothing if the model may not be forced to call a function, if the client demands a call of one of
    its own tools, or if the client has begun the answer itself: then the format is requested in words."""
    output = request.output
    if output is None or output.kind != "schema" or output.schema is None or not fitting.context.emulates:
        return request
    if request.messages and request.messages[-1].role == "assistant":
        return request
    names = [tool.name for tool in request.tools if type(tool) is Tool]
    if len(names) < len(request.tools):
        return request  # hosted tools: not every provider lets them run while a call is demanded
    name = _free_name(output, names, fitting)
    choice = _choice(request, name, fitting)
    if choice is None:
        return request
    detail = f"the answer is the arguments of the function {name}, which the model must call"
    fitting.lose("$.output", "output_format", "emulated", detail)
    losses_of_extra(output.extra, "", "$.output", fitting.losses)
    fitting.emulate(answer_tool=name)
    tool = _tool(output, name, fitting)
    return msgspec.structs.replace(request, tools=(*request.tools, tool), tool_choice=choice, output=None)


def _free_name(output: OutputFormat, taken: list[str], fitting: Fitting) -> str:
    name = output.name
    if not name or fitting.target.rules.refuses_name(name):
        name = _NAME
    others = frozenset(taken)
    stem, number = name[: fitting.limits.tool_name_max - 4], 2
    while name in others:
        name, number = f"{stem}_{number}", number + 1
    return name


def _choice(request: Request, name: str, fitting: Fitting) -> ToolChoice | None:
    """The tool choice that forces the call; None: it cannot be forced."""
    limits, choice = fitting.limits, request.tool_choice
    allowed = limits.tool_choices
    if limits.tool_choices_thinking is not None and thinks(fitting.asked, request.thinking, limits):
        allowed = limits.tool_choices_thinking
    if choice is not None and (choice.mode == "required" or choice.narrows):
        return None
    if not request.tools or (choice is not None and choice.mode == "none"):
        if "named" in allowed:
            return ToolChoice("required", (name,))
        return ToolChoice("required") if "required" in allowed and not request.tools else None
    return ToolChoice("required") if "required" in allowed else None


def _tool(output: OutputFormat, name: str, fitting: Fitting) -> Tool:
    assert output.schema is not None
    limits = fitting.limits
    schema, wrapped = object_root(output.schema)
    if wrapped:
        detail = 'requested as {"value": ...}, which is removed from the answer'
        fitting.lose("$.output.schema", "output_format.schema", "emulated", detail)
    if wrapped or output.bare:
        fitting.aliases = msgspec.structs.replace(fitting.aliases, unwraps=wrapped, bare=output.bare)
    form: SchemaTarget = limits.tool_schema
    strict = bool(output.strict) and limits.strict_tools
    if strict and form == "openai":
        strict = not project(schema, "openai-strict").notes
        form = "openai-strict" if strict else form
    projected = project(schema, form)
    if projected.notes:
        detail = reported_notes(projected.notes)
        fitting.lose("$.output.schema", "output_format.schema", "approximated", detail)
    if output.strict and not strict:
        detail = "the arguments of a function are not enforced here"
        fitting.lose("$.output.strict", "output_format.strict", "dropped", detail)
    description = f"{output.description}\n\n{_DESCRIPTION}" if output.description else _DESCRIPTION
    return Tool(name, description, projected.schema, strict or None)
