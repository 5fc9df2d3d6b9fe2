"""What a forwarded answer of the Interactions API tells, and what its paths and bodies ask for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.sent_body import SentBody
from tests.tiers import rows
from wireglot_core.dialects.body import BadField, RequestGlance
from wireglot_core.dialects.gemini_interactions import DIALECT
from wireglot_core.dialects.gemini_interactions.errors import error_object, parse_error
from wireglot_core.dialects.gemini_interactions.outcome import parse_usage
from wireglot_core.dialects.gemini_interactions.surface import SURFACE, find
from wireglot_core.dialects.gemini_interactions.tap import InteractionsTap
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import encode

OWN = "gemini-interactions"
USAGE = {"total_input_tokens": 3, "total_output_tokens": 2}
CALL = {"type": "function_call", "id": "c", "name": "f", "arguments": {}}
BUSY = {"code": "service_unavailable", "message": "busy"}


def event(kind: Any, **more: Any) -> dict[str, Any]:
    return {"event_type": kind, **more}


def created(**more: Any) -> dict[str, Any]:
    return event("interaction.created", interaction={"id": "v1_1", **more})


def completed(status: Any = "completed", **more: Any) -> dict[str, Any]:
    return event("interaction.completed", interaction={"status": status, **more})


def started(index: Any, kind: str = "model_output") -> dict[str, Any]:
    return event("step.start", index=index, step={"type": kind})


DONE = b"event: done\ndata: [DONE]\n\n"


@rows(
    ("sent", "heard"),
    [
        ([created(), completed()], ("end", True, False, None, None, [])),
        ([created(), completed(), DONE], ("end", True, True, None, None, [])),
        ([created(), started(0), DONE], ("", False, True, None, None, [])),
        ([completed(usage=USAGE)], ("end", True, False, None, 2, [])),
        ([created(), created(), completed()], ("end", True, False, None, None, ["second_start"])),
        ([completed(), completed("incomplete")], ("length", True, False, None, None, ["second_end"])),
        ([started(0), started(1), started(1)], ("", False, False, None, None, ["index_not_growing"])),
        ([started(1), started(0), started(2)], ("", False, False, None, None, ["index_not_growing"])),
        ([started("0"), started(0)], ("", False, False, None, None, [])),
        ([started(0, "function_call"), started(1), completed()], ("tool_calls", True, False, None, None, [])),
        ([completed(steps=[CALL])], ("tool_calls", True, False, None, None, [])),
        ([completed(steps=[7, {}])], ("end", True, False, None, None, [])),
        ([completed(steps=7)], ("end", True, False, None, None, [])),
        ([completed(None)], ("", True, False, None, None, [])),
        ([completed("requires_action")], ("tool_calls", True, False, None, None, [])),
        ([event("interaction.status_update", usage=USAGE)], ("", False, False, None, 2, [])),
        ([event("step.stop", index=0, usage=USAGE)], ("", False, False, None, 2, [])),
        ([event("step.stop", usage=USAGE), completed()], ("end", True, False, None, 2, [])),
        ([event("step.delta", index=0, metadata={"total_usage": USAGE})], ("", False, False, None, 2, [])),
        ([event("step.delta", index=0, usage=USAGE)], ("", False, False, None, None, [])),
        ([event("error", error=BUSY)], ("", True, True, "overloaded", None, [])),
        ([{"error": BUSY}], ("", True, True, "overloaded", None, [])),
        ([b'data: {"error":{"code":"service_unavailable"}}\n\n'], ("", True, True, "overloaded", None, [])),
        ([b'data: {"type":"x"}\n\n', b"data: oops\n\n"], ("", False, False, None, None, [])),
        ([event(7, interaction={"status": "completed"})], ("", False, False, None, None, [])),
        ([completed("failed", errors=[BUSY])], ("other", True, False, "overloaded", None, [])),
        ([completed("failed", errors=[{"code": "content_blocked"}])], ("refused", True, False, None, None, [])),
        (
            [b'event: interaction.completed\ndata: {"interaction":{"status":"incomplete"}}\n\n'],
            ("length", True, False, None, None, []),
        ),
    ],
)  # fmt: skip
def test_what_a_forwarded_stream_tells(sent: list[Any], heard: tuple[Any, ...]) -> None:
    tap = InteractionsTap(1 << 20)
    for each in sent:
        name = each.get("event_type", "x") if isinstance(each, dict) else ""
        tap.feed(
            each
            if isinstance(each, bytes)
            else b"event: %b\ndata: %b\n\n" % (str(name).encode(), encode(each))
        )
    tap.close()
    error = tap.error.kind if tap.error is not None else None
    output = tap.usage.output if tap.usage is not None else None
    assert (tap.stop, tap.complete, tap.ended, error, output, tap.flaws) == heard


@rows(
    ("body", "stop", "output"),
    [
        ({"status": "completed", "usage": USAGE, "steps": []}, "end", 2),
        ({"status": "completed", "steps": [CALL]}, "tool_calls", None),
        ({"status": "failed", "errors": [{"code": "malformed_function_call"}]}, "malformed_call", None),
        ({"status": 7, "steps": 7, "usage": 7}, "", None),
        ({}, "", None),
    ],
)
def test_what_a_forwarded_answer_tells(body: dict[str, Any], stop: str, output: int | None) -> None:
    seen = DIALECT.surface.glance(encode(body))
    assert (seen.stop, seen.usage.output if seen.usage is not None else None) == (stop, output)


@rows(
    ("method", "path", "found"),
    [
        ("POST", "/v1/projects/p/locations/l/interactions", ("generate", "", ())),
        ("POST", "/v1beta1/projects/p/locations/l/interactions/", ("generate", "", ())),
        ("GET", "/v1/projects/p/locations/l/interactions/i/", ("state", "responses.get", ("i",))),
        ("POST", "/v1/projects/p/locations/l/interactions/i/cancel", ("state", "responses.cancel", ("i",))),
        ("GET", "/v1/projects/p/locations/l/interactions/i/cancel", None),
        ("POST", "/v1/projects/p/locations/l/interactions/i", None),
        ("DELETE", "/v1/projects/p/locations/l/interactions", None),
        ("POST", "/v2/projects/p/locations/l/interactions", None),
        ("POST", "/v1/projects/p/q/locations/l/interactions", None),
        ("POST", "/v1/interactions", None),
    ],
)
def test_the_long_paths_of_vertex(method: str, path: str, found: Any) -> None:
    match = find(method, path)
    assert (match and (match.operation, match.verb, match.ids)) == found


@rows(
    ("body", "seen"),
    [
        ({"agent": "a"}, RequestGlance("a", None)),
        ({"agent": "a", "stream": True, "background": True}, RequestGlance("a", True)),
        ({"agent": "a", "stream": False}, RequestGlance("a", False)),
        ({"agent": "a", "background": False}, RequestGlance("a", None)),
        ({"agent": "a", "model": "m", "background": True}, RequestGlance("m", None)),
        ({"agent": None, "model": ""}, RequestGlance("", None)),
        ({"agent": 7}, ("$.agent", "invalid_type")),
        ({"agent": "a", "background": True}, ("$.background", "failed_precondition")),
        ({"agent": "a", "background": True, "stream": False}, ("$.background", "failed_precondition")),
    ],
)
def test_an_agent_is_routed_as_a_model_is(body: dict[str, Any], seen: Any) -> None:
    glance = SURFACE.client.glance
    assert glance is not None
    if type(seen) is RequestGlance:
        assert glance(SentBody(encode(body))) == seen
        return
    with pytest.raises(BadField) as refused:
        glance(SentBody(encode(body)))
    assert (refused.value.path, refused.value.code) == seen


@rows(
    ("config", "count"),
    [(None, 0), (7, 0), ({}, 0), ({"max_output_tokens": 7}, 7), ({"max_output_tokens": "7"}, 0)],
)
def test_how_much_may_be_answered(config: Any, count: int) -> None:
    assert SURFACE.client.asked_output(SentBody(encode({"generation_config": config}))) == count


@rows(
    ("body", "status", "read"),
    [
        ({"error": BUSY}, 0, ("overloaded", "busy", 0, "service_unavailable", "")),
        ({"error": "down"}, 500, ("server", "down", 500, "", "")),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, 0, ("rate_limit", "resource_exhausted", 429, "resource_exhausted", "")),
        ({"error": {"code": 399, "message": "m"}}, 0, ("server", "m", 0, "", "")),
        ({"error": {"code": 600, "message": "m"}}, 404, ("not_found", "m", 404, "", "")),
        ({"error": {"code": 599, "message": "m"}}, 404, ("server", "m", 599, "", "")),
        ({"error": {"code": 400, "message": "m"}}, 0, ("invalid_request", "m", 400, "", "")),
        ({"error": {"code": "unavailable", "status": "NOT_FOUND", "message": "m"}}, 404, ("overloaded", "m", 404, "unavailable", "")),
        ({"error": {"code": "internal", "message": "m"}}, 400, ("invalid_request", "m", 400, "internal", "")),
        ({"error": {"code": "mine"}}, 0, ("server", "mine", 0, "mine", "")),
        ({"error": {"code": "mine"}}, 404, ("not_found", "mine", 404, "mine", "")),
        ({"error": {"code": "invalid_request", "message": "prompt is too long"}}, 0,
         ("context_overflow", "prompt is too long", 0, "invalid_request", "")),
        ({"error": {"code": "x", "message": "m", "details": [{"fieldViolations": [{"field": "f"}]}]}}, 400,
         ("invalid_request", "m", 400, "x", "f")),
        ({"error": {}}, 0, None),
        ({"error": {}}, 503, ("overloaded", '{"error":{}}', 503, "", "")),
        ({"error": {}, "steps": []}, 0, None),
        ({"message": "m"}, 400, ("invalid_request", "m", 400, "", "")),
        ({"message": "m"}, 399, None),
        ({"event_type": "error", "message": "m"}, 0, ("server", "m", 0, "", "")),
        ([{"error": BUSY}, {}], 0, ("overloaded", "busy", 0, "service_unavailable", "")),
        ([], 400, ("invalid_request", "the upstream answered with status 400", 400, "", "")),
        ("down", 399, None),
        ("down", 400, ("invalid_request", "down", 400, "", "")),
        ({"status": "failed"}, 0, ("server", "the interaction failed", 0, "", "")),
        ({"status": "failed", "errors": [7, BUSY]}, 0, ("overloaded", "busy", 0, "service_unavailable", "")),
        ({"status": "failed", "errors": [BUSY, {"code": "content_blocked"}]}, 0, None),
        ({"status": "failed", "errors": 7}, 0, ("server", "the interaction failed", 0, "", "")),
        ({"status": "completed"}, 0, None),
    ],
)  # fmt: skip
def test_what_an_error_says(body: Any, status: int, read: Any) -> None:
    error = parse_error(body, status)
    said = error and (error.kind, error.message, error.status, error.code, error.param)
    assert said == read
    if error is not None:
        kept = {"body": body} if isinstance(body, dict | list) else None
        assert (error.extra.form if error.extra is not None else None) == kept


@rows(
    ("error", "code", "message"),
    [
        (ApiError("not_found", "m", code="model_not_found"), "model_not_found", "m"),
        (ApiError("auth", "m", code="model_not_found"), "authentication", "m"),
        (ApiError("auth", "m", code="mine"), "authentication", "m"),
        (ApiError("auth", "m", code="mine", extra=Extra(OWN)), "mine", "m"),
        (ApiError("auth", "m", code="mine", extra=Extra("gemini")), "authentication", "m"),
        (ApiError("auth", "m", extra=Extra(OWN)), "authentication", "m"),
        (ApiError("content_policy", "m", param="p"), "content_blocked", "p: m"),
        (ApiError("billing", "the p of it", param="p"), "payment_required", "the p of it"),
    ],
)
def test_an_error_in_the_words_of_google(error: ApiError, code: str, message: str) -> None:
    assert error_object(error, []) == {"code": code, "message": message}


@rows(
    ("raw", "counts", "rest"),
    [
        (USAGE, (3, 0, 0, 2, None), {}),
        ({"total_input_tokens": 3, "total_cached_tokens": 5}, (0, 3, 0, 0, None), {}),
        ({"total_input_tokens": 3.0, "total_output_tokens": -2, "total_thought_tokens": 1.5}, (3, 0, 0, 0, 1), {}),
        ({"total_input_tokens": 2.0**53, "total_output_tokens": -1.0, "total_tool_use_tokens": 4}, (0, 0, 4, 0, None), {}),
        ({"total_thought_tokens": 0, "more": 1, "none": 0}, (0, 0, 0, 0, 0), {"more": 1}),
        *(
            ({f"{key}_tokens_by_modality": [{"modality": "text", "tokens": 1}, {"modality": "image", "tokens": 0}]},
             (0, 0, 0, 0, None), {})
            for key in ("input", "cached", "output", "tool_use")
        ),
        *(
            ({"input_tokens_by_modality": odd}, (0, 0, 0, 0, None), {"input_tokens_by_modality": odd})
            for odd in ([{"modality": "image", "tokens": 1}], [7], "x", {"text": 1})
        ),
    ],
)  # fmt: skip
def test_what_an_answer_cost(raw: dict[str, Any], counts: tuple[Any, ...], rest: dict[str, Any]) -> None:
    usage = parse_usage(raw)
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.tool_prompt, usage.output, usage.reasoning) == counts
    assert usage.raw == Extra(OWN, rest, raw)
    assert parse_usage(None) is parse_usage([raw]) is None
