"""A stream reports what the whole answer reports: the same losses, phases, places and separators.

Whatever a client puts together from the chunks is one message again, so what a message has no place for is lost there
too. A stream may report more where its chunks can say less than a document; those reasons are listed.
"""

from typing import Any

from msgspec.structs import replace

from tests.core.laws.cases import FIXTURES, MAIN, all_hold, recorded
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import PHASE, Citation, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.testing.laws import read_stream, write_stream
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

CONTEXT = Context()
ORIGIN = Origin("openai-responses", model="gpt-6")
IN_STREAMS_ONLY = {
    ("gemini", "content.position"): "neighbouring texts run together: nothing marks where a part ends",
    ("gemini", "citations"): "sources come with the last chunk, when their text is gone",
    ("openai-chat", "citations"): "annotations count from the start of the answer",
    ("openai-chat", "$.content[0].audio.id"): "no delta names an audio that has no sound",
    ("openai-chat", "stop_reason"): "a stream ends with a reason; a document may say null",
    ("openai-chat", "tool.custom"): "the SDK's stream helper cannot read a custom call",
    ("anthropic", "citations"): "where a text is cited is known when it has been sent: it is not cut there",
    ("anthropic", "reasoning.signature"): "a state that comes behind its text finds the text sent",
}


def compare(response: Response, target: str) -> None:
    codec = dialect(target)
    whole = codec.render_response(response, CONTEXT)
    if "error" in whole.value:
        return
    stream = write_stream(codec, unfold(response))
    reported = {(loss.feature, loss.path) for loss in whole.losses}
    streamed = {(loss.feature, loss.path) for loss in stream.losses}
    assert not reported - streamed, f"in a stream unreported: {sorted(reported - streamed)}"
    more = {
        each for each in streamed - reported if not {(target, said) for said in each} & IN_STREAMS_ONLY.keys()
    }
    assert not more, f"in a stream only: {sorted(more)}"


@rows("target", MAIN)
@rows("source", MAIN)
def test_a_stream_reports_the_losses_of_the_whole_answer(source, target):
    def holds(case: Case) -> None:
        try:
            response = dialect(source).parse_response(case.body, CONTEXT)
        except WireglotError:
            return
        compare(response, target)

    all_hold((*fixtures(FIXTURES, source, "responses"), *recorded(source, "responses")), holds)


def message(text: str, phase: str = "") -> Text:
    return Text(text, signature=Signature(phase, ORIGIN, PHASE) if phase else None)


def thought(text: str, data: str = "") -> Reasoning:
    return Reasoning(text, Signature(data, ORIGIN, f"rs_{data}") if data else None)


CALL = ToolCall("call_1", "look", "{}")
ANSWERS: dict[str, tuple[Part, ...]] = {
    "two messages": (message("Let me look.", "commentary"), message("Done.", "final_answer")),
    "a call between": (message("Let me look.", "commentary"), CALL, message("Done.", "final_answer")),
    "thoughts between": (
        thought("One.", "A"),
        message("Let me look.", "commentary"),
        thought("Two.", "B"),
        message("More.", "commentary"),
        message("Done.", "final_answer"),
    ),
    "two thoughts": (thought("One.", "A"), thought("Two.", "B"), message("Done.")),
    "thoughts without state": (thought("One."), thought("Two."), message("Done.")),
    "a message of blank lines": (message("\n\n", "commentary"), message("\n\nDone.", "final_answer")),
    "two texts": (message("One "), message("sentence.")),
}


@rows("target", MAIN)
@rows("name", ANSWERS)
def test_phases_and_places_are_reported_alike(name, target):
    compare(Response("resp_1", "gpt-6", ANSWERS[name], Stop("end")), target)


def put_together(data: bytes) -> dict[str, Any]:
    """The message that openai-python makes of the chunks."""
    made: dict[str, Any] = {}
    decoder = SseDecoder()
    for frame in decoder.feed(data) + decoder.close():
        if frame.data != b"[DONE]":
            for choice in decode(frame.data)["choices"]:
                for key, value in choice["delta"].items():
                    if type(value) is str and key != "role":
                        made[key] = made.get(key, "") + value
                    elif key == "extra_content":
                        made.setdefault(key, {"wireglot": {}})["wireglot"].update(value["wireglot"])
    return made


def said_again(made: dict[str, Any]) -> list[tuple[type[Part], str, str]]:
    """What is read of it when the client sends it back."""
    history = [{"role": "user", "content": "?"}, {**made, "role": "assistant"}]
    body = {"model": "m", "messages": history}
    return spoken(dialect("openai-chat").parse_request(body, CONTEXT).messages[-1].content)


@rows("name", ANSWERS)
def test_the_chunks_of_a_chat_stream_make_the_message_of_the_whole_answer(name):
    """Texts and thoughts are separated alike, and so come back as the parts that they were."""
    codec = dialect("openai-chat")
    response = Response("resp_1", "gpt-6", ANSWERS[name], Stop("end"))
    whole = codec.render_response(response, CONTEXT).value["choices"][0]["message"]
    made = put_together(write_stream(codec, unfold(response)).value)
    for field in ("content", "reasoning_content"):
        assert made.get(field) == whole.get(field), field
    assert said_again(made) == said_again(whole)


def spoken(parts: tuple[Part, ...]) -> list[tuple[type[Part], str, str]]:
    return [
        (type(part), part.text, part.signature.data if part.signature is not None else "")
        for part in parts
        if isinstance(part, Text | Reasoning)
    ]


@rows("name", [name for name in ANSWERS if name not in ("two texts", "thoughts without state")])
def test_messages_and_thoughts_come_back_from_chat_as_they_were(name):
    """By a stream in their order; by a message thoughts first, each kind in its order."""
    codec = dialect("openai-chat")
    response = Response("resp_1", "gpt-6", ANSWERS[name], Stop("end"))
    streamed = fold(read_stream(codec, [write_stream(codec, unfold(response)).value]))
    assert spoken(streamed.content) == spoken(response.content)
    body = codec.render_response(response, CONTEXT).value
    answered = spoken(codec.parse_response(body, CONTEXT).content)
    for parts in (answered, said_again(body["choices"][0]["message"])):
        for kind in (Reasoning, Text):
            found = [each for each in parts if each[0] is kind]
            assert found == [each for each in spoken(response.content) if each[0] is kind]


def test_sources_of_a_second_message_count_from_its_own_start():
    codec = dialect("openai-chat")
    cited = replace(
        message("Done.", "final_answer"), citations=(Citation("https://e.org", "t", start=0, end=4),)
    )
    parts = (message("Let me look.", "commentary"), cited)
    body = codec.render_response(Response("resp_1", "gpt-6", parts, Stop("end")), CONTEXT).value
    spot = body["choices"][0]["message"]["annotations"][0]["url_citation"]
    assert body["choices"][0]["message"]["content"][spot["start_index"] : spot["end_index"]] == "Done"
    back = codec.parse_response(body, CONTEXT).content[1]
    assert isinstance(back, Text)
    assert [(each.start, each.end) for each in back.citations] == [(0, 4)]
