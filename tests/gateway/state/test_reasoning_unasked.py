"""Reasoning state that no client asked for: models reason by default, and what they keep nowhere must come
back in the answer, be kept, and go up again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.state.doubles import OpenAi
from tests.gateway.state.driver import UNDEMANDING, Seen, UndemandingChat
from tests.gateway.state.driver_conversation import UPSTREAMS, Conversation, House
from tests.gateway.state.test_client_shapes import assert_all_came_back, assert_old_turns_stay
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway

TURNS = 6
"""Two rounds of tools behind each question, and what comes after them."""


@rows("client", UNDEMANDING)
def test_a_client_that_names_no_effort_loses_no_reasoning(tmp_path: Path, client: str) -> None:
    """OpenAI answers 400 to the id of a call without the reasoning item that it was made with."""
    with House(tmp_path, "openai-quiet") as house:
        talk = Conversation(house, client, "openai-quiet")
        talk.turns(TURNS)
        double = house.doubles["openai-quiet"]
        assert_all_came_back(double)
        assert len(double.requests) == TURNS
        if client != "responses-chained":  # a stored question is sent with all the fields of its item
            assert_old_turns_stay(double)
        for request in double.requests:
            assert request.body["store"] is False
            assert request.body["include"] == ["reasoning.encrypted_content"]


@rows("client", UNDEMANDING)
def test_its_reasoning_is_there_after_a_restart(tmp_path: Path, client: str) -> None:
    with House(tmp_path, "openai-quiet") as house:
        talk = Conversation(house, client, "openai-quiet")
        talk.turns(2)
        house.restart()
        talk.turns(2)
        assert_all_came_back(house.doubles["openai-quiet"])


@rows("streaming", [False, True], ids=["whole", "streamed"])
@rows("include", [None, [], ["reasoning.encrypted_content"]], ids=str)
def test_encrypted_reasoning_is_shown_to_those_who_asked_for_it(
    tmp_path: Path, include: list[str] | None, streaming: bool
) -> None:
    with House(tmp_path, "openai-quiet") as house:
        talk = Conversation(house, "responses-undemanding", "openai-quiet")
        talk.client.wish = {} if include is None else {"include": include}
        talk.turn(streaming)
        reasoning = talk.client.history[1]
        assert reasoning["type"] == "reasoning"
        (minted,) = house.doubles["openai-quiet"].minted
        assert reasoning["id"] == minted.bound
        assert reasoning.get("encrypted_content") == (minted.value if include else None)


UPSTREAM_OF = {
    "anthropic": "claude",
    "openai-chat": "kimi",
    "openai-responses": "openai",
    "gemini": "gemini3",
}
"""One that leaves state in its answers, of each dialect."""
SHOWN = ("messages-undemanding", "messages-disabled", "gemini-undemanding", "gemini-hiding")
"""Clients whose programs take the first part of an answer for its text."""


@pytest.mark.sampled("client")
@rows("streaming", [False, True], ids=["whole", "streamed"])
@rows("upstream", [*UPSTREAMS, "openai-quiet", "unlisted"])
@rows("client", SHOWN)
def test_who_did_not_ask_for_thinking_sees_the_answer_first(
    tmp_path: Path, client: str, upstream: str, streaming: bool
) -> None:
    """`message.content[0].text` is how the first example of every SDK has it. The state comes back from the
    vault: these clients have none of it to send."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, client, upstream)
        for _ in range(TURNS):
            seen = talk.turn(streaming)
            _assert_answer_first(talk.client.history[-1], seen)
        double = house.doubles[upstream]
        assert double.violations == []
        assert double.bypasses == []
        assert double.missing == []
        assert double.changed == []
        thinks_not = upstream == "claude" or (client, upstream) == ("messages-disabled", "kimi")
        assert thinks_not or double.minted
        assert_old_turns_stay(double)


def _assert_answer_first(turn: Any, seen: Seen) -> None:
    if isinstance(turn, dict):
        assert {block.type for block in turn["content"]} <= {"text", "tool_use"}
        assert not seen.text or turn["content"][0].text
    else:
        assert not any(part.thought for part in turn.parts)
        assert not seen.text or turn.parts[0].text


@rows("client", UNDEMANDING)
def test_a_model_that_is_known_not_to_reason_is_not_asked_for_it(tmp_path: Path, client: str) -> None:
    with (
        OpenAi(plain=True) as double,
        LiveGateway(_gateway(double, "gpt-4o"), environ=_data(tmp_path)) as gateway,
    ):
        asking = UNDEMANDING[client]("m", gateway.url)
        asking.say("This is conversation x1. Go on.", False)
        assert [request.body.get("include") for request in double.requests] == [None]
        assert double.violations == []


def test_a_model_that_turns_out_not_to_reason_is_asked_for_it_once(tmp_path: Path) -> None:
    """A deployment may have any name: its refusal says what it is, and is remembered."""
    with (
        OpenAi(plain=True) as double,
        LiveGateway(_gateway(double, "my-own"), environ=_data(tmp_path)) as gateway,
    ):
        asking = UndemandingChat("m", gateway.url)
        seen = asking.say("This is conversation x2. Go on.", False)
        asking.give(seen.calls, True)
        assert double.violations == ["Encrypted content is not supported with this model."]
        assert ["include" in request.body for request in double.requests] == [True, False, False]


def test_an_account_without_summaries_is_asked_for_one_once(tmp_path: Path) -> None:
    """Chat servers show the thinking of an effort; OpenAI summarizes it for verified organizations only."""
    with (
        OpenAi(unverified=True) as double,
        LiveGateway(_gateway(double, "gpt-5"), environ=_data(tmp_path)) as gateway,
    ):
        asked = {"model": "m", "reasoning_effort": "low"}
        for text in ("This is conversation x3. Go on.", "This is conversation x4. Go on."):
            body = {**asked, "messages": [{"role": "user", "content": text}]}
            answer = httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=30)
            assert answer.status_code == 200, answer.text
        assert double.violations == ["Your organization must be verified to generate reasoning summaries."]
        asks = [(request.body.get("reasoning") or {}).get("summary") for request in double.requests]
        assert asks == ["auto", None, None]


def _gateway(double: OpenAi, model: str) -> str:
    return (
        f'[providers.mine]\nbase_url = "{double.url}/v1"\ndialect = "openai-responses"\n'
        f'api_key = "key-0123456789"\nretry = {{retries = 0}}\n[models]\n"m" = "mine/{model}"\n'
    )


def _data(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder)}
