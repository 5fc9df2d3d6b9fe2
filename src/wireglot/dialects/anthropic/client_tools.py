"""Anthropic's own tools that the client runs: bash, the text editor, memory, the computer.

A declaration names its type only; the schema is published. Sources: the types of anthropic-sdk-python 2.8.0
and the tool pages of Anthropic's documentation, read 2026-11-15. A newer version is taken as the newest here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wireglot.dialects.anthropic.names import NAME, parse_cache
from wireglot.dialects.client_tools import Schema, arguments, number, numbers, text
from wireglot.dialects.fields import Fields
from wireglot.ir.content import Foreign
from wireglot.ir.request import Tool

_PATH = text("Path to the file or directory.")
_PLACE = numbers("[x, y] in pixels, from the left and the top edge of the screen.")
_HELD = text("Keys to hold down meanwhile, such as shift or ctrl+shift.")
_SECONDS = number("How long, in seconds.")

_Made = tuple[str, Schema]


def _bash(value: dict[str, Any]) -> _Made:
    return (
        "Run a command in a bash session that persists between calls.",
        arguments(
            {
                "command": text("The command to run. Required unless the session is restarted."),
                "restart": {"type": "boolean", "description": "Restart the session instead."},
            }
        ),
    )


def _editing(inserted: str) -> Schema:
    return {
        "path": _PATH,
        "view_range": numbers(
            "view: the first and the last line to show, from 1; -1 is the end of the file."
        ),
        "file_text": text("create: the content of the new file."),
        "old_str": text("str_replace: the text to replace, exactly as it stands in the file, and only once."),
        "new_str": text("str_replace: the text to put in its place."),
        "insert_line": number("insert: the line behind which to insert; 0 is the beginning of the file."),
        inserted: text("insert: the text to insert."),
    }


def _text_editor(value: dict[str, Any]) -> _Made:
    version = value["type"].rpartition("_")[2]
    commands = ["view", "create", "str_replace", "insert"]
    if version < "20250429":
        commands.append("undo_edit")
    properties = _editing("insert_text" if version >= "20250728" else "new_str")
    properties["new_str"] = (
        text("str_replace, insert: the text to put there.")
        if version < "20250728"
        else (properties["new_str"])
    )
    most = value.get("max_characters")
    shown = f" At most {most} characters of a file are shown." if most else ""
    return (
        f"View, create and edit text files. Files are shown with line numbers.{shown}",
        arguments({"command": text("What to do.", *commands), **properties}, "command", "path"),
    )


def _memory(value: dict[str, Any]) -> _Made:
    commands = ("view", "create", "str_replace", "insert", "delete", "rename")
    return (
        "Keep notes as files in the directory /memories, which persists between conversations. Look into it "
        "before you begin, and write down what will be needed later.",
        arguments(
            {
                "command": text("What to do.", *commands),
                **_editing("insert_text"),
                "old_path": text("rename: the present path."),
                "new_path": text("rename: the new path."),
            },
            "command",
        ),
    )


_CLICK = {"coordinate": _PLACE, "text": _HELD}
_ACTIONS: dict[str, tuple[str, Schema]] = {
    "key": (
        "Press a key or a combination of keys, such as Return or ctrl+s.",
        arguments({"text": text("The keys."), "repeat": number("How often; once by default.")}, "text"),
    ),
    "hold_key": (
        "Hold a key or a combination of keys down.",
        arguments({"text": text("The keys."), "duration": _SECONDS}, "text", "duration"),
    ),
    "type": ("Type a text.", arguments({"text": text("The text.")}, "text")),
    "cursor_position": ("Tell where the cursor is.", arguments({})),
    "mouse_move": ("Move the cursor.", arguments({"coordinate": _PLACE}, "coordinate")),
    "left_mouse_down": ("Press the left button and hold it.", arguments({})),
    "left_mouse_up": ("Release the left button.", arguments({})),
    "left_click": ("Click with the left button.", arguments(_CLICK)),
    "left_click_drag": (
        "Drag with the left button, from one place to another.",
        arguments(
            {"start_coordinate": _PLACE, "coordinate": _PLACE, "text": _HELD},
            "start_coordinate",
            "coordinate",
        ),
    ),
    "right_click": ("Click with the right button.", arguments(_CLICK)),
    "middle_click": ("Click with the middle button.", arguments(_CLICK)),
    "double_click": ("Click twice with the left button.", arguments(_CLICK)),
    "triple_click": ("Click three times with the left button.", arguments(_CLICK)),
    "scroll": (
        "Scroll at a place.",
        arguments(
            {
                **_CLICK,
                "scroll_direction": text("Where to.", "up", "down", "left", "right"),
                "scroll_amount": number("Clicks of the wheel."),
            },
            "scroll_direction",
            "scroll_amount",
        ),
    ),
    "wait": ("Wait.", arguments({"duration": _SECONDS}, "duration")),
    "screenshot": ("Take a picture of the screen.", arguments({})),
    "zoom": (
        "Take a picture of a part of the screen, enlarged.",
        arguments({"region": numbers("[x0, y0, x1, y1] of the part.")}, "region"),
    ),
}
"""What a computer can be asked for, in the order of the SDK."""

_ACTIONS_OF_2024 = (
    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click",
    "double_click", "screenshot", "cursor_position",
)  # fmt: skip


def _computer(value: dict[str, Any]) -> _Made:
    names = _ACTIONS_OF_2024 if value["type"] == "computer_20241022" else tuple(_ACTIONS)
    if not value.get("enable_zoom"):
        names = tuple(name for name in names if name != "zoom")
    properties: Schema = {"action": text("What to do.", *names)}
    for name in names:
        for key, schema in _ACTIONS[name][1]["properties"].items():
            properties.setdefault(key, schema)
    properties["text"] = text("The text to type, or the keys to press or to hold down meanwhile.")
    wide, high = value.get("display_width_px"), value.get("display_height_px")
    screen = f" The screen is {wide} x {high} pixels." if wide and high else ""
    does = " ".join(f"{name}: {_ACTIONS[name][0]}" for name in names)
    return f"Control a computer by its screen, mouse and keyboard.{screen} {does}", arguments(
        properties, "action"
    )


_TOOLS: tuple[tuple[str, str, Callable[[dict[str, Any]], _Made]], ...] = (
    ("bash_", "bash", _bash),
    ("text_editor_", "str_replace_based_edit_tool", _text_editor),
    ("memory_", "memory", _memory),
    ("computer_", "computer", _computer),
)
"""Type prefix, the name where none is stated, and what makes the function of it."""
_TOOLSET_TYPE = "computer_toolset_"
TOOLSET = "computer"
"""What the calls of a computer toolset say in `toolset_name`: to the IR, their namespace."""


def parse_client_tool(fields: Fields, kind: str) -> list[Tool] | None:
    """The functions that such a declaration amounts to; None: it is none of these."""
    if kind.startswith(_TOOLSET_TYPE):
        return _members(fields, kind)
    for prefix, name, made in _TOOLS:
        if kind.startswith(prefix):
            return [_tool(fields, kind, name, made(fields.value))]
    return None


def _tool(fields: Fields, kind: str, name: str, made: _Made) -> Tool:
    description, schema = made
    return Tool(
        fields.text_or("name") or name,
        description,
        schema,
        deferred=fields.boolean("defer_loading") or False,
        native=Foreign(NAME, kind, fields.value),
        cache=parse_cache(fields),
    )


def _members(fields: Fields, kind: str) -> list[Tool]:
    """One declaration for a whole family: a function for each member that is not switched off."""
    configs = fields.dict_or_none("configs") or {}
    native = Foreign(NAME, kind, fields.value)
    cache = parse_cache(fields)
    tools: list[Tool] = []
    for name, (description, schema) in _ACTIONS.items():
        config = configs.get(name)
        stated = config if type(config) is dict else {}
        if stated.get("enabled") is not False:
            deferred = stated.get("defer_loading") is True
            tools.append(Tool(name, description, schema, namespace=TOOLSET, deferred=deferred, native=native))
    if tools and cache is not None:
        last = tools[-1]
        tools[-1] = Tool(
            last.name,
            last.description,
            last.schema,
            namespace=TOOLSET,
            deferred=last.deferred,
            native=native,
            cache=cache,
        )
    return tools
