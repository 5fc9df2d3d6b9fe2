"""Pairs of pointers between what a client sent and what went upstream, over all pairs of dialects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from wireglot.dialects.base import Context
from wireglot.dialects.places import RequestPlaces
from wireglot.dialects.registry import dialect
from wireglot.ir.content import Text, ToolCall
from wireglot.ir.errors import Unsupported
from wireglot.ir.request import Request
from wireglot.testing.strategies import requests
from wireglot.traces.again import Asked, ask_again
from wireglot.traces.links import request_links
from wireglot.traces.pointer import pointer_of, resolve
from wireglot.traces.target import Target
from wireglot.traces.trace import Link

NAMES = ("anthropic", "openai-chat", "openai-responses", "gemini")
EXAMPLES = settings().max_examples // 2  # links of one body take a tenth of a second
PAIRS = [(source, target) for source in NAMES for target in NAMES]


def translated(request: Request, source: str, target: str) -> tuple[dict[str, Any], Asked, list[Link]] | None:
    body = dialect(source).render_request(request, Context()).value
    where = Target(dialect=target, model="some-model")
    try:
        asked = ask_again(source, body, where)
    except Unsupported:
        return None
    return body, asked, request_links(source, body, where, asked.document)


@pytest.mark.parametrize(("source", "target"), PAIRS)
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


@pytest.mark.parametrize(("source", "target"), PAIRS)
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


@pytest.mark.parametrize(("source", "target"), PAIRS)
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
