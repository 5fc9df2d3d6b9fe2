"""Rows and traces as a gateway would tell them, made of the examples that the package carries."""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files
from typing import Any

EXAMPLES = files("wireglot.cli.examples")
CLIENTS = ("claude-code", "codex", "gemini-cli", "opencode", "python-sdk")
DIALECT = {
    "claude-code": "anthropic",
    "codex": "openai-responses",
    "gemini-cli": "gemini",
    "opencode": "openai-chat",
    "python-sdk": "openai-chat",
}
ASKED = {
    "claude-code": "claude-sonnet-5-5",
    "codex": "gpt-5.5-codex",
    "gemini-cli": "gemini-3-pro",
    "opencode": "kimi-k3",
    "python-sdk": "gpt-5.5",
}
TARGETS = (
    ("kimi", "kimi-k3", "openai-chat"),
    ("gemini", "gemini-3-pro", "gemini"),
    ("anthropic", "claude-sonnet-5-5", "anthropic"),
)
FEATURES = ("cache_marker", "thinking.budget", "tool_result.error", "reasoning.text", "stop_sequences")


def row(number: int, at: float, **fields: Any) -> dict[str, Any]:
    client = CLIENTS[number % len(CLIENTS)]
    provider, model, dialect = TARGETS[(number // 2) % len(TARGETS)]
    lost = (number * 7) % 4
    made: dict[str, Any] = {
        "id": f"req-{number:06d}",
        "at": at,
        "state": "failed" if number % 17 == 3 else "done",
        "client": client,
        "agent": f"{client}/2.1.0 (external)",
        "dialect": DIALECT[client],
        "path": "/v1/messages",
        "session": f"session-{number // 9}",
        "asked": ASKED[client],
        "provider": provider,
        "model": model,
        "upstream_dialect": dialect,
        "stream": True,
        "passthrough": DIALECT[client] == dialect,
        "status": 529 if number % 17 == 3 else 200,
        "first_ms": 210.0 + (number * 37) % 700,
        "total_ms": 1200.0 + (number * 613) % 9000,
        "tokens": {
            "input": 900 + (number * 331) % 9000,
            "output": 40 + (number * 57) % 900,
            "cached": (number * 97) % 800,
        },
        "cost": 900 + (number * 411) % 60000,
        "losses": {"degraded": lost}
        if lost and number % 5
        else ({"serious": 1, "harmless": 2} if lost else {}),
        "features": list(FEATURES[:lost]),
        "recorded": number % 3 == 0,
    }
    return {**made, **fields}


def _text(dialect: str, name: str) -> str:
    return EXAMPLES.joinpath(dialect, name).read_text(encoding="utf-8")


def _frames(dialect: str, began: float, step: float) -> list[dict[str, Any]]:
    at = began
    frames = []
    for index, event in enumerate(re.split(r"(?<=\n\n)", _text(dialect, "stream.sse"))):
        if not event:
            continue
        at += step * (8 if index == 6 else 1 + (index * 7 % 3))
        frames.append({"ms": round(at, 1), "data": event})
    return frames


def trace(at: float, **fields: Any) -> dict[str, Any]:
    """Anthropic's client on a provider that speaks OpenAI Chat, in the example's words."""
    losses = [
        {
            "feature": "cache_marker",
            "action": "dropped",
            "grade": "degraded",
            "document": "request",
            "path": "$.system[0].cache_control",
            "pointer": "/system/0/cache_control",
            "upstream": "/messages/0",
            "detail": "no place for it",
        },
        {
            "feature": "thinking.budget",
            "action": "approximated",
            "grade": "harmless",
            "document": "request",
            "path": "$.thinking.budget_tokens",
            "pointer": "/thinking/budget_tokens",
            "upstream": "/reasoning_effort",
            "detail": "reported as an effort",
        },
        {
            "feature": "tool_result.error",
            "action": "approximated",
            "grade": "serious",
            "document": "request",
            "path": "$.messages[2].content[1]",
            "pointer": "/messages/2/content/1",
            "upstream": "/messages/4",
            "detail": "reported in words",
        },
    ]
    upstream = _frames("openai-chat", 380, 55)
    client = [{**frame, "ms": frame["ms"] + 2} for frame in _frames("anthropic", 382, 55)]
    for index, frame in enumerate(client):
        frame["causes"] = [index * len(upstream) // len(client)]
    made_row = row(
        0,
        at,
        id="req-trace",
        total_ms=client[-1]["ms"] + 8,
        first_ms=430.0,
        recorded=True,
        passthrough=False,
        provider="kimi",
        model="kimi-k3",
        upstream_dialect="openai-chat",
        losses={"serious": 1, "degraded": 1, "harmless": 1},
        attempts=1,
        stop="tool_use",
        features=["tool_result.error", "cache_marker"],
    )
    return {
        "format": "wireglot-trace/1",
        "version": "0.1.0",
        "row": {**made_row, **fields},
        "request": {
            "method": "POST",
            "url": "http://127.0.0.1:8484/v1/messages",
            "headers": [
                ["content-type", "application/json"],
                ["x-api-key", "[redacted]"],
                ["user-agent", "claude-code/2.1.0"],
            ],
            "body": _text("anthropic", "request.json"),
            "bytes": 3000,
        },
        "answer": {
            "status": 200,
            "headers": [["content-type", "text/event-stream"]],
            "frames": client,
            "caused_by": "events",
            "folded": _text("anthropic", "response.json"),
        },
        "attempts": [
            {
                "provider": "kimi",
                "model": "kimi-k3",
                "dialect": "openai-chat",
                "began_ms": 6.0,
                "request": {
                    "method": "POST",
                    "url": "https://api.example/v1/chat/completions",
                    "headers": [["content-type", "application/json"], ["authorization", "[redacted]"]],
                    "body": _text("openai-chat", "request.json"),
                    "bytes": 2800,
                },
                "answer": {
                    "status": 200,
                    "headers": [["content-type", "text/event-stream"]],
                    "frames": upstream,
                    "folded": _text("openai-chat", "response.json"),
                },
                "links": links(),
                "answer_links": [
                    {"client": "/content/0", "upstream": "/choices/0/message/reasoning_content"},
                    {"client": "/content/1", "upstream": "/choices/0/message/content"},
                    {"client": "/content/2", "upstream": "/choices/0/message/tool_calls/0"},
                ],
                "summary": [
                    {"what": "system blocks", "client": 1, "upstream": 1},
                    {"what": "messages", "client": 3, "upstream": 5},
                    {"what": "tools", "client": 2, "upstream": 2},
                    {"what": "tool ids rewritten", "client": 0, "upstream": 0},
                ],
                "losses": [],
            }
        ],
        "losses": losses,
        "steps": [
            {"name": "queue", "began_ms": 0, "ended_ms": 3},
            {"name": "store", "began_ms": 3, "ended_ms": 6},
            {"name": "translation", "began_ms": 6, "ended_ms": 48},
            {"name": "first byte", "began_ms": 48, "ended_ms": upstream[0]["ms"]},
            {"name": "events", "began_ms": upstream[0]["ms"], "ended_ms": upstream[-1]["ms"]},
        ],
    }


def links() -> list[dict[str, str]]:
    """Message by message, as both examples tell the same conversation."""
    client = json.loads(_text("anthropic", "request.json"))
    found = [
        {"client": "/model", "upstream": "/model"},
        {"client": "/max_tokens", "upstream": "/max_completion_tokens"},
        {"client": "/system/0", "upstream": "/messages/0"},
        {"client": "/thinking", "upstream": "/reasoning_effort"},
    ]
    found += [
        {"client": f"/tools/{index}", "upstream": f"/tools/{index}"} for index in range(len(client["tools"]))
    ]
    upstream = json.loads(_text("openai-chat", "request.json"))["messages"]
    results = {each["tool_call_id"]: index for index, each in enumerate(upstream) if each["role"] == "tool"}
    spoken = iter([index for index, each in enumerate(upstream) if each["role"] in ("user", "assistant")])
    for index, message in enumerate(client["messages"]):
        content = message["content"] if isinstance(message["content"], list) else []
        called = [part["tool_use_id"] for part in content if part["type"] == "tool_result"]
        if called:
            for at, part in enumerate(content):
                if part["type"] == "tool_result" and results:
                    found.append(
                        {
                            "client": f"/messages/{index}/content/{at}",
                            "upstream": f"/messages/{list(results.values())[at % len(results)]}",
                        }
                    )
            continue
        other = next(spoken, None)
        if other is None:
            continue
        found.append({"client": f"/messages/{index}", "upstream": f"/messages/{other}"})
        calls = 0
        for at, part in enumerate(content):
            if part["type"] == "tool_use":
                found.append(
                    {
                        "client": f"/messages/{index}/content/{at}",
                        "upstream": f"/messages/{other}/tool_calls/{calls}",
                    }
                )
                calls += 1
            elif part["type"] == "text":
                found.append(
                    {
                        "client": f"/messages/{index}/content/{at}",
                        "upstream": f"/messages/{other}/content"
                        + (f"/{at}" if message["role"] == "user" else ""),
                    }
                )
    return found


def _series(number: int) -> dict[str, list[float]]:
    def wave(base: float, swing: float) -> list[float]:
        return [max(0.0, round(base + swing * math.sin(at / 5 + number), 3)) for at in range(60)]

    return {
        "requests": [round(each) for each in wave(10 + number, 5)],
        "errors": [round(each) for each in wave(0.5, 1)],
        **{
            f"latency_{name}": wave(base, base / 5)
            for name, base in (("p50", 2000), ("p95", 5000), ("p99", 8000))
        },
        **{
            f"first_{name}": wave(base, base / 5)
            for name, base in (("p50", 400), ("p95", 800), ("p99", 1100))
        },
        "input_tokens": wave(40000, 9000),
        "output_tokens": wave(8000, 3000),
        "cached_tokens": wave(12000, 3000),
        "cost": wave(0.12 + 0.01 * number, 0.06),
        "lossy": wave(3, 2),
    }


def documents(at: float) -> dict[tuple[str, str], Any]:
    """What the other routes tell, of a gateway that has been busy for an hour."""
    total = {
        "requests": 1240,
        "errors": 17,
        "left": 2,
        "open": 1,
        "input_tokens": 2400000,
        "output_tokens": 480000,
        "cached_tokens": 720000,
        "latency_ms": {"p50": 2100, "p95": 5300, "p99": 8700},
        "first_ms": {"p50": 410, "p95": 820, "p99": 1200},
        "cost": 7.23,
        "unpriced": 3,
        "lossy": 180,
    }
    limits = {
        "requests_per_minute": 60,
        "tokens_per_minute": None,
        "concurrent": 4,
        "tokens_per_day": 1000000,
        "tokens_per_month": None,
        "cost_per_day": 5,
        "cost_per_month": 100,
    }
    used = {
        "tokens_per_day": 870000,
        "tokens_per_month": 4000000,
        "cost_per_day": 5.2,
        "cost_per_month": 31.2,
    }
    translated = {
        "problem": None,
        "events": ['data: {"type": "message_start"}\n\n', 'data: {"type": "message_stop"}\n\n'],
        "dialects": {
            name: {
                "text": '{\n  "model": "it"\n}',
                "events": ['data: {"choices": []}\n\n', "", "data: [DONE]\n\n"],
                "losses": [
                    {
                        "feature": "cache_marker",
                        "action": "dropped",
                        "grade": "degraded",
                        "path": "$.system",
                        "document": "request",
                        "reason": "no place",
                    }
                ],
            }
            for name in ("openai-chat", "openai-responses", "gemini")
        },
    }
    return {
        ("GET", "/conversations"): {
            "conversations": [
                {
                    "session": f"session-{number}",
                    "client": "claude-code",
                    "turns": 9 - number,
                    "first_at": at - 900,
                    "last_at": at - number * 60,
                    "tokens": 43000,
                    "cost": 93000,
                    "losses": number,
                }
                for number in range(5)
            ]
        },
        ("GET", "/setup"): {
            "base_url": "http://127.0.0.1:8484",
            "version": "0.1.0",
            "demo": True,
            "models": ["demo", "kimi/kimi-k3"],
            "model_count": 40,
            "config": "",
            "clients": [
                {
                    "name": "claude-code",
                    "title": "Claude Code",
                    "kind": "sh",
                    "text": "export ANTHROPIC_BASE_URL=http://127.0.0.1:8484\nclaude",
                    "run": "wireglot run claude",
                },
                {"name": "codex", "title": "Codex", "kind": "toml", "text": 'model_provider = "wireglot"'},
            ],
            "providers": [
                {
                    "name": "kimi",
                    "title": "Kimi",
                    "on": True,
                    "why": "MOONSHOT_API_KEY is set",
                    "dialects": ["openai-chat"],
                },
                {
                    "name": "openai",
                    "title": "OpenAI",
                    "on": False,
                    "why": "OPENAI_API_KEY is not set",
                    "variables": ["OPENAI_API_KEY"],
                },
            ],
            "rules": [{"match": "claude-*", "to": ["kimi/kimi-k3", "demo"]}],
        },
        ("GET", "/dashboard"): {
            "from": at - 3600,
            "to": at,
            "step": 60,
            "by": "model",
            "currency": "USD",
            "durations": "within_5_percent",
            "previous": {**total, "requests": 1000, "cost": 9.5},
            "budgets": [
                {
                    "of": "group",
                    "name": "research",
                    "unit": "cost",
                    "period": "month",
                    "limit": 100,
                    "used": 31.2,
                    "left": 68.8,
                    "resets": at + 864_000,
                },
                {
                    "of": "key",
                    "name": "ada",
                    "unit": "tokens",
                    "period": "day",
                    "limit": 1000000,
                    "used": 1200000,
                    "left": 0,
                    "resets": at + 3600,
                },
            ],
            "times": [at - 3600 + 60 * each for each in range(60)],
            "total": total,
            "series": _series(0),
            "groups": [
                {"name": name, "total": total, "series": _series(number)}
                for number, name in enumerate(["claude-sonnet-5-5", "gpt-5.5-codex", "gemini-3-pro"])
            ],
            "more_groups": 0,
            "losses": [
                {"feature": "cache_marker", "requests": 120},
                {"feature": "tool_result.error", "requests": 9},
            ],
            "grades": {"serious": 9, "degraded": 120, "harmless": 61},
            "health": {
                "providers": [
                    {"name": "kimi", "breakers": [], "cooling": [], "rejected": [], "errors": {}},
                    {
                        "name": "gemini",
                        "breakers": [],
                        "cooling": [{"model": "gemini-3-pro", "seconds": 21}],
                        "rejected": [],
                        "errors": {"rate": 3},
                    },
                    {
                        "name": "openai",
                        "breakers": ["gpt-5.5"],
                        "cooling": [],
                        "rejected": [],
                        "errors": {"server": 8},
                    },
                ],
                "queue": 2,
                "in_flight": 3,
                "store_down": False,
                "losses": [{"feature": "cache_marker", "grade": "degraded", "requests": 1}],
            },
        },
        ("GET", "/keys"): {
            "data": [
                {
                    "name": "team-a",
                    "prefix": "wg_a1",
                    "state": "active",
                    "models": [],
                    "stored": True,
                    "used": used,
                    **limits,
                },
                {
                    "name": "ci",
                    "prefix": "wg_b2",
                    "state": "revoked",
                    "models": ["demo"],
                    "stored": False,
                    "used": {},
                },
            ],
            "currency": "USD",
        },
        ("GET", "/targets"): {
            "targets": [
                {"id": "demo", "on": True, "context": 200000, "output": 32000},
                {"id": "gemini/gemini-3-pro", "on": True, "context": 1048576, "output": 65536},
                {"id": "kimi/kimi-k3", "on": False, "context": 262144, "output": 0},
            ],
            "count": 3,
        },
        ("POST", "/translate"): translated,
        ("POST", "/replay"): {
            "model": "gemini-3-pro",
            "provider": "gemini",
            "pays": "GEMINI_API_KEY",
            "estimate": {"input": 1948, "max_output": 4096, "cost": 41000},
            "dialect": "gemini",
            "context": 1048576,
            "output": 65536,
            "sends": True,
            "would": {**trace(at), "attempts": trace(at)["attempts"][-1:]},
            "id": "req-two",
        },
    }
