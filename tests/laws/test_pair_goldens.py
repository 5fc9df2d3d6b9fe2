"""Pinned translations: one rich request and one answer of each dialect, as every other dialect gets them.

The laws say what must hold; these files show what it looks like, and make every change of it visible in a
review. `WIREGLOT_UPDATE=1 pytest tests/laws/test_pair_goldens.py` writes them anew.
"""

import json
import os
from typing import Any

import pytest

from tests.laws.cases import FIXTURES, MAIN, MAIN_PAIRS
from wireglot import Rendered, StreamTranslator, translate_request, translate_response
from wireglot.testing.fixtures import fixtures

GOLDENS = FIXTURES / "pairs"
UPDATE = bool(os.environ.get("WIREGLOT_UPDATE"))
REQUEST = "agent_turn.json"
ANSWERS = {
    "anthropic": "thinking_and_tools",
    "openai-chat": "tools",
    "openai-responses": "tools",
    "gemini": "tools",
}
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
}

pairs = pytest.mark.parametrize(("source", "target"), MAIN_PAIRS)


def pinned(name: str, text: str) -> None:
    path = GOLDENS / name
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def told(rendered: Rendered[dict[str, Any]]) -> str:
    losses = [f"{loss.path} {loss.feature} {loss.action}: {loss.detail}" for loss in rendered.losses]
    return json.dumps({"body": rendered.value, "losses": losses}, ensure_ascii=False, indent=2) + "\n"


@pairs
def test_an_agents_turn_reaches_the_upstream_like_this(source, target):
    [case] = [case for case in fixtures(FIXTURES, source, "requests") if case.id.endswith(f"/{REQUEST}")]
    rendered = translate_request(case.body, source=source, target=target, model=MODELS[target])
    pinned(f"request.{source}-to-{target}.json", told(rendered))


@pairs
def test_an_answer_with_calls_reaches_the_client_like_this(source, target):
    name = f"/{ANSWERS[source]}.json"
    [case] = [case for case in fixtures(FIXTURES, source, "responses") if case.id.endswith(name)]
    pinned(
        f"response.{source}-to-{target}.json",
        told(translate_response(case.body, source=source, target=target)),
    )


@pairs
def test_a_stream_with_calls_reaches_the_client_like_this(source, target):
    name = f"/{ANSWERS[source]}.sse"
    [case] = [case for case in fixtures(FIXTURES, source, "streams") if case.id.endswith(name)]
    translator = StreamTranslator(source=source, target=target)
    data = translator.feed(case.data) + translator.close()
    pinned(f"stream.{source}-to-{target}.sse", data.decode().replace("\r\n", "\n"))


def test_every_main_dialect_is_pinned():
    assert set(ANSWERS) == set(MAIN)
