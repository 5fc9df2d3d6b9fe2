"""Calls that some model made of a client's own tools: an item where it says what the item must, else a call."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.dialects.openai_responses import wire
from tests.core.dialects.openai_responses.wire import CONTEXT, read, sse, write
from tests.tiers import rows
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.dialects.openai_responses.client_calls import parse_client_result
from wireglot_core.ir.content import Origin, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import Delta, Finish, PartEnd, PartStart, Start, fold, unfold
from wireglot_core.wire.json import encode_text

PREVIEW = {"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"}


def parse(body: dict[str, Any]) -> Any:
    return wire.parse(body)


def parse_answer(body: dict[str, Any]) -> Any:
    return DIALECT.parse_response(body, CONTEXT)


def answered(tool, arguments, signature=None):
    """The items of an answer that calls the function which stands for a tool, whole and streamed."""
    request = parse({"model": "m", "input": "Hi", "tools": [tool]})
    text = arguments if isinstance(arguments, str) else encode_text(arguments)
    call = ToolCall("call_1", request.tools[0].name, text, signature=signature)
    answer = Response("r", "m", (call,), Stop("tool_calls"))
    whole = DIALECT.render_response(answer, CONTEXT, request).value["output"]
    events = write(list(unfold(answer)), request)
    assert events[-1]["response"]["output"] == whole
    return whole


def said(item):
    return {key: value for key, value in item.items() if key not in ("id", "call_id", "status", "type")}


@rows(
    ("tool", "arguments", "kind", "expected"),
    [
        (
            {"type": "shell"},
            {"commands": ["ls"], "timeout_ms": 5.0, "max_output_length": 7},
            "shell_call",
            {"action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": 7}, "environment": None},
        ),
        (
            {"type": "shell", "environment": {"type": "local"}},
            {"commands": ["ls"], "timeout_ms": "soon", "max_output_length": 0.5},
            "shell_call",
            {
                "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
                "environment": {"type": "local"},
            },
        ),
        (
            {"type": "local_shell"},
            {"command": ["ls"], "timeout_ms": 5, "user": "me", "working_directory": "/"},
            "local_shell_call",
            {
                "action": {
                    "type": "exec",
                    "command": ["ls"],
                    "env": {},
                    "timeout_ms": 5,
                    "user": "me",
                    "working_directory": "/",
                }
            },
        ),
        (
            {"type": "local_shell"},
            {"command": ["ls"], "env": {"A": "b"}, "user": None},
            "local_shell_call",
            {"action": {"type": "exec", "command": ["ls"], "env": {"A": "b"}}},
        ),
        (
            {"type": "apply_patch"},
            {"type": "delete_file", "path": "a", "diff": "-x"},
            "apply_patch_call",
            {"operation": {"type": "delete_file", "path": "a"}},
        ),
        (
            {"type": "apply_patch"},
            {"type": "create_file", "path": "a", "diff": "+x"},
            "apply_patch_call",
            {"operation": {"type": "create_file", "path": "a", "diff": "+x"}},
        ),
        (
            {"type": "apply_patch"},
            {"type": "update_file", "path": "a", "diff": "+x"},
            "apply_patch_call",
            {"operation": {"type": "update_file", "path": "a", "diff": "+x"}},
        ),
        (
            {"type": "computer"},
            {"actions": [{"type": "wait"}]},
            "computer_call",
            {"pending_safety_checks": [], "actions": [{"type": "wait"}]},
        ),
        (
            PREVIEW,
            {"type": "wait"},
            "computer_call",
            {"pending_safety_checks": [], "action": {"type": "wait"}},
        ),
        (
            {"type": "tool_search", "execution": "client"},
            {"query": "x"},
            "tool_search_call",
            {"execution": "client", "arguments": {"query": "x"}},
        ),
        (
            {"type": "tool_search", "execution": "client"},
            "[1]",
            "tool_search_call",
            {"execution": "client", "arguments": "[1]"},
        ),
        (
            {"type": "tool_search", "execution": "client"},
            " ",
            "tool_search_call",
            {"execution": "client", "arguments": {}},
        ),
    ],
)
def test_a_call_that_says_enough_is_an_item_of_its_own(tool, arguments, kind, expected):
    (item,) = answered(tool, arguments)
    assert (item["type"], item["call_id"], item["status"]) == (kind, "call_1", "completed")
    assert said(item) == expected


@rows(
    ("tool", "arguments"),
    [
        ({"type": "shell"}, {"commands": "ls"}),
        ({"type": "shell"}, {"commands": []}),
        ({"type": "shell"}, {"commands": ["ls", 7]}),
        ({"type": "shell"}, "[]"),
        ({"type": "shell"}, "{broken"),
        ({"type": "shell"}, ""),
        ({"type": "local_shell"}, {"command": "ls"}),
        ({"type": "apply_patch"}, {"type": "create_file", "path": "a"}),
        ({"type": "apply_patch"}, {"type": "update_file", "path": "a", "diff": 7}),
        ({"type": "apply_patch"}, {"type": "move_file", "path": "a", "diff": ""}),
        ({"type": "apply_patch"}, {"type": "delete_file", "path": 7}),
        ({"type": "computer"}, {"actions": []}),
        ({"type": "computer"}, {"actions": {"type": "wait"}}),
        ({"type": "computer"}, {"actions": ["wait"]}),
        ({"type": "computer"}, {"actions": [{"type": 7}]}),
        (PREVIEW, {"x": 1}),
    ],
)
def test_a_call_that_says_too_little_is_an_ordinary_one(tool, arguments):
    """Half of it is not run."""
    (item,) = answered(tool, arguments)
    assert item["type"] == "function_call"
    text = arguments if isinstance(arguments, str) else encode_text(arguments)
    assert item["arguments"] == (text or "{}")


@pytest.mark.parametrize("arguments", [{"commands": ["ls"]}, {"commands": 7}])
def test_the_state_of_such_a_call_goes_ahead_of_it(arguments):
    signature = Signature("s", Origin("gemini"))
    carrier, item = answered({"type": "shell"}, arguments, signature)
    assert (carrier["type"], carrier["summary"]) == ("reasoning", [])
    back = parse({"model": "m", "input": [{"role": "user", "content": "x"}, carrier, item]})
    assert back.messages[-1].content[0].signature == signature


def test_a_shell_says_its_commands_one_by_one():
    request = parse({"model": "m", "input": "Hi", "tools": [{"type": "shell"}]})
    call = ToolCall("call_1", "shell", '{"commands":["ls","pwd"]}')
    events = write(list(unfold(Response("r", "m", (call,), Stop("tool_calls")))), request)
    begun = next(event for event in events if event["type"] == "response.output_item.added")
    assert (begun["item"]["status"], begun["item"]["action"]["commands"]) == ("in_progress", [])
    reported = [
        (event["type"].rpartition(".")[2], event["command_index"], event.get("delta", event.get("command")))
        for event in events
        if "shell_call_command" in event["type"]
    ]
    assert reported == [
        ("added", 0, ""),
        ("delta", 0, "ls"),
        ("done", 0, "ls"),
        ("added", 1, ""),
        ("delta", 1, "pwd"),
        ("done", 1, "pwd"),
    ]


@rows(
    ("tools", "environment", "is_ours"),
    [
        ([], None, True),
        ([{"type": "shell"}], None, True),
        ([{"type": "shell", "environment": {"type": "container_auto"}}], None, False),
        ([{"type": "shell", "environment": {"type": "container_auto"}}], {"type": "local"}, True),
        ([], {"type": "container_reference", "container_id": "c"}, False),
    ],
)
def test_a_shell_in_a_container_is_the_servers(tools, environment, is_ours):
    """Its output belongs to it: that too goes back as it came, and nobody else hears of a result."""
    shell = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": environment}
    patch = {"type": "apply_patch_call", "call_id": "d", "operation": {"type": "delete_file", "path": "a"}}
    output = {"type": "shell_call_output", "call_id": "c", "output": []}
    body = {"model": "m", "input": [{"role": "user", "content": "x"}, patch, shell, output], "tools": tools}
    parts = [message.content[0] for message in parse(body).messages[1:]]
    kinds = ["ToolCall", "ToolResult"] if is_ours else ["Foreign", "Foreign"]
    assert [type(part).__name__ for part in parts] == ["ToolCall", *kinds]


@pytest.mark.parametrize(
    ("call_id", "identifier", "reported"),
    [("c", "sh_1", "c"), ("", "sh_1", "sh_1"), ("", "", None)],
)
def test_a_client_call_is_known_by_its_call_id_or_its_id(call_id, identifier, reported):
    item = {"type": "shell_call", "call_id": call_id, "id": identifier, "action": {"commands": ["ls"]}}
    (part,) = parse_answer({"id": "r", "model": "m", "output": [item]}).content
    assert part.id == (reported or CONTEXT.new_id("call", "r", "0", "shell"))


def test_an_item_that_comes_back_under_another_id_is_reported_by_that():
    """Ids that we made up are nothing to a provider; those of calls may have been changed for it."""
    minted = CONTEXT.new_id("sh", "x")
    call = {"type": "shell_call", "id": minted, "call_id": "c", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "id": minted, "call_id": "c", "output": []}
    request = parse({"model": "m", "input": [{"role": "user", "content": "x"}, call, output]})
    start, asked, ran = request.messages
    moved = replace(
        request,
        messages=(
            start,
            replace(asked, content=(replace(asked.content[0], id="d"),)),
            replace(ran, content=(replace(ran.content[0], call_id="d"),)),
        ),
    )
    sent = DIALECT.render_request(moved, CONTEXT).value["input"]
    assert sent[1:] == [
        {"type": "shell_call", "call_id": "d", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "d", "output": []},
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            [{"stdout": "a\n", "stderr": "b", "outcome": {"type": "exit", "exit_code": 3}}, 7],
            "a\nb\n[exit code 3]",
        ),
        ([{"stdout": "", "outcome": {"type": "timeout"}}], "[timed out]"),
        ([{"stdout": "x"}], "x\n[exit code None]"),
    ],
)
def test_the_output_of_a_shell_is_what_a_terminal_shows(output, text):
    item = {"type": "shell_call_output", "call_id": "c", "output": output}
    request = parse({"model": "m", "input": [{"role": "user", "content": "x"}, item]})
    assert request.messages[1].content[0].content == (Text(text),)


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ([], "No tools were found."),
        ([7, {"type": "x"}], "No tools were found."),
        (
            [
                {"type": "function", "name": "a"},
                {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "b"}, 7]},
            ],
            "These tools can be called now: a, n__b.",
        ),
    ],
)
def test_what_a_search_found_is_reported_by_name(tools, text):
    item = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": tools}
    assert parse_client_result(Fields(item)).content == (Text(text),)


def test_a_signature_carried_ahead_of_a_call_or_behind_a_text_finds_it_in_an_answer_too():
    """An answer that one of our own kind gave: whole and streamed."""
    signature = Signature("s", Origin("gemini"))
    answer = Response(
        "resp_1",
        "m",
        (Text("a", signature=signature), ToolCall("c", "f", "{}", signature=signature)),
        Stop("tool_calls"),
    )
    body = DIALECT.render_response(answer, CONTEXT).value
    assert [item["type"] for item in body["output"]] == ["message", "reasoning", "reasoning", "function_call"]
    streamed: Any = fold(read(DIALECT.stream_writer(CONTEXT).write(unfold(answer))))
    for back in (parse_answer(body), streamed):
        assert [part.signature for part in back.content] == [signature, signature]


def test_a_signature_that_belongs_to_nothing_is_left_out():
    signature = Signature("s", Origin("gemini"))
    answer = Response("resp_1", "m", (Text("a", signature=signature),), Stop("end"))
    carrier = DIALECT.render_response(answer, CONTEXT).value["output"][1]
    (part,) = parse_answer(
        {
            "id": "r",
            "model": "m",
            "output": [carrier, {"type": "message", "role": "assistant", "content": []}],
        }
    ).content
    assert part.signature is None
    request = parse({"model": "m", "input": [carrier, {"role": "user", "content": "x"}]})
    assert [message.role for message in request.messages] == ["user"]


@pytest.mark.parametrize("end", [Signature("late", Origin("gemini")), None])
def test_a_signature_that_comes_behind_its_call_is_declared(end):
    writer = DIALECT.stream_writer(CONTEXT)
    writer.write(
        [
            Start("r", "m"),
            PartStart(0, ToolCall("c", "f", "")),
            Delta(0, "{}"),
            PartEnd(0, end),
            Finish(Stop("tool_calls")),
        ]
    )
    lost = [(loss.path, loss.feature, loss.action) for loss in writer.losses]
    assert lost == ([("$.content[0].signature", "reasoning.signature", "dropped")] if end else [])


def test_a_call_without_arguments_says_so_in_json():
    events = write(
        [Start("r", "m"), PartStart(0, ToolCall("c", "f", "")), PartEnd(0), Finish(Stop("tool_calls"))]
    )
    assert [event["delta"] for event in events if event["type"].endswith("arguments.delta")] == ["{}"]
    assert events[-1]["response"]["output"][0]["arguments"] == "{}"


def test_a_second_announcement_of_a_shell_is_passed_on_where_the_server_runs_it():
    item = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c",
        "status": "completed",
        "action": {"commands": ["ls"]},
    }
    hosted = {**item, "environment": {"type": "container_reference", "container_id": "x"}}
    for value, passed in ((item, 0), (hosted, 2)):
        events = read(
            sse(
                {"type": "response.created", "response": {"id": "r", "model": "m"}},
                {"type": "response.output_item.added", "output_index": 0, "item": value},
                {
                    "type": "response.shell_call_command.delta",
                    "output_index": 0,
                    "command_index": 0,
                    "delta": "l",
                },
                {"type": "response.output_item.done", "output_index": 0, "item": value},
                {
                    "type": "response.completed",
                    "response": {"id": "r", "status": "completed", "output": [value]},
                },
            )
        )
        assert sum(type(event).__name__ == "ForeignEvent" for event in events) == passed
