"""When a conversation grows, what an upstream got for its old turns stays the same to the byte.

Prompt caches are keyed by the prompt's beginning: system, tools, turns. A gateway that writes any of it again is
paid for by its users. So is a turn that changes its place, its ids or its names because another one follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.laws.cases import MAIN, all_hold, of_kind, recorded
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, dialect_name
from wireglot_core.ir.errors import ClientFault, Unsupported
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.strategies.strategies import requests
from wireglot_core.wire.json import encode

Body = dict[str, Any]

UPSTREAMS = [
    ("anthropic", None, None),
    ("anthropic", "anthropic", "claude-sonnet-4-5"),
    ("anthropic", "anthropic", "claude-opus-5"),
    ("openai-chat", None, None),
    ("openai-chat", "kimi", "kimi-k2.6"),
    ("openai-chat", "kimi", "kimi-k3"),
    ("openai-chat", "deepseek", "deepseek-reasoner"),
    ("openai-chat", "mistral", "mistral-large-latest"),
    ("openai-chat", "groq", "openai/gpt-oss-120b"),
    ("openai-chat", "ollama", "qwen3"),
    ("openai-responses", None, None),
    ("openai-responses", "openai", "gpt-5.5"),
    ("gemini", None, None),
    ("gemini", "gemini", "gemini-3.5-flash"),
    ("gemini", "gemini", "gemini-2.5-pro"),
    ("code-assist", None, None),
]
PLACES = {
    "anthropic": ("messages", ("system", "tools")),
    "openai-chat": ("messages", ("tools",)),
    "openai-responses": ("input", ("instructions", "tools")),
    "gemini": ("contents", ("systemInstruction", "tools")),
}
"""Where the turns are, and what stands before them."""
MARKS = ("cache_control", "prompt_cache_breakpoint")
MAX_MARKS = 4
ANSWER_TOOL = b"Call this function once, at the end, to answer."
BROUGHT = (b'"tool_search_output"', b'"additional_tools"', b'"tool_reference"')
"""Tools that a conversation brings on its way stand behind those that were there."""


def prefixes(body: Body, name: str) -> Iterator[Body]:
    """The requests that a conversation has come from: each ended where the model answered."""
    place = PLACES[name][0]
    turns = body.get(place)
    if not isinstance(turns, list):
        return
    cuts = [at for at in range(1, len(turns)) if _is_models(turns[at]) and not _is_models(turns[at - 1])]
    for index in sorted({*cuts[:1], *cuts[-2:]}):  # of long ones the first and the last tell as much as all
        yield {**body, place: turns[:index]}


def _is_models(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if "role" in item:
        return item["role"] in ("assistant", "model")
    return "parts" not in item and not str(item.get("type", "")).endswith("_output")


def upstream_view(body: Body, upstream: tuple[str, str | None, str | None], source: str, seed: str) -> Body:
    target, provider, model = upstream
    context = Context(seed=seed)
    value = translate_request(
        body,
        source=dialect_name(source),
        target=dialect_name(target),
        provider=provider,
        model=model,
        context=context,
    ).value
    return value["request"] if target == "code-assist" else value


def unmarked(value: Any) -> Any:
    """Markers say where a cache may end. They move with the client's, and are no part of the prompt."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key not in MARKS}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def _as_it_is(value: Body) -> Body:
    return value


def stays(body: Body, source: str, upstream: tuple[str, str | None, str | None]) -> None:
    # Of more markers than are taken the last ones stay, and so the first ones go as the conversation grows.
    seen = unmarked if sum(encode(body).count(mark.encode()) for mark in MARKS) > MAX_MARKS else _as_it_is
    try:
        whole = seen(upstream_view(body, upstream, source, "the last one"))
    except Unsupported:
        return
    sent = body.get(PLACES[source][0])
    is_begun = isinstance(sent, list) and bool(sent) and _is_models(sent[-1])
    turns, heads = PLACES[{"code-assist": "gemini"}.get(upstream[0], upstream[0])]
    for number, shorter in enumerate(prefixes(body, source)):
        try:
            before = seen(upstream_view(shorter, upstream, source, f"number {number}"))
        except (Unsupported, ClientFault):
            continue
        if is_begun and ANSWER_TOOL in encode(before.get("tools")):
            continue  # of an answer that the client has begun, the format can only be asked for in words
        for head in heads:
            one, other = encode(before.get(head)), encode(whole.get(head))
            if head == "tools" and any(mark in encode(body) for mark in BROUGHT):
                one, other = one.rstrip(b"]}"), other[: len(one.rstrip(b"]}"))]
            assert one == other, head
        old, new = before[turns], whole[turns]
        assert len(old) <= len(new)
        if old and encode(old[-1]) != encode(new[len(old) - 1]):
            # Nothing crosses of some answers (thoughts of others alone): two questions then become one turn.
            *old, last = old
            assert continues(last, new[len(old)]), f"the last of {len(old) + 1}, then {len(new)}"
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            assert encode(one) == encode(other), f"{turns}[{index}] of {len(old)}, then {len(new)}"


def continues(one: Body, other: Body) -> bool:
    """Whether a turn of the user is the same as before, with more of the user's behind it."""
    before, after = _blocks(one), _blocks(other)
    return one["role"] == other["role"] == "user" and encode(before) == encode(after[: len(before)])


def _blocks(turn: Body) -> list[Any]:
    held = turn.get("content", turn.get("parts"))
    return [{"type": "text", "text": held}] if isinstance(held, str) else held or []


def holds_everywhere(case: Case) -> None:
    for upstream in UPSTREAMS:
        try:
            stays(case.body, case.dialect, upstream)
        except AssertionError as broken:
            raise AssertionError(f"{upstream}: {broken}") from None


@pytest.mark.sampled("case.dialect", each=10)
@rows("case", [case for case in of_kind("requests") if case.values[0].dialect in MAIN])
def test_old_turns_of_a_fixture_stay_as_they_were(case: Case) -> None:
    """[prefix] Every pair, and the providers with rules of their own."""
    holds_everywhere(case)


ODD = {
    "ids that recur": [("look:0", "Ulm"), ("look:0", "Bonn"), ("look:0", "Jena")],
    "ids that are too long": [("c" * 80 + "1", "Ulm"), ("c" * 80 + "2", "Bonn"), ("c" * 90, "Jena")],
    "ids of other make": [("functions.look:0", "Ulm"), ("functions.look:1", "Bonn"), ("a b", "Jena")],
    "no ids": [("", "Ulm"), ("", "Bonn"), ("", "Jena")],
}


@rows("ids", ODD)
@rows("name", MAIN)
def test_ids_and_names_that_must_change_change_alike_in_every_turn(name: str, ids: str) -> None:
    """[prefix] Whatever follows, and whichever request it is."""
    tool = "mcp.files/look " + "x" * 70
    body = talk(name, tool, ODD[ids])
    assert len(list(prefixes(body, name))) == 3
    holds_everywhere(Case(ids, name, body=body))


def talk(name: str, tool: str, calls: list[tuple[str, str]]) -> Body:
    """Three tool turns, then another question."""
    turns: list[Body] = []
    for call_id, city in calls:
        turns += _TURNS[name](tool, call_id, city)
    declared = {"name": tool, "description": "Looks."}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    match name:
        case "anthropic":
            first = [{"role": "user", "content": "Look."}]
            return {
                "model": "m",
                "max_tokens": 9,
                "system": "Be brief.",
                "tools": [{**declared, "input_schema": schema}],
                "messages": [*first, *turns],
            }
        case "openai-chat":
            first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}]
            tools: list[Body] = [{"type": "function", "function": {**declared, "parameters": schema}}]
            return {"model": "m", "tools": tools, "messages": [*first, *turns]}
        case "openai-responses":
            first = [{"role": "user", "content": "Look."}]
            tools = [{"type": "function", **declared, "parameters": schema}]
            return {"model": "m", "instructions": "Be brief.", "tools": tools, "input": [*first, *turns]}
        case _:
            declarations = [{**declared, "parametersJsonSchema": schema}]
            return {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "tools": [{"functionDeclarations": declarations}],
                "contents": [{"role": "user", "parts": [{"text": "Look."}]}, *turns],
            }


def _messages(tool: str, call_id: str, city: str) -> list[Body]:
    call = {"type": "tool_use", "id": call_id, "name": tool, "input": {"city": city}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": f"rain in {city}"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def _chat(tool: str, call_id: str, city: str) -> list[Body]:
    function = {"name": tool, "arguments": f'{{"city": "{city}"}}'}
    call = {"id": call_id, "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": call_id, "content": f"rain in {city}"}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def _items(tool: str, call_id: str, city: str) -> list[Body]:
    arguments = f'{{"city": "{city}"}}'
    call = {
        "type": "function_call",
        "call_id": call_id or f"call_{city}",
        "name": tool,
        "arguments": arguments,
    }
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"rain in {city}"}
    return [call, result]


def _contents(tool: str, call_id: str, city: str) -> list[Body]:
    named = {"id": call_id} if call_id else {}
    call = {"functionCall": {**named, "name": tool, "args": {"city": city}}}
    result = {"functionResponse": {**named, "name": tool, "response": {"output": f"rain in {city}"}}}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]


_TURNS = {"anthropic": _messages, "openai-chat": _chat, "openai-responses": _items, "gemini": _contents}


def test_an_empty_list_is_spelled_alike_whatever_lists_follow() -> None:
    """[prefix] Mistral's clients write `content: []` beside calls, and a list of texts in a later turn."""
    call, result = _chat("look", "call_1", "Ulm")
    turns = [
        {"role": "user", "content": "Look."},
        {**call, "content": []},
        result,
        {"role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
        {"role": "user", "content": "And now?"},
    ]
    holds_everywhere(Case("lists", "openai-chat", body={"model": "m", "messages": turns}))


@pytest.mark.parametrize("name", MAIN)
def test_old_turns_of_recorded_conversations_stay_as_they_were(name: str) -> None:
    """[prefix]"""
    all_hold(recorded(name, "requests", 20), holds_everywhere)


@pytest.mark.parametrize("name", MAIN)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_old_turns_of_any_conversation_stay_as_they_were(name: str, data: st.DataObject) -> None:
    """[prefix]"""
    request = data.draw(requests(origins=(name,)))
    body = dialect(name).render_request(replace(request, stream=None), Context()).value
    holds_everywhere(Case("drawn", name, body=body))
