"""The two-turn tool loop of real clients: the demo model reads the marked file with the tools they offer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.demo.fill import Hints
from wireglot.demo.script import answer
from wireglot.demo.tools import (
    arguments_for,
    closing_tools,
    hints_of,
    places_in,
    reading_tools,
    suitable_tools,
    weather_tools,
)
from wireglot_core.ir.content import Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Grammar, Request, Tool
from wireglot_core.wire.json import decode

FILE = "/notes/marker.txt"
PROMPT = f"Read the marker file [[marker-file:{FILE}]] with a tool, then reply with its content."
NONCE = "NONCE-0123456789ab"


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()
        },
        "required": list(required),
    }


AGENT = Tool(
    "Agent",
    "Launch an agent for a task",
    schema("description", "prompt", description="string", prompt="string"),
)
BASH = Tool(
    "Bash", "Runs a command", schema("command", command="string", timeout="number", description="string")
)
READ = Tool(
    "Read", "Reads a file", schema("file_path", file_path="string", offset="integer", limit="integer")
)
WRITE = Tool("Write", "Writes a file", schema("file_path", "content", file_path="string", content="string"))
EXEC_COMMAND = Tool("exec_command", "Runs a command in a PTY", schema("cmd", cmd="string", workdir="string"))
VIEW_IMAGE = Tool("view_image", "View a local image", schema("path", path="string"))
SHELL = Tool(
    "shell", "Runs a shell command", schema("command", command={"type": "array", "items": {"type": "string"}})
)
PATCH = Tool("apply_patch", "Edit files", kind="custom", grammar=Grammar("lark", "start: begin_patch"))
EXEC = Tool(
    "exec",
    "Run JavaScript; `await tools.exec_command(...)`",
    kind="custom",
    namespace="functions",
    grammar=Grammar("lark", "start: js_source"),
)
EXEC_AS_FUNCTION = Tool("functions__exec", "Run JavaScript with await tools", schema("input", input="string"))
GEMINI_READ = Tool("read_file", "Reads a file", schema("file_path", file_path="STRING", start_line="NUMBER"))
GEMINI_LIST = Tool("list_directory", "Lists a folder", schema("dir_path", dir_path="STRING"))
GEMINI_SHELL = Tool(
    "run_shell_command", "Runs a command", schema("command", command="STRING", description="STRING")
)
OPENCODE_READ = Tool("read", "Read a file", schema("filePath", filePath="string"))
MCP_READ = Tool("mcp__files__read_text", "Read the content of a file", schema("path", path="string"))


def asked(*tools: Tool) -> Request:
    return Request("demo", (Message("user", (Text("<reminder/>"), Text(PROMPT))),), tools)


def call_of(request: Request) -> ToolCall:
    (call,) = [part for part in answer(request).content if isinstance(part, ToolCall)]
    return call


def later(request: Request, result: str) -> Request:
    call = call_of(request)
    turns = (Message("assistant", (call,)), Message("user", (ToolResult(call.id, (Text(result),)),)))
    return Request(request.model, request.messages + turns, request.tools)


def last_text(request: Request) -> str:
    (part,) = answer(request).content
    assert isinstance(part, Text)
    return part.text


@rows(
    ("tools", "name", "arguments"),
    [
        pytest.param((AGENT, BASH, WRITE, READ), "Read", {"file_path": FILE}, id="claude-code"),
        pytest.param((AGENT, BASH), "Bash", {"command": f"cat {FILE}"}, id="shell-only"),
        pytest.param((VIEW_IMAGE, PATCH, EXEC_COMMAND), "exec_command", {"cmd": f"cat {FILE}"}, id="codex"),
        pytest.param((SHELL,), "shell", {"command": ["bash", "-lc", f"cat {FILE}"]}, id="shell-list"),
        pytest.param(
            (GEMINI_LIST, GEMINI_SHELL, GEMINI_READ), "read_file", {"file_path": FILE}, id="gemini-cli"
        ),
        pytest.param((BASH, OPENCODE_READ), "read", {"filePath": FILE}, id="opencode"),
        pytest.param((AGENT, WRITE, MCP_READ), "mcp__files__read_text", {"path": FILE}, id="mcp"),
    ],
)
def test_the_tool_that_can_read_a_file_is_called_with_its_path(
    tools: tuple[Tool, ...], name: str, arguments: dict[str, Any]
) -> None:
    call = call_of(asked(*tools))
    assert call.name == name
    made = decode(call.arguments)
    assert {key: made[key] for key in arguments} == arguments


def test_a_freeform_tool_gets_a_program_and_keeps_its_namespace() -> None:
    call = call_of(asked(EXEC))
    assert (call.kind, call.name, call.namespace) == ("custom", "exec", "functions")
    assert f'tools.exec_command({{cmd: "cat {FILE}"}})' in call.arguments


def test_a_freeform_tool_in_the_dress_of_a_function_gets_the_same_program() -> None:
    call = call_of(asked(EXEC_AS_FUNCTION))
    assert decode(call.arguments) == {"input": call_of(asked(EXEC)).arguments}


def test_the_nonce_of_the_result_ends_the_loop() -> None:
    assert last_text(later(asked(AGENT, BASH, READ), f"1\t{NONCE}\n")) == f"FINAL-OK {NONCE}"


def test_a_nonce_in_the_prompt_proves_nothing() -> None:
    request = Request("demo", (Message("user", (Text(f"{PROMPT} {NONCE}"),)),), (READ,))
    assert "FINAL-OK" not in last_text(later(request, "no such file"))


def test_a_tool_that_did_not_show_it_is_followed_by_the_next() -> None:
    second = later(asked(AGENT, BASH, READ), "Error: not permitted")
    assert call_of(second).name == "Bash"
    third = later(second, NONCE)
    assert last_text(third) == f"FINAL-OK {NONCE}"


def test_it_gives_up_after_a_few_tools() -> None:
    request = asked(BASH, READ, EXEC_COMMAND, SHELL, GEMINI_SHELL)
    for _ in range(3):
        request = later(request, "nothing")
    assert "answered" in last_text(request)


def test_a_word_after_the_loop_gets_the_same_answer_and_no_call() -> None:
    done = later(asked(READ), NONCE)
    turns = (Message("assistant", answer(done).content), Message("user", (Text("And?"),)))
    assert last_text(Request("demo", done.messages + turns, done.tools)) == f"FINAL-OK {NONCE}"


def test_a_second_marker_starts_a_second_loop() -> None:
    done = later(asked(READ), NONCE)
    again = Message("user", (Text("Now [[marker-file:/tmp/other.txt]]"),))
    request = Request("demo", (*done.messages, Message("assistant", answer(done).content), again), (READ,))
    assert decode(call_of(request).arguments)["file_path"] == "/tmp/other.txt"


def test_without_tools_the_marked_prompt_is_answered_in_words() -> None:
    assert "demo model" in last_text(asked())


def test_deferred_tools_are_not_called() -> None:
    hidden = Tool("Read", "Reads a file", READ.schema, deferred=True)
    assert call_of(asked(hidden, BASH)).name == "Bash"


def test_of_several_files_one_is_read_in_each_turn_and_each_has_thoughts_of_its_own() -> None:
    files = ("/tmp/one.txt", "/tmp/two.txt", "/tmp/three.txt")
    named = " ".join(f"[[marker-file:{file}]]" for file in files)
    request = Request("demo", (Message("user", (Text(f"[[demo:think]] Read {named}"),)),), (READ, BASH))
    read: list[str] = []
    thoughts: set[str] = set()
    for shown in ("nothing yet", "nothing yet", NONCE):
        content = answer(request, dialect="anthropic").content
        read.append(
            decode(next(part.arguments for part in content if isinstance(part, ToolCall)))["file_path"]
        )
        thoughts |= {part.text for part in content if isinstance(part, Reasoning)}
        request = later(request, shown)
    assert tuple(read) == files
    assert len(thoughts) == len(files)
    assert answer(request).content[-1] == Text(f"FINAL-OK {NONCE}")


AGENT_TOOLS = {
    "path": (
        *("Read", "read_file", "readfile", "view", "view_file", "open_file", "cat", "get_file"),
        "mcp__files__get_file_contents",
    ),
    "command": (
        *("Bash", "exec_command", "shell_command", "shell", "run_shell_command", "run_command"),
        *("execute_command", "run_terminal_cmd", "local_shell", "functions.exec", "execute", "terminal"),
    ),
}


def test_of_the_tools_that_agents_have_the_likeliest_reads_a_file() -> None:
    """Those made for reading, those for commands, those that may, and last those that change something."""

    def tool(name: str, key: str, description: str = "") -> Tool:
        return Tool(name, description, {"type": "object", "properties": {key: {"type": "string"}}})

    ranked = [
        *(tool(name, key) for key, names in AGENT_TOOLS.items() for name in names),
        tool("show", "file_path", "Reads a file"),
        tool("run_it", "cmd"),
        tool("other", "x"),
        tool("write_file", "path", "Writes the content"),
    ]
    assert reading_tools(list(reversed(ranked))) == ranked
    show, program, other = tool("show", "path", "Reads"), tool("terminal", "code"), tool("terminal", "x")
    assert reading_tools([other, show, program]) == [program, show, other]
    freeform = Tool("terminal", "", kind="custom")
    assert reading_tools([other, show, freeform]) == [freeform, show, other]


def test_tools_are_ranked_by_their_name_and_then_by_up_to_three_words_of_the_prompt() -> None:
    prompt = "Please list all open invoices of this month with lookup_x"
    ranked = [
        Tool("lookup_x", "", {}),
        Tool("three", "open invoices, month", {}),
        Tool("four", "List open invoices of a month", {}),
        Tool("two", "open invoices", {}),
        Tool("one", "invoices", {}),
        Tool("none", "", {}),
        Tool("delete_all", "list all open invoices", {}),
        Tool("delete_some", "", {}),
    ]
    assert suitable_tools(ranked, prompt) == ranked
    three, four = ranked[1:3]
    mixed = [*ranked[-3:0:-1], ranked[0], *ranked[-2:]]
    assert suitable_tools(mixed, prompt) == [ranked[0], four, three, *ranked[3:]]


@pytest.mark.parametrize(
    "name",
    ["final_result", "finalAnswer", "structured_output", "attempt_completion", "task_done", "a__return_final_answer"],
)  # fmt: skip
def test_tools_that_take_the_answer_are_known_by_their_names(name: str) -> None:
    tools = [Tool(name, "", {}), Tool(f"{name}_x", "", {})]
    assert closing_tools(tools) == tools[:1]


def test_the_weather_is_asked_of_a_tool_that_tells_it_and_changes_nothing() -> None:
    tools = [Tool(name, "", {}) for name in ("get_weather", "update_weather", "get_time", "api.weatherNow")]
    assert weather_tools(tools, "The WEATHER, please") == [tools[0], tools[3]]
    assert weather_tools(tools, "What time is it?") == []


def test_hints_are_paths_places_and_words_and_never_a_command() -> None:
    hints = hints_of("Show ~/a/b.txt and the weather in New York and for Rome and in Rome, `rm -rf /`")
    assert (hints.path, hints.command, hints.place) == ("~/a/b.txt", "", "New York")
    assert hints_of("x " * 200).text == ("x " * 100)
    marked = hints_of("Show a.txt", "/m/f.txt", "FINAL")
    assert (marked.path, marked.command, marked.text) == ("/m/f.txt", "cat /m/f.txt", "FINAL")
    assert places_in("in Rome, at Paris, in Rome") == ["Rome", "Paris"]


@pytest.mark.parametrize(
    ("tool", "begins"),
    [
        (Tool("apply_patch", kind="custom"), "*** Begin Patch\n"),
        (Tool("functions.ApplyPatch", kind="custom"), "*** Begin Patch\n"),
        (Tool("edit", "It takes *** Begin Patch ...", kind="custom"), "*** Begin Patch\n"),
        (Tool("run", "Runs JavaScript", kind="custom"), "const "),
        (Tool("shell", kind="custom"), "echo hello from the demo model"),
        (Tool("say", kind="custom"), "demo"),
    ],
)
def test_a_freeform_tool_is_written_what_its_kind_reads(tool: Tool, begins: str) -> None:
    assert arguments_for(tool, Hints()).startswith(begins)
