"""Losses of features that a direction does carry, and that could not be helped: by name, and why.

Everything else that is dropped although its direction has a place for it counts as avoidable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from wireglot_core.ir.loss import Feature, Loss

Document = Mapping[str, Any]
NOTHING: Final[Document] = MappingProxyType({})


class Necessary(NamedTuple):
    """Losses by their feature and by what they say, in which `*` stands for anything."""

    reason: str
    features: tuple[Feature, ...]
    details: tuple[str, ...]
    holds: Callable[[Document], bool] = lambda document: True
    """What must be true of the document that was translated."""


def _refers_to_what_is_stored(request: Document) -> bool:
    """Whether parts of the conversation are held by the upstream that was asked before."""
    items = request.get("input")
    listed = items if isinstance(items, list) else []
    if "output" in request:  # an answer, which only repeats what was asked
        return False
    return bool(request.get("previous_response_id") or request.get("conversation")) or any(
        isinstance(item, dict) and item.get("type") == "item_reference" for item in listed
    )


def brought_no_state(answer: Document) -> bool:
    """Whether no reasoning item of a Responses answer can go back: none is encrypted, or raw text."""
    items = [item for item in answer.get("output", ()) if item.get("type") == "reasoning"]
    return bool(items) and not any(item.get("encrypted_content") or item.get("content") for item in items)


NECESSARY: Final[tuple[Necessary, ...]] = (
    Necessary(
        "OpenAI marks parts of what is said to the model: no tools, no calls, no answers (openai 3.49)",
        ("cache_marker",),
        (
            "tools take no breakpoint",
            "calls take no breakpoint",
            "answers take no breakpoint",
            "Chat marks content parts only",
        ),
    ),
    Necessary("the catalog knows that this model takes none", ("cache_marker",), ("none are taken",)),
    Necessary(
        "OpenAI's marks say where, and not for five minutes",
        ("cache_marker",),
        ("kept for as long as the server decides; requested: short",),
    ),
    Necessary("all tools to choose from were lost (reported)", ("tool_choice",), ("no tools are offered",)),
    Necessary("VALIDATED: auto, which is sent, and Gemini's own check", ("tool_choice",), ("gemini only",)),
    Necessary(
        "the catalog knows that this model refuses it",
        ("sampling.temperature", "sampling.top_p", "sampling.seed", "logprobs", "user", "tool.strict"),
        (
            "this model fixes or refuses it",
            "not taken by this provider",
            "this provider does not enforce schemas",
        ),
    ),
    Necessary(
        "the call is held by the upstream that was asked before, which a translation by itself cannot ask",
        ("tool_result.pairing",),
        ("a result without its call",),
        _refers_to_what_is_stored,
    ),
    Necessary("outside of what OpenAI enforces, and refused", ("tool.strict",), ("the schema is *",)),
    Necessary("a tier that only its vendor sells", ("service_tier",), ("no tier *",)),
    Necessary("there are no calls that could be parallel", ("parallel_tools",), ("no tool may be called *",)),
    Necessary("Gemini has one resolution for a whole result", ("image.detail",), ("media in a result *",)),
    Necessary(
        "the upstream reads back only what it has signed: a bare summary is for people",
        ("reasoning.text",),
        ("not signed by this provider",),
    ),
    Necessary(
        "a request that stores nothing brings reasoning back encrypted only, and this answer had it bare",
        ("reasoning.text", "reasoning.signature"),
        ("its encrypted content was not kept",),
        brought_no_state,
    ),
    Necessary(
        "a call that its token limit has cut is nothing to run",
        ("tool_call.arguments", "tool_result.pairing"),
        ("the answer reached its token limit *", "the limit was reached inside the call"),
    ),
    Necessary("details of accounts that only their vendor keeps", ("usage.detail",), ("* only",)),
    Necessary(
        "citations of OpenAI and Gemini name web pages, and OpenAI's do not quote: their offsets do",
        ("citations",),
        (
            "quote: a citation has no quote here",
            "quote: Chat does not quote",
            "only web sources are supported",
            "it names no URL",
        ),
    ),
    Necessary(
        "citations of files and documents, which only their vendor's kinds of citation can name",
        ("citations",),
        (
            "a file_citation of openai-responses",
            "a container_file_citation of openai-responses",
            "a file_path of openai-responses",
            "a file of openai-chat",
        ),
    ),
    Necessary("Gemini names the licence of what it recites", ("citations",), ("license: gemini only",)),
    Necessary(
        "the text that it signs has been sent by then, and nothing else may carry it: gateways remember it",
        ("reasoning.signature",),
        ("signature: there is no text to carry it", "signature: it came after *"),
    ),
)  # fmt: skip


def why_needed(loss: Loss, document: Document = NOTHING) -> str:
    """Why the loss could not be helped; empty where it could. `document` is what was translated."""
    for entry in NECESSARY:
        if loss.feature in entry.features and any(fnmatchcase(loss.detail, one) for one in entry.details):
            return entry.reason if entry.holds(document) else ""
    return ""
