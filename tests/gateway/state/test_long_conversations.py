"""Reasoning state over conversations of twenty turns: every client dialect before every kind of upstream.

The upstreams are doubles that refuse what the real ones refuse (see `doubles`), the clients are the vendors'
SDKs. Streamed and whole answers alternate.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.state.doubles import Double
from tests.gateway.state.driver import CLIENTS, Seen
from tests.gateway.state.driver_conversation import UPSTREAMS, VARIANTS, Conversation, House
from tests.tiers import WHOLE, rows

TURNS = 20 if WHOLE else 10
EVERY = [(client, upstream) for client in CLIENTS for upstream in UPSTREAMS]
SWITCHES = [
    ("gemini3", "claude"),
    ("claude", "openai"),
    ("openai", "kimi"),
    ("kimi", "gemini3"),
]
"""Each upstream is left once and taken up once."""


def assert_all_came_back(double: Double) -> None:
    assert double.violations == []
    assert double.bypasses == []
    assert double.missing == []
    assert double.changed == []
    assert double.minted


@pytest.mark.sampled("client")
@rows(("client", "upstream"), EVERY)
def test_twenty_turns_bring_every_piece_of_state_back(tmp_path: Path, client: str, upstream: str) -> None:
    """R-DA-01, R-DA-03, R-DA-04, R-DA-11, R-DA-18, R-Y-23, R-Y-24, R-E-03, C9: on the part it was minted for."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, client, upstream)
        talk.turns(TURNS)
        assert_all_came_back(house.doubles[upstream])
        assert len(house.doubles[upstream].requests) == TURNS
        talk.assert_faithful()


@pytest.mark.sampled(each=3)
@rows("upstream", VARIANTS)
@rows("client", CLIENTS)
def test_other_families_get_their_state_back_too(tmp_path: Path, client: str, upstream: str) -> None:
    """Thinking that is not shown, thinking between text and calls, call ids that recur in a conversation."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, client, upstream)
        talk.turns(12)
        assert_all_came_back(house.doubles[upstream])
        talk.assert_faithful()


@pytest.mark.sampled("client")
@rows("upstream", UPSTREAMS)
@rows("client", CLIENTS)
def test_state_goes_back_to_the_account_that_minted_it(tmp_path: Path, client: str, upstream: str) -> None:
    """Of three keys each conversation uses one, whichever (C9)."""
    with House(tmp_path, upstream, keys=3) as house:
        talks = [Conversation(house, client, upstream) for _ in range(3)]
        for _ in range(3):
            for talk in talks:
                talk.turn()
        assert_all_came_back(house.doubles[upstream])


@pytest.mark.sampled(each=3)
@rows(("client", "upstream"), EVERY)
def test_state_survives_a_restart_in_the_middle(tmp_path: Path, client: str, upstream: str) -> None:
    """R-E-05: once in the middle of a tool loop and once between two questions."""
    with House(tmp_path, upstream) as house:
        talk = Conversation(house, client, upstream)
        talk.turns(6)
        house.restart()
        talk.turns(2)
        house.restart()
        talk.turns(4)
        assert_all_came_back(house.doubles[upstream])
        assert len(house.doubles[upstream].requests) == 12
        talk.assert_faithful()


@pytest.mark.sampled("client")
@rows(("one", "other"), SWITCHES)
@rows("client", CLIENTS)
def test_a_switch_of_the_provider_and_back_is_refused_by_nobody(
    tmp_path: Path, client: str, one: str, other: str
) -> None:
    """R-DA-05, R-DA-09: the first switch falls between two questions, the way back into a tool loop."""
    assert_goes_on_elsewhere(tmp_path, client, (one, 8), (other, 6), (one, 6))


@pytest.mark.sampled(each=3)
@rows("other", ["claude", "openai"])
@rows("client", CLIENTS)
def test_calls_whose_ids_recur_can_be_taken_elsewhere(tmp_path: Path, client: str, other: str) -> None:
    """C46: Kimi K3 counts its ids from the start in each answer, and another must make sense of them in a tool loop."""
    assert_goes_on_elsewhere(tmp_path, client, ("kimi-k3", 6), (other, 3), ("kimi-k3", 2))


def assert_goes_on_elsewhere(folder: Path, client: str, *stages: tuple[str, int]) -> None:
    with House(folder, *{name for name, _ in stages}) as house:
        talk = Conversation(house, client, stages[0][0])
        firsts: list[Seen] = []
        for name, turns in stages:
            talk.model = name
            firsts.append(talk.turn())
            talk.turns(turns - 1)
        for name, double in house.doubles.items():
            assert double.violations == []
            assert double.changed == []
            # Its own state went back to each, where the client or the gateway had it from there.
            assert double.missing == []
            assert len(double.requests) == sum(turns for each, turns in stages if each == name)
        talk.assert_faithful()
        lost = any("reasoning" in loss for first in firsts[1:] for loss in first.losses)
        # What cannot be carried over is reported. OpenAI takes no reasoning: a client of its own dialect that sends none
        # loses none there.
        assert lost or (client == "openai-chat-forgetful" and "openai" in house.doubles)


@pytest.mark.sampled(each=3)
@rows("client", CLIENTS)
def test_another_model_of_the_same_provider_goes_on_with_the_conversation(
    tmp_path: Path, client: str
) -> None:
    """R-DA-05, R-DA-06: there and back in the middle of a tool loop. Where signatures travel bare, in Google's
    own fields, nobody can see which model minted them: they are tried first, and then left out."""
    with House(tmp_path, "gemini3", models='"gemini3-newer" = "gemini/gemini-3.7-flash"') as house:
        double = house.doubles["gemini3"]
        talk = Conversation(house, client, "gemini3")
        talk.turns(2)
        talk.model = "gemini3-newer"
        talk.turns(4)
        assert double.bypasses
        talk.model = "gemini3"
        talk.turns(2)
        bare = {"Corrupted thought signature."} if client in ("gemini", "openai-chat") else set()
        assert {*double.violations} <= bare
        assert double.changed == []
        talk.assert_faithful()


@pytest.mark.sampled("client")
@rows(("one", "other"), [("gemini3", "claude"), ("openai", "kimi")])
@rows("client", CLIENTS)
def test_a_fallback_in_a_tool_loop_and_the_way_back_are_refused_by_nobody(
    tmp_path: Path, client: str, one: str, other: str
) -> None:
    routes = ", ".join(f'"{UPSTREAMS[name].provider}/{UPSTREAMS[name].model}"' for name in (one, other))
    with House(tmp_path, one, other, models=f'"either" = [{routes}]') as house:
        talk = Conversation(house, client, "either")
        talk.turns(2)
        house.doubles[one].down = True
        talk.turns(3)
        house.doubles[one].down = False
        talk.turns(3)
        assert [name for name, _ in talk.seen] == [one] * 2 + [other] * 3 + [one] * 3
        for double in house.doubles.values():
            assert double.violations == []
            assert double.changed == []
            assert double.missing == []
        talk.assert_faithful()


@pytest.mark.sampled(each=3)
@rows(("client", "upstream"), EVERY)
def test_state_that_is_no_longer_known_upstream_costs_one_more_call_and_no_error(
    tmp_path: Path, client: str, upstream: str
) -> None:
    """R-DA-06: as when the account behind a key was changed, what was minted before is refused from now on."""
    with House(tmp_path, upstream) as house:
        double = house.doubles[upstream]
        talk = Conversation(house, client, upstream)
        talk.turns(6)
        for streaming in (False, True):
            double.forget()
            before = len(double.requests)
            talk.turn(streaming)
            asked = double.requests[before:]
            refused = [bool(request.refused) for request in asked]
            if upstream == "kimi":
                assert refused == [False]  # its state is plain text: there is nothing to refuse
            elif streaming and (client, upstream) == ("openai-chat-forgetful", "claude"):
                # What was refused once is not put back again, and without thinking nothing new was minted.
                assert refused == [False]
            else:
                assert refused == [True, False]
            assert {request.streams for request in asked} == {streaming}
        talk.turns(4)
        talk.assert_faithful()


@pytest.mark.sampled("client")
@rows("client", CLIENTS)
def test_conversations_whose_call_ids_are_the_same_stay_apart(tmp_path: Path, client: str) -> None:
    """R-A-12, R-Y-31, C29, C46: Kimi counts its ids from the start in each conversation, and two go on at the same time."""
    with House(tmp_path, "kimi") as house:
        talks = [Conversation(house, client, "kimi") for _ in range(2)]
        for _ in range(7):
            for talk in talks:
                talk.turn()
        assert_all_came_back(house.doubles["kimi"])
        for talk in talks:
            talk.assert_faithful()
