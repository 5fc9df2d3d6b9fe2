"""Chooses the offered tools that the demo model calls, and their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from wireglot.demo.fill import COMMAND_KEYS, PATH_KEYS, Hints, filled, plain_key
from wireglot_core.ir.request import AnyTool, Tool, ToolChoice
from wireglot_core.wire.json import encode_text

_READERS: Final = (
    "read",
    "read_file",
    "readfile",
    "view",
    "view_file",
    "open_file",
    "cat",
    "get_file",
    "get_file_contents",
)
_SHELLS: Final = (
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "run_command",
    "execute_command",
    "run_terminal_cmd",
    "local_shell",
    "exec",
    "execute",
    "terminal",
)
_SOURCE_KEYS: Final = frozenset({"input", "code", "source"})
"""Names of the only argument of a tool that runs a program."""

_HEAVY: Final = re.compile(
    r"write|edit|delete|remove|patch|replace|agent|task|todo|plan|spawn|kill|send|create|update|exit|save|search"
    r"|notebook|image|final|structuredoutput|completion|skill|mcp|web|ask|wait|stdin"
)
"""Tools that change something, start other models, wait or end the conversation: not tried first."""

_CLOSING: Final = frozenset(
    {
        "final_result",
        "final_answer",
        "structured_output",
        "attempt_completion",
        "task_done",
        "return_final_answer",
    }
)
"""Tools through which agents receive the answer itself."""

_WEATHER: Final = re.compile(r"\bweather\b", re.IGNORECASE)

_ORDER: Final = re.compile(r"\b(?:[Cc]all|[Ww]ith) the tool ([\w-]+)")

_WORD: Final = re.compile(r"[^\W_]{3,}")
_PATH: Final = re.compile(
    r"(?<![\w:/])(?:~|\.{1,2})?/[\w.@%+~-]+(?:/[\w.@%+~-]+)*|\b[\w-]{1,64}+\.[a-z]{1,4}\b"
)
_PLACE: Final = re.compile(r"\b(?:in|for|at|of|à|en|a|für|nach)\s+([A-ZÀ-Þ][\w'-]+(?:\s[A-ZÀ-Þ][\w'-]+)?)")

_JAVASCRIPT: Final = (
    "const r = await tools.exec_command({{cmd: {command}}});\ntext(r.output ?? JSON.stringify(r));\n"
)
_PATCH: Final = "*** Begin Patch\n*** Add File: demo.txt\n+hello from the demo model\n*** End Patch\n"


def callable_tools(tools: Sequence[AnyTool], choice: ToolChoice | None) -> list[Tool]:
    """The tools that the client runs and the choice allows."""
    if choice is not None and choice.mode == "none":
        return []
    own = [tool for tool in tools if isinstance(tool, Tool) and tool.name and not tool.deferred]
    if choice is not None and choice.narrows:
        return [tool for tool in own if choice.allows(tool)]
    return own


def reading_tools(tools: Sequence[Tool]) -> list[Tool]:
    """Tools that can show a file, the most likely first; all others after them."""
    return sorted(tools, key=_reading_rank)


def closing_tools(tools: Sequence[Tool]) -> list[Tool]:
    """Tools that receive the answer."""
    return [tool for tool in tools if bare_name(tool.name) in _CLOSING]


def suitable_tools(tools: Sequence[Tool], prompt: str) -> list[Tool]:
    """Tools that the prompt mentions first, then harmless ones, in the offered order."""
    said = {word.lower() for word in _WORD.findall(prompt)}

    def rank(tool: Tool) -> tuple[bool, int, bool]:
        named = tool.name.lower() in prompt.lower()
        words = {word.lower() for word in _WORD.findall(f"{tool.name} {(tool.description or '')[:400]}")}
        heavy = _HEAVY.search(tool.name.lower()) is not None
        return not named, -min(3, len(words & said)) if not heavy else 0, heavy

    return sorted(tools, key=rank)


def weather_tools(tools: Sequence[Tool], prompt: str) -> list[Tool]:
    """Weather tools, for a prompt that asks for the weather: the first example of every SDK, and the one that
    the Open Responses suite asks a model. It changes nothing, so it needs no directive."""
    if not _WEATHER.search(prompt):
        return []
    named = [(tool, bare_name(tool.name)) for tool in tools]
    return [tool for tool, name in named if "weather" in name and _HEAVY.search(name) is None]


def ordered_tools(tools: Sequence[Tool], prompt: str) -> list[Tool]:
    """Tools that the prompt orders by name: without a tool choice nothing else demands a call."""
    names = set(_ORDER.findall(prompt))
    return [tool for tool in tools if tool.name in names]


def hints_of(prompt: str, marker: str = "", answer: str = "") -> Hints:
    """Paths and places that a prompt names; the answer, if there is one, for texts. Never a command: a prompt
    that quotes one asks about it, and a user's shell would run it."""
    path = _PATH.search(prompt)
    places = places_in(prompt)
    found = marker or (path[0] if path else "")
    command = f"cat {found}" if marker else ""
    text = answer or " ".join(prompt.split())[:200]
    return Hints(found, command, text, places[0] if places else "")


def places_in(prompt: str) -> list[str]:
    return list(dict.fromkeys(found[1] for found in _PLACE.finditer(prompt)))


def arguments_for(tool: Tool, hints: Hints) -> str:
    """The arguments of a call: JSON for a function, plain text for a freeform tool."""
    if tool.kind == "custom":
        return _freeform(tool, hints)
    properties = _properties(tool)
    if (
        len(properties) == 1
        and properties.keys() <= _SOURCE_KEYS
        and bare_name(tool.name) in (*_SHELLS, "apply_patch")
    ):
        return encode_text({next(iter(properties)): _freeform(tool, hints)})
    value = filled(tool.schema, hints)
    return encode_text(value if isinstance(value, dict) else {})


def bare_name(name: str) -> str:
    """`mcp__files__read_file`, `functions.exec` and `ReadFile` reduced to their plain names."""
    return plain_key(re.split(r"__|[./:]", name)[-1])


def _freeform(tool: Tool, hints: Hints) -> str:
    about = f"{tool.description or ''} {tool.grammar.definition if tool.grammar else ''}".lower()
    command = hints.command or "echo hello from the demo model"
    if bare_name(tool.name) == "apply_patch" or "begin patch" in about:
        return _PATCH
    if "javascript" in about or "await tools" in about or "js_source" in about:
        return _JAVASCRIPT.format(command=encode_text(command))
    return command if bare_name(tool.name) in _SHELLS else hints.text or "demo"


def _reading_rank(tool: Tool) -> int:
    """Groups of a hundred: made for reading, made for commands, may read, may run, everything else."""
    name = bare_name(tool.name)
    keys = {plain_key(key) for key in _properties(tool)}
    takes_path, takes_command = bool(keys & PATH_KEYS), bool(keys & COMMAND_KEYS)
    freeform = tool.kind == "custom" or (len(keys) == 1 and keys <= _SOURCE_KEYS)
    if name in _READERS and takes_path:
        return _READERS.index(name)
    if name in _SHELLS and (takes_command or freeform):
        return 100 + _SHELLS.index(name)
    if _HEAVY.search(name):
        return 500
    about = f"{name} {tool.description or ''}".lower()
    if takes_path and ("read" in about or "content" in about):
        return 200
    if takes_command:
        return 300
    return 400


def _properties(tool: Tool) -> dict[str, Any]:
    properties = (tool.schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}
