"""Calls of tools that the client runs, and their results: separate item types (`shell_call`,
`computer_call_output`), function calls and tool results for other dialects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_responses.output import ItemIds
from wireglot_core.dialects.openai_responses.parts import parse_part
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, ResultPart, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Tool
from wireglot_core.wire.json import BadJson, decode, encode_text

VERBATIM = "verbatim"
"""Form key: the item verbatim, which is sent back in its own dialect."""

_CALLS = {
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
}
"""Item type -> the name of the function that represents it in other dialects."""
CLIENT_CALLS = frozenset(_CALLS)
_ITEMS = {
    "shell": "shell_call",
    "local_shell": "local_shell_call",
    "apply_patch": "apply_patch_call",
    "computer": "computer_call",
    "computer_use_preview": "computer_call",
    "tool_search": "tool_search_call",
}
"""Tool type -> the item type of its calls."""
CLIENT_RESULTS = frozenset(
    {
        "shell_call_output",
        "local_shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
    }
)

_CALL_KEYS = frozenset(
    {
        "type",
        "id",
        "status",
        "call_id",
        "action",
        "actions",
        "operation",
        "arguments",
        "execution",
        "environment",
    }
)
_RESULT_KEYS = frozenset(
    {"type", "id", "status", "call_id", "output", "tools", "execution", "max_output_length"}
)
_DIRECT = {"type": "direct"}


# --- calls


def is_client_call(value: dict[str, Any]) -> bool:
    """Whether the client runs the call of such an item."""
    kind = value.get("type")
    if kind == "shell_call":
        environment = value.get("environment")
        return type(environment) is not dict or environment.get("type") == "local"
    if kind == "tool_search_call":
        return value.get("execution") == "client"
    return type(kind) is str and kind in CLIENT_CALLS


def parse_client_call(item: Fields, context: Context, *material: str) -> ToolCall:
    kind = item.text("type")
    name = _CALLS[kind]
    identifier = item.text_or("call_id") or item.text_or("id")
    if not identifier:
        identifier = context.new_id(context.call_prefix, *material, name)
    return ToolCall(identifier, name, _arguments(item, kind), extra=_kept(item.value, _CALL_KEYS))


def _kept(value: dict[str, Any], known: frozenset[str]) -> Extra:
    fields = {key: item for key, item in value.items() if key not in known and item is not None}
    if fields.get("caller") == _DIRECT:
        del fields["caller"]
    if not fields.get("pending_safety_checks", True):
        del fields["pending_safety_checks"]
    return Extra(NAME, fields, {VERBATIM: value})


def _arguments(item: Fields, kind: str) -> str:
    """The model's arguments, without those it left out."""
    match kind:
        case "tool_search_call":
            stated = item.value.get("arguments")
            return stated if type(stated) is str else encode_text(stated if type(stated) is dict else {})
        case "apply_patch_call":
            asked = item.dict_or_none("operation") or {}
        case "computer_call":
            actions = item.value.get("actions")
            asked = {"actions": actions} if actions is not None else item.dict_or_none("action") or {}
        case _:
            asked = item.dict_or_none("action") or {}
            if kind == "local_shell_call":
                asked = {key: value for key, value in asked.items() if key != "type" and value != {}}
    return encode_text({key: value for key, value in asked.items() if value is not None})


def own_item(call: ToolCall, keeps_minted: bool = False) -> dict[str, Any] | None:
    """The original item of a call, None if it was an ordinary one."""
    value = own_form(call.extra, NAME).get(VERBATIM)
    return _again(value, call.id, keeps_minted) if type(value) is dict else None


def _again(value: dict[str, Any], call_id: str, keeps_minted: bool) -> dict[str, Any]:
    item = dict(value)
    if value.get("call_id") and value["call_id"] != call_id:
        item["call_id"] = call_id
    identifier = value.get("id")
    if not keeps_minted and type(identifier) is str and is_minted(identifier) and value.get("call_id"):
        del item["id"]
    return item


def client_item(call: ToolCall, tool: Tool, identifier: str, status: str) -> dict[str, Any] | None:
    """The item for a call that some model made of the function that represents `tool`. None if the arguments
    lack what the item needs: an incomplete call is not run."""
    assert tool.native is not None
    try:
        asked = decode(call.arguments) if call.arguments.strip() else {}
    except BadJson:
        asked = None
    said = _said(tool.native.type, asked, call.arguments, tool.native.value)
    if said is None:
        return None
    return {
        "type": _ITEMS[tool.native.type],
        "id": identifier,
        "call_id": call.id,
        "status": status,
        **said,
    }


def item_kind(tool: Tool) -> str:
    assert tool.native is not None
    return _ITEMS[tool.native.type]


def _said(kind: str, asked: Any, text: str, declared: dict[str, Any]) -> dict[str, Any] | None:
    if kind == "tool_search":
        return {"execution": "client", "arguments": asked if type(asked) is dict else text}
    if type(asked) is not dict:
        return None
    match kind:
        case "shell":
            commands = _texts(asked.get("commands"))
            if commands is None:
                return None
            limits = {key: _whole(asked.get(key)) for key in ("timeout_ms", "max_output_length")}
            environment = {"type": "local"} if type(declared.get("environment")) is dict else None
            return {"action": {"commands": commands, **limits}, "environment": environment}
        case "local_shell":
            command = _texts(asked.get("command"))
            if command is None:
                return None
            env = asked.get("env")
            action: dict[str, Any] = {
                "type": "exec",
                "command": command,
                "env": env if type(env) is dict else {},
            }
            for key in ("timeout_ms", "user", "working_directory"):
                if asked.get(key) is not None:
                    action[key] = asked[key]
            return {"action": action}
        case "apply_patch":
            does, path, diff = (asked.get(key) for key in ("type", "path", "diff"))
            operation = {"type": does, "path": path}
            if type(path) is not str or does not in ("create_file", "update_file", "delete_file"):
                return None
            if does != "delete_file":
                if type(diff) is not str:
                    return None
                operation["diff"] = diff
            return {"operation": operation}
        case _:
            return _computer(kind, asked)


def _computer(kind: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    actions = asked.get("actions") if kind == "computer" else [asked]
    if type(actions) is not list or not actions:
        return None
    if any(type(action) is not dict or type(action.get("type")) is not str for action in actions):
        return None
    shown = {"actions": actions} if kind == "computer" else {"action": actions[0]}
    return {"pending_safety_checks": [], **shown}


def _texts(value: Any) -> list[str] | None:
    if type(value) is list and value and all(type(item) is str for item in value):
        return value
    return None


def _whole(value: Any) -> int | None:
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def is_client_run(call: ToolCall, own_tools: Mapping[str, Tool]) -> bool:
    """Whether a call is written as its own item type: it came as one, or calls a tool that has one."""
    if call.kind == "function" and not call.namespace and call.name in own_tools:
        return True
    return VERBATIM in own_form(call.extra, NAME)


def item_of_client_tool(
    call: ToolCall, ids: ItemIds, position: int, own_tools: Mapping[str, Tool]
) -> dict[str, Any] | None:
    """The item of a tool that the client runs; None: it is an ordinary call, or lacks required arguments."""
    value = own_item(call, keeps_minted=True)
    if value is not None:
        return value
    if not own_tools or not is_client_run(call, own_tools):
        return None
    tool = own_tools[call.name]
    return client_item(call, tool, ids.take(item_kind(tool), position), "completed")


def begun(value: dict[str, Any]) -> dict[str, Any]:
    """The item as announced in a stream."""
    item = {**value, "status": "in_progress"} if "status" in value else dict(value)
    if value["type"] == "shell_call" and type(value.get("action")) is dict:
        item["action"] = {**value["action"], "commands": []}
    return item


def reported(value: dict[str, Any], position: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events between the start of such an item and its end: a shell's commands, one by one."""
    action = value.get("action")
    if value["type"] != "shell_call" or type(action) is not dict:
        return
    for number, command in enumerate(action.get("commands") or ()):
        place = {"output_index": position, "command_index": number}
        yield "response.shell_call_command.added", {**place, "command": ""}
        yield "response.shell_call_command.delta", {**place, "delta": command}
        yield "response.shell_call_command.done", {**place, "command": command}


# --- results


def is_client_result(value: dict[str, Any], hosted: set[str]) -> bool:
    """Whether an item is the result of such a call; `hosted`: the ids of calls that the server ran itself."""
    kind, call_id = value.get("type"), value.get("call_id")
    if type(kind) is not str or kind not in CLIENT_RESULTS:
        return False
    if type(call_id) is str and call_id in hosted:
        return False
    return kind != "tool_search_output" or value.get("execution") == "client"


def parse_client_result(item: Fields) -> ToolResult:
    kind = item.text("type")
    content, failed = _content(item, kind)
    return ToolResult(
        item.text_or("call_id") or item.text_or("id"),
        content,
        is_error=failed,
        extra=_kept(item.value, _RESULT_KEYS),
    )


def _content(item: Fields, kind: str) -> tuple[tuple[ResultPart, ...], bool]:
    output = item.value.get("output")
    match kind:
        case "shell_call_output" if type(output) is list:
            return (Text("\n".join(_ran(piece) for piece in output if type(piece) is dict)),), False
        case "apply_patch_call_output":
            status = item.text_or("status", "completed")
            return (Text(output if type(output) is str and output else status),), status == "failed"
        case "computer_call_output" if type(output) is dict:
            picture = {key: value for key, value in output.items() if key != "type" and value is not None}
            place = f"{item.path}.output"
            part = parse_part(Fields({"type": "input_image", **picture}, place, item.fault), "input_text")
            return (part,), False
        case "tool_search_output":
            return (Text(_found(item.array_or_empty("tools"))),), False
        case _:
            said = output if type(output) is str else encode_text(output)
            return (Text(said),), False


def _ran(piece: dict[str, Any]) -> str:
    """One command's output, as a terminal would show it, and its exit."""
    outcome = piece.get("outcome")
    ended = outcome if type(outcome) is dict else {}
    how = "timed out" if ended.get("type") == "timeout" else f"exit code {ended.get('exit_code')}"
    shown = [text for key in ("stdout", "stderr") if type(text := piece.get(key)) is str and text]
    return "\n".join([*(text.removesuffix("\n") for text in shown), f"[{how}]"])


def _found(tools: list[Any]) -> str:
    """The tools that a search found, under their names in other dialects (see `providers/fit/tools.py`)."""
    names: list[str] = []
    for tool in tools:
        if type(tool) is not dict:
            continue
        members = tool.get("tools")
        if tool.get("type") == "namespace" and type(members) is list:
            names += [f"{tool.get('name')}__{one.get('name')}" for one in members if type(one) is dict]
        elif type(tool.get("name")) is str:
            names.append(tool["name"])
    return f"These tools can be called now: {', '.join(names)}." if names else "No tools were found."


def own_result(result: ToolResult) -> dict[str, Any] | None:
    """The original item of a result, None if it was an ordinary one."""
    value = own_form(result.extra, NAME).get(VERBATIM)
    if type(value) is not dict:
        return None
    item = dict(value)
    key = "call_id" if value.get("call_id") else "id"
    if value.get(key) != result.call_id:
        item[key] = result.call_id
    identifier = value.get("id")
    if key == "call_id" and type(identifier) is str and is_minted(identifier):
        del item["id"]
    return item


def brings_tools(result: ToolResult) -> bool:
    value = own_form(result.extra, NAME).get(VERBATIM)
    return type(value) is dict and value.get("type") == "tool_search_output"
