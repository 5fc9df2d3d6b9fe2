"""OpenAI's own tools that the client runs: shell, local_shell, apply_patch, the computer, a search for tools.

A declaration names its type only; the arguments are those of its call items. Source: the types of
openai-python 3.49.0, read 2026-11-15. A shell in a container, and a tool search that the server runs, are
hosted tools.
"""

from __future__ import annotations

from collections.abc import Callable

from wireglot_core.dialects.client_tools import Schema, arguments, number, text
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.request import AnyTool, Tool

_Made = tuple[str, str, Schema]
"""Name, description, schema of the arguments."""

_TEXTS = {"type": "array", "items": {"type": "string"}}


def _shell(tool: Fields) -> _Made | None:
    environment = tool.object_or_none("environment")
    if environment is not None and environment.value.get("type") != "local":
        return None
    description = "Run shell commands on the user's computer, one after the other."
    skills = environment.array_or_empty("skills") if environment is not None else []
    for skill in skills:
        if type(skill) is dict:
            description += f"\nSkill {skill.get('name')} at {skill.get('path')}: {skill.get('description')}"
    return (
        "shell",
        description,
        arguments(
            {
                "commands": {**_TEXTS, "description": "The commands."},
                "timeout_ms": number("How long they may take, in milliseconds."),
                "max_output_length": number("How many characters of output to keep at most."),
            },
            "commands",
        ),
    )


def _local_shell(tool: Fields) -> _Made:
    return (
        "local_shell",
        "Run a command on the user's computer.",
        arguments(
            {
                "command": {**_TEXTS, "description": "The program and its arguments, such as bash, -lc, ls."},
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Environment variables to set.",
                },
                "working_directory": text("Where to run it."),
                "timeout_ms": number("How long it may take, in milliseconds."),
                "user": text("The user to run it as."),
            },
            "command",
        ),
    )


def _apply_patch(tool: Fields) -> _Made:
    return (
        "apply_patch",
        "Create, update or delete one file. A diff has the lines of the file in V4A form: '@@' and a line of "
        "context before each place, then lines that begin with ' ' (kept), '-' (removed) or '+' (added); the "
        "diff of a new file has '+' lines only.",
        arguments(
            {
                "type": text("What to do.", "create_file", "update_file", "delete_file"),
                "path": text("The file, relative to the workspace."),
                "diff": text("The change; not for delete_file."),
            },
            "type",
            "path",
        ),
    )


_ACTION = arguments(
    {
        "type": text(
            "What to do.",
            *("click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"),
        ),
        "x": number("click, double_click, move, scroll: pixels from the left edge."),
        "y": number("click, double_click, move, scroll: pixels from the top edge."),
        "button": text("click: the mouse button.", "left", "right", "wheel", "back", "forward"),
        "scroll_x": number("scroll: how far to the right."),
        "scroll_y": number("scroll: how far down."),
        "text": text("type: the text."),
        "keys": {**_TEXTS, "description": "keypress: the keys; otherwise keys to hold down meanwhile."},
        "path": {
            "type": "array",
            "items": arguments({"x": number("From the left."), "y": number("From the top.")}, "x", "y"),
            "description": "drag: the places on the way.",
        },
    },
    "type",
)
_COMPUTER = "Control a computer by its screen, mouse and keyboard. The answer is a picture of its screen."


def _computer(tool: Fields) -> _Made:
    actions = {"type": "array", "items": _ACTION, "description": "What to do, in this order."}
    return "computer", _COMPUTER, arguments({"actions": actions}, "actions")


def _computer_preview(tool: Fields) -> _Made:
    value = tool.value
    wide, high, kind = (value.get(key) for key in ("display_width", "display_height", "environment"))
    screen = f" It is a {kind} screen of {wide} x {high} pixels." if wide and high else ""
    return "computer", _COMPUTER + screen, _ACTION


def _tool_search(tool: Fields) -> _Made | None:
    if tool.value.get("execution") != "client":
        return None
    described = (
        tool.text_or("description") or "Find tools for a task; those that are found can be called then."
    )
    return "tool_search", described, tool.dict_or_none("parameters") or arguments({})


_TOOLS: dict[str, Callable[[Fields], _Made | None]] = {
    "shell": _shell,
    "local_shell": _local_shell,
    "apply_patch": _apply_patch,
    "computer": _computer,
    "computer_use_preview": _computer_preview,
    "tool_search": _tool_search,
}


def parse_client_tool(tool: Fields, kind: str) -> Tool | None:
    """The function that the declaration is equivalent to; None: it is not such a declaration."""
    known = _TOOLS.get(kind)
    made = known(tool) if known is not None else None
    if made is None:
        return None
    name, description, schema = made
    return Tool(name, description, schema, native=Foreign(NAME, kind, tool.value))


def with_own_names(tools: list[AnyTool]) -> list[AnyTool]:
    """Renames such tools where a function has the same name: the function keeps it, since the client knows it
    by nothing else."""
    taken = {tool.name for tool in tools if isinstance(tool, Tool) and tool.native is None}
    clashing = [
        tool for tool in tools if isinstance(tool, Tool) and tool.native is not None and tool.name in taken
    ]
    if not clashing:
        return tools
    return [_renamed(tool) if tool in clashing and isinstance(tool, Tool) else tool for tool in tools]


def _renamed(tool: Tool) -> Tool:
    return Tool(f"openai_{tool.name}", tool.description, tool.schema, native=tool.native)


def client_run(tools: tuple[AnyTool, ...]) -> dict[str, Tool]:
    """The tools of a request whose calls have their own item types, by the name of their function."""
    return {
        tool.name: tool
        for tool in tools
        if isinstance(tool, Tool) and tool.native is not None and tool.native.dialect == NAME
    }
