"""Opaque state beside a message, given back to the parts that held it."""

from tests.tiers import rows
from wireglot_core.dialects.envelope import Holder, Sealed
from wireglot_core.dialects.openai_chat.reasoning import attach_states
from wireglot_core.ir.content import Media, Origin, Part, Reasoning, Signature, Text

CLAUDE = Origin("anthropic")
OTHER = Origin("gemini")


def state(data: str, holder: Holder, letters: int = -1, origin: Origin = OTHER) -> Sealed:
    return Sealed(Signature(data, origin), holder, letters=letters)


def signed(data: str, origin: Origin = OTHER) -> Signature:
    return Signature(data, origin)


IMAGE = Media("image", "image/png", "iVBO")


@rows(
    ("parts", "states", "expected"),
    [
        ([Text("t")], [state("a", "text")], [Text("t", signature=signed("a"))]),
        ([], [state("a", "text")], [Text("", signature=signed("a"))]),
        (
            [Reasoning("r")],
            [state("a", "text")],
            [Reasoning("r"), Text("", signature=signed("a"))],
        ),
        ([Text("t")], [state("a", "reasoning")], [Reasoning("", signed("a")), Text("t")]),
        ([Text("t")], [state("a", "media")], [Text("t")]),
        ([IMAGE], [state("a", "media")], [Media("image", "image/png", "iVBO", signature=signed("a"))]),
        ([Text("t")], [state("a", "call"), state("b", "unsigned")], [Text("t")]),
        (
            [Reasoning("r"), Text("t")],
            [state("a", "reasoning"), state("b", "redacted"), state("c", "redacted")],
            [
                Reasoning("r", signed("a")),
                Reasoning("", signed("b"), redacted=True),
                Reasoning("", signed("c"), redacted=True),
                Text("t"),
            ],
        ),
        (
            [Reasoning("r"), Text("t")],
            [state("b", "redacted"), state("a", "reasoning")],
            [Reasoning("", signed("b"), redacted=True), Reasoning("r", signed("a")), Text("t")],
        ),
        (
            [Reasoning("one\n\nthree")],
            [state("a", "reasoning", 3), state("b", "reasoning", 0), state("c", "reasoning", 5)],
            [Reasoning("one", signed("a")), Reasoning("", signed("b")), Reasoning("three", signed("c"))],
        ),
        (
            [Reasoning("onetwo")],
            [state("a", "reasoning", 3), state("b", "reasoning", 3)],
            [Reasoning("one", signed("a")), Reasoning("two", signed("b"))],
        ),
        (
            [Reasoning("one\n\ntwo, and more")],
            [state("a", "reasoning", 3, CLAUDE), state("b", "reasoning", 3, CLAUDE)],
            [Reasoning("one\n\ntwo, and more")],
        ),
        (
            [Reasoning("one\n\ntwo")],
            [state("a", "reasoning", 3, CLAUDE), state("b", "reasoning", -1, CLAUDE)],
            [Reasoning("one\n\ntwo")],
        ),
        (
            [Reasoning("one")],
            [state("a", "reasoning", -1, CLAUDE)],
            [Reasoning("one", signed("a", CLAUDE))],
        ),
    ],
    ids=[
        "to its text", "to a text of its own", "behind the reasoning", "before the text", "to no picture",
        "to its picture", "of calls", "redacted behind", "redacted before", "cut in three", "cut without a gap",
        "not where more is reported", "not where nobody knows the length", "one needs no length",
    ],
)  # fmt: skip
def test_a_state_goes_back_to_what_held_it(parts: list[Part], states: list[Sealed], expected: list[Part]):
    attach_states(parts, states)
    assert parts == expected
