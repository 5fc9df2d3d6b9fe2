"""What models write into their answers: leaked calls, and what the demo model is told."""

from __future__ import annotations

from tests.laws.bounded import Row
from wireglot.demo import script
from wireglot.demo.safety_checks import _RECURSIVE
from wireglot.demo.tools import _PATH
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.leaked_calls import read_calls, read_tagged, recovered
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.wire.json import encode_text

BEGIN, SEP, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"


def deepseek(text: str) -> object:
    return read_calls(text, "deepseek", "seed")


def kimi(text: str) -> object:
    return read_calls(text, "kimi", "seed")


def many_calls(n: int) -> Response:
    """As many that leaked, in texts of their own, as came as calls."""
    leaked = [Text(f'<tool_call>{{"name": "f", "arguments": {{"a": {x}}}}}</tool_call>') for x in range(n)]
    calls = [ToolCall(f"c{x}", "f", encode_text({"b": x})) for x in range(n)]
    return Response("r", "m", (*calls, *leaked), Stop("end", ""))


ROWS = [
    Row("a call and blanks", lambda n: f"{BEGIN}f{' ' * n}", deepseek),
    Row(
        "a call, blanks and its end",
        lambda n: f"{BEGIN}f{' ' * n}{SEP}{' ' * n}{{}}{' ' * n}{END}x",
        deepseek,
    ),
    Row("calls", lambda n: f"{BEGIN}f{SEP}{{}}{END}" * n, deepseek),
    Row(
        "calls in Kimi's tokens",
        lambda n: "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|>" * n,
        kimi,
    ),
    Row("an open call in Kimi's tokens", lambda n: f"<|tool_call_begin|>{'f ' * n}", kimi),
    Row(
        "tagged calls",
        lambda n: '<tool_call>{"name": "f", "arguments": {}}</tool_call>' * n,
        lambda text: read_tagged(text, ""),
    ),
    Row(
        "a tagged call with braces", lambda n: "<tool_call>{" + "}   " * n, lambda text: read_tagged(text, "")
    ),
    Row(
        "leaked calls beside calls",
        many_calls,
        lambda answer: recovered(answer, frozenset({"f"}), ("hermes",)),
        n=100,
    ),
    Row("marks of a file", lambda n: "[[marker-file:" * n, script._MARKER.findall),
    Row("options of a command", lambda n: "-" + "R" * n + "!", _RECURSIVE.fullmatch),
    Row("words with hyphens", lambda n: "-0" * n, _PATH.findall),
]
