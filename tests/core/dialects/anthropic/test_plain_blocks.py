"""The short way for blocks, messages and tools as nearly all are gives what the thorough way gives."""

import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.dialects.anthropic import tools
from wireglot_core.dialects.anthropic.parse_request import parse_request
from wireglot_core.dialects.anthropic.parts import BlockParser
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import CacheMark, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import Tool

# The package has a function of this name, too.
_parsing = importlib.import_module("wireglot_core.dialects.anthropic.parse_request")

_TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"text": "b", "type": "text"}]
_CITED: tuple[Any, ...] = (None, [], "odd")
_CITED_TEXTS = [{"type": "text", "text": "a", "citations": cited} for cited in _CITED]
_MARKED_TEXTS = [
    {"type": "text", "text": "a", "cache_control": mark}
    for mark in ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"type": "new"}, {}, None, 1)
]
_ODD_TEXTS = [
    {"type": "text", "text": None},
    {"type": "text"},
    {"type": "text", "cache_control": None},
    "text",
]
_INPUTS = [{}, {"a": [1, None]}, {"_raw": "x", "_parse_error": "y"}, {"_raw": 1}, None, "text", []]
_calls = st.builds(
    lambda identifier, name, value, more: (
        {"type": "tool_use", "id": identifier, "name": name, "input": value} | more
    ),
    st.sampled_from(["t1", "", None, 1]),
    st.sampled_from(["f", "", None]),
    st.sampled_from(_INPUTS),
    st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}, {"caller": {"type": "direct"}}]),
)
_results = st.builds(
    lambda identifier, content, more: (
        {"type": "tool_result", "tool_use_id": identifier, "content": content} | more
    ),
    st.sampled_from(["t1", "", None]),
    st.sampled_from(["text", "", None, [], _TEXTS, [*_TEXTS, {"type": "image"}], [_TEXTS[0], "text"], {}, 1]),
    st.sampled_from([{}, {"is_error": False}, {"is_error": True}, {"new": 1}]),
)
_blocks = st.one_of(
    st.sampled_from(_TEXTS),
    st.sampled_from(_CITED_TEXTS),
    st.sampled_from(_MARKED_TEXTS),
    st.sampled_from(_ODD_TEXTS),
    _calls,
    _results,
)
_tools: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["f", "", None]),
        "description": st.sampled_from(["d", "", None]),
        "input_schema": st.sampled_from([{"type": "object"}, {}, None, []]),
    },
    optional={"strict": st.just(None), "type": st.sampled_from(["custom", None]), "new": st.just(1)},
)
_messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "else", None]),
        "content": st.one_of(st.lists(_blocks, max_size=3), st.sampled_from(["text", "", None, 1])),
    },
    optional={"new": st.just(1)},
)


def _read(body: dict[str, Any]) -> object:
    try:
        return parse_request(body, Context(seed="s"))
    except ClientFault as fault:
        return str(fault), fault.path


@given(st.lists(_messages, max_size=3), st.lists(_tools, max_size=2))
def test_both_ways_read_the_same(messages, declared):
    body = {"model": "m", "max_tokens": 1, "messages": messages, "tools": declared}
    shortly = _read(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockParser, "_plain", lambda self, block: None)
        patch.setattr(_parsing, "_is_plain", lambda message: False)
        patch.setattr(tools, "_plain_tool", lambda value: None)
        assert _read(body) == shortly


def test_an_agents_blocks_go_the_short_way():
    blocks = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "done"}]},
        {"type": "tool_result", "tool_use_id": "t", "content": "done"},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(BlockParser, "block")
        request = parse_request({"model": "m", "messages": [{"role": "user", "content": blocks}]}, Context())
    assert [type(part) for part in request.messages[0].content] == [Text, ToolCall, ToolResult, ToolResult]


def test_a_marked_text_goes_the_short_way():
    """Clients mark the last text of nearly every request."""
    block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(BlockParser, "block")
        request = parse_request({"model": "m", "messages": [{"role": "user", "content": [block]}]}, Context())
    assert request.messages[0].content == (Text("hi", cache=CacheMark()),)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_turn_of_blocks_goes_the_short_way(role):
    message = {"role": role, "content": [{"type": "text", "text": "hi"}]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parsing, "_MESSAGE", None)  # the thorough way looks for fields too many
        request = parse_request({"model": "m", "messages": [message]}, Context())
    assert request.messages == (Message(role, (Text("hi"),)),)


def test_a_declared_function_goes_the_short_way():
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(tools, "_parse_tool")
        request = parse_request({"model": "m", "messages": [_SAID], "tools": [tool]}, Context())
    assert request.tools == (Tool("f", "d", {"type": "object"}),)


_SAID = {"role": "user", "content": "hi"}
