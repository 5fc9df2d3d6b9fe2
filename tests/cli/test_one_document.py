"""`wireglot translate request|response|stream`."""

import json
import subprocess

import pytest

import wireglot
from tests.cli.running import COMMAND, PLAIN, complaint, run, spawn
from tests.processes import ForkedCommand
from tests.tiers import rows
from wireglot.cli.examples import conversation
from wireglot_core.wire.sse import SseDecoder

PAIRS = [(source, target) for source in conversation.MODELS for target in conversation.MODELS]


def test_a_request_is_what_the_library_makes_of_it():
    """R-DE-10"""
    body = conversation.document("anthropic", "request")
    done = run(
        "translate",
        "request",
        "--from",
        "anthropic",
        "--to",
        "gemini",
        "--model",
        "gemini-2.5-pro",
        given=body,
    )
    rendered = wireglot.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
    assert done.returncode == 0
    assert json.loads(done.stdout) == rendered.value
    assert done.stdout.count(b"\n") == 1
    assert done.stdout.endswith(b"\n")


def test_a_response_is_what_the_library_makes_of_it():
    body = conversation.document("gemini", "response")
    done = run("translate", "response", "--from", "gemini", "--to", "openai-chat", given=body)
    assert done.returncode == 0
    assert (
        json.loads(done.stdout)
        == wireglot.translate_response(body, source="gemini", target="openai-chat").value
    )


def test_a_stream_is_what_the_library_makes_of_it():
    data = conversation.stream("gemini")
    translator = wireglot.StreamTranslator(source="gemini", target="anthropic")
    expected = translator.feed(data) + translator.close()
    done = run("translate", "stream", "--from", "gemini", "--to", "anthropic", given=data)
    assert done.returncode == 0
    assert done.stdout == expected


def test_options_may_stand_before_the_kind():
    body = conversation.document("anthropic", "request")
    done = run("translate", "--from", "anthropic", "--to", "openai-chat", "request", given=body)
    assert done.returncode == 0


def test_the_model_option_replaces_the_model_of_the_body():
    body = conversation.document("anthropic", "request")
    done = run(
        "translate", "request", "--from", "anthropic", "--to", "openai-chat", "--model", "gpt-x", given=body
    )
    assert json.loads(done.stdout)["model"] == "gpt-x"


def test_losses_are_reported_on_standard_error_without_colour_in_a_pipe():
    """[X25] With their grades, the worst first, at the places of the body that was given."""
    body = {**conversation.document("openai-chat", "request"), "seed": 7}
    done = run("translate", "request", "--from", "openai-chat", "--to", "anthropic", given=body)
    reported = done.stderr.decode()
    assert done.returncode == 0
    assert "from openai-chat to anthropic:" in reported.splitlines()[0]
    lines = [line.split() for line in reported.splitlines()[1:]]
    assert ["degraded", "dropped", "sampling.seed", "$.seed"] in [line[:4] for line in lines]
    order = ["serious", "degraded", "harmless"]
    assert [order.index(line[0]) for line in lines] == sorted(order.index(line[0]) for line in lines)
    assert "\x1b" not in reported


def test_losses_of_one_kind_are_one_line_with_their_number():
    """And one document has them all: `--losses`."""
    marked = [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in ("a", "b", "c")
    ]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": marked}]}
    done = run("translate", "request", "--from", "anthropic", "--to", "gemini", given=body)
    head, line = done.stderr.decode().splitlines()
    assert head.startswith("3 losses ")
    said = "harmless dropped cache_marker x3 $.messages[0].content[0].cache_control Gemini caches implicitly"
    assert " ".join(line.split()) == said


def test_losses_go_to_a_file_as_json(tmp_path):
    body = {**conversation.document("openai-chat", "request"), "seed": 7}
    path = tmp_path / "losses.json"
    done = run(
        "translate",
        "request",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "--losses",
        str(path),
        given=body,
    )
    assert done.stderr == b""
    losses = json.loads(path.read_text())
    assert "sampling.seed" in [loss["feature"] for loss in losses]
    keys = ["path", "feature", "action", "detail", "grade", "document"]
    assert all(list(loss) == keys for loss in losses)
    seed = next(loss for loss in losses if loss["feature"] == "sampling.seed")
    assert (seed["path"], seed["grade"], seed["document"]) == ("$.seed", "degraded", "request")


def test_no_losses_are_an_empty_array_in_the_file_and_silence_without_it(tmp_path):
    path = tmp_path / "losses.json"
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    command = ("translate", "request", "--from", "anthropic", "--to", "openai-chat")
    run(*command, "--losses", str(path), given=body)
    assert json.loads(path.read_text()) == []
    assert run(*command, given=body).stderr == b""


def test_a_stream_has_losses_to_write_too(tmp_path):
    path = tmp_path / "losses.json"
    run(
        "translate",
        "stream",
        "--from",
        "gemini",
        "--to",
        "anthropic",
        "--losses",
        str(path),
        given=conversation.stream("gemini"),
    )
    assert isinstance(json.loads(path.read_text()), list)


def test_pretty_indents_and_changes_nothing_else():
    body = conversation.document("anthropic", "request")
    plain = run("translate", "request", "--from", "anthropic", "--to", "gemini", given=body)
    pretty = run("translate", "request", "--from", "anthropic", "--to", "gemini", "--pretty", given=body)
    assert b'\n  "' in pretty.stdout
    assert json.loads(pretty.stdout) == json.loads(plain.stdout)


def test_files_serve_instead_of_standard_input_and_output(tmp_path):
    given, out = tmp_path / "in.json", tmp_path / "out.json"
    given.write_text(json.dumps(conversation.document("anthropic", "request")))
    done = run(
        "translate", "request", "--from", "anthropic", "--to", "gemini", "--in", str(given), "--out", str(out)
    )
    assert done.returncode == 0
    assert done.stdout == b""
    assert json.loads(out.read_text())["contents"]


def test_the_request_option_brings_back_what_only_the_request_knows(tmp_path):
    """A freeform tool reaches Anthropic as a function, and its call comes back as a freeform call."""
    asked = {
        "model": "gpt-5.1",
        "input": "Edit it.",
        "tools": [{"type": "custom", "name": "patch", "description": "Apply a patch"}],
    }
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(asked))
    upstream = wireglot.translate_request(
        asked, source="openai-responses", target="anthropic", model="claude-sonnet-4-5"
    )
    sent = upstream.value["tools"][0]
    key = next(iter(sent["input_schema"]["properties"]))
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": sent["name"], "input": {key: "*** patch"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    command = ("translate", "response", "--from", "anthropic", "--to", "openai-responses")
    with_request = json.loads(run(*command, "--request", str(path), given=answer).stdout)
    without = json.loads(run(*command, given=answer).stdout)
    assert [item["type"] for item in with_request["output"]] == ["custom_tool_call"]
    assert with_request["output"][0]["input"] == "*** patch"
    assert [item["type"] for item in without["output"]] == ["function_call"]


def test_the_status_option_tells_an_error_whose_body_does_not():
    done = run(
        "translate",
        "response",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "--status",
        "503",
        given={"detail": "busy"},
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["type"] == "error"


def test_the_provider_option_applies_the_limits_of_the_provider():
    """R-DE-10"""
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "temperature": 0.3,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    command = ("translate", "request", "--from", "anthropic", "--to", "openai-chat", "--model", "kimi-k3")
    done = run(*command, "--provider", "kimi", given=body)
    expected = wireglot.translate_request(
        body, source="anthropic", target="openai-chat", model="kimi-k3", provider="kimi"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == expected.value


def test_the_framing_option_writes_gemini_as_a_json_array():
    data = conversation.stream("anthropic")
    done = run(
        "translate", "stream", "--from", "anthropic", "--to", "gemini", "--framing", "json-array", given=data
    )
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), list)


def test_strict_turns_a_loss_of_a_request_into_an_error():
    body = {**conversation.document("openai-chat", "request"), "seed": 7}
    done = run("translate", "request", "--from", "openai-chat", "--to", "anthropic", "--strict", given=body)
    assert complaint(done).startswith("$.")
    assert done.stdout == b""


def test_strict_lets_a_lossless_request_through():
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    assert (
        run(
            "translate", "request", "--from", "anthropic", "--to", "openai-chat", "--strict", given=body
        ).returncode
        == 0
    )


def test_strict_holds_a_lossy_stream_back_altogether():
    frame = b'data: {"candidates":[{"content":{"role":"model","parts":[%b]}%b}]}\n\n'
    data = frame % (b'{"text":"Hi"}', b"") + frame % (b'{"somethingNew":{"a":1}}', b',"finishReason":"STOP"')
    done = run("translate", "stream", "--from", "gemini", "--to", "anthropic", "--strict", given=data)
    assert complaint(done).startswith("$.")
    assert done.stdout == b""


def test_strict_writes_a_lossless_stream_as_a_whole():
    data = (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}],'
        b'"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}\n\n'
    )
    words = ("translate", "stream", "--from", "gemini", "--to", "gemini")
    plain, strict = run(*words, given=data), run(*words, "--strict", given=data)
    assert (plain.returncode, strict.returncode) == (0, 0)
    assert strict.stdout == plain.stdout != b""


def test_a_wrong_type_is_named_with_its_path():
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": 7, "content": "Hi"}]}
    text = complaint(run("translate", "request", "--from", "anthropic", "--to", "gemini", given=body))
    assert text.startswith("$.messages[0].role: expected ")


@rows("given", [b"", b"  \n", b"{", b"[1]", b'"text"', b"\xff\xfe", b"[" * 100_000])
@rows("kind", ["request", "response"])
def test_what_is_no_json_object_is_refused_in_one_line(kind, given):
    done = run("translate", kind, "--from", "anthropic", "--to", "gemini", given=given)
    assert complaint(done).startswith("$: expected ")
    assert done.stdout == b""


@pytest.mark.parametrize("option", ["--from", "--to"])
def test_an_unknown_dialect_is_refused_with_the_list(option):
    names = {"--from": "anthropic", "--to": "gemini", option: "klingon"}
    done = run("translate", "request", *(word for pair in names.items() for word in pair), given={})
    text = complaint(done)
    assert text.startswith(f"{option}: unknown dialect 'klingon'")
    assert "openai-responses" in text


def test_an_unknown_provider_is_refused_with_the_list():
    done = run(
        "translate", "response", "--from", "anthropic", "--to", "gemini", "--provider", "acme", given={}
    )
    text = complaint(done)
    assert text.startswith("--provider: unknown provider 'acme'")
    assert "kimi" in text


def test_a_fault_in_the_request_file_names_the_file(tmp_path):
    path = tmp_path / "asked.json"
    path.write_text('{"model": "m", "max_tokens": 1, "messages": 3}')
    body = conversation.document("gemini", "response")
    done = run(
        "translate", "response", "--from", "gemini", "--to", "anthropic", "--request", str(path), given=body
    )
    assert complaint(done).startswith(f"--request {path}: $.messages: expected ")


@rows(
    ("arguments", "start"),
    [
        (["translate"], "expected request, response or stream"),
        (["translate", "poem"], "KIND: expected one of request, response, stream, got poem"),
        (["translate", "request", "--to", "gemini"], "--from: expected a dialect"),
        (["translate", "request", "--from", "gemini"], "--to: expected a dialect"),
        (
            ["translate", "request", "--from", "gemini", "--to", "gemini", "--status", "400"],
            "--status: expected with response",
        ),
        (
            ["translate", "request", "--from", "gemini", "--to", "gemini", "--request", "x"],
            "--request: expected with",
        ),
        (
            ["translate", "response", "--from", "gemini", "--to", "gemini", "--framing", "sse"],
            "--framing: expected with",
        ),
        (
            ["translate", "stream", "--from", "gemini", "--to", "gemini", "--pretty"],
            "--pretty: expected with",
        ),
        (
            ["translate", "stream", "--from", "gemini", "--to", "gemini", "--jobs", "2"],
            "--jobs: expected with --jsonl",
        ),
        (
            ["translate", "stream", "--from", "gemini", "--to", "gemini", "--progress"],
            "--progress: expected with --jsonl",
        ),
        (["translate", "request", "--jsonl"], "request: expected no kind"),
        (["translate", "--jsonl", "--losses", "x"], "--losses: expected without --jsonl"),
        (["translate", "--jsonl", "--pretty"], "--pretty: expected without --jsonl"),
        (["translate", "--jsonl", "--jobs", "0"], "argument --jobs: expected an integer"),
        (["translate", "--jsonl", "--jobs", "many"], "argument --jobs: expected an integer"),
        (["translate", "--jsonl", "--in", "/nowhere/at/all"], "--in /nowhere/at/all: No such file"),
        (["translate", "--jsonl", "--out", "/nowhere/at/all"], "--out /nowhere/at/all: No such file"),
        (["translate", "--jsonl", "--from", "klingon"], "--from: unknown dialect"),
        (["sing"], "there is no command sing"),
        (["translate", "--sing"], "unknown option --sing"),
    ],
)
def test_an_unusable_command_line_is_refused_in_one_line(arguments, start):
    assert complaint(run(*arguments)).startswith(start)


@pytest.mark.parametrize("command", [["stream", "--from", "gemini", "--to", "anthropic"], ["--jsonl"]])
def test_the_input_is_never_emptied_by_opening_the_output(tmp_path, command):
    path = tmp_path / "same"
    path.write_bytes(conversation.stream("gemini"))
    done = run("translate", *command, "--in", str(path), "--out", str(path))
    assert complaint(done).startswith("--out ")
    assert path.read_bytes() == conversation.stream("gemini")


def test_a_refused_document_leaves_the_output_file_alone(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("precious")
    run("translate", "request", "--from", "anthropic", "--to", "gemini", "--out", str(path), given=b"{")
    assert path.read_text() == "precious"


@rows(("source", "target"), PAIRS)
def test_a_stream_cut_short_ends_in_an_error_and_status_one(source, target):
    data = conversation.stream(source)[: len(conversation.stream(source)) // 2]
    done = run("translate", "stream", "--from", source, "--to", target, given=data)
    decoder = SseDecoder()
    frames = decoder.feed(done.stdout) + decoder.close()
    assert done.returncode == 1
    assert any(b'"error"' in frame.data for frame in frames[-2:])  # the very last may be `[DONE]`
    assert done.stderr.decode().splitlines()[-1].startswith("wireglot: the stream broke off")


def test_the_command_does_as_a_process_what_it_does_here():
    for given in (conversation.document("anthropic", "request"), b"{"):
        command = ("translate", "request", "--from", "anthropic", "--to", "gemini")
        here, there = run(*command, given=given), spawn(*command, given=given)
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_a_stream_is_written_while_it_arrives():
    frames = [frame + b"\n\n" for frame in conversation.stream("anthropic").split(b"\n\n") if frame]
    command = [*COMMAND, "translate", "stream", "--from", "anthropic", "--to", "openai-chat"]
    with ForkedCommand(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=PLAIN
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        thinking = next(index for index, frame in enumerate(frames) if b"thinking_delta" in frame)
        process.stdin.write(b"".join(frames[: thinking + 1]))
        process.stdin.flush()
        first = process.stdout.readline()  # would wait for ever if output waited for the end of the input
        process.stdin.write(b"".join(frames[thinking + 1 :]))
        process.stdin.close()
        rest = process.stdout.read()
    assert first.startswith(b"data: ")
    assert rest.endswith(b"data: [DONE]\n\n")
    assert process.returncode == 0
