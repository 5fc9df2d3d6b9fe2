"""Tools that are added or withdrawn in the middle of a conversation are what every model is offered at its end."""

from typing import Any

import pytest

from tests.core.laws.test_tool_choices import OBJECT, permitted
from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.dialects.registry import NAMES, surface
from wireglot_core.wire.json import encode_text

Body = dict[str, Any]


def _tool(name: str, **more: Any) -> Body:
    return {"name": name, "description": name, "input_schema": OBJECT, **more}


def _named(name: str) -> Body:
    return {"type": "tool_reference", "name": name}


def _defined(name: str) -> Body:
    return {"type": "tool_definition", "definition": _tool(name)}


def _added(tool: Body) -> Body:
    return {"type": "tool_addition", "tool": tool}


def _removed(tool: Body) -> Body:
    return {"type": "tool_removal", "tool": tool}


def _anthropic(*changes: Body, tools: list[Body] | None = None) -> Body:
    turns: list[Body] = []
    for number, change in enumerate(changes):
        turns += [
            {"role": "user", "content": f"Question {number}."},
            {"role": "system", "content": [change]},
            {"role": "assistant", "content": [{"type": "text", "text": f"Answer {number}."}]},
        ]
    turns.append({"role": "user", "content": "And now?"})
    declared = tools or [_tool("look"), _tool("count"), _tool("late", defer_loading=True)]
    return {"model": "m", "max_tokens": 9, "messages": turns, "tools": declared}


CHANGES: dict[str, tuple[tuple[Body, ...], set[str]]] = {
    "defined": ((_added(_defined("draw")),), {"look", "count", "late", "draw"}),
    "withdrawn": ((_removed(_named("count")),), {"look", "late"}),
    "withdrawn and back": ((_removed(_named("count")), _added(_named("count"))), {"look", "count", "late"}),
    "defined and withdrawn": (
        (_added(_defined("draw")), _removed(_named("draw"))),
        {"look", "count", "late"},
    ),
    "defined, withdrawn and back": (
        (_added(_defined("draw")), _removed(_named("draw")), _added(_named("draw"))),
        {"look", "count", "late", "draw"},
    ),
    "loaded": ((_added(_named("late")),), {"look", "count", "late"}),
    "several": ((_added(_defined("draw")), _removed(_named("look"))), {"count", "late", "draw"}),
}
FOREIGN = [name for name in NAMES if surface(name).family != "anthropic" and name != "ollama-generate"]
"""One of Ollama's has no tools."""


@rows("target", FOREIGN)
@rows("name", CHANGES)
def test_tools_that_blocks_add_and_withdraw_are_the_tools_at_the_end(name, target):
    changes, expected = CHANGES[name]
    rendered = translate_request(_anthropic(*changes), source="anthropic", target=target)
    assert permitted(target, rendered.value).functions == expected
    about = [loss for loss in rendered.losses if loss.feature in ("foreign_part", "tool.position")]
    assert [(loss.path, loss.feature) for loss in about] == [
        (f"$.messages[{1 + 3 * number}].content[0]", "tool.position") for number in range(len(changes))
    ]
    if target != "gemini-simple":  # which is sent the last turn only
        assert "Answer 0." in encode_text(rendered.value)


def test_a_tool_that_is_loaded_is_no_longer_deferred():
    rendered = translate_request(_anthropic(_added(_named("late"))), source="anthropic", target="openai-chat")
    assert "tool.deferred" not in {loss.feature for loss in rendered.losses}


@rows("target", FOREIGN)
def test_the_changes_of_turns_that_were_summed_up_hold_too(target):
    summary = {
        "type": "compaction",
        "content": "They counted.",
        "tool_changes": [_added(_defined("draw")), _removed(_named("count"))],
    }
    body = _anthropic()
    body["messages"].insert(0, {"role": "assistant", "content": [summary]})
    rendered = translate_request(body, source="anthropic", target=target)
    assert permitted(target, rendered.value).functions == {"look", "late", "draw"}


def test_a_change_of_a_tool_that_nobody_declared_is_a_serious_loss():
    rendered = translate_request(
        _anthropic(_added(_named("ghost"))), source="anthropic", target="openai-chat"
    )
    assert ("$.messages[1].content[0]", "serious") in {(loss.path, loss.grade) for loss in rendered.losses}


def test_to_anthropic_a_change_stays_where_it_is():
    body = _anthropic(_added(_defined("draw")), _removed(_named("look")))
    assert translate_request(body, source="anthropic", target="anthropic").value == body


@pytest.mark.parametrize("removes", [False, True])
def test_a_tool_of_a_server_is_added_and_withdrawn_among_those_it_allows(removes):
    reference = {"type": "mcp_tool_reference", "server_name": "docs", "name": "find"}
    toolset = {
        "type": "mcp_toolset",
        "mcp_server_name": "docs",
        "default_config": {"enabled": False},
        "configs": {"read": {"enabled": True}, **({"find": {"enabled": True}} if removes else {})},
    }
    body = _anthropic(_removed(reference) if removes else _added(reference), tools=[toolset])
    body["mcp_servers"] = [{"type": "url", "name": "docs", "url": "https://docs.example/mcp"}]
    rendered = translate_request(body, source="anthropic", target="openai-responses")
    assert rendered.value["tools"][0]["allowed_tools"] == (["read"] if removes else ["read", "find"])


@rows("target", [name for name in NAMES if name not in ("openai-responses", "ollama-generate")])
def test_tools_that_an_item_brings_are_offered(target):
    def function(name: str) -> Body:
        return {"type": "function", "name": name, "parameters": OBJECT}

    def asked(words: str) -> Body:
        return {"type": "message", "role": "user", "content": words}

    brought = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [function("draw"), {"type": "web_search"}],
    }
    body = {"model": "m", "input": [asked("Hi"), brought, asked("Go.")], "tools": [function("look")]}
    rendered = translate_request(body, source="openai-responses", target=target)
    offered = permitted(target, rendered.value)
    assert offered.functions == {"look", "draw"}
    assert offered.hosted == (frozenset() if target in ("openai-chat", "ollama") else {"web"})
    assert translate_request(body, source="openai-responses", target="openai-responses").value == body
