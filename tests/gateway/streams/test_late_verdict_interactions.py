"""Interactions that pass through from a server that is not Google, and go wrong after their beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.tiers import rows
from wireglot.gateway.streams.late_verdict import LateVerdict
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.passthrough import has_no_answer, is_doubtful, whole_frames
from wireglot_core.dialects.registry import dialect
from wireglot_core.dialects.surface import StreamMarks
from wireglot_core.ir.request import Request, Tool
from wireglot_core.wire.json import encode

CODEC = dialect("gemini-interactions")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "gemini-interactions"


def event(kind: str, **more: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"event_type": kind, **more}))


def step(index: int, kind: str, *deltas: dict[str, Any], **more: Any) -> list[bytes]:
    return [
        event("step.start", index=index, step={"type": kind, **more}),
        *(event("step.delta", index=index, delta=delta) for delta in deltas),
        event("step.stop", index=index),
    ]


CREATED = event("interaction.created", interaction={"id": "v1_1", "status": "in_progress"})
COMPLETED = event("interaction.completed", interaction={"id": "v1_1", "status": "completed"})
SUMMARY = {"type": "thought_summary", "content": {"type": "text", "text": "Hm."}}
ASKED = Request("m", (), tools=(Tool("f"),))
SIGNED = {"type": "thought_signature", "signature": "U0lH"}
THOUGHT = step(0, "thought", SUMMARY, SIGNED)


def words(index: int, *texts: str) -> list[bytes]:
    return step(index, "model_output", *({"type": "text", "text": text} for text in texts))


def call(index: int, *arguments: str) -> list[bytes]:
    deltas = ({"type": "arguments_delta", "arguments": piece} for piece in arguments)
    return step(index, "function_call", *deltas, id="c1", name="f", arguments={})


def verdict_on(frames: list[bytes], marks: StreamMarks | None) -> str:
    late = LateVerdict(lambda: CODEC.stream_reader(Context()), lambda: ASKED, marks)
    for number, frame in enumerate(frames):
        late.hear(frame, complete=number == len(frames) - 1)
        if late.verdict is not None:
            return late.verdict.message
    late.end()
    return late.verdict.message if late.verdict is not None else ""


@rows(
    ("name", "frames", "is_answer"),
    [
        ("words", [*words(0, "a", "b")], True),
        ("thoughts and words", [*THOUGHT, *words(1, "a", "b")], True),
        ("thoughts and a call", [*THOUGHT, *call(1, '{"a"', ":1}")], True),
        ("words and a call", [*words(0, "a"), *call(1, "{}")], True),
        ("nothing", [], False),
        ("thoughts alone", THOUGHT, False),
        ("no words", [*THOUGHT, *words(1, "")], False),
        ("a broken call", [*call(0, '{"a":')], False),
        ("words and a broken call", [*words(0, "a"), *call(1, '{"a":')], False),
    ],
)
def test_marks_find_what_a_reader_of_every_frame_finds(name, frames, is_answer):
    sent = [CREATED, *frames, COMPLETED]
    for pieces in (sent, [b"".join(sent)], [b"".join(sent[:3]), *sent[3:]]):
        found, plain = verdict_on(pieces, CODEC.surface.marks), verdict_on(pieces, None)
        assert found == plain, name
        assert (plain == "") is is_answer, (name, plain)


def test_a_second_interaction_inside_the_first_is_an_error():
    other = CREATED.replace(b"v1_1", b"v1_2")
    assert "second interaction" in verdict_on(
        [CREATED, *words(0, "a"), other, COMPLETED], CODEC.surface.marks
    )
    assert verdict_on([CREATED, *words(0, "a"), CREATED, COMPLETED], CODEC.surface.marks) == ""


def test_recorded_streams_are_answers():
    for path in sorted((FIXTURES / "streams").glob("*.sse")):
        frames = whole_frames(path.read_bytes())
        marked, plain = verdict_on(frames, CODEC.surface.marks), verdict_on(frames, None)
        assert marked == plain, path.name


def test_whole_answers_with_thoughts_alone_are_read():
    assert is_doubtful(b'{"steps":[{"type":"thought","summary":[{"type":"text","text":"Hm."}]}]}')
    assert not is_doubtful(b'{"steps":[{"type":"model_output","content":[{"type":"text","text":"a"}]}]}')
    assert not has_no_answer(b'{"steps":[{"type":"function_call","id":"c","name":"f","arguments":{}}]}')
