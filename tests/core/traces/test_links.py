"""Pairs of pointers between what a client sent and what went upstream, over all pairs of dialects."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.places import RequestPlaces
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Message, Text, ToolCall
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.request import Request
from wireglot_core.testing.strategies import requests
from wireglot_core.traces.again import RequestAgain, ask_again
from wireglot_core.traces.bodies import UnreadableBody
from wireglot_core.traces.links import request_links
from wireglot_core.traces.pointer import pointer_of, resolve
from wireglot_core.traces.target import TraceTarget
from wireglot_core.traces.trace import Link

NAMES = ("anthropic", "openai-chat", "openai-responses", "gemini")
EXAMPLES = settings().max_examples // 2  # links of one body take a tenth of a second
PAIRS = [(source, target) for source in NAMES for target in NAMES]


def translated(
    request: Request, source: str, target: str
) -> tuple[dict[str, Any], RequestAgain, list[Link]] | None:
    body = dialect(source).render_request(request, Context()).value
    where = TraceTarget(dialect=target, model="some-model")
    try:
        asked = ask_again(source, body, where)
    except Unsupported:
        return None
    return body, asked, request_links(source, body, where, asked.document)


@rows(("source", "target"), PAIRS)
@settings(max_examples=EXAMPLES)
@given(request=requests())
def test_each_pointer_leads_to_something(source: str, target: str, request: Request) -> None:
    done = translated(request, source, target)
    if done is None:
        return
    body, asked, links = done
    for link in links:
        resolve(body, link.client)
        resolve(asked.document, link.upstream)


@rows(("source", "target"), PAIRS)
@settings(max_examples=EXAMPLES)
@given(request=requests())
def test_a_call_is_linked_to_what_became_of_it(source: str, target: str, request: Request) -> None:
    done = translated(request, source, target)
    if done is None:
        return
    body, asked, links = done
    ours, theirs = dialect(source), dialect(target)
    assert ours.places is not None
    assert theirs.places is not None
    here = RequestPlaces(ours.places, body, asked.own)
    there_request = theirs.parse_request(asked.document, asked.context)
    there = RequestPlaces(theirs.places, asked.document, there_request)
    upstream = {
        pointer_of(there.of(f"$.messages[{number}].content[{at}]")): part
        for number, message in enumerate(there_request.messages)
        for at, part in enumerate(message.content)
    }
    trail = asked.planned.trail
    for number, message in enumerate(asked.planned.upstream.messages):
        for at, part in enumerate(message.content):
            if type(part) is not ToolCall:
                continue
            neutral = f"$.messages[{number}].content[{at}]" if trail is None else trail.of(part)
            mine = pointer_of(here.of(neutral, asked.planned.client))
            found = [
                upstream[link.upstream] for link in links if link.client == mine and link.upstream in upstream
            ]
            calls = [each for each in found if type(each) is ToolCall]
            assert any(each.name == part.name for each in calls), (mine, links)


@rows(("source", "target"), PAIRS)
@settings(max_examples=EXAMPLES)
@given(request=requests(plain=True))
def test_every_message_that_goes_upstream_is_linked(source: str, target: str, request: Request) -> None:
    done = translated(request, source, target)
    if done is None:
        return
    body, asked, links = done
    lost = {pointer_of(loss.path) for loss in asked.losses if loss.action == "dropped"}
    places = dialect(source).places
    assert places is not None
    way = RequestPlaces(places, body, asked.own)
    clients = {link.client for link in links}
    for number, message in enumerate(asked.own.messages):
        if all(type(part) is Text and not part.text.strip() for part in message.content):
            continue
        at = pointer_of(way.of(f"$.messages[{number}]"))
        gone = any(path.startswith(at) or at.startswith(path) for path in lost)
        assert gone or at in clients, (at, body, asked.document)


def test_items_that_carried_the_state_of_a_call_shift_no_link() -> None:
    """As Codex sends them back: a reasoning item that is the signature of the call behind it."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    body = {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Read it."}]},
            thought,
            {"type": "reasoning", "summary": [], "encrypted_content": "the signature of the call"},
            {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "It says nothing."},
        ],
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
    }
    own = dialect("openai-responses").parse_request(body, Context())
    unsealed = msgspec.structs.replace(own, messages=(*own.messages[:2], *own.messages[3:]))
    copy = msgspec.json.decode(msgspec.json.encode(unsealed), type=Request)
    where = TraceTarget(dialect="gemini", model="some-model", asked=copy)
    asked = ask_again("openai-responses", body, where)
    links = {
        link.client: link.upstream for link in request_links("openai-responses", body, where, asked.document)
    }
    assert resolve(asked.document, links["/input/0/content/0"]) == {"text": "Read it."}
    assert "functionCall" in str(resolve(asked.document, links["/input/3"]))
    assert "functionResponse" in str(resolve(asked.document, links["/input/4"]))
    assert "/input/2" not in links


LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"W{one}{two}" for one in LETTERS for two in LETTERS]
"""With which the marks begin that show what became of a part. Megabytes of base64 contain all of them."""


@rows(("source", "target"), PAIRS)
def test_a_picture_that_contains_every_short_word_is_linked(source: str, target: str) -> None:
    picture = base64.b64encode("".join(WORDS).encode()).decode() + "".join(WORDS)
    content = (Media("image", "image/png", data=picture), Text("What is it?"))
    done = translated(Request("m", (Message("user", content),)), source, target)
    assert done is not None
    body, _, links = done
    assert any("What is it?" in str(resolve(body, link.client)) for link in links)


@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_that_contains_every_mark_is_not_linked_and_says_why(encoded: bool) -> None:
    marks = [f"{word}000000" for word in WORDS]
    if encoded:
        marks = [base64.b64encode(mark.encode()).decode() for mark in marks]
    with pytest.raises(UnreadableBody, match="every mark"):
        translated(Request("m", (Message("user", (Text(" ".join(marks)),)),)), "anthropic", "gemini")
