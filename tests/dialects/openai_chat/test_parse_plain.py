"""The short way for answers of one text gives what the thorough way gives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.cases import all_hold, of_kind, recorded
from tests.tiers import rows
from wireglot.dialects.base import Context
from wireglot.dialects.openai_chat.parse_plain import parse_plain
from wireglot.dialects.openai_chat.response import parse_response, parse_thoroughly
from wireglot.testing.check_dialect import Case
from wireglot.wire.json import encode

_CONTEXT = Context(seed="s", provider="p", model="m")
_PLAIN: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "a", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    "system_fingerprint": "fp",
}
_ODD = st.sampled_from(
    [None, "", "x", "stop", "assistant", "default", 0, 1, 0.0, True, False, [], {}, [None], {"a": ""}]
)


def _bent(value: dict[str, Any], others: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """The object in any order, with up to two members changed, added or left out."""
    keys = st.sampled_from([*value, *others])
    return st.builds(
        lambda order, changed, gone: {
            key: {**value, **changed}[key] for key in [*order, *changed] if key not in gone
        },
        st.permutations(list(value)),
        st.dictionaries(keys, _ODD, max_size=2),
        st.lists(keys, max_size=1),
    )


@st.composite
def _answers(draw: st.DrawFn) -> dict[str, Any]:
    message = draw(
        _bent(_PLAIN["choices"][0]["message"], ["tool_calls", "reasoning", "audio", "images", "new"])
    )
    choice = draw(_bent({**_PLAIN["choices"][0], "message": message}, ["delta", "usage", "new"]))
    choices = draw(st.sampled_from([[choice], [choice], [choice], [choice, choice], []]))
    usage = draw(_bent(_PLAIN["usage"], ["cached_tokens", "prompt_tokens_details"]))
    return draw(_bent({**_PLAIN, "choices": choices, "usage": usage}, ["service_tier", "error", "new"]))


def _outcome(read: Any, body: dict[str, Any]) -> Any:
    try:
        response = read(body, _CONTEXT)
    except Exception as fault:
        return type(fault), str(fault)
    return response, encode(response)  # the order of what is kept counts too


def _is_alike(body: Any) -> None:
    assert _outcome(parse_response, body) == _outcome(parse_thoroughly, body)


@given(_answers())
def test_any_answer_is_read_as_thoroughly(body):
    _is_alike(body)


def test_a_plain_answer_goes_the_short_way():
    assert parse_plain(_PLAIN) is not None
    _is_alike(_PLAIN)


@pytest.mark.parametrize("tier", ["default", "flex", "standard", "of_ones_own"])
def test_a_plain_answer_that_tells_its_tier_goes_the_short_way_too(tier: str):
    """As all of OpenAI's do."""
    body = {**_PLAIN, "service_tier": tier}
    assert parse_plain(body) is not None
    _is_alike(body)


@pytest.mark.parametrize("tier", [None, "", 1, []])
def test_a_tier_that_is_none_takes_a_closer_look(tier: Any):
    body = {**_PLAIN, "service_tier": tier}
    assert parse_plain(body) is None
    _is_alike(body)


@rows("case", of_kind("responses"))
def test_fixtures_are_read_as_thoroughly(case):
    _is_alike(case.body)


def test_recordings_are_read_as_thoroughly():
    def law(case: Case) -> None:
        _is_alike(case.body)

    all_hold(recorded("openai-chat", "responses", 300), law)
