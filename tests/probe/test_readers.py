"""What the probe reads out of answers that no double gives."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from wireglot.probe.endpoint import EndpointRequest, Got
from wireglot.probe.reply import Broken
from wireglot.probe.run import CASES, WIRES, DemoEndpoint, run_cases
from wireglot.probe.talk import ProbeLedger

MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 3},
}
RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "incomplete",
    "incomplete_details": {"reason": "content_filter"},
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    },
}


@pytest.mark.parametrize(
    ("told", "input", "cached"),
    [
        ({}, 5, None),
        ({"cache_read_input_tokens": 7}, 12, 7),
        ({"cache_creation_input_tokens": 11}, 16, None),
        ({"cache_read_input_tokens": 7, "cache_creation_input_tokens": 11}, 23, 7),
    ],
)
def test_anthropics_input_is_counted_with_what_the_cache_read_and_wrote(
    told: dict[str, int], input: int, cached: int | None
) -> None:
    reply = WIRES["anthropic"].read({**MESSAGE, "usage": {**MESSAGE["usage"], **told}})
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.cached, reply.usage.output) == (input, cached, 3)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_output_tokens", "length"), ("content_filter", "other"), ("anything", "other")],
)
def test_why_a_response_is_incomplete(reason: str, stop: str) -> None:
    reply = WIRES["openai-responses"].read({**RESPONSE, "incomplete_details": {"reason": reason}})
    assert (reply.stop, reply.stop_word) == (stop, reason)


class Without(DemoEndpoint):
    """The demo model, whose answers lack a field."""

    def __init__(self, dialect: str, field: str) -> None:
        super().__init__(dialect)
        self._field = field

    def ask(self, ask: EndpointRequest) -> Got:
        got = super().ask(ask)
        document = json.loads(got.body)
        document.pop(self._field, None)
        return Got(got.status, got.headers, json.dumps(document).encode())


@pytest.mark.parametrize(("field", "what"), [("responseId", "id"), ("modelVersion", "model")])
def test_an_answer_without_its_id_or_its_model_lacks_something(field: str, what: str) -> None:
    shape = next(case for case in CASES if case.id == "answers.shape")
    endpoint = Without("gemini", field)
    (finding,) = run_cases([shape], endpoint, WIRES["gemini"], "demo", ProbeLedger())
    assert (finding.verdict, finding.words) == ("fail", f"the answer tells no {what}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": "user"}, "$.role: expected 'assistant', found \"user\""),
        ({"stop_reason": "done"}, "$.stop_reason: expected 'end_turn' or 'max_tokens'"),
        (
            {"usage": {"input_tokens": -1, "output_tokens": 3}},
            "$.usage.input_tokens: expected a whole number",
        ),
        ({"content": {}}, "$.content: expected a list, found {}"),
        ({"id": ""}, "$.id: expected a text that is not empty"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Broken) as broken:
        WIRES["anthropic"].read(MESSAGE | change)
    assert str(broken.value).startswith(words)


class Distracted(DemoEndpoint):
    """The demo model, which says something else at first."""

    asked = 0

    def ask(self, ask: EndpointRequest) -> Got:
        got = super().ask(ask)
        self.asked += 1
        body = got.body.replace(b"orange", b"purple") if self.asked == 1 else got.body
        return Got(got.status, got.headers, body)


def test_a_case_that_says_nothing_is_asked_again_and_not_looked_up() -> None:
    obeys = next(case for case in CASES if case.id == "answers.obeys")
    endpoint = Distracted("gemini")
    (finding,) = run_cases([obeys], endpoint, WIRES["gemini"], "demo", ProbeLedger())
    assert (finding.verdict, finding.tries, endpoint.asked) == ("pass", 2, 2)


def test_an_error_of_gemini_may_be_alone_in_a_list() -> None:
    error = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}}
    assert (
        WIRES["gemini"].error([error], 400) == WIRES["gemini"].error(error, 400) == ("INVALID_ARGUMENT", "no")
    )
