"""Parses and renders tool calls: arguments are objects, and ids are optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wireglot_core.dialects.arguments import arguments_text, declare_arguments, read_arguments
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.ollama.extras import NAME, keep, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.loss import Loss

_CALL: Final = frozenset({"id", "type", "function"})
_FUNCTION: Final = frozenset({"index", "name", "arguments"})


def parse_call(call: Fields, mint: Callable[[str], str]) -> ToolCall:
    """An entry of `tool_calls`. `mint` makes the id of a call without one, as older servers and the Python
    SDK send it."""
    value = call.value
    function = call.object("function")
    inner = function.value
    name = function.text("name")
    if not name:
        raise function.wrong("name", "the name of a tool")
    form: dict[str, Any] = {}
    arguments = inner.get("arguments")
    if type(arguments) is dict:
        text = arguments_text(arguments)
    elif type(arguments) is str:  # servers that imitate Ollama's
        text = arguments
        form["arguments"] = "text"
    elif arguments is None:
        text = ""
        form["arguments"] = "absent"
    else:
        raise function.wrong("arguments", "an object")
    identifier = call.text_or("id")
    taken = set(_CALL)
    if not identifier:
        identifier = mint(name)
        form["id"] = "absent"
        taken.discard("id")
    if value.get("type") != "function":
        taken.discard("type")
    else:
        form["type"] = "function"
    if type(inner.get("index")) is int:
        form["index"] = inner["index"]
        known = _FUNCTION
    else:
        known = _FUNCTION - {"index"}
    extra = keep(value, taken, form, nested={"function": (inner, known)})
    return ToolCall(identifier, name, text, extra=extra)


def render_call(part: ToolCall, path: str, losses: list[Loss], index: int | None = None) -> dict[str, Any]:
    """`index`: the index of the call in an answer, as servers write it."""
    LOST.of(part, path, losses)
    form = own_form(part.extra, NAME)
    out: dict[str, Any] = {}
    if form.get("id") != "absent":
        out["id"] = part.id
    if "type" in form:
        out["type"] = form["type"]
    function: dict[str, Any] = {}
    if "index" in form:
        function["index"] = form["index"]
    elif index is not None and (part.extra is None or part.extra.dialect != NAME):
        function["index"] = index
    function["name"] = part.name
    if part.kind == "custom":
        function["arguments"] = {"input": part.arguments}
    elif form.get("arguments") == "text":
        function["arguments"] = part.arguments
    elif form.get("arguments") != "absent" or part.arguments.strip() not in ("", "{}"):
        function["arguments"], read = read_arguments(part.arguments)
        declare_arguments(read, path, losses)
    out["function"] = function
    return put_back(out, part.extra)
