"""Parses and renders whole answers.

Unknown fields of the three levels are in one `Extra`: `x` (the answer), `choice.x`, `message.x`.
"""

from __future__ import annotations

import re
from typing import Any

from wireglot_core.dialects.arguments import with_repaired_calls
from wireglot_core.dialects.context import Context, Rendered, reported_model
from wireglot_core.dialects.fields import Fields, describe, own_fields, own_form
from wireglot_core.dialects.openai_chat.citations import parse_citation
from wireglot_core.dialects.openai_chat.errors import render_error
from wireglot_core.dialects.openai_chat.extras import NAME, UNKNOWN
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.openai_chat.outcome import (
    matched_sequence,
    parse_logprobs,
    parse_stop,
    parse_tier,
    parse_usage,
    render_stop,
    render_tier,
    render_usage,
)
from wireglot_core.dialects.openai_chat.parts import parse_part
from wireglot_core.dialects.openai_chat.reasoning import (
    attach_states,
    parse_reasoning,
    parse_states,
    sign_text,
)
from wireglot_core.dialects.openai_chat.render_answer import Answer
from wireglot_core.dialects.openai_chat.tools import parse_call, parse_function_call
from wireglot_core.dialects.openai_shared import render_logprobs
from wireglot_core.dialects.unknown_fields import HOLLOW, is_hollow
from wireglot_core.ir.content import Extra, Media, Origin, Part, Text, ToolCall
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import encode_text

_PREFIX = "chatcmpl-"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_HEAD = frozenset({"id", "object", "created", "model"})
_USUAL = frozenset({"role", "content", "refusal", "annotations"})
"""The fields that the message of most answers has, and no others."""

MALFORMED = ApiError(
    "server", "the model produced a tool call that cannot be read", code="malformed_tool_call"
)


def parse_response(body: dict[str, Any], context: Context) -> Response:
    answer = Fields(body, "$", UpstreamFault)
    choices = body.get("choices")
    if type(choices) is not list:
        raise answer.wrong("choices", "an array")
    taken = {"choices"}
    form: dict[str, Any] = {"native": True}
    head: dict[str, Any] = {}
    for key, kind in (("id", str), ("model", str), ("created", int)):
        value = body.get(key)
        if type(value) is kind:
            taken.add(key)
            head[key] = value
    if body.get("object") == "chat.completion":
        taken.add("object")
    if not body.keys() >= _HEAD:
        form["absent"] = [key for key in ("id", "object", "created", "model") if key not in body]
    usage = body.get("usage")
    if type(usage) is dict and usage:
        taken.add("usage")
    else:
        usage = _usage_of_choice(choices)
        if usage:
            form["usage"] = "choice"
    tier = ""
    if type(reported := body.get("service_tier")) is str and reported:
        taken.add("service_tier")
        tier = parse_tier(reported)
        if render_tier(tier, True, "", []) != reported:
            form["service_tier"] = reported
    identifier, model = head.get("id", ""), head.get("model", "")
    read = _ChoiceReader(context, identifier, model)
    first, *others = [read.choice(choice, index) for index, choice in enumerate(choices)] or [_NOTHING]
    fields: dict[str, Any] = {}
    hollow: dict[str, Any] = {}
    UNKNOWN.sift(body, taken, fields, hollow)
    extra = first.extra
    assert extra is not None
    form.update(extra.form)
    if hollow:
        form[HOLLOW] = {**form.get(HOLLOW, {}), **hollow}
    return Response(
        identifier,
        model,
        content=first.content,
        stop=first.stop,
        usage=parse_usage(usage) if type(usage) is dict and usage else None,
        created=head.get("created", 0),
        service_tier=tier,
        others=tuple(others),
        extra=Extra(NAME, {**fields, **extra.fields}, form),
    )


def _usage_of_choice(choices: list[Any]) -> dict[str, Any]:
    """The usage inside the choice, as sent by Kimi's older deployments; the choice keeps it as its own."""
    first = choices[0] if choices else None
    usage = first.get("usage") if type(first) is dict else None
    return usage if type(usage) is dict else {}


_NOTHING = Candidate((), Stop("other", "", NAME), Extra(NAME, {}, {"choices": 0}))


class _ChoiceReader:
    def __init__(self, context: Context, response_id: str, model: str) -> None:
        self._context = context
        self._model = model
        self._response_id = response_id
        self._calls = 0

    def choice(self, value: Any, position: int) -> Candidate:
        path = f"$.choices[{position}]"
        if type(value) is not dict:
            raise UpstreamFault(f"expected an object, got {describe(value)}", path)
        form: dict[str, Any] = {"native": True}
        taken: set[str] = set()
        for key in ("message", "delta"):
            if type(value.get(key)) is dict:
                message = Fields(value[key], f"{path}.{key}", UpstreamFault)
                taken.add(key)
                break
        else:
            key = ""
            message = Fields({}, path, UpstreamFault)
        if key != "message":
            form["message"] = key
        elif "delta" in value:  # Perplexity prints both
            taken.add("delta")
            form["delta"] = value["delta"]
        spoken: set[str] = set()
        content = self._message(message, spoken, form)
        if value.get("logprobs") is not None:
            self._attach_logprobs(value["logprobs"], content, taken, form)
        if type(value.get("finish_reason")) is str and value["finish_reason"]:
            taken.add("finish_reason")
        if value.get("index") == position and type(value.get("index")) is int:
            taken.add("index")
        elif "index" not in value:
            form["index"] = "absent"
        called = refused = False
        for part in content:
            called = called or type(part) is ToolCall
            refused = refused or (type(part) is Text and part.refusal)
        stop = parse_stop(value.get("finish_reason"), called, refused, matched_sequence(value))
        fields: dict[str, Any] = {}
        hollow: dict[str, Any] = {}
        UNKNOWN.sift(value, taken, fields, hollow, "choice.")
        UNKNOWN.sift(message.value, spoken, fields, hollow, "message.")
        if hollow:
            form[HOLLOW] = hollow
        return Candidate(tuple(content), stop, Extra(NAME, fields, form))

    def _message(self, message: Fields, taken: set[str], form: dict[str, Any]) -> list[Part]:
        value = message.value
        if value.get("role") == "assistant":
            taken.add("role")
        elif "role" not in value:
            form["role"] = "absent"
        parts = self._content(message, taken, form)
        refusal = value.get("refusal")
        if type(refusal) is str and refusal:
            taken.add("refusal")
            parts.append(Text(refusal, refusal=True))
        if value.get("annotations"):
            self._annotate(value["annotations"], parts, taken)
        if value.keys() <= _USUAL:
            return parts
        origin = self._context.origin(NAME, self._model)
        google = Origin("gemini", origin.provider, origin.model, origin.account)
        self._audio(value.get("audio"), parts, taken)
        self._images(message, parts, taken)
        sign_text(value, parts, taken, google)
        reasoning = parse_reasoning(value, taken, origin, answer=True)
        if reasoning is not None:
            parts.insert(0, reasoning)
        states = parse_states(value, taken, self._context)
        if states:
            attach_states(parts, states)
        calls = value.get("tool_calls")
        if type(calls) is list and not is_hollow(calls):
            taken.add("tool_calls")
            for call in message.objects("tool_calls"):
                if is_hollow(call.value):
                    continue  # some servers print an entry with nothing in it
                parts.append(parse_call(call, self._mint, self._context, google))
                self._calls += 1
        legacy = value.get("function_call")
        if type(legacy) is dict:
            only = parse_function_call(legacy, self._mint)
            if only is not None:
                taken.add("function_call")
                parts.append(only)
                self._calls += 1
        return parts

    def _mint(self, name: str) -> str:
        return self._context.new_id(self._context.call_prefix, self._response_id, str(self._calls), name)

    def _content(self, message: Fields, taken: set[str], form: dict[str, Any]) -> list[Part]:
        content = message.value.get("content")
        if type(content) is str and content:
            taken.add("content")
            return [Text(content)]
        if type(content) is list:
            taken.add("content")
            form["content"] = "parts"
            path = f"{message.path}.content"
            return [parse_part(item, f"{path}[{index}]", UpstreamFault) for index, item in enumerate(content)]
        if type(content) is dict and content:  # Cloudflare decodes structured output
            taken.add("content")
            form["content"] = "object"
            return [Text(encode_text(content))]
        if "content" not in message.value:
            form["content"] = "absent"
        return []

    def _annotate(self, annotations: Any, parts: list[Part], taken: set[str]) -> None:
        if type(annotations) is not list or any(type(item) is not dict for item in annotations):
            return
        for index, part in enumerate(parts):
            if isinstance(part, Text) and not part.refusal:
                taken.add("annotations")
                citations = tuple(parse_citation(item) for item in annotations)
                parts[index] = Text(part.text, citations=citations, extra=part.extra)
                return

    def _audio(self, audio: Any, parts: list[Part], taken: set[str]) -> None:
        """Spoken answers: the transcript is the text of the answer."""
        if type(audio) is not dict:
            return
        transcript, data = audio.get("transcript"), audio.get("data")
        spoken = any(isinstance(part, Text) and part.text == transcript for part in parts)
        reported = type(transcript) is str and bool(transcript) and not spoken
        if reported:
            taken.add("audio")
            form = {
                "field": "audio",
                "audio": {key: item for key, item in audio.items() if key != "transcript"},
            }
            # Without the audio, a later turn can only refer to it by its id.
            fields = {"audio.id": audio.get("id")} if not data else {}
            parts.append(Text(str(transcript), extra=Extra(NAME, fields, form)))
        if type(data) is str and data:
            taken.add("audio")
            rest = {
                key: item
                for key, item in audio.items()
                if key != "data" and not (reported and key == "transcript")
            }
            parts.append(Media("audio", "", data, extra=Extra(NAME, {}, {"audio": rest})))

    def _images(self, message: Fields, parts: list[Part], taken: set[str]) -> None:
        """Generated images, in the form of OpenRouter and others."""
        images = message.value.get("images")
        if type(images) is not list or not images:
            return
        taken.add("images")
        for index, item in enumerate(images):
            position = item.get("index") if type(item) is dict else None
            if type(item) is dict and position == index:
                item = {name: value for name, value in item.items() if name != "index"}
            part = parse_part(item, f"{message.path}.images[{index}]", UpstreamFault)
            if isinstance(part, Media) and position != index:
                fields, form = (part.extra.fields, part.extra.form) if part.extra else ({}, {})
                part = Media(**{**_slots(part), "extra": Extra(NAME, fields, {**form, "index": "absent"})})
            parts.append(part)

    def _attach_logprobs(self, value: Any, parts: list[Part], taken: set[str], form: dict[str, Any]) -> None:
        if type(value) is not dict:
            return
        attached: dict[int, Text] = {}
        for key, refusal in (("content", False), ("refusal", True)):
            tokens = parse_logprobs(value.get(key))
            texts = [i for i, part in enumerate(parts) if isinstance(part, Text) and part.refusal == refusal]
            if tokens is not None and len(texts) == 1:
                attached[texts[0]] = Text(**{**_slots(parts[texts[0]]), "logprobs": tokens})
            elif value.get(key):
                return  # part of it would be lost: the whole field is kept
        if attached:
            for position, text in attached.items():
                parts[position] = text
            taken.add("logprobs")
            form["logprobs"] = value


def _slots(part: Part) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__struct_fields__}


# Out


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    if response.stop.reason == "malformed_call" and response.stop.dialect != NAME:
        return Rendered(render_error(MALFORMED))
    losses: list[Loss] = []
    LOST.of(response, "$", losses)
    form = own_form(response.extra, NAME)
    native = bool(form.get("native"))
    absent = form.get("absent", ())
    fields = own_fields(response.extra, NAME)
    odd = {**fields, **form.get(HOLLOW, {})}
    out: dict[str, Any] = {}
    for key, value in (
        ("id", response_id(response.id, native, context, response.model, str(response.created))),
        ("object", "chat.completion"),
        ("created", response.created if native else response.created or context.now),
        ("model", reported_model(response.model, context, request)),
    ):
        if key not in absent and key not in odd:
            out[key] = value
    choices = (
        []
        if form.get("choices") == 0
        else [render_choice(response, 0, "$", response.extra, context=context, losses=losses)]
    )
    for index, other in enumerate(response.others):
        path = f"$.others[{index}]"
        LOST.of(other, path, losses)
        choices.append(render_choice(other, index + 1, path, other.extra, context=context, losses=losses))
    out["choices"] = choices
    if response.usage is not None and form.get("usage") != "choice":
        out["usage"] = render_usage(response.usage, losses)
    if response.service_tier and "service_tier" not in odd:
        tier = render_tier(response.service_tier, native, "$.service_tier", losses)
        if tier is not None:
            out["service_tier"] = form.get("service_tier", tier)
    for key, value in odd.items():
        if not key.startswith(("choice.", "message.")):
            out.setdefault(key, value)
    return Rendered(out, tuple(losses))


def response_id(identifier: str, native: bool, context: Context, *material: str) -> str:
    """An id that Chat clients accept: the upstream's, with this dialect's prefix."""
    if native or identifier.startswith(_PREFIX):
        return identifier
    if not identifier:
        return context.new_id("chatcmpl", *material).replace("_", "-", 1)
    return _PREFIX + _ILLEGAL.sub("-", identifier)


def render_choice(
    answer: Response | Candidate,
    index: int,
    path: str,
    extra: Extra | None,
    context: Context,
    losses: list[Loss],
) -> dict[str, Any]:
    form = own_form(extra, NAME)
    fields = {**own_fields(extra, NAME), **form.get(HOLLOW, {})}
    native = bool(form.get("native"))
    rendered = Answer(form, fields, context, losses)
    message = rendered.message(with_repaired_calls(answer.content, f"{path}.content", losses), path)
    out: dict[str, Any] = {}
    if form.get("index") != "absent" and "choice.index" not in fields:
        out["index"] = index
    key = form.get("message", "message")
    if key:
        out[key] = message
    if "delta" in form:
        out["delta"] = form["delta"]
    logprobs = _logprobs(answer.content, form, native)
    if logprobs is not None or not native:
        out["logprobs"] = logprobs
    stop = answer.stop
    if not (native and stop.dialect == NAME and not stop.raw):
        out["finish_reason"] = render_stop(stop, rendered.calls, rendered.refusal, f"{path}.stop", losses)
    for name, value in fields.items():
        level, dot, tail = name.partition(".")
        if dot and level == "choice":
            out.setdefault(tail, value)
        elif dot and level == "message":
            message.setdefault(tail, value)
    return out


def _logprobs(parts: tuple[Part, ...], form: dict[str, Any], native: bool) -> dict[str, Any] | None:
    texts = [part for part in parts if isinstance(part, Text) and part.logprobs]
    if not texts:
        return None
    content = tuple(token for part in texts if not part.refusal for token in part.logprobs)
    refusal = tuple(token for part in texts if part.refusal for token in part.logprobs)
    raw = form.get("logprobs")
    if type(raw) is dict:
        reported = [parse_logprobs(raw.get(key)) or () for key in ("content", "refusal")]
        if reported == [content, refusal]:
            return dict(raw)
    return {
        "content": render_logprobs(content) if content else None,
        "refusal": render_logprobs(refusal) if refusal else None,
    }
