"""Parts that are written the short way are written as the thorough way writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.dialects.anthropic.blocks import RequestBlocks
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Media,
    Message,
    Origin,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import Request
from wireglot_core.testing.strategies import requests

_EXTRAS: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        None,
        Extra("anthropic", {"new": 1}),
        Extra("anthropic", form={"content": "string"}),
        Extra("gemini"),
    ]
)
_MARKS: st.SearchStrategy[Any] = st.sampled_from([None, None, CacheMark()])
_SIGNED: st.SearchStrategy[Any] = st.sampled_from([None, None, Signature("s", Origin("gemini"))])
_texts = st.builds(
    Text,
    st.sampled_from(["a", "", " \n", "\u00a0", "words"]),
    refusal=st.booleans(),
    cache=_MARKS,
    signature=_SIGNED,
    extra=_EXTRAS,
)
_calls = st.builds(
    ToolCall,
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(["f", "g"]),
    st.sampled_from(["{}", "", " ", "null", "[1]", '{"a":1}', '{"a":', '{"_raw":"x","_parse_error":"y"}']),
    kind=st.sampled_from(["function", "function", "custom"]),
    namespace=st.sampled_from(["", "", "n"]),
    cache=_MARKS,
    signature=_SIGNED,
    extra=_EXTRAS,
)
_results = st.builds(
    ToolResult,
    st.sampled_from(["c1", "c2"]),
    st.lists(st.just(Text("a")) | _texts | st.just(Media("image", url="https://x/y.png")), max_size=2).map(
        tuple
    ),
    st.booleans(),
    name=st.sampled_from(["", "f"]),
    kind=st.sampled_from(["function", "function", "custom"]),
    cache=_MARKS,
    extra=_EXTRAS,
)
_messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "system"]),
    st.lists(st.just(Text("a")) | _texts | _calls | _results, max_size=3).map(tuple),
    extra=_EXTRAS,
)
_conversations = st.builds(
    Request,
    st.just("m"),
    st.lists(_messages, max_size=4).map(tuple),
    extra=st.sampled_from([None, Extra("anthropic")]),
)


@given(_conversations | requests())
def test_a_request_is_written_as_if_nothing_of_it_were_plain(request: Request) -> None:
    def written() -> object:
        rendered = dialect("anthropic").render_request(request, Context(seed="s"))
        return rendered.value, rendered.losses

    short = written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestBlocks, "_plain", lambda self, part, role: None)
        assert written() == short
