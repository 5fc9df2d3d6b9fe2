"""Headers that a configuration may send to a provider."""

from __future__ import annotations

from typing import Any

import pytest

from wireglot.gateway.config import load
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.config.providers import may_be_set
from wireglot.http.client.client import _OURS


def headers(**given: Any) -> dict[str, str]:
    table = {"catalog": "openai", "api_key": "sk-x", "headers": given}
    found = load(None, environ={}, overrides={"providers": {"it": table}}, create_secret=False)
    return dict(found.providers["it"].headers)


@pytest.mark.parametrize("name", sorted({*_OURS, "content-type"}))
def test_what_frames_a_request_is_the_gateways_own(name: str) -> None:
    """The client would leave it out, and nobody would know."""
    for spelled in (name, name.title()):
        with pytest.raises(ConfigError, match="does not set itself"):
            headers(**{spelled: "x"})
        assert not may_be_set(spelled, "x")


def test_other_headers_are_sent_as_they_are_named() -> None:
    given = {"X-Team": "a team", "anthropic-beta": "x,y", "a!#$%&'*+^_`|~-1": "~"}
    assert given.items() <= headers(**given).items()
    assert all(may_be_set(name, value) for name, value in given.items())


@pytest.mark.parametrize(
    ("name", "value"), [("a b", "x"), ("", "x"), ("é", "x"), ("a", "é"), ("a", "x\r\ny"), ("a", "")]
)
def test_what_http_cannot_carry_is_refused(name: str, value: str) -> None:
    assert not may_be_set(name, value)
    with pytest.raises(ConfigError):
        headers(**{name: value})
