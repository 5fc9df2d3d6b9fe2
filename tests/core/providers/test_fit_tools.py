"""Tools toward an endpoint: names, shapes, schemas, and who may be called."""

from typing import Literal

import msgspec
import pytest

from tests.core.providers.asks import assistant, features, fitted, request, user
from wireglot_core.ir.content import (
    Foreign,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    Grammar,
    HostedChoice,
    HostedTool,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.stream import Delta, PartEnd, PartStart
from wireglot_core.providers.aliases import EventRestorer
from wireglot_core.providers.limits import Limits, ThinkingStyle
from wireglot_core.providers.spec import limits_for


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
    """R-DB-12"""
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
    assert features(outcome) == [("tool.schema.hint", "approximated")]


_BOUNDED = {"type": "number", "exclusiveMinimum": 1, "multipleOf": 2, "default": 4}
_NARROWED = {"type": "object", "patternProperties": {"^x": {"type": "string"}}}


@pytest.mark.parametrize("form", ["gemini-json", "gemini-openapi"])
def test_bounds_of_a_tool_that_nothing_enforced_are_a_harmless_hint(
    form: Literal["gemini-json", "gemini-openapi"],
) -> None:
    schema = {"type": "object", "properties": {"a": _BOUNDED}}
    (loss,) = fitted(request(tools=(Tool("f", schema=schema),)), Limits(tool_schema=form), "gemini").losses
    assert (loss.feature, loss.action, loss.grade) == ("tool.schema.hint", "approximated", "harmless")


@pytest.mark.parametrize("form", ["gemini-json", "gemini-openapi"])
def test_bounds_of_a_strict_tool_are_more_than_a_hint(form: Literal["gemini-json", "gemini-openapi"]) -> None:
    schema = {"type": "object", "properties": {"a": _BOUNDED}}
    tool = Tool("f", schema=schema, strict=True)
    losses = fitted(request(tools=(tool,)), Limits(tool_schema=form), "gemini").losses
    assert ("tool.schema", "degraded") in [(loss.feature, loss.grade) for loss in losses]
    assert "tool.schema.hint" not in [loss.feature for loss in losses]


def test_a_change_of_structure_is_reported_apart_from_the_hints() -> None:
    schema = {"type": "object", "properties": {"a": _BOUNDED, "b": _NARROWED}}
    limits = Limits(tool_schema="gemini-openapi")
    changed, hint = fitted(request(tools=(Tool("f", schema=schema),)), limits, "gemini").losses
    assert (changed.feature, changed.grade) == ("tool.schema", "degraded")
    assert "patternProperties" in changed.detail
    assert "multipleOf" not in changed.detail
    assert (hint.feature, hint.grade) == ("tool.schema.hint", "harmless")


def test_strict_is_given_up_where_the_schema_is_outside_the_subset() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    outcome = fitted(request(tools=(Tool("f", schema=loose, strict=True),)), Limits(tool_schema="openai"))
    tool = outcome.request.tools[0]
    assert isinstance(tool, Tool)
    assert tool.strict is False
    assert features(outcome) == [("tool.strict", "dropped")]


def test_nobody_is_made_to_call_a_tool_that_is_not_offered() -> None:
    """[L8] Nor may it call another in its place: a choice of a tool that is gone leaves nothing to call."""
    hosted = HostedTool(
        "code_execution", Foreign("anthropic", "code_execution_1", {"name": "code_execution"})
    )
    for choice in (
        ToolChoice("required", ("code_execution",)),
        ToolChoice("required", hosted=(HostedChoice("code_execution"),)),
    ):
        outcome = fitted(request(tools=(hosted, Tool("f")), tool_choice=choice), Limits(hosted_tools=False))
        assert outcome.request.tool_choice == ToolChoice("none")
        assert features(outcome) == [("hosted_tool", "dropped"), ("tool_choice", "approximated")]
    kept = ToolChoice("required", ("f",))
    outcome = fitted(request(tools=(hosted, Tool("f")), tool_choice=kept), Limits(hosted_tools=False))
    assert outcome.request.tool_choice == kept


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


@pytest.mark.parametrize(
    ("thinking", "stopped"), [("toggle", True), ("budget", True), ("effort", False), ("fixed", False)]
)
def test_thinking_gives_way_to_a_forced_choice_where_that_is_wished_and_possible(
    thinking: ThinkingStyle, stopped: bool
) -> None:
    """[D] R-DB-08: selectable; a model that always thinks is asked with a weaker choice."""
    wanted = request(tools=(Tool("f"),), tool_choice=ToolChoice("required"))
    limits = Limits(
        tool_choices_thinking=("auto", "none"),
        thinks_by_default=True,
        thinking=thinking,
        forced_choice="stop_thinking",
    )
    outcome = fitted(wanted, limits)
    if stopped:
        assert outcome.request.thinking == Thinking("off")
        assert outcome.request.tool_choice == ToolChoice("required")
        assert features(outcome) == [("thinking.mode", "approximated")]
    else:
        assert outcome.request.tool_choice == ToolChoice("auto")
        assert ("tool_choice", "approximated") in features(outcome)


def test_the_only_tool_may_be_forced_where_naming_it_is_refused() -> None:
    wanted = request(tools=(Tool("f"),), tool_choice=ToolChoice("required", ("f",)))
    outcome = fitted(wanted, Limits(tool_choices=("auto", "none", "required")))
    assert outcome.request.tool_choice == ToolChoice("required")


def test_a_choice_may_be_forced_on_a_model_that_thinks_only_when_asked() -> None:
    limits = limits_for("anthropic", "claude-sonnet-4-5")
    tools = (Tool("f"), Tool("g"))
    calm = request(tools=tools, tool_choice=ToolChoice("required"), max_tokens=4096)
    assert fitted(calm, limits, "anthropic").request.tool_choice == ToolChoice("required")
    thinking = msgspec.structs.replace(calm, thinking=Thinking("on", budget=2048))
    assert fitted(thinking, limits, "anthropic").request.tool_choice == ToolChoice("auto")
