"""Fit: a request bent to what an endpoint takes, every bend declared."""

from typing import Any

import msgspec
import pytest

from wireglot.dialects.base import Context, is_minted
from wireglot.ir.content import (
    CacheMark,
    Extra,
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
from wireglot.ir.errors import Unsupported
from wireglot.ir.loss import Loss
from wireglot.ir.request import (
    Effort,
    Grammar,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot.ir.stream import Delta, PartEnd, PartStart
from wireglot.providers.aliases import EventRestorer
from wireglot.providers.fit import Fitted, fit
from wireglot.providers.fit.parts import SKIP_SIGNATURE
from wireglot.providers.limits import Limits
from wireglot.providers.spec import limits_for


def user(*parts: Part) -> Message:
    return Message("user", parts)


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def request(*messages: Message, **fields: Any) -> Request:
    return Request("m", messages or (user(Text("hi")),), **fields)


def fitted(wanted: Request, limits: Limits, dialect: str = "openai-chat") -> Fitted:
    return fit(wanted, limits, Context(), dialect)


def features(outcome: Fitted) -> list[tuple[str, str]]:
    return [(loss.feature, loss.action) for loss in outcome.losses]


def test_limits_that_refuse_nothing_change_nothing() -> None:
    wanted = request(
        Message("system", (Text("s"),)),
        user(Text("hi")),
        assistant(Reasoning("hm"), ToolCall("a", "f", "{}")),
        user(ToolResult("a", (Text("ok"),))),
        tools=(Tool("f", schema={"type": "object"}),),
        sampling=Sampling(temperature=2, seed=7),
    )
    outcome = fitted(wanted, Limits())
    assert outcome.request == wanted
    assert outcome.losses == ()
    assert not outcome.aliases


# Tools


def test_a_freeform_tool_becomes_a_function_of_one_string_and_comes_back_as_what_it_was() -> None:
    """PAINS 17"""
    wanted = request(
        user(Text("go")),
        assistant(ToolCall("a", "apply_patch", "*** Begin\n", "custom")),
        user(ToolResult("a", (Text("ok"),), kind="custom")),
        tools=(Tool("apply_patch", "Patch.", kind="custom", grammar=Grammar("lark", "start: X")),),
    )
    outcome = fitted(wanted, Limits(custom_tools=False))
    tool = outcome.request.tools[0]
    assert isinstance(tool, Tool)
    assert tool.kind == "function"
    assert tool.description is not None
    assert "lark" in tool.description
    assert "start: X" in tool.description
    assert tool.schema is not None
    assert tool.schema["required"] == ["input"]
    sent = outcome.request.messages[1].content[0]
    assert sent == ToolCall("a", "apply_patch", '{"input":"*** Begin\\n"}')
    assert ("tool.custom", "emulated") in features(outcome)
    answer = ToolCall("b", "apply_patch", '{"input":"line\\n"}')
    assert outcome.aliases.restore(answer) == ToolCall("b", "apply_patch", "line\n", "custom")


def test_a_streamed_freeform_call_is_unwrapped_at_its_end() -> None:
    outcome = fitted(request(tools=(Tool("p", kind="custom"),)), Limits(custom_tools=False))
    restorer = EventRestorer(outcome.aliases)
    events = restorer.events(
        [PartStart(0, ToolCall("a", "p", "")), Delta(0, '{"inp'), Delta(0, 'ut":"x\\ny"}'), PartEnd(0)]
    )
    assert events == [PartStart(0, ToolCall("a", "p", "", "custom")), Delta(0, "x\ny"), PartEnd(0)]


def test_a_freeform_answer_of_another_shape_comes_back_as_it_is() -> None:
    outcome = fitted(request(tools=(Tool("p", kind="custom"),)), Limits(custom_tools=False))
    assert outcome.aliases.restore(ToolCall("a", "p", "plain")) == ToolCall("a", "p", "plain", "custom")


def test_illegal_names_are_renamed_in_tools_choice_and_history_and_back() -> None:
    """R-DB-12, PAINS 29"""
    long = "mcp__" + "x" * 80
    wanted = request(
        user(Text("go")),
        assistant(ToolCall("a", long, "{}"), ToolCall("b", "ns.dotted", "{}")),
        user(ToolResult("a"), ToolResult("b")),
        tools=(Tool(long), Tool("ns.dotted"), Tool("fine")),
        tool_choice=ToolChoice("required", (long,)),
    )
    outcome = fitted(wanted, Limits(tool_name=r"[A-Za-z0-9_-]+", tool_name_max=64))
    names = [tool.name for tool in outcome.request.tools if isinstance(tool, Tool)]
    assert all(len(name) <= 64 and "." not in name for name in names)
    assert names[2] == "fine"
    assert len(set(names)) == 3
    assert outcome.request.tool_choice == ToolChoice("required", (names[0],))
    calls = [part.name for part in outcome.request.messages[1].content if isinstance(part, ToolCall)]
    assert calls == names[:2]
    restored = outcome.aliases.restore(ToolCall("c", names[1], "{}"))
    assert restored == ToolCall("c", "ns.dotted", "{}")
    assert fitted(wanted, Limits(tool_name=r"[A-Za-z0-9_-]+", tool_name_max=64)).request == outcome.request


def test_namespaces_are_flattened_and_restored() -> None:
    wanted = request(tools=(Tool("read", namespace="files"), Tool("read", namespace="net")))
    outcome = fitted(wanted, Limits(namespaces=False))
    assert [tool.name for tool in outcome.request.tools if isinstance(tool, Tool)] == [
        "files__read",
        "net__read",
    ]
    assert outcome.aliases.restore(ToolCall("a", "net__read", "{}")) == ToolCall(
        "a", "read", "{}", namespace="net"
    )
    assert features(outcome) == [("tool.namespace", "emulated"), ("tool.namespace", "emulated")]


def test_a_flattened_name_never_takes_another_tools_name() -> None:
    """R-DB-12: injective."""
    wanted = request(
        tools=(Tool("b", namespace="a"), Tool("a__b")), tool_choice=ToolChoice("required", ("b",))
    )
    outcome = fitted(wanted, Limits(namespaces=False))
    flattened, plain = (tool.name for tool in outcome.request.tools if isinstance(tool, Tool))
    assert plain == "a__b"
    assert flattened != plain
    assert outcome.request.tool_choice == ToolChoice("required", (flattened,))
    assert outcome.aliases.restore(ToolCall("x", flattened, "{}")) == ToolCall("x", "b", "{}", namespace="a")
    assert outcome.aliases.restore(ToolCall("x", plain, "{}")) == ToolCall("x", "a__b", "{}")


def test_a_schema_loses_what_the_target_refuses_aloud() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}}
    outcome = fitted(request(tools=(Tool("f", schema=schema),)), Limits(tool_schema="gemini-json"), "gemini")
    tool = outcome.request.tools[0]
    assert isinstance(tool, Tool)
    assert tool.schema is not None
    assert "pattern" not in tool.schema["properties"]["a"]
    assert "^x" in tool.schema["properties"]["a"]["description"]
    assert features(outcome) == [("tool.schema", "approximated")]


def test_strict_is_given_up_where_the_schema_is_outside_the_subset() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    outcome = fitted(request(tools=(Tool("f", schema=loose, strict=True),)), Limits(tool_schema="openai"))
    tool = outcome.request.tools[0]
    assert isinstance(tool, Tool)
    assert tool.strict is False
    assert features(outcome) == [("tool.strict", "dropped")]


def test_a_choice_without_tools_is_dropped() -> None:
    """C18"""
    outcome = fitted(request(tool_choice=ToolChoice("required"), parallel_tools=False), Limits())
    assert outcome.request.tool_choice is None
    assert outcome.request.parallel_tools is None
    assert features(outcome) == [("tool_choice", "dropped")]


@pytest.mark.parametrize(
    ("choice", "thinking", "expected"),
    [
        (ToolChoice("required"), Thinking(), ToolChoice("auto")),
        (ToolChoice("required", ("f",)), Thinking(), ToolChoice("auto")),
        (ToolChoice("required"), Thinking("off"), ToolChoice("required")),
        (ToolChoice("auto"), Thinking(), ToolChoice("auto")),
    ],
)
def test_a_forced_choice_is_weakened_while_the_model_thinks(
    choice: ToolChoice, thinking: Thinking, expected: ToolChoice
) -> None:
    """R-DB-08"""
    wanted = request(tools=(Tool("f"), Tool("g")), tool_choice=choice, thinking=thinking)
    outcome = fitted(wanted, Limits(tool_choices_thinking=("auto", "none"), thinks_by_default=True))
    assert outcome.request.tool_choice == expected
    assert bool(outcome.losses) == (choice != expected)


def test_the_only_tool_may_be_forced_where_naming_it_is_refused() -> None:
    wanted = request(tools=(Tool("f"),), tool_choice=ToolChoice("required", ("f",)))
    outcome = fitted(wanted, Limits(tool_choices=("auto", "none", "required")))
    assert outcome.request.tool_choice == ToolChoice("required")


# Call ids


def pair(identifier: str, name: str = "f") -> tuple[Message, Message]:
    return assistant(ToolCall(identifier, name, "{}")), user(ToolResult(identifier))


def ids(outcome: Fitted) -> list[tuple[str, str]]:
    calls = [part.id for m in outcome.request.messages for part in m.content if isinstance(part, ToolCall)]
    results = [
        part.call_id for m in outcome.request.messages for part in m.content if isinstance(part, ToolResult)
    ]
    return list(zip(calls, results, strict=True))


def test_an_illegal_id_is_rewritten_alike_for_call_and_result() -> None:
    """R-DB-02: Kimi's `functions.Bash:0` poisons an Anthropic turn."""
    outcome = fitted(
        request(user(Text("x")), *pair("functions.f:0"), *pair("toolu_1")), Limits(call_id=r"[A-Za-z0-9_-]+")
    )
    (first, first_result), (second, second_result) = ids(outcome)
    assert first == first_result != "functions.f:0"
    assert second == second_result == "toolu_1"
    assert features(outcome) == [("tool_call.id", "emulated")]


def test_short_ids_for_targets_that_take_nine_letters() -> None:
    outcome = fitted(
        request(user(Text("x")), *pair("call_abcdefghijkl")),
        limits_for("openai-chat", "mistral-large", "mistral"),
    )
    ((call, result),) = ids(outcome)
    assert call == result
    assert len(call) == 9
    assert call.isalnum()


def test_kimi_gets_the_ids_it_was_trained_on() -> None:
    wanted = request(user(Text("x")), *pair("toolu_1", "Read"), *pair("toolu_2", "Bash"))
    outcome = fitted(wanted, Limits(call_ids="kimi"))
    assert ids(outcome) == [
        ("functions.Read:0", "functions.Read:0"),
        ("functions.Bash:1", "functions.Bash:1"),
    ]


def test_models_that_pair_by_order_get_no_ids() -> None:
    """C7"""
    outcome = fitted(request(user(Text("x")), *pair("toolu_1")), Limits(call_ids="positional"))
    ((call, result),) = ids(outcome)
    assert is_minted(call)
    assert call == result


# The conversation


def test_a_system_message_midway_becomes_marked_text_where_there_is_no_place_for_it() -> None:
    """R-DD-18"""
    wanted = request(
        Message("system", (Text("first"),)),
        user(Text("a")),
        Message("system", (Text("later"),)),
        assistant(Text("b")),
    )
    outcome = fitted(wanted, Limits(system_midway="no"))
    assert [message.role for message in outcome.request.messages] == ["system", "user", "assistant"]
    marked = outcome.request.messages[1].content[1]
    assert marked == Text("<system-reminder>\nlater\n</system-reminder>")
    assert features(outcome) == [("system.position", "approximated")]


def test_a_system_message_before_a_user_turn_moves_behind_it_where_only_that_is_legal() -> None:
    wanted = request(user(Text("a")), assistant(Text("b")), Message("system", (Text("s"),)), user(Text("c")))
    outcome = fitted(wanted, Limits(system_midway="after-user"))
    assert [message.role for message in outcome.request.messages] == ["user", "assistant", "user", "system"]
    assert features(outcome) == [("system.position", "approximated")]


def test_a_system_message_in_a_legal_place_stays() -> None:
    wanted = request(user(Text("a")), Message("system", (Text("s"),)), assistant(Text("b")), user(Text("c")))
    outcome = fitted(wanted, Limits(system_midway="after-user"))
    assert outcome.request == wanted
    assert outcome.losses == ()


def test_blank_text_goes_and_an_emptied_message_with_it() -> None:
    """R-DD-16, PAINS 25"""
    wanted = request(user(Text("a")), assistant(Text("")), user(Text("b"), Text("\n")))
    outcome = fitted(wanted, Limits(blank_text=False))
    assert [message.content for message in outcome.request.messages] == [(Text("a"),), (Text("b"),)]
    assert features(outcome) == [("content.empty", "dropped")]


def test_a_conversation_that_starts_with_the_assistant_gets_a_user_turn() -> None:
    outcome = fitted(request(assistant(Text("hello")), user(Text("hi"))), Limits(starts_with_user=True))
    assert [message.role for message in outcome.request.messages] == ["user", "assistant", "user"]
    assert features(outcome) == [("message.role", "invented")]


def test_a_prefill_is_asked_for_in_words_where_it_is_refused() -> None:
    outcome = fitted(request(user(Text("a")), assistant(Text("{"))), Limits(prefill=False))
    assert outcome.request.messages[-1].role == "user"
    assert features(outcome) == [("prefill", "approximated")]


def test_media_leaves_a_tool_result_and_stands_behind_all_results() -> None:
    """PAINS 19"""
    picture = Media("image", "image/png", "AAAA")
    wanted = request(
        user(Text("x")),
        assistant(ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        user(ToolResult("a", (Text("see"), picture)), ToolResult("b", (Text("t"),))),
    )
    outcome = fitted(wanted, Limits(tool_result_media="beside"))
    parts = outcome.request.messages[2].content
    assert [type(part) for part in parts] == [ToolResult, ToolResult, Text, Media]
    assert parts[3] == picture
    assert features(outcome) == [("tool_result.media", "approximated")]


def test_only_the_last_markers_stay() -> None:
    """R-DD-14"""
    mark = CacheMark()
    wanted = request(
        user(Text("a", cache=mark), Text("b", cache=mark)), tools=(Tool("f", cache=mark),), cache=mark
    )
    outcome = fitted(wanted, Limits(cache_markers=2))
    assert isinstance(outcome.request.tools[0], Tool)
    assert outcome.request.tools[0].cache is None
    assert outcome.request.messages[0].content == (Text("a"), Text("b", cache=mark))
    assert outcome.request.cache == mark
    assert features(outcome) == [("cache_marker", "dropped")] * 2


# Reasoning

_CLAUDE = Signature("sig", Origin("anthropic"))
_GEMINI = Signature("U0lH", Origin("gemini"))


def test_reasoning_goes_back_only_to_who_signed_it() -> None:
    """R-DA-09, PAINS 3"""
    wanted = request(
        user(Text("x")),
        assistant(Reasoning("ours", _CLAUDE), Reasoning("theirs", _GEMINI), Reasoning("nobody's"), Text("a")),
        user(Text("y")),
    )
    outcome = fitted(wanted, Limits(reasoning="signed"), "anthropic")
    assert outcome.request.messages[1].content == (Reasoning("ours", _CLAUDE), Text("a"))
    assert features(outcome) == [("reasoning.text", "dropped")] * 2


def test_a_provider_that_wants_the_text_gets_the_text_of_any() -> None:
    """R-DA-11"""
    wanted = request(user(Text("x")), assistant(Reasoning("t", _CLAUDE), Text("a")), user(Text("y")))
    outcome = fitted(wanted, Limits(reasoning="text"))
    assert outcome.request.messages[1].content == (Reasoning("t"), Text("a"))
    assert features(outcome) == [("reasoning.signature", "dropped")]


def test_generic_upstreams_get_no_reasoning() -> None:
    """R-DA-12"""
    outcome = fitted(request(user(Text("x")), assistant(Reasoning("t"), Text("a"))), Limits(reasoning="drop"))
    assert outcome.request.messages[1].content == (Text("a"),)


def test_turns_with_calls_get_an_empty_reasoning_where_it_is_demanded() -> None:
    """R-DA-11, PAINS 8"""
    wanted = request(user(Text("x")), *pair("a"), assistant(Text("done")), user(Text("y")))
    outcome = fitted(wanted, Limits(reasoning="text", reasoning_required=True))
    assert outcome.request.messages[1].content[0] == Reasoning("")
    assert outcome.request.messages[3].content == (Text("done"),)
    assert features(outcome) == [("reasoning.text", "invented")]


def test_the_first_call_of_each_step_of_the_current_turn_is_signed() -> None:
    """R-DA-02, R-DA-05, PAINS 1"""
    wanted = request(
        user(Text("old")),
        *pair("a"),
        assistant(Text("done")),
        user(Text("new")),
        assistant(ToolCall("b", "f", "{}"), ToolCall("c", "f", "{}")),
        user(ToolResult("b"), ToolResult("c")),
        assistant(ToolCall("d", "f", "{}", signature=_GEMINI)),
        user(ToolResult("d"), Text("go on")),
    )
    outcome = fitted(wanted, Limits(call_signatures=True), "gemini")
    signatures = [
        part.signature.data if part.signature else None
        for message in outcome.request.messages
        for part in message.content
        if isinstance(part, ToolCall)
    ]
    assert signatures == [None, SKIP_SIGNATURE, None, "U0lH"]
    assert features(outcome) == [("reasoning.signature", "invented")]


# Thinking


@pytest.mark.parametrize(
    ("thinking", "limits", "expected", "told"),
    [
        (Thinking(effort="high"), Limits(thinking="budget"), Thinking("on", budget=24576), "thinking.effort"),
        (
            Thinking("on", budget=4000),
            Limits(thinking="effort"),
            Thinking(effort="medium"),
            "thinking.budget",
        ),
        (Thinking("on", budget=4000), Limits(thinking="level"), Thinking(effort="medium"), "thinking.budget"),
        (Thinking("on", budget=400), Limits(thinking="level"), Thinking(effort="minimal"), "thinking.budget"),
        (
            Thinking(effort="max"),
            Limits(thinking="level", efforts=("low", "high")),
            Thinking(effort="high"),
            "thinking.effort",
        ),
        (
            Thinking(effort="minimal"),
            Limits(thinking="effort", efforts=("low", "high", "max")),
            Thinking(effort="low"),
            "thinking.effort",
        ),
        (
            Thinking(effort="medium"),
            Limits(thinking="effort", efforts=("low", "high", "max")),
            Thinking(effort="high"),
            "thinking.effort",
        ),
        (Thinking("off"), Limits(thinking="effort"), Thinking(effort="none"), None),
        (Thinking("off"), Limits(thinking="adaptive"), Thinking("off"), None),
        (
            Thinking("off"),
            Limits(thinking="budget", thinking_off=False, budget_min=128),
            Thinking("on", budget=128),
            "thinking.mode",
        ),
        (
            Thinking(effort="high"),
            Limits(thinking="adaptive"),
            Thinking("auto", "high", display="summary"),
            "thinking.mode",
        ),
        (Thinking(effort="high"), Limits(thinking="none"), Thinking(), "thinking.effort"),
        (Thinking("on", budget=9), Limits(thinking="fixed"), Thinking(), "thinking.budget"),
        (
            Thinking("on", budget=90_000),
            Limits(thinking="budget", budget_max=24576),
            Thinking("on", budget=24576),
            "thinking.budget",
        ),
        (Thinking(), Limits(thinking="level"), Thinking(), None),
    ],
)
def test_thinking_in_the_only_form_a_model_takes(
    thinking: Thinking, limits: Limits, expected: Thinking, told: str | None
) -> None:
    """R-DA-14, R-DA-15, PAINS 23"""
    outcome = fitted(request(thinking=thinking), limits)
    assert outcome.request.thinking == expected
    assert [loss.feature for loss in outcome.losses] == ([told] if told else [])


def test_kimis_switch_is_a_field_of_its_own() -> None:
    wanted = request(thinking=Thinking("off"), extra=Extra("anthropic", {"container": "c"}))
    outcome = fitted(wanted, Limits(thinking="toggle"))
    assert outcome.request.extra == Extra("openai-chat", {"thinking": {"type": "disabled"}})
    assert outcome.request.thinking == Thinking()
    assert features(outcome) == [("unknown_field", "dropped")]


@pytest.mark.parametrize(
    ("effort", "allowed", "nearest"), [("xhigh", ("low", "high"), "high"), ("none", ("low",), "low")]
)
def test_an_effort_clamps_to_the_nearest(
    effort: Effort, allowed: tuple[Effort, ...], nearest: Effort
) -> None:
    outcome = fitted(request(thinking=Thinking(effort=effort)), Limits(thinking="effort", efforts=allowed))
    assert outcome.request.thinking.effort == nearest


# Generation


def test_sampling_a_model_fixes_is_dropped_aloud() -> None:
    """C38, PAINS 24"""
    wanted = request(sampling=Sampling(temperature=0.3, seed=1, logprobs=True, top_logprobs=3))
    outcome = fitted(wanted, Limits(sampling=("seed",)))
    assert outcome.request.sampling == Sampling(seed=1)
    assert sorted(feature for feature, _ in features(outcome)) == ["logprobs", "sampling.temperature"]


def test_a_temperature_above_the_range_is_lowered() -> None:
    outcome = fitted(request(sampling=Sampling(temperature=1.5)), Limits(temperature_max=1))
    assert outcome.request.sampling.temperature == 1
    assert features(outcome) == [("sampling.temperature", "approximated")]


def test_surplus_stop_sequences_are_declared() -> None:
    outcome = fitted(request(stop=("a", "b", "c" * 40)), Limits(stop_max=2, stop_bytes=32))
    assert outcome.request.stop == ("a", "b")
    assert features(outcome) == [("stop_sequences", "approximated")]


def test_max_tokens_is_invented_only_where_the_dialect_demands_it() -> None:
    """C15"""
    assert fitted(request(), Limits()).request.max_tokens is None
    outcome = fitted(request(), Limits(max_tokens_default=32_000))
    assert outcome.request.max_tokens == 32_000
    assert features(outcome) == [("max_tokens", "invented")]
    assert fitted(request(max_tokens=9000), Limits(max_tokens=8192)).request.max_tokens == 8192


def test_a_format_that_cannot_be_enforced_is_asked_for() -> None:
    """PAINS 21"""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    outcome = fitted(request(output=OutputFormat("schema", schema)), Limits(output_formats=("json",)))
    assert outcome.request.output == OutputFormat("json")
    told = outcome.request.messages[0]
    assert told.role == "system"
    assert '"properties"' in msgspec.json.encode(told).decode().replace("\\", "")
    assert features(outcome) == [("output_format", "approximated")]


def test_an_array_answer_is_wrapped_where_the_root_must_be_an_object() -> None:
    wanted = request(output=OutputFormat("schema", {"type": "array", "items": {"type": "string"}}))
    outcome = fitted(wanted, Limits(output_schema="openai"))
    assert outcome.request.output is not None
    assert outcome.request.output.schema is not None
    assert outcome.request.output.schema["type"] == "object"
    assert ("output_format.schema", "approximated") in features(outcome)


# What an audit of recorded traffic found


def test_a_choice_may_be_forced_on_a_model_that_thinks_only_when_asked() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    tools = (Tool("f"), Tool("g"))
    calm = request(tools=tools, tool_choice=ToolChoice("required"), max_tokens=4096)
    assert fitted(calm, limits, "anthropic").request.tool_choice == ToolChoice("required")
    thinking = msgspec.structs.replace(calm, thinking=Thinking("on", budget=2048))
    assert fitted(thinking, limits, "anthropic").request.tool_choice == ToolChoice("auto")


def test_thinking_is_off_where_the_answer_leaves_it_no_room() -> None:
    """budget_tokens >= max_tokens is a 400, and so is a budget below the least one."""
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    outcome = fitted(request(thinking=Thinking(effort="low"), max_tokens=64), limits, "anthropic")
    assert outcome.request.thinking == Thinking("off")
    assert ("thinking.mode", "dropped") in features(outcome)
    outcome = fitted(request(thinking=Thinking(effort="high"), max_tokens=4096), limits, "anthropic")
    assert outcome.request.thinking.budget == 4095


def test_thinking_that_was_only_switched_on_gets_a_budget_where_there_must_be_one() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    outcome = fitted(request(thinking=Thinking("on"), max_tokens=32_000), limits, "anthropic")
    assert outcome.request.thinking == Thinking("on", budget=8192)
    assert features(outcome) == [("thinking.budget", "invented")]


def test_turns_held_by_another_provider_are_declared_missing() -> None:
    wanted = request(
        user(Text("and now?")), extra=Extra("openai-responses", {"previous_response_id": "resp_1"})
    )
    outcome = fitted(wanted, Limits(), "anthropic")
    assert [(loss.path, loss.feature) for loss in outcome.losses] == [
        ("$.previous_response_id", "conversation_state")
    ]
    reference = Message("user", (Foreign("openai-responses", "item_reference", {"id": "msg_1"}),))
    outcome = fitted(request(reference, user(Text("hi"))), Limits(), "anthropic")
    assert [loss.path for loss in outcome.losses] == ["$.messages[0].content[0]"]


def test_a_request_with_nothing_but_a_reference_is_refused() -> None:
    empty = Request("m", (), extra=Extra("openai-responses", {"prompt": {"id": "pmpt_1"}}))
    with pytest.raises(Unsupported) as refused:
        fitted(empty, Limits(), "gemini")
    assert refused.value.path == "$.prompt"


def test_media_a_model_cannot_take_leaves_a_note() -> None:
    outcome = fitted(request(user(Media("video", url="https://x/v.mp4"))), Limits(media=("image",)))
    assert outcome.request.messages[0].content == (Text("[video left out: this model cannot take it]"),)
    assert features(outcome) == [("video", "dropped")]


def test_settings_a_provider_does_not_know_are_not_sent() -> None:
    outcome = fitted(
        request(verbosity="low", service_tier="flex", cache_key="k"), Limits(settings=("cache_key",))
    )
    assert (outcome.request.verbosity, outcome.request.service_tier, outcome.request.cache_key) == (
        "",
        "",
        "k",
    )
    assert features(outcome) == [("verbosity", "dropped"), ("service_tier", "dropped")]


def test_losses_point_to_where_the_client_put_things() -> None:
    wanted = request(
        Message("system", (Text("s"),)),
        user(Text("a")),
        user(Text("b"), Text(" ")),
        assistant(Reasoning("x"), ToolCall("1", "f", "{}")),
        user(Text("late"), ToolResult("ghost")),
    )
    outcome = fitted(wanted, Limits(blank_text=False, reasoning="drop"))
    assert sorted((loss.path, loss.feature) for loss in outcome.losses) == [
        ("$.messages[2].content[1]", "content.empty"),
        ("$.messages[3].content[0]", "reasoning.text"),
        ("$.messages[3].content[1]", "tool_result.pairing"),
        ("$.messages[4].content[1]", "tool_result.pairing"),
    ]
    last = outcome.request.messages[-1]
    assert outcome.trail.retrace(
        Loss("$.messages[3].content[1].cache", "cache_marker", "dropped"), outcome.request
    ) == (Loss("$.messages[4].content[0].cache", "cache_marker", "dropped"))
    assert last.content[1] == Text("late")


def test_another_providers_signature_leaves_a_call_that_goes_to_chat() -> None:
    wanted = request(
        user(Text("x")), assistant(ToolCall("a", "f", "{}", signature=_GEMINI)), user(ToolResult("a"))
    )
    outcome = fitted(wanted, Limits())
    assert outcome.request.messages[1].content == (ToolCall("a", "f", "{}"),)
    assert features(outcome) == [("reasoning.signature", "dropped")]


def test_thinking_stops_for_a_tool_loop_whose_thinking_is_lost() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    thinking = Thinking("on", budget=2048)
    lost = request(user(Text("x")), *pair("a"), thinking=thinking, max_tokens=9000)
    outcome = fitted(lost, limits, "anthropic")
    assert outcome.request.thinking == Thinking("off")
    assert features(outcome) == [("thinking.mode", "dropped")]
    kept = request(
        user(Text("x")),
        assistant(Reasoning("t", _CLAUDE), ToolCall("a", "f", "{}")),
        user(ToolResult("a")),
        thinking=thinking,
        max_tokens=9000,
    )
    assert fitted(kept, limits, "anthropic").request.thinking == thinking


def test_a_tool_result_to_a_turn_held_elsewhere_is_refused() -> None:
    wanted = request(user(ToolResult("call_1")), extra=Extra("openai-responses", {"conversation": "conv_1"}))
    with pytest.raises(Unsupported) as refused:
        fitted(wanted, Limits(), "gemini")
    assert refused.value.path == "$.conversation"
