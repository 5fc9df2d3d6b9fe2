"""Starts a gateway with its embedded model, sends requests over HTTP, and prints them with their answers."""

from __future__ import annotations

import argparse
import http.client
import shutil
import sys
import time
from typing import Any, Final

import msgspec

from wireglot.cli.own_gateway import ask_own_gateway
from wireglot.cli.terminal import MAX_FAILURES, Paint, one_line
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.sse import SseDecoder

_SAID: Final = "Hello! Which dialect am I speaking?"
_CONTENTS: Final = {"contents": [{"role": "user", "parts": [{"text": _SAID}]}]}
_WEATHER: Final = {
    "name": "get_weather",
    "description": "The weather in a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]}},
        "required": ["city"],
    },
}


class Example(msgspec.Struct, frozen=True):
    """A request in one dialect, answered by a model that speaks another, and where its answer's text is."""

    title: str
    path: str
    upstream: str
    body: dict[str, Any]
    text: tuple[str | int, ...]


EXAMPLES: Final = (
    Example(
        "Anthropic Messages",
        "/v1/messages",
        "demo-gemini",
        {"model": "demo-gemini", "max_tokens": 300, "messages": [{"role": "user", "content": _SAID}]},
        ("content", 0, "text"),
    ),
    Example(
        "OpenAI Chat Completions",
        "/v1/chat/completions",
        "demo-anthropic",
        # Anthropic needs a limit: one that is added would be shown as a loss of this request.
        {
            "model": "demo-anthropic",
            "max_completion_tokens": 300,
            "messages": [{"role": "user", "content": _SAID}],
        },
        ("choices", 0, "message", "content"),
    ),
    Example(
        "OpenAI Responses",
        "/v1/responses",
        "demo-openai-chat",
        {"model": "demo-openai-chat", "input": _SAID},
        ("output", 0, "content", 0, "text"),
    ),
    Example(
        "Google Gemini",
        "/v1beta/models/demo-openai-responses:generateContent",
        "demo-openai-responses",
        _CONTENTS,
        ("candidates", 0, "content", "parts", 0, "text"),
    ),
    Example(
        "Gemini Interactions",
        "/v1beta/interactions",
        "demo-ollama",
        {"model": "demo-ollama", "input": _SAID, "store": False},
        ("steps", 0, "content", 0, "text"),
    ),
    Example(
        "Ollama",
        "/api/chat",
        "demo-gemini-interactions",
        {
            "model": "demo-gemini-interactions",
            "stream": False,
            "messages": [{"role": "user", "content": _SAID}],
        },
        ("message", "content"),
    ),
    Example(
        "Google Code Assist",
        "/v1internal:generateContent",
        "demo-anthropic",
        {
            "model": "demo-anthropic",
            "request": {**_CONTENTS, "generationConfig": {"maxOutputTokens": 300}},
        },
        ("response", "candidates", 0, "content", "parts", 0, "text"),
    ),
    Example(
        "Gemini, simplified",
        "/v1/gemini",
        "demo-openai-chat",
        {"model": "demo-openai-chat", "input": _SAID},
        ("candidates", 0, "content", "parts", 0, "text"),
    ),
)

STREAMED: Final = {
    "model": "demo-gemini",
    "max_tokens": 300,
    "stream": True,
    "tools": [_WEATHER],
    "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
}

TURNS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "/v1/chat/completions",
        {
            "model": "demo-gemini",
            "messages": [{"role": "user", "content": "What is the weather in Rome?"}],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": _WEATHER["name"], "parameters": _WEATHER["input_schema"]},
                }
            ],
        },
    ),
    (
        "/v1/gemini",
        {
            "model": "demo-anthropic",
            "tool_results": [
                {"functionResponse": {"name": _WEATHER["name"], "response": {"output": "31 degrees"}}}
            ],
        },
    ),
)


_WIDE_COLUMNS: Final = 126
"""Width if no terminal reports one."""
# Columns of a line that `wireglot demo` prints.
_MAX_SHOWN: Final = 96


def run(_: argparse.Namespace) -> int:
    """Without a configuration and with an empty environment; nothing is written to disk."""
    return ask_own_gateway(show, environ={}, create_secret=False)


def show(host: str, port: int) -> int:
    """Send requests, and print them with their answers. The number of failures is the exit status."""
    paint = Paint(sys.stdout)
    print(paint(f"A gateway at http://{host}:{port} with a built-in demo model", "bold"))
    print("Each request below is sent over HTTP in one dialect; the model uses another.\n")
    failures = 0
    for example in EXAMPLES:
        failures += not _asked(host, port, example, paint)
    print(paint("A streamed tool call: Anthropic client, Gemini upstream", "bold"))
    failures += not _streamed(host, port, paint)
    print(paint("\nA conversation stored by the gateway: two dialects, one history", "bold"))
    failures += not _held(host, port, paint)
    launch = f"{_own_name()} run claude --model demo/demo"
    print(f"\nNext: use your own client, or another one from docs/clients.md:\n  {launch}")
    return min(failures, MAX_FAILURES)


def _own_name() -> str:
    """As a shell here finds it: `make demo` runs it from an environment that is not on the path."""
    return "wireglot" if shutil.which("wireglot") else sys.argv[0]


def _asked(host: str, port: int, example: Example, paint: Paint) -> bool:
    began = time.perf_counter()
    status, headers, body = _post(host, port, example.path, example.body)
    spent = (time.perf_counter() - began) * 1000
    print(f"{paint(example.title, 'bold')}  ->  {example.upstream}")
    print(f"  POST {example.path}")
    try:
        text: Any = decode(body)
        for step in example.text:
            text = text[step]
        fine = status == 200 and isinstance(text, str) and bool(text)
    except (ValueError, LookupError, TypeError):
        fine, text = False, body.decode("utf-8", "replace")
    verdict = paint(str(status), "ok" if fine else "dropped")
    route, losses = headers.get("x-wireglot-route", "-"), headers.get("x-wireglot-losses", "none")
    print(f"  {verdict}  {spent:.0f} ms  route {route}  losses {losses}")
    print(f"  {paint(_short(str(text), 2), 'dim')}\n")
    return fine


def _streamed(host: str, port: int, paint: Paint) -> bool:
    status, _, body = _post(host, port, "/v1/messages", STREAMED)
    print(f"  POST /v1/messages  (stream, one tool)  {status}")
    seen = []
    for frame in SseDecoder().feed(body):
        seen.append(frame.event)
        print(f"  {frame.event:<22} {paint(_short(frame.data.decode('utf-8', 'replace'), 25), 'dim')}")
    return status == 200 and b'"tool_use"' in body and seen[-1:] == ["message_stop"]


def _held(host: str, port: int, paint: Paint) -> bool:
    """A tool's call on one provider, its result to another: the client does not send the history."""
    fine = True
    for path, body in TURNS:
        status, headers, answer = _post(host, port, path, {**body, "conversation": "demo"})
        print(f"  POST {path:<22} {status}  {headers.get('x-wireglot-route', '-'):<18} ", end="")
        print(paint(_short(answer.decode("utf-8", "replace"), 56), "dim"))
        fine = fine and status == 200
    status, _, answer = _get(host, port, "/v1/sessions/demo")
    items = decode(answer).get("items", []) if status == 200 else []
    print(f"  GET  {'/v1/sessions/demo':<22} {status}  {len(items)} items:")
    print(f"    {paint(_short(', '.join(str(item.get('type')) for item in items), 4), 'dim')}")
    return fine and b"31 degrees" in answer and len(items) > len(TURNS)


def _get(host: str, port: int, path: str) -> tuple[int, dict[str, str], bytes]:
    return _send(host, port, "GET", path, None)


def _post(host: str, port: int, path: str, body: Any) -> tuple[int, dict[str, str], bytes]:
    return _send(host, port, "POST", path, encode(body))


def _send(
    host: str, port: int, method: str, path: str, body: bytes | None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request(method, path, body, {"content-type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def _short(text: str, used: int) -> str:
    """What fits on a line of the terminal of which some columns are used."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE_COLUMNS
    room = min(columns - used, _MAX_SHOWN)
    text = one_line(text)
    return text if len(text) <= room else text[: room - 1] + "…"
