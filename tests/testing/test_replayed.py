"""`wireglot.testing.replay`: an exported trace as a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.traces.conversations import conversation
from tests.traces.recorded import recorded
from wireglot.testing import replay
from wireglot.traces.file import BadTrace, write_trace


def test_a_file_that_is_translated_as_it_was_passes(tmp_path: Path) -> None:
    path = tmp_path / "one.wgtrace.json"
    path.write_bytes(write_trace(recorded("anthropic", "gemini", conversation("anthropic"), stream=True)))
    assert replay(path).compared == replay(str(path)).compared == ["request", "answer"]


def test_what_is_different_is_reported_by_its_place(tmp_path: Path) -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    attempt = trace.attempts[0]
    assert attempt.request is not None
    body = attempt.request.body.replace('"max_completion_tokens":300', '"max_completion_tokens":400')
    attempt = replace(attempt, request=replace(attempt.request, body=body))
    path = tmp_path / "one.wgtrace.json"
    path.write_bytes(write_trace(replace(trace, attempts=[attempt])))
    with pytest.raises(AssertionError) as failed:
        replay(path)
    assert str(failed.value) == (
        f"{path}: translated otherwise than it was recorded (was -> is)\n"
        "  upstream request /max_completion_tokens: 400 -> 300"
    )


def test_a_trace_of_which_nothing_can_be_compared_does_not_pass() -> None:
    trace = recorded("anthropic", "openai-chat", conversation("anthropic"))
    with pytest.raises(
        AssertionError, match=r"req_\w+: nothing of it can be replayed\n  note: nothing was sent"
    ):
        replay(replace(trace, attempts=[]))


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("{}")
    with pytest.raises(BadTrace, match="this is no exported trace"):
        replay(path)
