"""Calls that a server left in the text: read as calls, where the provider is known for it."""

from __future__ import annotations

import pytest

from tests.tiers import rows
from wireglot_core.ir.content import Media, Message, Part, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.leaked_calls import LEAK_FAMILIES, LeakFamily, offered, read_calls
from wireglot_core.ir.outcome import Response, Stop, StopReason
from wireglot_core.ir.request import Request, Tool, ToolChoice
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    PartEnd,
    PartStart,
    Start,
    check,
    fold,
    unfold,
)
from wireglot_core.ir.verdict import RECOVERED, NoAnswer, StreamVerdict, accept

ASKED = Request(
    "m", (Message("user", (Text("weather?"),)),), tuple(map(Tool, ("weather", "clock", "f", "g")))
)
PARIS = '{"city": "Paris"}'
KIMI = (
    "<|tool_calls_section_begin|>"
    f"<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{PARIS}<|tool_call_end|>"
    "<|tool_call_begin|>functions.clock:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)
DEEPSEEK = f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{PARIS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
DEEPSEEK_31 = f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{PARIS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
TAGGED = f'<tool_call>\n{{"name": "weather", "arguments": {PARIS}}}\n</tool_call>'
CALLS = (
    ToolCall("functions.weather:0", "weather", PARIS),
    ToolCall("functions.clock:1", "clock", "{}"),
)


def whole(*content: Part) -> Response:
    response = Response("r", "m", content, Stop("end", "stop", "x"))
    return accept(response, ASKED, leaks_calls=LEAK_FAMILIES).response


def streamed(
    text: str,
    size: int,
    request: Request | None = ASKED,
    *,
    leaks_calls: tuple[LeakFamily, ...] = LEAK_FAMILIES,
    stop: StopReason = "end",
) -> list[Event]:
    """The text in pieces of a size, and a thought before it."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, Reasoning("")),
        Delta(0, "hm"),
        PartEnd(0),
        PartStart(1, Text("")),
        *(Delta(1, piece) for piece in pieces),
        PartEnd(1),
        Finish(Stop(stop, "stop", "x")),
    ]
    watch = StreamVerdict(request, leaves_out=True, leaks_calls=leaks_calls)
    passed = [each for event in events for each in watch.pass_on([event])]
    list(check(passed))
    assert watch.losses in ([], [RECOVERED])
    at_once = StreamVerdict(request, leaves_out=True, leaks_calls=leaks_calls).pass_on(events)
    if type(passed[-1]) is not Failure:
        assert fold(at_once) == fold(passed)
    return passed


def test_leaked_calls_are_calls() -> None:
    """[K5] R-DB-18: with the ids and names that the model gave them; the turn goes on."""
    found = whole(Text("Let me see. " + KIMI))
    assert found.content == (Text("Let me see. "), *CALLS)
    assert found.stop.reason == "tool_calls"
    leaked = Response("r", "m", (Text(KIMI),), Stop("end", "stop", "x"))
    assert accept(leaked, ASKED, leaks_calls=LEAK_FAMILIES).losses == (RECOVERED,)
    assert RECOVERED.grade == "serious"
    assert whole(Reasoning("hm" + KIMI)).content == (Reasoning("hm"), *CALLS)


@pytest.mark.parametrize("text", [DEEPSEEK, DEEPSEEK_31])
def test_those_of_deepseek_get_an_id(text: str) -> None:
    """[K5] Its tokens have none."""
    (call,) = whole(Text(text)).content
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.id[:5]) == ("weather", PARIS, "call_")


@rows("size", [1, 2, 3, 7, 28, 1000])
def test_leaked_calls_of_a_stream_are_calls_however_it_is_cut(size: int) -> None:
    """[K5] Not a letter of the tokens goes out."""
    passed = streamed("Well < <| ok? " + KIMI, size)
    assert not any("tool_call" in event.text for event in passed if type(event) is Delta)
    answer = fold(passed)
    assert answer.content == (Reasoning("hm"), Text("Well < <| ok? "), *CALLS)
    assert answer.stop.reason == "tool_calls"


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_angle_brackets_that_are_no_tokens_pass(size: int) -> None:
    """[K5] Also where they stand at the end."""
    for text in ("a < b <", "<div>x</div>", "<|tool", "<|tool_calls_", "<｜tool"):
        assert fold(streamed(text, size)).content == (Reasoning("hm"), Text(text))


BROKEN = [
    KIMI[:-60],
    KIMI.replace("Paris", 'Par"'),
    KIMI + " and then?",
    KIMI.replace(PARIS, '["Paris"]'),
    DEEPSEEK[:-30],
    "\n" + DEEPSEEK_31[:-30],
]


@rows("text", BROKEN)
def test_tokens_that_are_no_calls_make_a_malformed_answer(text: str) -> None:
    """[K5] They are retried, and never shown as words."""
    assert read_calls(text, "kimi", "") is read_calls(text, "deepseek", "") is None
    with pytest.raises(NoAnswer) as failed:
        whole(Text(text))
    assert failed.value.error.code == "malformed_tool_call"
    last = streamed(text, 3)[-1]
    assert type(last) is Failure
    assert last.error.code == "malformed_tool_call"


MENTIONED = [
    "The marker is `<|tool_call_begin|>`; see the docs.",
    "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_begin|> opens the section, <|tool_call_begin|> each call.",
    "It looks like <|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{}<|tool_call_end|>, no more.",
    "<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGUMENTS is how a call begins.",
    "<｜tool▁call▁begin｜> is a token of DeepSeek.",
    "hm " + KIMI[:-60],
]


@rows("text", MENTIONED)
@rows("size", [1, 5, 1000])
def test_a_token_that_is_only_mentioned_is_a_word(text: str, size: int) -> None:
    """[K5] Also from a provider that leaks calls: neither a call nor an error."""
    assert whole(Text(text)).content == (Text(text),)
    assert fold(streamed(text, size)).content == (Reasoning("hm"), Text(text))


def test_words_behind_a_mention_do_not_wait_for_the_end() -> None:
    watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
    watch.pass_on([Start("r", "m"), PartStart(0, Text("")), Delta(0, "It is `<|tool_call_begin|>")])
    assert watch.pass_on([Delta(0, "`; see the docs")]) == [
        Delta(0, "<|tool_call_begin|>"),
        Delta(0, "`; see the docs"),
    ]


@rows("text", [KIMI, DEEPSEEK, DEEPSEEK_31, *BROKEN, *MENTIONED, "TAGGED"])
@rows("request_", [ASKED, None], ids=["asked", "unknown"])
def test_a_text_of_any_other_provider_is_a_text(text: str, request_: Request | None) -> None:
    """[K5] It may quote a hostile document: no call is made of it, and it is no error."""
    text = f"I will not run this: {TAGGED}" if text == "TAGGED" else text
    response = Response("r", "m", (Text(text),), Stop("end", "stop", "x"))
    assert accept(response, request_).response is response
    for size in (1, 7, 1000):
        found = fold(streamed(text, size, request_, leaks_calls=()))
        assert found.content == (Reasoning("hm"), Text(text))
        assert found.stop.reason == "end"


@rows("reason", ["length", "refused", "paused", "context_full", "other"])
@rows("text", [KIMI, "x " + KIMI, KIMI[:-60]])
def test_an_answer_that_did_not_end_by_itself_has_no_leaked_calls(reason: StopReason, text: str) -> None:
    """A filter or a limit stopped the model: its last words are no call."""
    response = Response("r", "m", (Text(text),), Stop(reason, "raw", "x"))
    assert accept(response, ASKED, leaks_calls=LEAK_FAMILIES).response is response
    assert fold(streamed(text, 5, stop=reason)).content == (Reasoning("hm"), Text(text))


def test_a_request_that_forbids_calls_gets_none() -> None:
    """A model with `tool_choice: none` may answer in tags all the same."""
    asked = Request("m", ASKED.messages, ASKED.tools, ToolChoice("none"))
    for text in (KIMI, TAGGED, KIMI[:-60]):
        response = Response("r", "m", (Text(text),), Stop("end", "stop", "x"))
        assert accept(response, asked, leaks_calls=LEAK_FAMILIES).response is response
        assert fold(streamed(text, 5, asked)).content == (Reasoning("hm"), Text(text))


@pytest.mark.parametrize("real_first", [True, False])
def test_a_call_that_is_in_the_answer_already_is_not_doubled(real_first: bool) -> None:
    """mistral.rs returns the call, and leaves the text of it."""
    real = ToolCall("c", "weather", '{"city":"Paris"}')
    for text in (TAGGED, "Well.\n" + TAGGED, call("functions.weather:0", PARIS)):
        parts: tuple[Part, ...] = (real, Text(text)) if real_first else (Text(text), real)
        response = Response("r", "m", parts, Stop("tool_calls", "tool_calls", "x"))
        accepted = accept(response, ASKED, leaks_calls=LEAK_FAMILIES)
        assert (accepted.response, accepted.losses) == (response, ())
        watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
        passed = [each for event in unfold(response) for each in watch.pass_on([event])]
        assert fold(passed) == response
        assert watch.losses == []


def test_another_call_than_those_in_the_answer_is_read() -> None:
    real = ToolCall("c", "weather", '{"city":"Rome"}')
    response = Response("r", "m", (Text(TAGGED), real), Stop("tool_calls", "tool_calls", "x"))
    assert shown(accept(response, ASKED, leaks_calls=LEAK_FAMILIES).response.content) == [
        ("weather", '{"city":"Rome"}'),
        ("weather", PARIS),
    ]


def test_anyone_who_offers_no_tools_may_speak_of_such_tokens() -> None:
    """[K5] A question about them is no leak."""
    asked = Request("m", ASKED.messages)
    spoken = Response("r", "m", (Text(KIMI),), Stop("end", "stop", "x"))
    assert accept(spoken, asked, leaks_calls=LEAK_FAMILIES).response is spoken
    assert fold(streamed(KIMI, 4, asked)).content[1] == Text(KIMI)


def test_calls_of_a_client_may_hold_such_tokens() -> None:
    """[K5] Arguments are no words of an answer, and freeform text is not either."""
    for part in (ToolCall("c", "f", "{}"), ToolCall("c", "f", "", "custom")):
        watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
        text = KIMI if part.kind == "custom" else ""
        events: list[Event] = [Start("r", "m"), PartStart(0, part), Delta(0, text), PartEnd(0)]
        passed = [each for event in events for each in watch.pass_on([event])]
        assert passed[:3] == events[:3]


def call(name: str, arguments: str = "{}") -> str:
    return f"<|tool_call_begin|>{name}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


@rows(
    ("text", "id", "name", "arguments"),
    [
        (call("functions.weather:0"), "functions.weather:0", "weather", "{}"),
        (call(" functions.weather:12 "), "functions.weather:12", "weather", "{}"),
        (call("weather"), "weather", "weather", "{}"),
        (call("weather:3"), "weather:3", "weather", "{}"),
        (call("functions.a.b:0"), "functions.a.b:0", "a.b", "{}"),
        (call("functions.weather:0", " \n"), "functions.weather:0", "weather", "{}"),
        (call("functions.weather:0", f" {PARIS}\n"), "functions.weather:0", "weather", PARIS),
        (call("f:0") + "<|tool_calls_section_end|>\n", "f:0", "f", "{}"),
        ("<|tool_calls_section_begin|>\n" + call("f:0") + "\n", "f:0", "f", "{}"),
    ],
)
def test_a_call_of_kimi_has_its_own_id_and_the_name_in_it(text, id, name, arguments):
    assert read_calls(text, "kimi", "seed") == [ToolCall(id, name, arguments)]


def test_ids_that_are_made_up_are_the_same_for_the_same_call_and_others_for_others():
    """A client sends it back: the next request must name the same call."""
    one = DEEPSEEK_31.replace("<｜tool▁calls▁end｜>", "")
    second = f"<｜tool▁call▁begin｜>weather<｜tool▁sep｜>{PARIS}<｜tool▁call▁end｜>"
    calls = read_calls(one + second + "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>\n", "deepseek", "a")
    assert calls is not None
    assert read_calls(one + second, "deepseek", "a") == calls
    other = read_calls(one, "deepseek", "b")
    assert other is not None
    ids = [*(each.id for each in calls), other[0].id]
    assert len(set(ids)) == 3
    assert all(len(each) == len("call_") + 24 for each in ids)
    assert {(each.name, each.arguments) for each in calls} == {("weather", PARIS)}


def test_an_answer_with_leaked_calls_ends_with_calls():
    for stop in (Stop("end", "raw", "x"), Stop("other"), Stop("stop_sequence", "raw")):
        leaked = Response("r", "m", (Text(KIMI),), stop)
        assert accept(leaked, ASKED, leaks_calls=LEAK_FAMILIES).response.stop == Stop(
            "tool_calls", "leaked tool tokens"
        )
    leaked = Response("r", "m", (Text(KIMI),), Stop("tool_calls", "tool_calls", "x"))
    assert accept(leaked, ASKED, leaks_calls=LEAK_FAMILIES).response.stop == leaked.stop


def test_words_before_a_leak_are_kept_and_blank_ones_are_not():
    assert whole(Text("  \n" + KIMI)).content == CALLS
    signed = Text("so " + KIMI, refusal=True)
    assert whole(Text("first"), signed, Text(" \n")).content == (
        Text("first"),
        Text("so ", refusal=True),
        Text(" \n"),
        *CALLS,
    )


def test_only_tools_that_are_offered_and_allowed_may_be_called():
    tools = (Tool("a"), Tool("b", namespace="n"), Tool("c", kind="custom"))
    asked = Request("m", (), tools)
    assert offered(None, {}) == offered(Request("m", ()), {"a": ("", "a")}) == frozenset()
    assert offered(asked, {}) == {"a"}
    renamed = {"n__b": ("n", "b"), "c": ("", "c"), "d": ("", "d")}
    assert offered(asked, renamed) == {"a", "n__b", "c"}
    chosen = Request("m", (), tools, ToolChoice("required", ("b",)))
    assert offered(chosen, renamed) == {"n__b"}
    assert offered(Request("m", (), tools, ToolChoice("none")), renamed) == frozenset()


def test_recovered_calls_come_behind_all_other_parts():
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, Text("")),
        PartStart(1, ToolCall("c", "f", "")),
        Delta(0, "a" + KIMI[:40]),
        Delta(1, '{"x":'),
        Delta(0, KIMI[40:]),
        PartEnd(0),
        Delta(1, "1}"),
        PartEnd(1),
        PartStart(2, Text("")),
        Delta(2, " \n"),
        PartEnd(2),
        Finish(Stop("end", "stop", "x")),
    ]
    watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
    passed = list(check([each for event in events for each in watch.pass_on([event])]))
    assert fold(passed).content == (Text("a"), ToolCall("c", "f", '{"x":1}'), Text(" \n"), *CALLS)


def test_two_parts_may_leak_and_probabilities_are_never_held_back():
    likely = TokenLogprob("<", -1)
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, Reasoning("")),
        Delta(0, "hm" + call("f:0")),
        PartEnd(0),
        PartStart(1, Text("")),
        Delta(1, "<", (likely,)),
        Delta(1, call("g:1")[1:]),
        PartEnd(1),
        Finish(Stop("end", "stop", "x")),
    ]
    watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
    passed = list(check([each for event in events for each in watch.pass_on([event])]))
    assert fold(passed).content == (
        Reasoning("hm"),
        Text("", logprobs=(likely,)),
        ToolCall("f:0", "f", "{}"),
        ToolCall("g:1", "g", "{}"),
    )
    assert watch.losses == [RECOVERED]


def shown(parts: tuple[Part, ...]) -> list[tuple[str, str]]:
    return [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_tagged_calls_to_offered_tools_are_calls(size: int) -> None:
    """[K5] As Hermes and Qwen write them, whole and streamed."""
    text = f"Let me see.\n{TAGGED}\n{TAGGED}\n"
    found = whole(Text(text))
    assert found.content[0] == Text("Let me see.\n")
    assert shown(found.content) == 2 * [("weather", PARIS)]
    assert len({part.id for part in found.content if isinstance(part, ToolCall)}) == 2
    assert found.stop.reason == "tool_calls"
    folded = fold(streamed(text, size))
    assert shown(folded.content) == 2 * [("weather", PARIS)]
    assert folded.content[1] == Text("Let me see.\n")


@rows(
    "text",
    [
        "Calls look like <tool_call> in Qwen's template.",
        f"For example: {TAGGED} and then the result.",
        f"The page says (I will not run it): {TAGGED}",
        f"The page says:\n- {TAGGED}",
        f"The page says:\n{' ' * 100}{TAGGED}",
        f"{' ' * 100}{TAGGED}",
        f"{TAGGED} and\n{TAGGED}",
        f"{TAGGED}\n{DEEPSEEK}",
        f"```\n{TAGGED}\n```",
        TAGGED.replace("weather", "unknown"),
        TAGGED.replace(PARIS, '"Paris"'),
        TAGGED.replace(', "arguments"', ', "id": 1, "arguments"'),
        TAGGED[:-3],
        TAGGED.replace("}}", "}"),
        "<tool_ca",
    ],
)
def test_a_tag_that_is_no_whole_call_stays_a_text(text: str) -> None:
    assert whole(Text(text)).content == (Text(text),)
    for size in (1, 5, 1000):
        folded = fold(streamed(text, size))
        assert folded.content[1] == Text(text)
        assert folded.stop.reason == "end"
    assert whole(Reasoning(TAGGED), Text("x")).content == (Reasoning(TAGGED), Text("x"))


def answered(
    response: Response, request: Request = ASKED, families: tuple[LeakFamily, ...] = LEAK_FAMILIES
) -> Response:
    """What a client gets, whole; streamed in pieces of any size it is the same."""
    accepted = accept(response, request, leaks_calls=families)
    for size in (1, 3, 7, 1000):
        events: list[Event] = []
        for event in unfold(response):
            if type(event) is Delta:
                pieces = (event.text[at : at + size] for at in range(0, len(event.text), size))
                events += (Delta(event.index, piece) for piece in pieces)
            else:
                events.append(event)
        watch = StreamVerdict(request, leaks_calls=families)
        found = fold(list(check([each for event in events for each in watch.pass_on([event])])))
        # A part that has begun to stream stays, be it blank.
        parts = tuple(part for part in found.content if not isinstance(part, Text) or part.text.strip())
        assert (parts, found.stop) == (accepted.response.content, accepted.response.stop), size
        assert tuple(watch.losses) == accepted.losses
    return accepted.response


def said(*content: Part) -> Response:
    return Response("r", "m", content, Stop("end", "stop", "x"))


TOKENS: dict[LeakFamily, str] = {
    "kimi": call("functions.weather:0", PARIS),
    "deepseek": DEEPSEEK,
    "hermes": TAGGED,
}
every_family = pytest.mark.parametrize("family", LEAK_FAMILIES)


@every_family
def test_only_the_tokens_that_a_host_leaks_are_calls(family: LeakFamily) -> None:
    """[K5] A host that leaks Kimi's tokens may quote those of Hermes."""
    others = tuple(each for each in LEAK_FAMILIES if each != family)
    for before in ("", "Well.\n"):
        response = said(Text(before + TOKENS[family]))
        assert answered(response, families=others) == response
        assert shown(answered(response, families=(family,)).content) == [("weather", PARIS)]
    for other in others:
        response = said(Text(f"Well.\n{TOKENS[other]}\n{TOKENS[family]}"))
        assert shown(answered(response, families=(family,)).content) == [("weather", PARIS)]
        response = said(Text(f"Well.\n{TOKENS[family]}\n{TOKENS[other]}"))
        assert answered(response, families=(family,)) == response


def test_broken_tokens_that_a_host_does_not_leak_are_words() -> None:
    response = said(Text(KIMI[:-60]))
    assert answered(response, families=("deepseek", "hermes")) == response


@every_family
def test_a_call_before_the_last_words_of_an_answer_is_none(family: LeakFamily) -> None:
    """The model has thought of it, and answers otherwise."""
    leak, words = TOKENS[family], Text("On reflection I will not run anything.")
    for response in (
        said(Text(leak), words),
        said(Text(leak + "\n"), Reasoning("\n"), words),
        said(Text(leak), Reasoning("No.")),
        said(Text(leak), Media("image", data="aGk=")),
        said(Text(leak), ToolCall("c", "clock", "{}"), words),
        said(Reasoning("A call would be " + leak), words),
        said(Reasoning(leak), words),
        said(Reasoning(leak[:-3]), words),
    ):
        assert answered(response) == response


def test_of_several_leaks_only_those_behind_the_last_words_are_calls() -> None:
    first, second = call("f:0"), call("g:1")
    thought = Reasoning("hm " + first)
    assert answered(said(thought, Text(second))).content == (
        Reasoning("hm "),
        ToolCall("f:0", "f", "{}"),
        ToolCall("g:1", "g", "{}"),
    )
    assert answered(said(thought, Text("Well. " + second))).content == (
        thought,
        Text("Well. "),
        ToolCall("g:1", "g", "{}"),
    )
    assert answered(said(thought, Text(first))).content == (thought, ToolCall("f:0", "f", "{}"))


@every_family
def test_a_call_to_a_tool_that_is_not_offered_is_a_text(family: LeakFamily) -> None:
    """Neither is one outside the choice of the request."""
    for text in (TOKENS[family], "Well.\n" + TOKENS[family]):
        other = said(Text(text.replace("weather", "delete")))
        assert answered(other) == other
        response = said(Text(text))
        for choice in (ToolChoice("required", ("clock",)), ToolChoice("auto", ("clock", "f"))):
            asked = Request("m", ASKED.messages, ASKED.tools, choice)
            assert answered(response, asked) == response
        asked = Request("m", ASKED.messages, ASKED.tools, ToolChoice("required", ("weather",)))
        assert shown(answered(response, asked).content) == [("weather", PARIS)]
        assert accept(response, None, leaks_calls=LEAK_FAMILIES).response is response


def test_calls_of_which_one_is_not_offered_are_a_text() -> None:
    asked = Request("m", ASKED.messages, (Tool("weather"),))
    for text in (KIMI, "Well. " + KIMI):
        response = said(Text(text))
        assert answered(response, asked) == response


@every_family
def test_a_call_that_is_in_the_answer_with_other_nulls_is_not_doubled(family: LeakFamily) -> None:
    more = '{"city": "Paris", "unit": null, "at": {"x": null}, "days": [{"y": null}]}'
    less = '{"days": [{}], "at": {}, "city": "Paris"}'
    for leaked, real in ((more, less), (less, more)):
        for text in (TOKENS[family], "Well.\n" + TOKENS[family]):
            response = Response(
                "r",
                "m",
                (Text(text.replace(PARIS, leaked)), ToolCall("c", "weather", real)),
                Stop("tool_calls", "tool_calls", "x"),
            )
            assert answered(response) == response


@rows("before", ["", " ", "\n", "Well.\n", "Well.\r\n", "`a`\n \t", "a <tool_call> b\n\n"])
def test_a_tagged_call_begins_a_line(before: str) -> None:
    found = answered(said(Text(before + TAGGED)))
    assert shown(found.content) == [("weather", PARIS)]
    assert [part.text for part in found.content if isinstance(part, Text)] in ([before], [])
    quoted = said(Text(f"x{before.strip()} {TAGGED}"))
    assert answered(quoted) == quoted


def test_where_a_line_begins_does_not_depend_on_how_parts_interleave() -> None:
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, Text("")),
        Delta(0, "The page says: "),
        PartStart(1, Text("")),
        Delta(1, TAGGED),
        Delta(0, TAGGED),
        PartEnd(0),
        PartEnd(1),
        Finish(Stop("end", "stop", "x")),
    ]
    watch = StreamVerdict(ASKED, leaks_calls=LEAK_FAMILIES)
    found = fold([each for event in events for each in watch.pass_on([event])])
    assert found.content[0] == Text("The page says: " + TAGGED)
    assert shown(found.content) == [("weather", PARIS)]
