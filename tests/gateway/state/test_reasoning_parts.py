"""How turns are distinguished, and what of a kept one is put back: without a vault around it."""

from __future__ import annotations

import msgspec

from tests.gateway.state.reasoning_kit import signed
from tests.tiers import rows
from wireglot.gateway.state.reasoning.names import Turn, read_history
from wireglot.gateway.state.reasoning.parts import (
    GIVEN_UP,
    Restored,
    is_whole,
    pack,
    restored,
    signature_of,
    unpack,
    worth_keeping,
)
from wireglot_core.ir.content import (
    CacheMark,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)

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


@rows(
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


def test_results_are_distinguished_by_the_ids_of_their_calls_only() -> None:
    """Clients shorten old results; ids that a client made again leave the place as it was."""

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


# --- what a client may send of a kept turn, and what it then gets back

S1, S2, BARE = signed("s1", "anthropic"), signed("s2", "anthropic"), Signature("s1", Origin("anthropic"))
OTHER = signed("other", "gemini")
UNREADABLE = Signature("sealed", Origin("unreadable"))
T1, T2 = Reasoning("First.", S1), Reasoning("Second.", S2)
PLAIN = Reasoning("I look.", minter=Origin("openai-chat", "kimi"))
HIDDEN = Reasoning("", S2, redacted=True)
SECOND = ToolCall("toolu_02AbCdEfGh", "look_up", '{"a":1}')
SIGNED_CALL = msgspec.structs.replace(CALL, signature=S1)
SIGNED_TEXT = Text("Done.", signature=S1)
MARK = CacheMark("long")
RECURS = ToolCall("functions.f:0", "f", "{}")

KEPT = (T1, Text("So."), T2, CALL)


@rows(
    ("sent", "kept", "by_name", "content"),
    [
        # Nothing is lost: nothing is put back.
        (KEPT, KEPT, False, None),
        (KEPT, KEPT, True, None),
        ((CALL,), (CALL,), False, None),
        ((Text("So."), CALL), (Text("So."), CALL), False, None),
        # What is lost comes back in its place.
        ((Text("So."), CALL), KEPT, False, KEPT),
        ((T1, Text("So."), CALL), KEPT, False, KEPT),
        ((T1, T2, Text("So."), CALL), KEPT, False, KEPT),
        ((T2, Text("So."), T1, CALL), KEPT, False, KEPT),
        ((T1, T2, CALL, SECOND), (T1, CALL, T2, SECOND), False, (T1, CALL, T2, SECOND)),
        ((Text("So."), CALL), (Text("So."), HIDDEN, CALL), False, (Text("So."), HIDDEN, CALL)),
        ((Text("So."), HIDDEN, CALL), (Text("So."), HIDDEN, CALL), False, None),
        ((CALL,), (SIGNED_CALL,), False, (SIGNED_CALL,)),
        ((Text("Done."),), (SIGNED_TEXT,), False, (SIGNED_TEXT,)),
        ((Text("Do"), Text("ne.")), (SIGNED_TEXT,), False, (SIGNED_TEXT,)),
        # Texts that a client cut are one place.
        ((T1, Text("Do"), Text("ne.")), (T1, Text("Done.")), False, None),
        ((Text("Do"), Text("ne."), T1), (T1, Text("Done.")), False, (T1, Text("Done."))),
        # A thought that says something else is another one; without its signature it is not whole.
        ((Reasoning("First."), Text("So."), CALL), KEPT, False, KEPT),
        ((Reasoning("Changed.", S1), Text("So."), T2, CALL), KEPT, False, KEPT),
        ((Reasoning("First.", UNREADABLE), Text("So."), CALL), KEPT, False, KEPT),
        # Who minted it counts where the client's dialect does not carry that.
        ((Reasoning("First.", BARE), CALL), (T1, CALL), False, None),
        ((Reasoning("First.", BARE), CALL), (T1, CALL), True, (T1, CALL)),
        # Thoughts that nobody signed count where the kept ones are such.
        ((CALL,), (PLAIN, CALL), False, (PLAIN, CALL)),
        ((PLAIN, CALL), (PLAIN, CALL), False, None),
        ((Reasoning("I look."), CALL), (PLAIN, CALL), False, (PLAIN, CALL)),
        ((Reasoning("shown"), T1, CALL), (T1, CALL), False, None),
        # State that this turn never had: another model has said the same.
        ((Reasoning("First.", OTHER), Text("So."), CALL), KEPT, False, None),
        ((T1, Reasoning("x", OTHER), Text("So."), CALL), KEPT, False, None),
        # Another text and no call: another turn.
        ((Text("Other."),), (T1, Text("So.")), False, None),
        ((Text("Other."), CALL), (T1, Text("So.")), False, None),
        ((Text("Other."),), KEPT, False, None),
        # An edited turn: thoughts go before the first call, where that is the one they led to.
        ((Text("Other."), CALL), (T1, T2, CALL), False, (T1, T2, Text("Other."), CALL)),
        ((Reasoning("x"), Text("Other."), CALL), (T1, CALL), False, (T1, Text("Other."), CALL)),
        ((T1, Text("Other."), CALL), (T1, CALL), False, None),
        ((Reasoning("First.", BARE), Text("Other."), CALL), (T1, CALL), False, None),
        ((Reasoning("First.", BARE), Text("Other."), CALL), (T1, CALL), True, None),
        ((CALL,), (T1, CALL, SECOND), False, (T1, CALL)),
        ((SECOND,), (T1, CALL, SECOND), False, None),
        ((SECOND, CALL), (T1, CALL, SECOND), False, None),
        ((CALL,), (T1, CALL, T2, SECOND), False, None),
        # Each call that is still there gets its own signature.
        ((SECOND, CALL), (SIGNED_CALL, SECOND), False, (SECOND, SIGNED_CALL)),
        ((Text("Other."), SIGNED_CALL), (SIGNED_CALL,), False, None),
        ((Text("Other."), SECOND), (SIGNED_CALL,), False, None),
    ],
)
def test_what_comes_back_to_a_turn(
    sent: tuple[Part, ...], kept: tuple[Part, ...], by_name: bool, content: tuple[Part, ...] | None
) -> None:
    found = restored(turn(*sent), kept, by_name)
    assert (found and found.content) == content
    assert found is None or found.renamed == {}


def test_ids_of_calls_come_back_too_and_are_reported_for_their_results() -> None:
    kept = (T1, RECURS, CALL)
    sent = (ToolCall("another-id", "f", "{}"), CALL)
    found = restored(turn(*sent), kept, by_name=False)
    assert found is not None
    assert (found.content, found.renamed) == (kept, {"another-id": "functions.f:0"})


def test_the_clients_marks_for_its_prompt_cache_stay() -> None:
    kept = (T1, Text("So. "), Text("Now."), CALL, SECOND)
    sent = (
        Text("So. ", cache=CacheMark("short")),
        Text("Now.", cache=MARK),
        CALL,
        msgspec.structs.replace(SECOND, cache=MARK),
    )
    found = restored(turn(*sent), kept, by_name=False)
    assert found is not None
    assert found.content == (
        T1,
        Text("So. "),
        Text("Now.", cache=MARK),
        CALL,
        msgspec.structs.replace(SECOND, cache=MARK),
    )
    # One on an earlier text goes to the last; one on a call is no text's.
    early = (Text("So. ", cache=MARK), Text("Now."), CALL, SECOND)
    found = restored(turn(*early), kept, by_name=False)
    assert found is not None
    assert found.content == (T1, Text("So. "), Text("Now.", cache=MARK), CALL, SECOND)
    on_call = (Text("So. "), Text("Now."), CALL, msgspec.structs.replace(SECOND, cache=MARK))
    found = restored(turn(*on_call), kept, by_name=False)
    assert found is not None
    assert found.content == (*kept[:4], msgspec.structs.replace(SECOND, cache=MARK))
    marked = (T1, msgspec.structs.replace(CALL, cache=MARK))
    assert restored(turn(CALL), marked, by_name=False) == Restored((T1, CALL))


@rows(
    ("content", "whole", "whole_by_name"),
    [
        ((T1, CALL), True, True),
        ((SIGNED_CALL,), True, True),
        ((Reasoning("First.", BARE), CALL), True, False),
        ((T1, Reasoning("First.", BARE)), True, False),
        ((T1, Reasoning("Second."), CALL), False, False),
        ((Reasoning("", UNREADABLE), CALL), False, False),
        ((Text("So."), CALL), False, False),
        ((), False, False),
    ],
)
def test_whether_a_turn_came_back_whole(content: tuple[Part, ...], whole: bool, whole_by_name: bool) -> None:
    assert is_whole(content, by_name=False) is whole
    assert is_whole(content, by_name=True) is whole_by_name


def test_what_is_signed_is_signed_by_somebody_who_can_be_known() -> None:
    assert all(signature_of(part) for part in (SIGNED_CALL, SIGNED_TEXT))
    unsigned: tuple[Part, ...] = (
        Text("a"),
        Reasoning("a"),
        CALL,
        Foreign("acme", "x", {}),
        Reasoning("a", UNREADABLE),
    )
    assert not any(signature_of(part) for part in unsigned)


def test_thoughts_that_nobody_signed_are_kept_for_who_takes_them() -> None:
    content = (Reasoning("a"), T1, Reasoning("b"), Text("c"), CALL)

    def takes_a(reasoning: Reasoning) -> Origin | None:
        return Origin("openai-chat", "kimi") if reasoning.text == "a" else None

    assert worth_keeping(content, takes_a) == (
        Reasoning("a", minter=Origin("openai-chat", "kimi")),
        T1,
        Text("c"),
        CALL,
    )


def test_what_another_version_wrote_is_nothing() -> None:
    assert unpack(b"{}") is None
    assert unpack(b"no JSON") is None
    assert unpack(GIVEN_UP) == ()
    body = pack(KEPT)
    assert body is not None
    assert unpack(body) == KEPT
    assert pack((Text("\ud800"),)) is None
