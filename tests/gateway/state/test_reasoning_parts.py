"""How turns are told apart, and what of a kept one is put back: without a vault around it."""

from __future__ import annotations

import pytest

from tests.gateway.state.reasoning_kit import signed
from wireglot.gateway.state.reasoning.names import Turn, read_history
from wireglot.gateway.state.reasoning.parts import pack, restored, unpack
from wireglot.ir.content import Foreign, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult

THOUGHT = Reasoning("First.", signed("s1", "anthropic"))
CALL = ToolCall("toolu_01AbCdEfGh", "look_up", "{}")


def turn(*content: Part) -> Turn:
    return read_history((Message("assistant", content),)).turns[0]


def test_an_edited_turn_that_brings_its_thinking_is_left_as_it_is() -> None:
    kept = (THOUGHT, Text("Let me see."), CALL)
    assert restored(turn(THOUGHT, Text("Edited."), CALL), kept, by_name=False) is None
    found = restored(turn(Text("Edited."), CALL), kept, by_name=False)
    assert found is not None
    assert found.content == (THOUGHT, Text("Edited."), CALL)


def test_the_same_call_under_another_id_is_another_one_unless_the_id_is_only_wrapped() -> None:
    kept = (THOUGHT, CALL)
    assert (
        restored(turn(ToolCall("toolu_99ZzYyXxWw", CALL.name, CALL.arguments)), kept, by_name=False) is None
    )
    wrapped = ToolCall(f"mcp_{CALL.id}", CALL.name, CALL.arguments)
    found = restored(turn(wrapped), kept, by_name=False)
    assert found is not None
    assert found.content == kept
    assert found.renamed == {wrapped.id: CALL.id}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Text("Look."), Text("Look there.")),
        (Media("image", "image/png", data="AAAA"), Media("image", "image/png", data="BBBB")),
        (Media("image", "image/png", data="AAAA"), Media("image", "image/png", data="AAAAAAAA")),
        (
            Media("image", "image/png", url="https://a.test"),
            Media("image", "image/png", url="https://b.test"),
        ),
        (Media("image", "image/png", file_id="f1"), Media("image", "image/png", file_id="f2")),
        (Media("image", "image/png", data="AAAA"), Media("audio", "audio/wav", data="AAAA")),
        (Foreign("anthropic", "container_upload", {}), Foreign("anthropic", "search_result", {})),
    ],
)
def test_what_was_asked_tells_conversations_apart(one: Part, other: Part) -> None:
    """What was said behind one of them is not put behind the other."""
    histories = [read_history((Message("user", (part,)),)) for part in (one, other)]
    assert histories[0].prefix != histories[1].prefix
    assert histories[0].place != histories[1].place


def test_results_are_told_apart_by_the_ids_of_their_calls_only() -> None:
    """Clients shorten old results; ids that a client made anew leave the place as it was."""

    def history(call_id: str, *content: Text) -> tuple[bytes, bytes]:
        read = read_history((Message("user", (ToolResult(call_id, content),)),))
        return read.prefix, read.place

    first, other_id, shortened = history("c1", Text("rain")), history("c2", Text("rain")), history("c1")
    assert first == shortened
    assert first[0] != other_id[0]
    assert first[1] == other_id[1]
    assert first[1] != read_history(()).place


def test_a_turn_is_kept_with_its_picture_up_to_a_mebibyte_and_not_a_byte_more() -> None:
    empty = pack((THOUGHT, Media("image", "image/png", data="A")))
    assert empty is not None
    room = (1 << 20) - len(empty) + 1
    for letters, is_kept in ((room, True), (room + 1, False)):
        picture = Media("image", "image/png", data="A" * letters)
        body = pack((THOUGHT, picture))
        assert body is not None
        assert unpack(body) == ((THOUGHT, picture) if is_kept else (THOUGHT,))
    assert pack((Text("A" * (1 << 20)),)) is None
