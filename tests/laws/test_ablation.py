"""Nothing is ignored in silence: a field that nobody would miss was neither carried nor declared."""

from typing import Any

import pytest

from proofs.fidelity.ablation import Kind, is_said_elsewhere, silent_fields
from proofs.fidelity.corpus import avoidable_losses, main
from proofs.fidelity.ignored import ELSEWHERE, IGNORED
from proofs.fidelity.necessary import NECESSARY
from tests.core.laws.cases import DEEP, MAIN, of_kind, recorded
from tests.tiers import rows
from wireglot_core.dialects.registry import dialect_name
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.testing.check_dialect import Case
from wireglot_core.wire.json import encode

KINDS: tuple[Kind, ...] = ("requests", "responses", "streams")
SAMPLE = 400 if DEEP else 25
ALLOWED = 0.001
"""Of recorded crossings: what is left are single oddities of single servers, reported by `make corpus`."""
ONE_ODDITY = 3 if DEEP else 0
"""One recording, in three directions. The small sample has none."""


def silent(cases: list[Case], kind: Kind) -> tuple[int, list[str]]:
    found: list[str] = []
    crossings = 0
    for case in cases:
        for target in MAIN:
            if target != case.dialect:
                crossings += 1
                fields = [str(one) for one in silent_fields(case, kind, dialect_name(target))]
                found += fields[:1]
    return crossings, found


@rows("kind", KINDS)
@rows("name", MAIN)
def test_every_field_of_a_fixture_is_carried_or_declared(name, kind):
    """[X11] Delete each field: if neither the output nor the losses change, it was ignored in silence."""
    cases = [param.values[0] for param in of_kind(kind) if param.values[0].dialect == name]
    assert cases
    _, found = silent(cases, kind)
    assert found == []


@pytest.mark.whole
@rows("kind", KINDS)
@rows("name", MAIN)
def test_fields_of_recordings_are_carried_or_declared(name, kind):
    """[X11] ... over recorded traffic, where it is at hand."""
    crossings, found = silent(list(recorded(name, kind, SAMPLE)), kind)
    assert len(found) <= max(ALLOWED * crossings, ONE_ODDITY), "\n".join(found[:10])


def test_what_may_be_ignored_is_a_short_list_with_reasons():
    """[X11] allow list by name, short."""
    assert len(IGNORED) <= 32
    assert len(ELSEWHERE) <= 4
    assert all(entry.reason for entry in IGNORED)
    assert all(one.reason for one in ELSEWHERE)
    assert not any("*" in one.path for one in ELSEWHERE)


ASKED: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": "?"}]}],
    "tools": [{"functionDeclarations": [{"name": "look"}, {"name": "count"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["count", "look"]}},
}
LOADED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": "?"},
        {
            "role": "system",
            "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}}],
        },
    ],
    "tools": [{"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}],
}
CUT: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":'},
    },
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
ALLOWED_NAMES = "toolConfig.functionCallingConfig.allowedFunctionNames"


def test_what_something_else_says_is_not_silent():
    """[X11] A list of all functions, a deferred tool that was loaded, the id of a call that was left out."""
    assert not list(silent_fields(Case("all", "gemini", body=ASKED), "requests", "anthropic"))
    for target in ("openai-chat", "openai-responses", "gemini"):
        assert not list(silent_fields(Case("late", "anthropic", body=LOADED), "requests", target))
    data = b"".join(b"data: " + encode(frame) + b"\n\n" for frame in CUT)
    assert not list(silent_fields(Case("cut", "anthropic", data=data), "streams", "gemini"))


@pytest.mark.parametrize(
    ("functions", "mode", "more"),
    [
        (["look"], "ANY", []),
        (["look", "count"], "VALIDATED", []),
        (["look", "count"], "ANY", [{"googleSearch": {}}]),
    ],
)
def test_a_list_of_functions_says_something_unless_it_names_all_there_is(functions, mode, more):
    config = {"mode": mode, "allowedFunctionNames": functions}
    asked = {**ASKED, "tools": ASKED["tools"] + more, "toolConfig": {"functionCallingConfig": config}}
    assert is_said_elsewhere("gemini", ALLOWED_NAMES, "anthropic", ASKED, ((), ()))
    assert not is_said_elsewhere("gemini", ALLOWED_NAMES, "anthropic", asked, ((), ()))
    assert not is_said_elsewhere("gemini", ALLOWED_NAMES, "openai-chat", ASKED, ((), ()))


def test_a_deferred_tool_is_loaded_only_where_a_block_adds_it_and_that_is_reported():
    reported = (Loss("$.messages[1].content[0]", "tool.position", "approximated", "in front"),)
    other = {**LOADED, "tools": [*LOADED["tools"], {**LOADED["tools"][0], "name": "never"}]}
    path = "tools[].defer_loading"
    assert is_said_elsewhere("anthropic", path, "openai-chat", LOADED, ((), reported))
    assert not is_said_elsewhere("anthropic", path, "openai-chat", LOADED, ((), ()))
    assert not is_said_elsewhere("anthropic", path, "openai-chat", other, ((), reported))


def test_the_id_of_a_call_is_left_out_only_with_its_call():
    reported = (Loss("$", "tool_call.arguments", "dropped", "the limit was reached inside the call"),)
    assert is_said_elsewhere("anthropic", "content_block.id", "gemini", CUT, ((), reported))
    assert not is_said_elsewhere("anthropic", "content_block.id", "gemini", CUT, ((), ()))
    assert not is_said_elsewhere("anthropic", "content_block.id", "gemini", [CUT[1], *CUT], ((), reported))


def test_what_could_not_be_helped_is_a_short_list_with_reasons():
    """[X11] A loss of what its direction has a place for is avoidable unless a reason is named."""
    assert len(NECESSARY) <= 20
    assert all(entry.reason for entry in NECESSARY)
    lost = Loss("$.messages[0].content[0].cache", "cache_marker", "dropped", "forgotten")
    assert avoidable_losses([lost], {"cache_marker"}) == ["cache_marker"]
    assert avoidable_losses([lost], set()) == []


def test_a_reason_excuses_what_it_names_and_nothing_else():
    """A pattern that begins with anything could hide a loss that is new."""
    wide = {one for entry in NECESSARY for one in entry.details if one.startswith("*")}
    assert wide == {"* only"}, "fields of the usage, which only their vendor counts"
    assert all(entry.features == ("usage.detail",) for entry in NECESSARY if "* only" in entry.details)


def test_a_result_without_its_call_is_excused_where_the_call_is_stored_elsewhere():
    lost = Loss("$.messages[0].content[0]", "tool_result.pairing", "dropped", "a result without its call")
    stored = {"input": [{"type": "item_reference", "id": "fc_1"}]}
    assert avoidable_losses([lost], {"tool_result.pairing"}, {"previous_response_id": "resp_1"}) == []
    assert avoidable_losses([lost], {"tool_result.pairing"}, stored) == []
    assert avoidable_losses([lost], {"tool_result.pairing"}, {"input": "Hello"}) == ["tool_result.pairing"]
    answer = {"previous_response_id": "resp_1", "output": []}
    assert avoidable_losses([lost], {"tool_result.pairing"}, answer) == ["tool_result.pairing"]


def test_reasoning_is_excused_where_its_answer_brought_nothing_that_could_go_back():
    places: set[Feature] = {"reasoning.text", "reasoning.signature"}
    bare = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    whole = {**bare, "encrypted_content": "gAAA"}
    raw = {**bare, "content": [{"type": "reasoning_text", "text": "Hm."}]}
    for feature in places:
        lost = Loss("$.messages[1].content[0]", feature, "dropped", "its encrypted content was not kept")
        assert avoidable_losses([lost], places, {"output": [bare, {"type": "message"}]}) == []
        for output in ([bare, whole], [bare, raw], [{"type": "message"}], []):
            assert avoidable_losses([lost], places, {"output": output}) == [feature]
        other = Loss("$.messages[1].content[0]", feature, "dropped", "not issued by this provider")
        assert avoidable_losses([other], places, {"output": [bare]}) == [feature]


def test_without_recordings_the_figures_say_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["corpus", str(tmp_path)])
    main()
    assert "nothing was measured" in capsys.readouterr().out
