"""Reasoning state for the clients that people run, over conversations with tools.

Each client shape echoes an answer as the program does (see `client_shapes`), before each family of providers
that demands its state. The doubles note whatever does not come back as a native client would have sent it.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.gateway.state.client_shapes import SHAPES
from tests.gateway.state.doubles import Double
from tests.gateway.state.driver_conversation import UPSTREAMS, VARIANTS, Conversation, House
from tests.tiers import rows
from wireglot_core.wire.json import encode

CLAUDES = ("claude", "claude-adaptive", "claude-interleaved")
OWN = {("codex-stripped", "openai"), ("codex-stripped", "openai-quiet")} | {
    (shape, claude)
    for shape in ("claude-code-stripped", "qwen-code", "qwen-code-front")
    for claude in CLAUDES
}
"""A provider asked in its own dialect gets what its client sends, and these leave some of it out."""
TURNS = 8
"""Six of them are tool turns."""

PAIRS = [(shape, upstream) for shape in SHAPES for upstream in UPSTREAMS if (shape, upstream) not in OWN]
OTHERS = [(shape, upstream) for shape in SHAPES for upstream in VARIANTS if (shape, upstream) not in OWN]


def assert_all_came_back(double: Double) -> None:
    assert double.violations == []
    assert double.bypasses == []
    assert double.missing == []
    assert double.changed == []
    assert double.minted


def assert_old_turns_stay(double: Double, shape: str = "") -> None:
    """[prefix] What was sent once is sent again to the byte, with more behind it."""
    if shape == "openclaw":  # which moves words of its own from the end of each request to that of the next
        return
    for before, after in pairwise(request.body for request in double.requests):
        for head in ("system", "instructions", "systemInstruction", "tools"):
            assert encode(before.get(head)) == encode(after.get(head))
        place = next(name for name in ("messages", "input", "contents") if name in before)
        old = before[place]
        assert encode(old) == encode(after[place][: len(old)])


@pytest.mark.sampled("shape")
@rows(("shape", "upstream"), PAIRS)
def test_every_provider_gets_its_state_back_from_every_client(
    tmp_path: Path, shape: str, upstream: str
) -> None:
    """[L2] [L6] [L7] Placeholder signatures, ids left out or changed, thoughts moved, joined or dropped."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, shape, upstream)
        talk.turns(TURNS)
        assert_all_came_back(house.doubles[upstream])
        assert len(house.doubles[upstream].requests) == TURNS
        assert_old_turns_stay(house.doubles[upstream], shape)


@pytest.mark.sampled(each=4)
@rows(("shape", "upstream"), OTHERS)
def test_other_families_get_theirs_too(tmp_path: Path, shape: str, upstream: str) -> None:
    """[L2] [L6] [L7] Thinking that is not shown, thinking between text and calls, ids that recur."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, shape, upstream)
        talk.turns(TURNS)
        assert_all_came_back(house.doubles[upstream])
        assert_old_turns_stay(house.doubles[upstream], shape)


@pytest.mark.parametrize(
    ("client", "upstream"), [("openai-chat-forgetful", "unlisted"), ("gemini-cli-resumed", "gemini3")]
)
def test_what_a_client_loses_in_its_own_dialect_is_put_back(
    tmp_path: Path, client: str, upstream: str
) -> None:
    """[L2] [L6] Plain reasoning that a server of one's own has shown, signatures replaced by a placeholder."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, client, upstream)
        talk.turns(3)
        house.restart()
        talk.turns(TURNS - 3)
        assert_all_came_back(house.doubles[upstream])
        assert len(house.doubles[upstream].requests) == TURNS


def test_a_server_that_shows_reasoning_and_does_not_take_it_is_asked_with_it_once(tmp_path: Path) -> None:
    with House(tmp_path, "refusing") as house:
        talk = Conversation(house, "openai-chat-forgetful", "refusing")
        talk.turns(TURNS)
        double = house.doubles["refusing"]
        assert double.violations == ["Extra inputs are not permitted, field: 'messages[1].reasoning_content'"]
        assert len(double.requests) == TURNS + 1
        assert double.changed == []


@pytest.mark.sampled(each=4)
@rows(("shape", "upstream"), PAIRS)
def test_state_is_there_after_a_restart_and_in_another_worker(
    tmp_path: Path, shape: str, upstream: str
) -> None:
    """[L2] [L6] [L7] Over one store, in the middle of a tool loop."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, shape, upstream)
        talk.turns(2)
        house.restart()
        talk.turns(1)
        first = house.gateway
        with house.worker() as other:
            house.gateway = other
            talk.turns(2)
            house.gateway = first
        talk.turns(1)
        assert_all_came_back(house.doubles[upstream])
        assert_old_turns_stay(house.doubles[upstream], shape)
