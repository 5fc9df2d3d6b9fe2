"""A choice of tools is never widened: the model may call what the client allows, and must only where it has to."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.core.laws.cases import ALL_PAIRS
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss

Body = dict[str, Any]
FUNCTIONS = ("look", "count", "delete_all")
OBJECT = {"type": "object", "properties": {}}


class Permitted(NamedTuple):
    """What a request lets its model do."""

    functions: frozenset[str]
    hosted: frozenset[str]
    forced: bool


# --- how each wire is read, without the package


def _anthropic(body: Body) -> Permitted:
    choice = body.get("tool_choice", {"type": "auto"})
    kinds = {"web_search_20250305": "web", "code_execution_20250825": "code", "mcp_toolset": "mcp"}
    tools = body.get("tools", [])
    hosted = {kinds[tool["type"]]: tool for tool in tools if tool.get("type") in kinds}
    functions = {tool["name"] for tool in tools if tool.get("type") not in kinds}
    match choice["type"]:
        case "none":
            return Permitted(frozenset(), frozenset(), False)
        case "tool":
            name = choice["name"]
            forced = {kind for kind, tool in hosted.items() if tool.get("name") == name}
            assert forced or name in functions, "a tool is forced that is not declared"
            return Permitted(frozenset({name} & functions), frozenset(forced), True)
        case kind:
            return Permitted(frozenset(functions), frozenset(hosted), kind == "any")


def _openai(body: Body, nested: bool) -> Permitted:
    def name_of(entry: Body) -> str:
        return str(entry["function"]["name"] if nested else entry["name"])

    def kind_of(entry: Body) -> str:
        kind = str(entry["type"])
        return {"web_search": "web", "code_interpreter": "code"}.get(kind, kind)

    tools = body.get("tools", [])
    functions = {name_of(tool) for tool in tools if tool["type"] == "function"}
    hosted = {kind_of(tool) for tool in tools if tool["type"] != "function"}
    if "web_search_options" in body:
        hosted.add("web")
    choice = body.get("tool_choice", "auto")
    if choice == "none":
        return Permitted(frozenset(), frozenset({"web"} & hosted if nested else ()), False)
    if isinstance(choice, str):
        return Permitted(frozenset(functions), frozenset(hosted), choice == "required")
    entries, forced = [choice], True
    if choice["type"] == "allowed_tools":
        inner = choice["allowed_tools"] if nested else choice
        entries, forced = inner["tools"], inner["mode"] == "required"
    named = {name_of(entry) for entry in entries if entry["type"] == "function"}
    chosen = {kind_of(entry) for entry in entries if entry["type"] != "function"}
    assert named <= functions, "a tool is chosen that is not declared"
    if nested and "web_search_options" in body:
        chosen.add("web")  # the choice is not about it
    return Permitted(frozenset(named), frozenset(chosen), forced)


def _gemini(body: Body) -> Permitted:
    kinds = {"googleSearch": "web", "codeExecution": "code", "mcpServers": "mcp"}
    functions: set[str] = set()
    hosted: set[str] = set()
    for group in body.get("tools", []):
        functions |= {each["name"] for each in group.get("functionDeclarations", [])}
        hosted |= {kinds.get(key, key) for key in group if key != "functionDeclarations"}
    stated: Body = body.get("toolConfig") or body.get("tool_config") or {}
    config = stated.get("functionCallingConfig", {})
    mode = config.get("mode", "AUTO")
    allowed = set(config.get("allowedFunctionNames", functions))
    assert allowed <= functions, "a tool is chosen that is not declared"
    if mode == "NONE":
        allowed = set()
    return Permitted(frozenset(allowed), frozenset(hosted), mode == "ANY")


def _interactions(body: Body) -> Permitted:
    kinds = {"google_search": "web", "code_execution": "code", "mcp_server": "mcp"}
    tools = body.get("tools", [])
    functions = {tool["name"] for tool in tools if tool["type"] == "function"}
    hosted = {kinds.get(tool["type"], tool["type"]) for tool in tools if tool["type"] != "function"}
    choice = body.get("generation_config", {}).get("tool_choice", "auto")
    allowed = functions
    if isinstance(choice, dict):
        allowed = set(choice["allowed_tools"].get("tools", functions))
        choice = choice["allowed_tools"].get("mode", "auto")
    assert allowed <= functions, "a tool is chosen that is not declared"
    return Permitted(frozenset(allowed if choice != "none" else ()), frozenset(hosted), choice == "any")


def permitted(name: str, body: Body) -> Permitted:
    match name:
        case "gemini-interactions":
            return _interactions(body)
        case "anthropic" | "anthropic-vertex" | "anthropic-bedrock":
            return _anthropic(body)
        case "openai-chat":
            return _openai(body, nested=True)
        case "openai-responses":
            return _openai(body, nested=False)
        case "code-assist":
            return _gemini(body["request"])
        case "ollama" | "ollama-generate":  # no choice: what is declared may be called
            names = {tool["function"]["name"] for tool in body.get("tools", [])}
            return Permitted(frozenset(names), frozenset(), False)
        case _:
            return _gemini(body)


# --- every choice that each wire can state


def _anthropic_bodies() -> Iterator[tuple[str, Body]]:
    tools: list[Body] = [{"name": name, "input_schema": OBJECT} for name in FUNCTIONS]
    hosted: list[Body] = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ]
    choices = [{"type": kind} for kind in ("auto", "any", "none")]
    choices += [{"type": "tool", "name": name} for name in ("look", "web_search", "code_execution")]
    for choice in choices:
        turns = [{"role": "user", "content": "Go."}]
        body = {"model": "m", "max_tokens": 9, "messages": turns, "tools": tools + hosted}
        yield str(choice.get("name", choice["type"])), {**body, "tool_choice": choice}


def _choices(nested: bool) -> Iterator[tuple[str, Any]]:
    def function(name: str) -> Body:
        return (
            {"type": "function", "function": {"name": name}} if nested else {"type": "function", "name": name}
        )

    web, code = {"type": "web_search"}, {"type": "code_interpreter"}
    for mode in ("auto", "none", "required"):
        yield mode, mode
    yield "look", function("look")
    if not nested:
        yield "web", web
        yield "code", code
        yield "files", {"type": "file_search"}
        yield "image", {"type": "image_generation"}
        yield "program", {"type": "programmatic_tool_calling"}
        yield "server", {"type": "mcp", "server_label": "docs"}
        yield "tool of a server", {"type": "mcp", "server_label": "docs", "name": "find"}
    for mode in ("auto", "required"):
        for entries in (
            [function("look")],
            [function("look"), function("count")],
            *([] if nested else [[web], [web, code], [function("look"), web], [{"type": "file_search"}]]),
        ):
            inner = {"mode": mode, "tools": entries}
            value = {"allowed_tools": inner} if nested else inner
            name = "+".join(str(entry.get("name", entry.get("function", entry["type"]))) for entry in entries)
            yield f"{mode} of {name}", {"type": "allowed_tools", **value}


def _chat_bodies() -> Iterator[tuple[str, Body]]:
    tools = [{"type": "function", "function": {"name": name, "parameters": OBJECT}} for name in FUNCTIONS]
    for name, choice in _choices(nested=True):
        body = {"model": "m", "messages": [{"role": "user", "content": "Go."}], "tools": tools}
        yield name, {**body, "tool_choice": choice}
        yield f"{name}, searching", {**body, "tool_choice": choice, "web_search_options": {}}


def _responses_bodies() -> Iterator[tuple[str, Body]]:
    functions: list[Body] = [{"type": "function", "name": name, "parameters": OBJECT} for name in FUNCTIONS]
    hosted: list[Body] = [
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "image_generation"},
        {"type": "programmatic_tool_calling"},
        {
            "type": "mcp",
            "server_label": "docs",
            "server_url": "https://docs.example/mcp",
            "require_approval": "never",
        },
    ]
    for name, choice in _choices(nested=False):
        yield name, {"model": "m", "input": "Go.", "tools": functions + hosted, "tool_choice": choice}


def _gemini_bodies() -> Iterator[tuple[str, Body]]:
    declarations = [{"name": name, "description": "", "parametersJsonSchema": OBJECT} for name in FUNCTIONS]
    searching: list[Body] = [{}, {"googleSearch": {}}]
    for hosted in searching:
        for mode in ("AUTO", "ANY", "NONE", "VALIDATED"):
            for allowed in ([], ["look"], ["look", "count"]):
                if allowed and mode not in ("ANY", "VALIDATED"):
                    continue
                config: Body = {"mode": mode, **({"allowedFunctionNames": allowed} if allowed else {})}
                yield (
                    f"{mode} {' '.join(allowed)} {' '.join(hosted)}",
                    {
                        "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
                        "tools": [{"functionDeclarations": declarations}, *([hosted] if hosted else [])],
                        "toolConfig": {"functionCallingConfig": config},
                    },
                )


def _interactions_bodies() -> Iterator[tuple[str, Body]]:
    functions: list[Body] = [{"type": "function", "name": name, "parameters": OBJECT} for name in FUNCTIONS]
    searching: tuple[list[Body], ...] = ([], [{"type": "google_search"}])
    for hosted in searching:
        for mode in ("auto", "any", "none", "validated"):
            for allowed in ([], ["look"], ["look", "count"]):
                choice: Any = {"allowed_tools": {"mode": mode, "tools": allowed}} if allowed else mode
                config = {"tool_choice": choice}
                name = f"{mode} {' '.join(allowed)} {len(hosted)}"
                body = {"model": "m", "input": "Go.", "tools": functions + hosted}
                yield name, {**body, "generation_config": config}


def _simple(body: Body) -> Body:
    return {"model": "m", "input": "Go.", "tools": body["tools"], "toolConfig": body["toolConfig"]}


BODIES = {
    "anthropic": list(_anthropic_bodies()),
    "openai-chat": list(_chat_bodies()),
    "openai-responses": list(_responses_bodies()),
    "gemini": list(_gemini_bodies()),
    "gemini-interactions": list(_interactions_bodies()),
    "code-assist": [(name, {"model": "m", "request": body}) for name, body in _gemini_bodies()],
    "gemini-simple": [(name, _simple(body)) for name, body in _gemini_bodies()],
    "anthropic-vertex": list(_anthropic_bodies()),
    "anthropic-bedrock": list(_anthropic_bodies()),
    "ollama": [
        ("tools", {key: item for key, item in body.items() if key != "tool_choice"})
        for _, body in list(_chat_bodies())[:1]
    ],
    "ollama-generate": [("prompt", {"model": "m", "prompt": "Go."})],
}
PROVIDERS = {"openai-chat": ("", "groq", "zai", "mistral"), "anthropic": ("", "kimi-anthropic")}
CASES = [
    pytest.param(source, target, provider, body, id=f"{source}-{target}-{provider}-{name}")
    for source, target in ALL_PAIRS
    for provider in PROVIDERS.get(target, ("",))
    for name, body in BODIES[source]
]


def crossed(
    body: Body, source: Any, target: Any, provider: str, model: str = "m"
) -> tuple[Body, tuple[Loss, ...]]:
    rendered = translate_request(body, source=source, target=target, model=model, provider=provider or None)
    return rendered.value, rendered.losses


def not_wider(asked: Permitted, sent: Permitted, losses: tuple[Loss, ...]) -> None:
    assert sent.functions <= asked.functions
    assert sent.hosted <= asked.hosted
    assert asked.forced or not sent.forced
    if sent != asked:
        assert {loss.feature for loss in losses} & {"tool_choice", "hosted_tool"}, "unreported"


@rows(("source", "target", "provider", "body"), CASES)
def test_a_choice_is_never_wider_than_the_client_asked(source, target, provider, body):
    try:
        value, losses = crossed(body, source, target, provider)
    except Unsupported:
        return
    not_wider(permitted(source, body), permitted(target, value), losses)


@rows(("name", "body"), BODIES["anthropic"])
def test_nor_is_it_for_a_model_of_the_same_dialect_that_takes_fewer_choices(name, body):
    value, losses = crossed(body, "anthropic", "anthropic", "anthropic", "claude-opus-5-5")
    not_wider(permitted("anthropic", body), permitted("anthropic", value), losses)


def test_a_hosted_tool_is_forced_where_the_wire_can_say_so():
    forced = dict(BODIES["openai-responses"])["web"]
    assert crossed(forced, "openai-responses", "anthropic", "")[0]["tool_choice"] == {
        "type": "tool",
        "name": "web_search",
    }
    forced = dict(BODIES["anthropic"])["web_search"]
    assert crossed(forced, "anthropic", "openai-responses", "")[0]["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "web_search"}],
    }
