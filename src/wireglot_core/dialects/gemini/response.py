"""Parses and renders whole generateContent answers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.citations import (
    beside_grounding,
    grounding_metadata,
    read_logprobs,
    read_spans,
    unreported_grounding,
    write_logprobs,
)
from wireglot_core.dialects.gemini.lost_fields import LOST, TIER_WITHOUT_USAGE
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.outcome import (
    FINISH_NUMBERS,
    read_stop,
    read_usage,
    silent_stop,
    usage_tier,
    write_stop,
    write_usage,
)
from wireglot_core.dialects.gemini.parts import PartParser
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.google_shared import ByteOffsets
from wireglot_core.dialects.iso_time import unix_seconds
from wireglot_core.dialects.unknown_fields import merge
from wireglot_core.ir.content import Citation, Extra, Part, Text, ToolCall
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.request import Request

FIRST = "candidates[0]."
"""Prefix of the unknown fields of the first candidate in the response's extra: their path."""

_TAKEN = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "createTime"})
SOURCES = frozenset({"groundingMetadata", "citationMetadata"})
_SPELLED = ("groundingMetadata", "citationMetadata", "logprobsResult")
"""A tuple for a fixed order: that of a set differs between processes."""
_CANDIDATE = frozenset({"content", "finishReason", "finishMessage", *_SPELLED})


NAMELESS: Final = "nameless"
"""Form of an answer that its own server sent without a `responseId`."""


def answer_id(stated: str, extra: Extra | None, context: Context) -> str:
    """The answer's id: Google's servers always send one; for an answer without an id one is minted."""
    nameless = own_form(extra, OWN).get(NAMELESS) is True
    return stated or ("" if nameless else context.new_id("resp", context.model, str(context.now)))


def parse_response(body: dict[str, Any], context: Context, fallback_id: str = "") -> Response:
    fields = names.RESPONSE.read(body, "$", UpstreamFault)
    identifier = fields.text_or("responseId") or fallback_id
    model = fields.text_or("modelVersion")
    parser = PartParser(context, UpstreamFault, context.origin(OWN, model), identifier)
    kept = {key: item for key, item in fields.value.items() if key not in _TAKEN or item is None}
    form: dict[str, Any] = {}
    candidates = [
        parse_candidate(names.CANDIDATE.read(item, f"$.candidates[{index}]", UpstreamFault), index, parser)
        for index, item in enumerate(fields.array_or_empty("candidates"))
    ]
    if candidates:
        first = candidates[0]
        if first.extra is not None:
            kept.update({FIRST + key: item for key, item in first.extra.fields.items()})
            form.update(first.extra.form)
        stop, content = first.stop, first.content
    else:
        form["candidates"] = "empty" if fields.value.get("candidates") == [] else "absent"
        stop, content = blocked_stop(kept), ()
    usage = None
    tier = ""
    if fields.value.get("usageMetadata") is not None:
        raw = fields.object("usageMetadata").value
        usage, tier = read_usage(raw), usage_tier(raw)
    created = fields.value.get("createTime")
    if created is not None:
        form["createTime"] = created
    if not identifier:
        form[NAMELESS] = True
    extra = Extra(OWN, kept, form) if kept or form else None
    return Response(
        identifier,
        model,
        content=content,
        stop=stop,
        usage=usage,
        created=unix_seconds(created),
        service_tier=tier,
        others=tuple(candidates[1:]),
        extra=extra,
    )


def blocked_stop(kept: dict[str, Any]) -> Stop:
    """The stop of an empty answer: the prompt was blocked, or no reason is given."""
    feedback = kept.get("promptFeedback")
    if type(feedback) is dict:
        reason = names.enum_name(names.FEEDBACK.camel(feedback).get("blockReason"))
        if reason and reason != "BLOCK_REASON_UNSPECIFIED":
            return Stop("refused", reason, OWN)
    return Stop("other", "", OWN)


def parse_candidate(candidate: Fields, index: int, parser: PartParser) -> Candidate:
    form: dict[str, Any] = {
        key: item for key, item in candidate.value.items() if key in _SPELLED and item is not None
    }
    parts = _parse_content(candidate, parser, form)
    spans = read_spans(candidate.value)
    logprobs = read_logprobs(candidate.value.get("logprobsResult"))
    if spans or logprobs:
        parts = _annotate(parts, spans, logprobs)
    known = _CANDIDATE
    if spans and not any(type(part) is Text for part in parts):
        known -= SOURCES  # there is no text to report them with
        for key in SOURCES:
            form.pop(key, None)
    calls = any(type(part) is ToolCall for part in parts)
    stated = candidate.value.get("finishReason")
    if names.enum_name(stated, FINISH_NUMBERS):
        said = any(type(part) is Text and part.text for part in parts)
        stop = read_stop(stated, calls, candidate.value.get("finishMessage"), said=said)
    else:
        stop = silent_stop(bool(parts), calls)
    if candidate.value.get("index") == index:
        form["index"] = index
        known |= {"index"}
    extra = candidate.rest(known, OWN, form)
    unreported = unreported_grounding(candidate.value) if "groundingMetadata" in form else {}
    if unreported and extra is not None:
        extra = Extra(OWN, {**extra.fields, **unreported}, extra.form)
    return Candidate(tuple(parts), stop, extra)


def _parse_content(candidate: Fields, parser: PartParser, form: dict[str, Any]) -> list[Part]:
    if candidate.value.get("content") is None:
        form["content"] = None
        return []
    content = names.CONTENT.child(candidate, "content")
    given = content.value.get("parts")
    frame = {key: item for key, item in content.value.items() if key != "parts" or not item}
    if frame != {"role": "model"} or not given:
        form["content"] = frame  # upstreams leave out the parts or the role: their form is restored
    if given is not None and type(given) is not list:
        form["parts"] = "single"
    path = f"{content.path}.parts"
    return [parser.parse(part, f"{path}[{index}]") for index, part in enumerate(names.listed(given))]


def _annotate(parts: list[Part], spans: list[Any], logprobs: tuple[Any, ...]) -> list[Part]:
    """Add citations and log probabilities to the text they refer to."""
    texts = [index for index, part in enumerate(parts) if type(part) is Text]
    if not texts:
        return parts
    cited: dict[int, list[Citation]] = {}
    # Gemini 3 ends with an empty part that only carries a signature: sources never refer to that one.
    spoken = [index for index in texts if getattr(parts[index], "text", "")] or texts
    offsets = dict[int, ByteOffsets | None](dict.fromkeys(spoken))
    for span in spans:
        index = span.part if span.part in offsets else spoken[-1] if span.part < 0 else spoken[0]
        part, places = parts[index], offsets[index]
        assert type(part) is Text
        if places is None:
            places = offsets[index] = ByteOffsets(part.text)
        cited.setdefault(index, []).append(span.on(places))
    for index in texts:
        part = parts[index]
        assert type(part) is Text
        own = logprobs if index == texts[0] else ()
        if index in cited or own:
            parts[index] = msgspec.structs.replace(part, citations=tuple(cited.get(index, ())), logprobs=own)
    return parts


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    renderer = PartRenderer(context, "client")
    out = renderer.losses
    LOST.of(response, "$", out)
    fields, form = own_fields(response.extra, OWN), own_form(response.extra, OWN)
    body: dict[str, Any] = {}
    if "candidates" not in form or response.content or response.others:
        first = {key.removeprefix(FIRST): item for key, item in fields.items() if key.startswith(FIRST)}
        body["candidates"] = [
            render_candidate(
                response.content, response.stop, first, form=form, index=0, path="$", renderer=renderer
            )
        ]
        for index, other in enumerate(response.others):
            path = f"$.others[{index}]"
            losses_of_extra(other.extra, OWN, path, out, "response.extra")
            extra, spelling = own_fields(other.extra, OWN), own_form(other.extra, OWN)
            body["candidates"].append(
                render_candidate(
                    other.content,
                    other.stop,
                    extra,
                    form=spelling,
                    index=index + 1,
                    path=path,
                    renderer=renderer,
                )
            )
    elif form["candidates"] == "empty":
        body["candidates"] = []
    if response.usage is not None:
        body["usageMetadata"] = write_usage(response.usage, response.service_tier, "$.usage", out)
    elif response.service_tier:
        out.append(TIER_WITHOUT_USAGE.at("$.service_tier"))
    if response.model:
        body["modelVersion"] = response.model
    if identifier := answer_id(response.id, response.extra, context):
        body["responseId"] = identifier
    if unix_seconds(form.get("createTime")) == response.created and "createTime" in form:
        body["createTime"] = form["createTime"]
    kept = {key: item for key, item in fields.items() if not key.startswith(FIRST)}
    return Rendered(merge(body, kept), tuple(out))


def render_candidate(
    content: tuple[Part, ...],
    stop: Stop,
    fields: dict[str, Any],
    form: dict[str, Any],
    index: int,
    path: str,
    renderer: PartRenderer,
) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    cited: list[tuple[int, str, tuple[Citation, ...], str]] = []
    scored: list[Text] = []
    spoken = False
    for place, part in enumerate(content):
        rendered = renderer.render(part, f"{path}.content[{place}]")
        if rendered is None:
            continue
        if type(part) is Text:
            if part.citations:
                cited.append((len(parts), part.text, part.citations, f"{path}.content[{place}]"))
            if part.logprobs:
                scored.append(part)
                if spoken:
                    renderer.losses.append(
                        Loss(f"{path}.content[{place}].logprobs", "logprobs", "approximated", "one list")
                    )
            spoken = True
        parts.append(rendered)
    candidate: dict[str, Any] = {}
    if not parts and "content" in form:
        if form["content"] is not None:
            candidate["content"] = form["content"]
    else:
        frame = form.get("content")
        listed: Any = parts or [{"text": ""}]
        single = form.get("parts") == "single" and len(parts) == 1
        candidate["content"] = merge(
            {"parts": listed[0] if single else listed}, {"role": "model"} if frame is None else frame
        )
    candidate.update(
        write_stop(stop, any(type(part) is ToolCall for part in content), f"{path}.stop", renderer.losses)
    )
    spelled = {key: form[key] for key in _SPELLED if key in form}
    if "groundingMetadata" not in spelled and "citationMetadata" not in spelled:
        grounding = grounding_metadata(cited, renderer.losses)
        if grounding:
            candidate["groundingMetadata"] = grounding
    if "logprobsResult" not in spelled and scored:
        candidate["logprobsResult"] = write_logprobs(
            tuple(token for part in scored for token in part.logprobs)
        )
    candidate.update(spelled)
    if "index" in form or stop.dialect != OWN:
        candidate["index"] = index
    return merge(candidate, beside_grounding(fields))
