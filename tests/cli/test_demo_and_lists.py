"""`wireglot demo` and `pairs`, the lists, and the outside of the command."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.cli.running import COMMAND, PLAIN, complaint, run
from wireglot import __version__
from wireglot.cli import main, pairs
from wireglot.cli.demo import EXAMPLES
from wireglot.cli.examples import conversation
from wireglot.cli.pairs import outline, side_by_side
from wireglot.cli.parser import build_parser
from wireglot.cli.terminal import Paint
from wireglot_core.dialects.registry import NAMES
from wireglot_core.ir.loss import FEATURES
from wireglot_core.providers.spec import names


def test_the_demo_answers_in_every_dialect_and_streams_a_tool_call():
    done = run("demo")
    shown = done.stdout.decode()
    assert done.returncode == 0, shown
    for example in EXAMPLES:
        assert example.title in shown
        assert f"route demo/{example.upstream}" in shown
    # Every dialect, the two turns of a conversation that is held, and the look at it.
    assert shown.count("  200  ") == len(EXAMPLES) + 3
    assert "function_call_output" in shown
    assert '"type":"tool_use"' in shown
    assert "message_stop" in shown


def test_pairs_shows_every_ordered_pair_and_one_request_beside_its_translation():
    """R-L-04"""
    done = run("pairs")
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert done.stderr == b""
    assert "\x1b" not in shown
    rows = [line.split()[:2] for line in shown.splitlines()]
    for source in conversation.MODELS:
        for target in conversation.MODELS:
            assert ([source, target] in rows) == (source != target)
    assert "FAILED" not in shown
    assert "The request in anthropic" in shown
    assert '"contents": [' in shown


def test_pairs_shows_the_pair_that_is_asked_for():
    shown = run("pairs", "--from", "openai-responses", "--to", "openai-chat").stdout.decode()
    assert "The request in openai-responses" in shown
    assert "translated to openai-chat" in shown


def test_pairs_refuses_a_dialect_without_an_example():
    assert complaint(run("pairs", "--to", "klingon")).startswith("--to: no example in dialect 'klingon'")


def test_pairs_fails_if_a_pair_fails(monkeypatch, capsys):
    def cross(kind, source, target):
        return pairs.Crossing(
            fault="$.tools: expected better" if (kind, target) == ("stream", "gemini") else ""
        )

    monkeypatch.setattr(pairs, "cross", cross)
    assert main(["pairs"]) == 1
    out, err = capsys.readouterr()
    assert "FAILED" in out
    assert "wireglot: anthropic to gemini, stream: $.tools: expected better" in err.splitlines()


@pytest.mark.parametrize("dialect", list(conversation.MODELS))
def test_an_example_says_the_same_in_every_dialect(dialect):
    text = json.dumps(conversation.document(dialect, "request"))
    for reported in ("careful coding agent", "edit_file", "src/dates.py", "1 failed, 11 passed", "iVBOR"):
        assert reported in text


def test_the_lists_hold_every_name():
    for command, expected in (("dialects", NAMES), ("providers", names()), ("losses", FEATURES)):
        done = run(command)
        assert done.returncode == 0
        lines = done.stdout.decode().splitlines()
        assert sorted(line.split()[0] for line in lines) == sorted(expected)
        assert all(len(line.split(maxsplit=1)) == 2 for line in lines), "each name is explained"


def test_the_version_is_reported():
    done = run("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"wireglot {__version__}\n")


def test_help_shows_examples():
    assert "wireglot translate request" in run("--help").stdout.decode()
    assert "cases.jsonl" in run("translate", "--help").stdout.decode()


def test_no_command_at_all_shows_a_short_screen_and_fails():
    done = run()
    assert done.returncode == 2
    assert done.stdout.startswith(b"usage: wireglot")
    lines = done.stdout.decode().splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    known = next(each.choices for each in build_parser()._actions if isinstance(each.choices, dict))
    named = {line.split()[1] for line in lines if line.startswith("  wireglot")}
    assert {"run", "init"} <= named <= set(known)


def test_starting_loads_no_network_library_and_no_command():
    code = (
        "import sys; from wireglot.cli.entry import main; main(['losses']); "
        "print(*[name for name in sys.modules if name in "
        "('socket', 'ssl', 'asyncio', 'http', 'multiprocessing', 'wireglot.gateway', 'wireglot.cli.demo', 'wireglot.cli.translate_dataset')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_gateway_loads_no_demo_model_before_it_is_asked():
    code = (
        "import sys, wireglot.cli.serve\nfrom wireglot.gateway.run import Transports\n"
        "print(*[name for name in sys.modules if name.partition('.demo')[1] or name == 'wsproto'])\n"
        "print(type(Transports()['demo']).__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "wireglot.demo.service"]


@pytest.mark.whole
def test_a_reader_that_leaves_ends_the_demo_quietly():
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.sampled
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["demo"], ["translate", "--jsonl"]])
def test_a_full_disk_is_reported_in_one_line(arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], input=b"{\n", stdout=full, stderr=subprocess.PIPE, env=PLAIN
        )
    assert (done.returncode, done.stderr) == (2, b"wireglot: No space left on device\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream_is_reported_in_one_line(closed):
    command = f"{shlex.join(COMMAND)} translate --jsonl {closed}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, env=PLAIN)
    assert done.returncode == 2
    assert done.stderr.startswith(b"wireglot: standard ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.whole
def test_a_terminal_that_cannot_show_a_letter_is_no_reason_to_fail():
    done = subprocess.run([*COMMAND, "demo"], capture_output=True, env={**PLAIN, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")


def test_colour_is_for_terminals(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m" in Paint(Terminal())("x", "dropped")  # type: ignore[arg-type]  # all a Paint asks of a stream
    monkeypatch.setenv("NO_COLOR", "1")
    assert Paint(Terminal())("x", "dropped") == "x"  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("width", [30, 60, 100])
def test_an_outline_never_exceeds_its_width(width):
    for name in conversation.MODELS:
        assert all(len(line) <= width for line in outline(conversation.document(name, "request"), width))


def test_an_outline_keeps_on_a_line_what_fits_and_opens_what_does_not():
    value = {"a": [1, 2], "b": [{"c": "short"}, {"c": "x" * 80}], "d": list(range(100, 120))}
    assert outline(value, 40)[:7] == [
        "{",
        '  "a": [1, 2],',
        '  "b": [',
        '    {"c": "short"},',
        f'    {{"c": "{"x" * 17}…"}}',
        "  ],",
        '  "d": [',
    ]


def test_two_columns_are_as_long_as_the_longer():
    assert side_by_side(["a"], ["b", "c"], 3) == ["a   | b", "    | c"]
