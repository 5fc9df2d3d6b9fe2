"""The SDK, the HTTP and the streams are real; only the model is scripted."""

from collections.abc import Iterator

import pytest
from anthropic import Anthropic, InternalServerError
from headlines import NoHeadline, headline

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


def client(url: str, retries: int = 2) -> Anthropic:
    return Anthropic(base_url=url, api_key="not-a-real-key", max_retries=retries)


def test_the_text_is_sent_and_the_answer_comes_back(upstream: ScriptedUpstream) -> None:
    answer = headline("[[demo:echo]] Rain in Oslo", client(upstream.url))
    assert "Rain in Oslo" in answer
    assert upstream.requests[0].json["max_tokens"] == 60


def test_an_overloaded_provider_is_asked_again(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(error=529, retry_after=0))
    assert headline("Rain in Oslo", client(upstream.url))
    assert len(upstream.requests) == 2


def test_a_provider_that_stays_broken_is_reported(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(error=500))
    with pytest.raises(InternalServerError):
        headline("Rain in Oslo", client(upstream.url, retries=0))


def test_a_headline_that_is_too_long_is_none(upstream: ScriptedUpstream) -> None:
    with pytest.raises(NoHeadline, match="max_tokens"):
        headline("[[demo:text 500]]", client(upstream.url))


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_it_works_on_every_kind_of_provider(upstream: ScriptedUpstream, dialect: str) -> None:
    with LiveGateway.before(upstream, dialect) as gateway:
        assert "Rain in Oslo" in headline("[[demo:echo]] Rain in Oslo", client(gateway.url))
        assert gateway.wait_log()[-1]["outcome"] == "ok"
