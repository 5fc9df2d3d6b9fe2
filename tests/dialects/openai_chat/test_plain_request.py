"""What is read the short way is read as the long way reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.dialects.base import Context
from wireglot.dialects.openai_chat import messages, parse_request
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import ClientFault
from wireglot.wire.memory import Memory

_TEXTS: st.SearchStrategy[Any] = st.sampled_from(
    ["", "a", "words", None, 1, [], [{"type": "text", "text": "a"}], {}]
)
_IDS: st.SearchStrategy[Any] = st.sampled_from(["", "c1", "c2", None, 7])
_FUNCTIONS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["f", "", None, 1]),
        "arguments": st.sampled_from(["{}", "", None, {"a": 1}]),
        "description": st.sampled_from(["says", "", None]),
        "parameters": st.sampled_from([{"type": "object"}, {}, None, []]),
        "strict": st.sampled_from([True, None]),
    },
)
_CALLS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "id": _IDS,
        "type": st.sampled_from(["function", "custom", None]),
        "function": _FUNCTIONS | st.just({"name": "f", "arguments": "{}"}),
        "index": st.just(0),
        "extra_content": st.just({"google": {"thought_signature": "c2ln"}}),
    },
)
_PLAIN_CALL: st.SearchStrategy[Any] = st.builds(
    lambda name: {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}, _IDS
)
_MESSAGES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool", "developer", "function", "odd", None])},
    optional={
        "content": _TEXTS,
        "tool_call_id": _IDS,
        "tool_calls": st.lists(_CALLS | _PLAIN_CALL, max_size=2),
        "name": st.sampled_from(["n", "", None]),
        "prefix": st.just(True),
        "cache_control": st.just({"type": "ephemeral"}),
    },
)
_TOOLS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "function", "custom", None])},
    optional={"function": _FUNCTIONS, "cache_control": st.just({"type": "ephemeral"})},
)
_LIKELY: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {
            "role": "assistant",
            "content": "d",
            "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "e"},
        {"role": "assistant", "content": "f", "prefix": True},
        "no object",
    ]
)


def _read(body: dict[str, Any], memory: Memory | None) -> object:
    try:
        return dialect("openai-chat").parse_request(body, Context(seed="s", memory=memory))
    except ClientFault as fault:
        return str(fault), fault.path


@given(st.lists(_LIKELY | _MESSAGES, min_size=1, max_size=5), st.lists(_TOOLS, max_size=2))
def test_a_request_is_read_as_if_nothing_of_it_were_plain(said: list[Any], tools: list[Any]) -> None:
    body = {"model": "m", "messages": said, "tools": tools}
    short, remembered = _read(body, None), _read(body, Memory(1 << 20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages.Conversation, "_plain", lambda self, value: False)
        patch.setattr(parse_request, "plain_tool", lambda value: None)
        assert short == remembered == _read(body, None)
