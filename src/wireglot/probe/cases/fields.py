"""Fields: unknown ones, settings, and newer names."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import HELLO, must_speak
from wireglot.probe.question import ask
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken

THEME: Final = Theme("fields", "Fields and settings")
_SAMPLING: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"temperature": 0.5},
    "openai-chat": {"temperature": 0.5, "seed": 7},
    "openai-responses": {"temperature": 0.5},
    "gemini": {"generationConfig": {"temperature": 0.5, "topK": 20, "seed": 7}},
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"metadata": {"user_id": "probe"}},
    "openai-chat": {"user": "probe"},
    "openai-responses": {"metadata": {"purpose": "probe"}, "user": "probe"},
}


@THEME.case(
    "unknown",
    "A field that nobody knows is left alone, or refused in good order",
    sends="a short question with the field x_wireglot_probe",
    expects="an answer, or status 400 or 422 with an error that names the field",
    why="clients send new fields before servers know them",
)
def unknown(talk: Talk) -> None:
    from wireglot.probe.talk import Refused

    try:
        must_speak(talk.ask(ask(HELLO, extra={"x_wireglot_probe": {"on": True}})))
    except Refused as refused:
        talk.learn("unknown_fields", "", False, str(refused))
        if refused.status not in (400, 422) or "x_wireglot_probe" not in refused.message:
            raise Broken(f"expected status 400 or 422 that names the field, found {refused}") from None
        return
    talk.learn("unknown_fields", "", True, "it was answered")


@THEME.case(
    "sampling",
    "Sampling may be set",
    sends="temperature (and seed or topK where the dialect has them)",
    expects="an answer, or a refusal in good order",
    why="thinking models refuse it; a gateway must not fail with a 500",
)
def sampling(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_SAMPLING[talk.wire.name]), "sampling"))


@THEME.case(
    "metadata",
    "The end user may be named",
    sends="metadata or user",
    expects="an answer, or a refusal in good order",
    why="Claude Code and agents send it with every request",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def metadata(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_METADATA[talk.wire.name]), "settings", "metadata"))


@THEME.case(
    "older-limit",
    "Chat's older name for the limit is known",
    sends="max_tokens instead of max_completion_tokens",
    expects="an answer no longer than the limit, or a refusal in good order",
    why="most clients still say it",
    dialects=("openai-chat",),
)
def older_limit(talk: Talk) -> None:
    from wireglot.probe.cases.prompts import LONG
    from wireglot.wire.json import encode

    body = talk.wire.body(talk.model, ask(LONG, most=16))
    body["max_tokens"] = body.pop("max_completion_tokens")
    got = talk.post(encode(body), talk.path("generate"))
    if got.status != 200:
        talk.learn("max_tokens_field", "max_tokens", False, str(talk.refusal(got)))
        return
    talk.learn("max_tokens_field", "max_tokens", True, "it was answered")
    reply = talk.wire.read(talk.document(got))
    if reply.stop != "length":
        raise Broken(f"the limit had no effect: {reply.stop_word!r}, {len(reply.text)} characters")


@THEME.case(
    "newer-limit",
    "Chat's newer name for the limit has an effect",
    sends="max_completion_tokens of 16",
    expects="an answer no longer than the limit, or a refusal in good order",
    why="a server that ignores it writes, and charges, without end",
    dialects=("openai-chat",),
)
def newer_limit(talk: Talk) -> None:
    from wireglot.probe.cases.prompts import LONG

    reply = talk.optional(ask(LONG, most=16), "max_tokens_field", "max_completion_tokens")
    if reply.stop != "length":
        talk.learn("max_tokens_field", "max_completion_tokens", False, "it has no effect")
        raise Broken(f"the limit had no effect: {reply.stop_word!r}, {len(reply.text)} characters")


@THEME.case(
    "cache-marks",
    "Marks for the cache may be set",
    sends="cache_control on the request",
    expects="an answer, or a refusal in good order",
    why="Claude Code sets four of them in every request",
    dialects=("anthropic",),
)
def cache_marks(talk: Talk) -> None:
    part = {"type": "text", "text": HELLO, "cache_control": {"type": "ephemeral"}}
    question = ask(HELLO, extra={"messages": [{"role": "user", "content": [part]}]})
    must_speak(talk.optional(question, "cache_markers"))


@THEME.case(
    "snake-case",
    "Gemini's fields may be written with underscores",
    sends="generation_config and system_instruction",
    expects="an answer that costs more tokens than without the system",
    why="proto-JSON takes both spellings, and clients use both",
    level="should",
    dialects=("gemini",),
)
def snake_case(talk: Talk) -> None:
    from wireglot.probe.cases.prompts import SYSTEM
    from wireglot.probe.cases.usage import counted

    bare = counted(talk.ask(ask(HELLO)))
    found = counted(talk.ask(ask(HELLO, extra={"system_instruction": {"parts": [{"text": SYSTEM}]}})))
    if found.input <= bare.input:
        raise Broken(f"{bare.input} input tokens without, {found.input} with it")
