"""What a client is sent that did not ask for thinking: the answer alone, the same whole and streamed."""

from __future__ import annotations

from tests.core.laws import neutral
from tests.core.laws.cases import MAIN
from tests.tiers import rows
from wireglot_core.ir.content import Foreign, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.providers.reasoning_filter import ReasoningFilter

MINTER = Origin("openai-responses", "openai", "gpt-5.5")
STATE = Signature("c3RhdGU=", MINTER)
SEARCH = Foreign("openai-responses", "web_search_call", {"id": "ws_1"})
ANSWERS = [(dialect, name, answer) for dialect in MAIN for name, answer in neutral.answers(dialect)]


def reported(*content: Part, signs: bool = False) -> tuple[tuple[Part, ...], list[str]]:
    unasked = ReasoningFilter(MINTER, signs=signs)
    shown = unasked.response(Response("r", "m", content, Stop("end")))
    return shown.content, [loss.feature for loss in unasked.losses]


@rows("signs", [False, True])
@rows(
    ("dialect", "answer"),
    [(dialect, answer) for dialect, _, answer in ANSWERS],
    ids=[f"{dialect}-{name}" for dialect, name, _ in ANSWERS],
)
def test_every_answer_is_reported_without_its_thinking_whole_as_streamed(
    dialect: str, answer: Response, signs: bool
) -> None:
    whole, streamed = (ReasoningFilter(Origin(dialect, "p", "m"), signs=signs) for _ in range(2))
    shown = whole.response(answer)
    assert fold(streamed.events(list(unfold(answer)))) == fold(list(unfold(shown)))
    assert streamed.losses == whole.losses
    for content in (shown.content, *(other.content for other in shown.others)):
        assert not any(type(part) is Reasoning for part in content)
        assert signs or not any(getattr(part, "signature", None) for part in content)


def test_thinking_that_can_be_read_is_a_loss_and_state_alone_is_none() -> None:
    said = Text("Hello")
    assert reported(Reasoning("", STATE), said) == ((said,), [])
    assert reported(Reasoning("Hm.", STATE), Reasoning("So."), said) == ((said,), ["thinking.display"])


def test_a_part_without_a_word_is_left_out_and_reported() -> None:
    said = Text("Hello")
    assert reported(SEARCH, said) == ((said,), ["foreign_part"])


def test_state_stays_on_texts_and_calls_where_the_dialect_has_a_place_for_it() -> None:
    text, call = Text("Hello", signature=STATE), ToolCall("call_1", "f", "{}", signature=STATE)
    assert reported(text, call, signs=True) == ((text, call), [])
    assert reported(text, call) == ((Text("Hello"), ToolCall("call_1", "f", "{}")), [])
