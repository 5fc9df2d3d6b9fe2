"""Anthropic's own tools that the client runs: bash, the text editor, memory, the computer, the browser.

A declaration names its type only; the schema is published. Sources: the types of anthropic-sdk-python 2.9.0
and the tool pages of Anthropic's documentation, read 2026-11-17. A newer version is taken as the newest here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.anthropic.names import NAME, parse_cache
from wireglot_core.dialects.client_tools import Schema, arguments, number, numbers, text, texts
from wireglot_core.dialects.fields import Fields
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.request import Tool

_PATH = text("Path to the file or directory.")
_PLACE = numbers("[x, y] in pixels, from the left and the top edge of the screen.")
_HELD = text("Keys to hold down meanwhile, such as shift or ctrl+shift.")
_SECONDS = number("How long, in seconds.")
_FOR: Schema = {"type": "number", "description": "How long, in seconds; 30 at most."}

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
"""The actions of a computer tool, in the order of the SDK."""

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
"""Type prefix, the default name, and the function that builds the tool's definition."""
_POINT = arguments(
    {
        "type": text("What the target is.", "coordinate"),
        "x": number("Pixels from the left edge of the viewport."),
        "y": number("Pixels from the top edge of the viewport."),
    },
    "type",
    "x",
    "y",
)
_ELEMENT = arguments(
    {
        "type": text("What the target is.", "ref"),
        "ref": text("A reference such as ref_7, of an earlier read_page or find. It ends with the page."),
    },
    "type",
    "ref",
)
_AT: Schema = {"anyOf": [_POINT, _ELEMENT], "description": "A place in the viewport, or an element."}
_TAB = {"tab_id": text("The tab to act on; the active one by default.")}
_CLICKED = arguments(
    {"target": _AT, "modifiers": text("Keys to hold down meanwhile, such as shift or ctrl+shift."), **_TAB},
    "target",
)
_BROWSER: dict[str, tuple[str, Schema]] = {
    "navigate": (
        "Go to a URL, or back, forward, or reload.",
        arguments({"url": text("The URL, or back, forward or reload."), **_TAB}, "url"),
    ),
    "list_tabs": ("List the open tabs, with their ids, titles and URLs.", arguments({})),
    "new_tab": ("Open an empty tab and return its id.", arguments({})),
    "switch_tab": (
        "Make a tab the active one.",
        arguments({"tab_id": text("The tab to switch to.")}, "tab_id"),
    ),
    "close_tab": ("Close a tab.", arguments({"tab_id": text("The tab to close.")}, "tab_id")),
    "read_page": (
        "Return the accessibility tree of the page, with references to its elements.",
        arguments(
            {
                "depth": number("The maximum depth; 15 by default."),
                "filter": text(
                    "Only interactive elements, or also those outside the viewport.", "all", "interactive"
                ),
                "ref": text("The element to begin at; the page by default."),
                **_TAB,
            }
        ),
    ),
    "get_page_text": ("Return the visible text of the page.", arguments(_TAB)),
    "read_console": ("Return what the console printed since it was last read.", arguments(_TAB)),
    "read_network": ("Return the network requests since they were last read.", arguments(_TAB)),
    "find": (
        "Find elements by a description in words; up to 20, with references.",
        arguments({"query": text("What to look for."), **_TAB}, "query"),
    ),
    "form_input": (
        "Set the value of a form element.",
        arguments(
            {
                "target": _ELEMENT,
                "value": {
                    "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}],
                    "description": "The value: true or false for a checkbox, an option for a select.",
                },
                **_TAB,
            },
            "target",
            "value",
        ),
    ),
    "file_upload": (
        "Put files into a file input. Needs paths or document_ids.",
        arguments(
            {
                "target": _ELEMENT,
                "paths": texts("Paths where the browser runs."),
                "document_ids": texts("References to files that are held ready."),
                **_TAB,
            },
            "target",
        ),
    ),
    "scroll_to": ("Scroll an element into view.", arguments({"target": _ELEMENT, **_TAB}, "target")),
    "screenshot": ("Take a picture of the viewport.", arguments(_TAB)),
    "zoom": (
        "Take a picture of a part of the viewport, enlarged.",
        arguments({"region": numbers("[x0, y0, x1, y1] of the part."), **_TAB}, "region"),
    ),
    "left_click": ("Click with the left button.", _CLICKED),
    "right_click": ("Click with the right button.", _CLICKED),
    "middle_click": ("Click with the middle button.", _CLICKED),
    "double_click": ("Click twice with the left button.", _CLICKED),
    "triple_click": ("Click three times with the left button.", _CLICKED),
    "hover": ("Move the cursor there without a click.", arguments({"target": _AT, **_TAB}, "target")),
    "left_click_drag": (
        "Drag with the left button, from one place to another.",
        arguments({"from": _POINT, "target": _POINT, **_TAB}, "from", "target"),
    ),
    "left_mouse_down": (
        "Press the left button and hold it.",
        arguments({"target": _POINT, **_TAB}, "target"),
    ),
    "left_mouse_up": ("Release the left button.", arguments({"target": _POINT, **_TAB}, "target")),
    "mouse_move": ("Move the cursor.", arguments({"target": _POINT, **_TAB}, "target")),
    "scroll": (
        "Scroll at a place.",
        arguments(
            {
                "scroll_direction": text("Where to.", "up", "down", "left", "right"),
                "target": _POINT,
                "scroll_amount": number("Notches of the wheel, 1 to 10; 3 by default."),
                **_TAB,
            },
            "scroll_direction",
            "target",
        ),
    ),
    "type": ("Type a text where the focus is.", arguments({"text": text("The text."), **_TAB}, "text")),
    "key": (
        "Press keys: + combines them (ctrl+a), a space separates them (Tab Return).",
        arguments(
            {"text": text("The keys."), "repeat": number("How often; once by default."), **_TAB}, "text"
        ),
    ),
    "hold_key": (
        "Hold a key or a combination of keys down.",
        arguments({"text": text("The keys."), "duration": _FOR, **_TAB}, "text", "duration"),
    ),
    "wait": ("Wait.", arguments({"duration": _FOR, **_TAB}, "duration")),
    "javascript_exec": (
        "Run JavaScript in the page and return the value of its last expression.",
        arguments({"text": text("The code, without return."), **_TAB}, "text"),
    ),
}
"""The actions of a browser tool, in the order of the SDK."""

_FAMILIES: dict[str, tuple[str, dict[str, tuple[str, Schema]], frozenset[str]]] = {
    "computer_toolset_": ("computer", _ACTIONS, frozenset()),
    "browser_toolset_": (
        "browser",
        _BROWSER,
        frozenset({"file_upload", "javascript_exec", "read_console", "read_network"}),
    ),
}
"""Type prefix of a declaration of several tools at once; the `toolset_name` of their calls (in the IR, their
namespace); its members; and those that are off unless they are switched on."""
TOOLSETS = frozenset(name for name, _, _ in _FAMILIES.values())


def parse_client_tool(fields: Fields, kind: str) -> list[Tool] | None:
    """The functions that the declaration is equivalent to; None: it is not such a declaration."""
    for prefix in _FAMILIES:
        if kind.startswith(prefix):
            return _members(fields, kind, prefix)
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


def _members(fields: Fields, kind: str, prefix: str) -> list[Tool]:
    """One declaration of a whole family: a function for each member that is not switched off."""
    namespace, members, off = _FAMILIES[prefix]
    configs = fields.dict_or_none("configs") or {}
    native = Foreign(NAME, kind, fields.value)
    tools: list[Tool] = []
    for name, (description, schema) in members.items():
        config = configs.get(name)
        stated = config if type(config) is dict else {}
        enabled = stated.get("enabled")
        if enabled is False or (name in off and enabled is not True):
            continue
        deferred = stated.get("defer_loading") is True
        tools.append(Tool(name, description, schema, namespace=namespace, deferred=deferred, native=native))
    cache = parse_cache(fields)
    if tools and cache is not None:
        tools[-1] = replace(tools[-1], cache=cache)
    return tools
