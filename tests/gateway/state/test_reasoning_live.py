"""The vault behind real gateways: several at once, several keys, a provider that is away for a while."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.state.doubles import Claude, Double, Gemini, Kimi
from tests.gateway.state.doubles.script import asked
from tests.gateway.state.doubles.server import Refused
from tests.gateway.state.driver import ForgetfulChatClient, Seen
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

NO_RETRY = "retry = { retries = 0 }\n"


def gateway(toml: str, folder: Path) -> LiveGateway:
    return LiveGateway(toml, environ={"XDG_DATA_HOME": str(folder)})


def gemini_at(double: Gemini, *keys: str) -> str:
    listed = ", ".join(f'"{key}-0123456789"' for key in keys)
    return f'[providers.gemini]\nbase_url = "{double.url}/v1beta"\ndialects = ["gemini"]\napi_keys = [{listed}]\n{NO_RETRY}'


MODELS = '[models]\n"m" = "gemini/gemini-3.5-flash"\n'


class Talk:
    """A conversation of a client that keeps texts and calls, and nothing else."""

    def __init__(self, url: str, token: str = "t1", key: str = "client-key") -> None:
        self.client = ForgetfulChatClient("m", url, key)
        self.token = token
        self.last: Seen | None = None
        self.questions = 0

    def turn(self, streaming: bool) -> Seen:
        if self.last is not None and self.last.calls:
            self.last = self.client.give(self.last.calls, streaming)
        else:
            self.questions += 1
            self.last = self.client.say(asked(self.token, self.questions), streaming)
        return self.last


def assert_all_came_back(double: Double) -> None:
    assert (double.violations, double.bypasses, double.missing, double.changed) == ([], [], [], [])
    assert double.minted


def test_a_conversation_goes_from_process_to_process(tmp_path: Path) -> None:
    """Two gateways over one store, as workers of one machine are: each turn at the other one."""
    with Gemini() as double:
        toml = gemini_at(double, "key") + MODELS
        with gateway(toml, tmp_path) as one, gateway(toml, tmp_path) as other:
            talk = Talk(one.url)
            for number in range(8):
                talk.client.url = (one, other)[number % 2].url
                talk.turn(streaming=number % 3 == 0)
        assert_all_came_back(double)


def test_state_leads_to_the_key_that_minted_it(tmp_path: Path) -> None:
    """PAINS 10: a signature is worth nothing under another account, so its own is asked before all others."""
    with Gemini() as double:
        with gateway(gemini_at(double, "first") + MODELS, tmp_path) as one:
            talk = Talk(one.url)
            for _ in range(2):
                talk.turn(streaming=False)
        more = gemini_at(double, "second", "third", "fourth", "fifth", "first")
        with gateway(more + MODELS, tmp_path) as one:
            talk.client.url = one.url
            for _ in range(2):
                talk.turn(streaming=True)
        assert {request.account for request in double.requests} == {"first-0123456789"}
        assert_all_came_back(double)


def test_a_provider_that_was_away_for_a_while_gets_its_own_state_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Gemini() as gemini, Claude() as claude:
        toml = (
            gemini_at(gemini, "key")
            + f'[providers.anthropic]\nbase_url = "{claude.url}"\ndialects = ["anthropic"]\napi_key = "key-0123456789"\n'
            + '[models]\n"m" = ["gemini/gemini-3.5-flash", "anthropic/claude-sonnet-4-5"]\n'
        )

        def away(*_: Any) -> dict[str, Any]:
            raise Refused("The model is overloaded. Please try again later.", status=503)

        with gateway(toml, tmp_path) as one:
            talk = Talk(one.url)
            for _ in range(5):
                talk.turn(streaming=False)
            with monkeypatch.context() as patch:
                patch.setattr(gemini, "answer", away)
                talk.turn(streaming=True)
                talk.turn(streaming=False)
            for _ in range(3):
                talk.turn(streaming=True)
        assert claude.violations == []
        assert {*gemini.violations} == {"The model is overloaded. Please try again later."}
        assert gemini.missing == []
        assert [request.refused for request in gemini.requests[-3:]] == ["", "", ""]


def test_callers_with_equal_conversations_have_their_own_state(tmp_path: Path) -> None:
    """THREATS T5: what was said is the same to the letter, but for the ids of the calls."""
    keys = "".join(
        f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(f"client-{name}".encode()).hexdigest()}"\n'
        for name in ("one", "other")
    )
    with Gemini() as double, gateway(gemini_at(double, "key") + MODELS + keys, tmp_path) as one:
        talks = [Talk(one.url, key=f"client-{name}") for name in ("one", "other")]
        for number in range(6):
            for talk in talks:
                talk.turn(streaming=number % 2 == 0)
        assert_all_came_back(double)


@pytest.mark.parametrize("double", [Gemini(), Claude()], ids=["gemini", "claude"])
def test_state_that_was_refused_once_is_not_tried_again(double: Gemini | Claude, tmp_path: Path) -> None:
    """R-DA-06: the refusal costs one more question, once, and what is minted later comes back as ever."""
    with double:
        if isinstance(double, Gemini):
            toml = gemini_at(double, "key") + MODELS
        else:
            toml = (
                f'[providers.anthropic]\nbase_url = "{double.url}"\ndialects = ["anthropic"]\n'
                'api_key = "key-0123456789"\n[models]\n"m" = "anthropic/claude-sonnet-4-5"\n'
            )
        with gateway(toml, tmp_path) as one:
            talk = Talk(one.url)
            for _ in range(5):
                talk.turn(streaming=False)
            double.forget()
            for number in range(6):
                talk.turn(streaming=number % 2 == 0)
        assert len(double.violations) == 1
        assert double.missing == []
        assert len(double.requests) == 12


def test_what_comes_back_is_not_reported_as_invented(tmp_path: Path) -> None:
    """R-DA-11: the empty reasoning stands in only where the true one is not known."""
    with Kimi() as double:
        toml = (
            f'[providers.kimi]\nbase_url = "{double.url}/v1"\ndialects = ["openai-chat"]\n'
            'api_key = "key-0123456789"\n[models]\n"m" = "kimi/kimi-k2.6"\n'
        )
        with gateway(toml, tmp_path) as one:
            talk = Talk(one.url)
            reported = [talk.turn(streaming=number % 2 == 0).losses for number in range(5)]
        assert not any(loss.startswith("reasoning") for losses in reported for loss in losses)
        assert_all_came_back(double)


SIGNATURE = "Q2lRQm9wS1FzcGF5bG9hZA=="


@pytest.mark.parametrize("streaming", [False, True])
def test_a_signature_behind_the_last_words_comes_back_with_them(streaming: bool) -> None:
    """Gemini 3 ends an answer without calls with an empty text that is signed: clients see no such part."""
    words = [{"text": "Well."}, {"text": "", "thoughtSignature": SIGNATURE}]
    answers = [_of_gemini(words[:1]), _of_gemini(words[1:], finishReason="STOP")]
    head = "text/event-stream" if streaming else "application/json"
    pieces = [f"data: {json.dumps(answer)}\n\n" for answer in answers]
    body = "".join(pieces) if streaming else json.dumps(_of_gemini(words, finishReason="STOP"))
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as one:
        upstream.next(Behaviour(body=body.encode(), headers=(("content-type", head),)))
        client = ForgetfulChatClient("gemini-3.5-flash", one.url, "client-key")
        client.say("Hi?", streaming)
        client.say("And now?", False)
        assert upstream.requests[-1].json["contents"][1] == {"role": "model", "parts": words}


def _of_gemini(parts: list[dict[str, str]], **more: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": parts}, **more}], "responseId": "r1"}
