"""What Google signed comes back to it unchanged and in place, whichever dialect the client speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wireglot_core.dialects.registry import DialectName
from wireglot_core.translate import translate_request, translate_response
from wireglot_core.wire.json import decode

FIXTURES = Path(__file__).parents[3] / "fixtures" / "gemini-interactions" / "responses"
MODEL = "gemini-3.5-flash"
ASKED = {"role": "user", "content": "hi"}
USER: dict[str, Any] = {"role": "user", "parts": [{"text": "hi"}]}


def sent_back(client: DialectName, answer: Any) -> dict[str, Any]:
    """The next request of a client that keeps what it was given."""
    match client:
        case "anthropic":
            said = {"role": "assistant", "content": answer["content"]}
            return {"model": "m", "max_tokens": 9, "messages": [ASKED, said, ASKED]}
        case "openai-chat":
            return {"model": "m", "messages": [ASKED, answer["choices"][0]["message"], ASKED]}
        case "openai-responses":
            return {"model": "m", "input": [ASKED, *answer["output"], ASKED]}
        case _:
            return {"contents": [USER, answer["candidates"][0]["content"], USER]}


def steps_sent(client: DialectName, name: str, model: str = MODEL) -> tuple[list[Any], list[Any]]:
    """The model's steps of an answer, and those of the next request."""
    body = decode((FIXTURES / f"{name}.json").read_bytes())
    answer = translate_response(
        body, source="gemini-interactions", target=client, provider="gemini", model=MODEL
    )
    request = translate_request(
        sent_back(client, answer.value),
        source=client,
        target="gemini-interactions",
        provider="gemini",
        model=model,
    )
    return body["steps"], request.value["input"][1:]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_steps_come_back_as_they_left(client: DialectName) -> None:
    for name in ("text", "tools", "search", "code"):
        left, came = steps_sent(client, name)
        signed = [step for step in left if step["type"] != "model_output"]
        assert [step for step in came[: len(left)] if step["type"] != "model_output"] == signed, name
        assert [step["type"] for step in came[: len(left)]] == [step["type"] for step in left], name


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_another_model_is_not_given_what_it_did_not_sign(client: DialectName) -> None:
    _, came = steps_sent(client, "text", model="gemini-2.5-pro")
    assert [step["type"] for step in came] == ["model_output", "user_input"]
