"""The law of conservation: whatever is missing and undeclared is reported, and nothing else is."""

from typing import Any, get_args

from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.ir.content import Foreign, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import HostedTool, Request, Tool
from wireglot_core.testing.conservation import Atom, lost

NOTHING = Request("m", ())
RULES = Request("m", (Message("system", (Text("be good"),)),))
FOREIGN = Foreign("acme", "whistle", {"tune": "high"})


def said(*parts: Part) -> Request:
    return replace(RULES, messages=(*RULES.messages, Message("assistant", parts)))


def result(*items: Any) -> Request:
    return said(ToolResult("1", items))


PLACE = "$.messages[1].content[0]"
LOST: dict[str, tuple[Request, Atom]] = {
    "text": (said(Text("hello")), Atom(PLACE, "text", "hello")),
    "refusal": (said(Text("no", refusal=True)), Atom(PLACE, "refusal", "no")),
    "reasoning": (said(Reasoning("hm")), Atom(PLACE, "reasoning", "hm")),
    "call": (said(ToolCall("1", "look", '{"b":1,"a":2}')), Atom(PLACE, "call", 'look({"a":2,"b":1})')),
    "custom call": (said(ToolCall("1", "run", "", "custom")), Atom(PLACE, "call", "run()")),
    "result": (result(Text("seen")), Atom(f"{PLACE}.content[0]", "result", "seen")),
    "second result": (result(Text(" "), Text("seen")), Atom(f"{PLACE}.content[1]", "result", "seen")),
    "media of a result": (result(Media("image", data="aGk=")), Atom(f"{PLACE}.content[0]", "media", "aGk=")),
    "foreign of a result": (result(FOREIGN), Atom(f"{PLACE}.content[0]", "foreign", "acme:whistle")),
    "data": (said(Media("image", data="aGk=")), Atom(PLACE, "media", "aGk=")),
    "document": (said(Media("document", text="page")), Atom(PLACE, "media", "page")),
    "address": (said(Media("image", url="https://a.example")), Atom(PLACE, "media", "https://a.example")),
    "file": (said(Media("image", file_id="file-1")), Atom(PLACE, "media", "file-1")),
    "foreign": (said(FOREIGN), Atom(PLACE, "foreign", "acme:whistle")),
    "tool": (replace(RULES, tools=(Tool("look"),)), Atom("$.tools[0]", "tool", "look")),
    "second tool": (
        replace(RULES, tools=(HostedTool("web_search", FOREIGN), Tool("look"))),
        Atom("$.tools[1]", "tool", "look"),
    ),
    "empty turn": (said(), Atom("$.messages[1]", "empty turn", "assistant")),
    "stop": (replace(RULES, stop=("END",)), Atom("$.stop[0]", "stop", "END")),
}
"""A conversation, and the one piece of it that the target has not (beside the system text)."""


def missing(source: Request, losses: tuple[Loss, ...] = (), target: Request | None = None) -> list[Atom]:
    return lost(source, RULES if target is None else target, losses, "toy")


@rows(("source", "atom"), LOST.values(), ids=LOST)
def test_what_is_not_there_is_reported(source, atom):
    assert missing(source) == [atom]


@rows(("source", "atom"), LOST.values(), ids=LOST)
def test_what_is_there_is_not_reported(source, atom):
    assert missing(source, target=source) == []


@rows(("source", "atom"), LOST.values(), ids=LOST)
def test_what_is_there_as_something_else_is_not_that(source, atom):
    """A tool's name among the words is no tool. Words, though, may stand anywhere words do."""
    prose = {"text", "refusal", "result", "media"}
    for other, found in LOST.values():
        if found.value == atom.value or (atom.kind in prose and found.kind in prose):
            continue
        assert missing(source, target=other) == [atom]


@rows("kind", ["text", "refusal", "result", "document"])
@rows(
    "reported",
    [
        lambda words: Text(f"[said] {words}."),
        lambda words: Text(f"[said] {words}.", refusal=True),
        lambda words: ToolResult("1", (Text(f"[said] {words}."),)),
        lambda words: Media("document", text=f"[said] {words}."),
    ],
)
def test_words_may_stand_inside_of_longer_ones(kind, reported):
    source, atom = LOST[kind]
    assert missing(source, target=said(reported(atom.value))) == []


def test_thoughts_may_stand_inside_of_longer_ones_but_not_among_words():
    source, atom = LOST["reasoning"]
    assert missing(source, target=said(Reasoning("well, hm, so"))) == []
    assert missing(source, target=said(Text("hm"))) == [atom]
    assert missing(LOST["text"][0], target=said(Reasoning("hello"))) == [LOST["text"][1]]


def test_calls_tools_and_stops_are_there_whole_or_not_at_all():
    assert missing(LOST["call"][0], target=said(ToolCall("1", "look", '{"a":2,"b":1,"c":3}')))
    assert missing(LOST["call"][0], target=said(ToolCall("2", "look", '{"a": 2, "b": 1}'))) == []
    assert missing(LOST["custom call"][0], target=said(ToolCall("1", "run", "{}", "custom")))
    assert missing(LOST["tool"][0], target=replace(said(), tools=(Tool("look_up"),)))
    assert missing(LOST["stop"][0], target=replace(said(), stop=("ENDING",)))


@rows(
    "part",
    [
        Text(" \n"),
        Text(" ", refusal=True),
        Reasoning(),
        Reasoning(" "),
        ToolResult("1", (Text(" "),)),
    ],
)
def test_what_says_nothing_cannot_be_lost(part):
    assert missing(said(part)) == []


def test_what_only_the_target_itself_knows_comes_back_by_the_law_of_identity():
    source, atom = LOST["foreign"]
    assert lost(source, said(), (), "acme") == []
    assert lost(source, said(), (), "acm") == [atom]
    assert lost(LOST["text"][0], said(), (), "hello") == [LOST["text"][1]]


def test_the_pieces_of_an_answer_have_their_places():
    answer = Response("id", "m", (Text("a"), Text("b")), Stop("end"))
    assert lost(answer, Response("id", "m", (Text("a"),), Stop("end")), (), "toy") == [
        Atom("$.content[1]", "text", "b")
    ]


def test_all_that_is_missing_is_reported_in_its_order():
    source = replace(said(Text("a"), Reasoning("b")), tools=(Tool("t"),), stop=("S", "T"))
    assert [atom.path for atom in missing(source, target=NOTHING)] == [
        "$.messages[0].content[0]",
        "$.messages[1].content[0]",
        "$.messages[1].content[1]",
        "$.tools[0]",
        "$.stop[0]",
        "$.stop[1]",
    ]


# --- what a loss excuses

RENAMED: set[Feature] = {"tool.name", "tool.namespace", "tool.custom"}
MEDIA: set[Feature] = {"image", "document", "audio", "video", "file_reference"}
EXCUSES: dict[str, set[Feature]] = {
    "text": {"content.empty", "refusal", "tool_result.pairing", "prefill"},
    "refusal": {"refusal"},
    "reasoning": {"reasoning.text", "reasoning.redacted", "reasoning.signature"},
    "call": {*RENAMED, "tool_call.arguments", "tool_result.pairing"},
    "result": {"tool_result.pairing", "tool_call.id"},
    "data": {*MEDIA, "tool_result.media", "tool_result.pairing"},
    "foreign": set(),
    "tool": {*RENAMED, "tool_choice"},
    "stop": {"stop_sequences"},
    "empty turn": {"content.empty"},
}
"""Losses that explain why a piece of each kind is not there. Another one, such as a dropped seed, does not."""
WHATEVER: set[Feature] = {"content.position", "foreign_part", "conversation_state"}
"""Turns that are held elsewhere, moved or reported by one dialect only: any piece may be in them."""


@rows("kind", EXCUSES)
@rows("feature", get_args(Feature))
def test_a_loss_excuses_what_it_is_about(kind, feature):
    source, atom = LOST[kind]
    excused = feature in EXCUSES[kind] | WHATEVER
    assert missing(source, (Loss(atom.path, feature, "dropped"),)) == ([] if excused else [atom])


NEAR = ("$.messages[1].content[0]", "$.messages[1]", "$.messages[1].content[0].text", "$.messages", "$")
FAR = ("$.messages[0]", "$.messages[1].content[1]", "$.messages[10]", "$.messages[1].content[0]x", "$.tools")


@rows(("path", "excused"), [*((path, True) for path in NEAR), *((p, False) for p in FAR)])
def test_a_loss_excuses_its_own_place_what_is_in_it_and_what_it_is_in(path, excused):
    source, atom = LOST["text"]
    assert missing(source, (Loss(path, "prefill", "dropped"),)) == ([] if excused else [atom])


def test_a_renamed_tool_excuses_its_calls_and_a_narrowed_choice_the_tools():
    for feature in sorted(RENAMED):
        assert missing(LOST["call"][0], (Loss("$.tools[0]", feature, "emulated"),)) == []
        assert missing(LOST["tool"][0], (Loss("$.tools[5]", feature, "emulated"),)) != []
    assert missing(LOST["tool"][0], (Loss("$.tool_choice", "tool_choice", "approximated"),)) == []
    assert missing(LOST["call"][0], (Loss("$.tool_choice", "tool_choice", "approximated"),)) != []


def test_a_tool_that_is_held_back_is_excused_and_one_that_is_sent_at_once_is_not():
    source, atom = LOST["tool"]
    place = f"{atom.path}.deferred"
    assert missing(source, (Loss(place, "tool.deferred", "emulated"),)) == []
    assert missing(source, (Loss(place, "tool.deferred", "dropped"),)) == [atom]
    assert missing(source, (Loss("$.tools[5].deferred", "tool.deferred", "emulated"),)) == [atom]


def test_one_of_several_losses_excuses():
    source, atom = LOST["text"]
    other = Loss("$.seed", "sampling.seed", "dropped")
    assert missing(source, (other, Loss(atom.path, "prefill", "dropped"))) == []
    assert missing(source, (other, other)) == [atom]
