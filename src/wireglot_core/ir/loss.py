"""Losses: what a translation could not carry over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from wireglot_core.ir.content import PHASE, Extra, Foreign, Reasoning, Signature
from wireglot_core.ir.grades import Grade, grade_of
from wireglot_core.ir.request import Request

Action = Literal["dropped", "approximated", "emulated", "invented"]

Document = Literal["request", "response"]

Feature = Literal[
    "audio",
    "cache_key",
    "cache_marker",
    "candidates",
    "citations",
    "content.empty",
    "content.position",
    "context",
    "context_management",
    "conversation_state",
    "document",
    "embedding.task",
    "embedding.title",
    "embedding.truncation",
    "error.detail",
    "file_reference",
    "foreign_event",
    "foreign_part",
    "hosted_tool",
    "image",
    "image.detail",
    "logprobs",
    "max_tokens",
    "message.name",
    "message.phase",
    "message.role",
    "metadata",
    "model",
    "output_format",
    "output_format.schema",
    "output_format.strict",
    "parallel_tools",
    "prefill",
    "reasoning.redacted",
    "reasoning.signature",
    "reasoning.text",
    "refusal",
    "response.extra",
    "safeguards",
    "sampling.frequency_penalty",
    "sampling.presence_penalty",
    "sampling.seed",
    "sampling.temperature",
    "sampling.top_k",
    "sampling.top_p",
    "service_tier",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "stop_sequences",
    "storage",
    "system.position",
    "thinking.budget",
    "thinking.display",
    "thinking.effort",
    "thinking.mode",
    "tool.custom",
    "tool.deferred",
    "tool.name",
    "tool.namespace",
    "tool.native",
    "tool.position",
    "tool.schema",
    "tool.schema.hint",
    "tool.strict",
    "tool_call.arguments",
    "tool_call.id",
    "tool_choice",
    "tool_result.error",
    "tool_result.media",
    "tool_result.name",
    "tool_result.pairing",
    "unknown_field",
    "usage.detail",
    "user",
    "verbosity",
    "video",
]
"""Stable names: they appear in headers, logs and policies. Add, never rename. `FEATURES` explains each, and
`ir/grades.py` grades its severity."""

FEATURES: dict[Feature, str] = {
    "audio": "Audio in a message, which the target does not accept.",
    "cache_key": "The caller's key that groups requests for prompt caching.",
    "cache_marker": "A prompt-cache breakpoint or its lifetime.",
    "candidates": "More than one answer to a request.",
    "citations": "The sources attached to a part of the text.",
    "context": "The part of a prompt that is beyond the context of the loaded model.",
    "context_management": "Automatic removal or compaction of earlier turns by the provider.",
    "conversation_state": "Earlier turns stored by a provider: a previous response, a prompt, a cache.",
    "content.empty": "A message or text without content, which the target rejects.",
    "content.position": "The order of parts, if the target requires another one.",
    "document": "A file in a message, or its title and context.",
    "embedding.task": "The purpose of an embedding: a query, a document, a comparison.",
    "embedding.title": "The title of the document whose text is embedded.",
    "embedding.truncation": "Whether a text that is too long to embed is truncated or rejected.",
    "error.detail": "Details of an error beyond its kind and message.",
    "file_reference": "A file given by an id or URL that only its own provider can access.",
    "foreign_event": "A stream event that exists only in its own dialect.",
    "foreign_part": "A content block that exists only in its own dialect (server tools, compaction).",
    "hosted_tool": "A tool that the provider runs (web search, code execution), or its options.",
    "image": "An image, which the target does not accept here or in this form.",
    "image.detail": "The detail level of an image.",
    "logprobs": "Token probabilities, requested or returned.",
    "max_tokens": "The output limit: invented if the target requires one, clamped, or dropped if negative.",
    "message.name": "The participant's name on a message.",
    "message.phase": "Whether a text is intermediate commentary or the final answer.",
    "message.role": "A role that the target does not have in this position.",
    "metadata": "The caller's key-value pairs.",
    "model": "The model's name: invented if the target requires one.",
    "output_format": "The request for JSON output.",
    "output_format.schema": "Parts of an output schema that the target does not enforce.",
    "output_format.strict": "Whether the output schema is binding.",
    "parallel_tools": "The setting that forbids several tool calls in one turn.",
    "prefill": "An unfinished assistant turn at the end, for the model to continue.",
    "reasoning.redacted": "Encrypted reasoning that only its provider can decrypt.",
    "reasoning.signature": "The signature of reasoning, or what it was bound to.",
    "reasoning.text": "The visible reasoning of an earlier turn.",
    "refusal": "The mark that a text is a refusal by the model.",
    "response.extra": "Fields of a response that exist only in its own dialect.",
    "safeguards": "A check of tool calls that the client requests, or its result.",
    "sampling.frequency_penalty": "The penalty on frequent tokens.",
    "sampling.presence_penalty": "The penalty on tokens already used.",
    "sampling.seed": "The seed for repeatable sampling.",
    "sampling.temperature": "The sampling temperature.",
    "sampling.top_k": "Sampling among the k likeliest tokens.",
    "sampling.top_p": "Nucleus sampling.",
    "service_tier": "The speed or price class of a request.",
    "stop_details": "Details of why the provider stopped or refused.",
    "stop_reason": "Why the answer ended, if the target has no value for it.",
    "stop_sequence": "Which stop sequence matched.",
    "stop_sequences": "Texts at which the model should stop.",
    "storage": "Storing an answer in the gateway: the response under its id, or the turn of a conversation.",
    "system.position": "The position of a system text in the middle of a conversation.",
    "thinking.budget": "The token budget for thinking.",
    "thinking.display": "Whether the thinking is shown.",
    "thinking.effort": "The reasoning effort.",
    "thinking.mode": "Whether the model thinks: always, never, or as the model decides.",
    "tool.custom": "A freeform tool, sent as a function with one string argument.",
    "tool.deferred": "A tool that is left out of the prompt until a tool search finds it, or that search.",
    "tool.name": "A tool name whose characters or length the target rejects, renamed and restored.",
    "tool.namespace": "The namespace of a tool, merged into its name and restored.",
    "tool.native": "A vendor's own tool that the client runs (bash, shell), sent as a function.",
    "tool.position": "The position in the conversation at which a tool is declared.",
    "tool.schema": "Parts of a tool's schema that the target rejects: unions, references, strict bounds.",
    "tool.schema.hint": "Bounds and defaults of a tool that is not strict, kept as description text.",
    "tool.strict": "Whether a tool's schema is binding.",
    "tool_call.arguments": "Arguments that are not a JSON object, repaired or wrapped if required.",
    "tool_call.id": "A call id whose characters or length the target rejects, renamed and restored.",
    "tool_choice": "Which tools the model may or must use.",
    "tool_result.error": "The error flag of a tool result, kept as text.",
    "tool_result.media": "An image or file in a tool result, moved to where the target accepts it.",
    "tool_result.name": "The tool's name in a result whose call has another name or none.",
    "tool_result.pairing": "Calls and results without a counterpart, repaired.",
    "unknown_field": "A field that is not known in the source dialect.",
    "usage.detail": "A token count for which the target has no field.",
    "user": "The end user's id.",
    "verbosity": "The requested length of the answer.",
    "video": "Video in a message, which the target does not accept.",
}
"""The description of each feature; `docs/reference/losses.md` is generated from this."""


class Loss(msgspec.Struct, frozen=True):
    """One thing the target did not receive as the source meant it.

    A codec points into the neutral conversation (`$.messages[2].content[0].signature`), whose messages and
    parts are in the order of the source document. The code that has that document converts this to a path in
    the client's document (`dialects/places.py`): in the `request` it sent, or in the `response` it receives.
    """

    path: str
    feature: Feature
    action: Action
    detail: str = ""
    document: Document = "request"

    @property
    def grade(self) -> Grade:
        return grade_of(self.feature, self.action)[0]

    @property
    def reason(self) -> str:
        """The reason for its grade, in a sentence."""
        return grade_of(self.feature, self.action)[1]

    def as_dict(self) -> dict[str, Any]:
        """Its JSON document."""
        return {
            "path": self.path,
            "feature": self.feature,
            "action": self.action,
            "detail": self.detail,
            "grade": self.grade,
            "document": self.document,
        }

    def told(self) -> dict[str, Any]:
        """The former name of `as_dict`."""
        return self.as_dict()


class LossGroup(Loss, frozen=True, kw_only=True):
    """Several losses that differ only in their places: `[*]` in its path replaces the indexes that differ."""

    count: int

    def as_dict(self) -> dict[str, Any]:
        return {**Loss.as_dict(self), "count": self.count}


_PLACE = re.compile(r"(\[\d+\])")


def grouped(losses: Sequence[Loss]) -> list[Loss]:
    """Groups similar losses, at the position of the first. A long conversation has the same loss in every
    turn, which is worth one line."""
    if len(losses) < 2:
        return list(losses)
    alike: dict[tuple[str, ...], list[tuple[Loss, list[str]]]] = {}
    for loss in losses:
        pieces = _PLACE.split(loss.path)
        key = (loss.feature, loss.action, loss.detail, loss.document, *pieces[::2])
        alike.setdefault(key, []).append((loss, pieces))
    return [_group(those) if len(those) > 1 else those[0][0] for those in alike.values()]


def _group(alike: list[tuple[Loss, list[str]]]) -> LossGroup:
    """The group of losses whose paths, split into pieces, differ only in indexes."""
    first = alike[0][0]
    pieces = zip(*[pieces for _, pieces in alike], strict=True)
    return LossGroup(
        path="".join([each[0] if len(set(each)) == 1 else "[*]" for each in pieces]),
        feature=first.feature,
        action=first.action,
        detail=first.detail,
        document=first.document,
        count=sum_of([loss for loss, _ in alike]),
    )


def sum_of(losses: Iterable[Loss]) -> int:
    """The number of losses, counting each group with its `count`."""
    return sum(loss.count if isinstance(loss, LossGroup) else 1 for loss in losses)


_SERIOUSNESS: dict[Grade, int] = {"serious": 0, "degraded": 1, "harmless": 2}


def worst_first(losses: Iterable[Loss]) -> list[Loss]:
    """Serious losses first; equal ones in the order in which they were found."""
    found = list(losses)
    if len(found) > 1:
        found.sort(key=_seriousness)
    return found


def _seriousness(loss: Loss) -> int:
    return _seriousness_of(loss.feature, loss.action)


@lru_cache(maxsize=1024)
def _seriousness_of(feature: Feature, action: Action) -> int:
    return _SERIOUSNESS[grade_of(feature, action)[0]]


def feature_of(signature: Signature) -> Feature:
    """The feature that is lost with a signature."""
    return "message.phase" if signature.id == PHASE else "reasoning.signature"


_REPORTS: dict[str, Feature] = {"input_transformations": "reasoning.signature"}
"""Fields in which a provider reports a loss, and the feature that is lost."""
_NAMED: dict[str, Feature] = {"context_management": "context_management"}
"""Fields of a request that the IR has no field for, and that have their own feature."""
_READ: dict[tuple[str, str], Loss] = {
    ("$.thinking.type", "between_tools"): Loss(
        "$.thinking.type", "thinking.display", "dropped", "between_tools: off here, without notes on progress"
    )
}
"""Values of fields that the IR represents differently, and the loss in converting them."""


def losses_of_extra(
    extra: Extra | None, own: str, path: str, out: list[Loss], feature: Feature = "unknown_field"
) -> None:
    """Report the fields another dialect left in `extra`. Nulls, zeros and empty values carry no
    information."""
    if extra is None or extra.dialect == own:
        return
    for key, value in extra.fields.items():
        if type(value) is str and (f"{path}.{key}", value) in _READ:
            out.append(_READ[f"{path}.{key}", value])
        elif value or not is_blank(value):
            named = _REPORTS.get(key, feature)
            if key.startswith("usage."):
                named = "usage.detail"
            elif named == "unknown_field":
                named = _NAMED.get(key, named)
            out.append(Loss(f"{path}.{key}", named, "dropped", f"{extra.dialect} only"))


def is_blank(value: Any) -> bool:
    if value:  # most have a meaning
        return False
    return value is None or value is False or value == 0 or value == "" or value == [] or value == {}


# Parts that are not sent to the other side.

_PART: Final = re.compile(r"\$\.messages\[(\d+)\]\.content\[(\d+)\](\.signature)?")
_WHOLE: Final = frozenset({"reasoning.text", "reasoning.redacted"})


def left_out(part: Foreign, path: str) -> Loss:
    what = f"{part.type} of {part.dialect}"
    if part.for_vendor:
        return Loss(path, "metadata", "dropped", f"{what}: a note to its vendor")
    if part.stands_elsewhere:
        return Loss(path, "foreign_part", "emulated", f"{what}: its content is sent elsewhere")
    return Loss(path, "foreign_part", "dropped", what)


def withheld(request: Request, losses: Iterable[Loss]) -> tuple[Reasoning, ...]:
    """The reasoning in a history that does not reach the model at all, in order. `losses` have their neutral
    places in the request."""
    found: dict[tuple[int, int], Reasoning] = {}
    for loss in losses:
        if loss.action != "dropped" or not loss.feature.startswith("reasoning."):
            continue
        place = _PART.fullmatch(loss.path)
        if place is None:
            continue
        message, index = int(place[1]), int(place[2])
        part = request.messages[message].content[index]
        if isinstance(part, Reasoning) and (loss.feature in _WHOLE or not part.text):
            found[message, index] = part
    return tuple(map(found.__getitem__, sorted(found)))
