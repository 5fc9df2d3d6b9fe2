"""Changes a request to what an endpoint accepts, and reports every change as a loss.

The passes are one list. Each row names what a request must contain for the pass to have anything to do at a
certain endpoint; for each endpoint the list of those passes is made once.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import surface
from wireglot_core.ir.loss import Feature
from wireglot_core.ir.request import Request
from wireglot_core.ir.stop_sequences import searched
from wireglot_core.ir.turns import repair_pairs
from wireglot_core.providers.fit.answer_tool import answer_by_tool
from wireglot_core.providers.fit.declared import apply_tool_changes, hold_back_deferred, join_declared_tools
from wireglot_core.providers.fit.fitting import FitTarget, Fitted, Fitting
from wireglot_core.providers.fit.forced_call import call_by_format
from wireglot_core.providers.fit.ids import fit_call_ids
from wireglot_core.providers.fit.markers import fit_cache_markers, respell_markers
from wireglot_core.providers.fit.output import ask_for_output, fit_output_schema
from wireglot_core.providers.fit.parts import fit_messages, sign_calls
from wireglot_core.providers.fit.pieces import join_pieces
from wireglot_core.providers.fit.ran_code import convert_code
from wireglot_core.providers.fit.spelling import (
    fill_in_ids,
    join_texts,
    mark_prefill,
    spell_fields,
    use_system_role,
)
from wireglot_core.providers.fit.state import declare_switches, refuse_nothing, without_files, without_state
from wireglot_core.providers.fit.survey import (
    ALWAYS,
    ANSWERED,
    BLANK,
    CALLS,
    CHANGED,
    CHOICE,
    DEFERRED,
    FIELDS,
    FOREIGN,
    LOST,
    MARKED,
    MARKED_PARTS,
    MEDIA,
    MIDWAY,
    NAMED,
    NEIGHBOURS,
    NO_IDS,
    NO_LIMIT,
    ODD_CALLS,
    ODD_IDS,
    OUTPUT,
    OWN_FIELDS,
    REASONING,
    RESULTS,
    ROLES,
    SAMPLING,
    SETTING_FIELDS,
    SIGNED,
    STOP,
    THINKING,
    TOOLS,
    UNOPENED,
)
from wireglot_core.providers.fit.thinking import fit_thinking, stop_thinking_in_loop
from wireglot_core.providers.fit.tools import fit_tool_choice, fit_tools
from wireglot_core.providers.fit.turns import arrange, fit_beginning, fit_end, keep_turns, refuse_wordless
from wireglot_core.providers.fit.words import tell_in_words
from wireglot_core.providers.limits import (
    ALL_MEDIA,
    ALL_SAMPLING,
    ALL_SETTINGS,
    ALL_TEXT_ROLES,
    DEFAULT_SAMPLING,
    Limits,
)

Pass = Callable[[Request, Fitting], Request]


class Fitter:
    """Fits requests of the clients of one dialect to one endpoint."""

    def __init__(self, target: FitTarget) -> None:
        self.target: Final = target
        self._passes = tuple((needs, run) for run, seen in PASSES if (needs := seen(target)))

    @classmethod
    def between(cls, limits: Limits, source: str | None, target: str) -> Fitter:
        """A fitter for requests of the dialect `source`, or of none, to an endpoint with these limits."""
        client = surface(source) if source is not None else None
        family = surface(target).family
        pieces = client is not None and client.reasoning.returns_pieces and client.family != family
        return cls(FitTarget.of(limits, family, foreign=source != target, in_pieces=pieces, client=client))

    def fit(self, request: Request, context: Context) -> Fitted:
        fitting = Fitting(request, self.target, context)
        surveyed = request.messages
        for needs, run in self._passes:
            if fitting.seen & needs:
                request = run(request, fitting)
                if request.messages is not surveyed:
                    fitting.seen |= CHANGED
                if fitting.losses:
                    fitting.seen |= LOST
        return Fitted(request, fitting.aliases, fitting.trail, tuple(fitting.losses), fitting.emulation)


def _repair_pairs(request: Request, fitting: Fitting) -> Request:
    if fitting.is_paired(request.messages):
        return request
    messages = repair_pairs(
        request.messages,
        fitting.losses,
        fitting.trail,
        lambda call_id, ordinal: fitting.context.lasting_id("call", call_id, str(ordinal)),
    )
    fitting.seen |= ODD_IDS  # ids that were made up may be unacceptable too
    return msgspec.structs.replace(request, messages=messages)


def _stop_thinking_in_loop(request: Request, fitting: Fitting) -> Request:
    return request if request.thinking.mode == "off" else stop_thinking_in_loop(request, fitting.losses)


_SAMPLING_FEATURES: dict[str, Feature] = {
    "temperature": "sampling.temperature",
    "top_p": "sampling.top_p",
    "top_k": "sampling.top_k",
    "frequency_penalty": "sampling.frequency_penalty",
    "presence_penalty": "sampling.presence_penalty",
    "seed": "sampling.seed",
    "candidates": "candidates",
    "logprobs": "logprobs",
    "top_logprobs": "logprobs",
}


def _fit_sampling(request: Request, fitting: Fitting) -> Request:
    sampling, limits = request.sampling, fitting.limits
    changes: dict[str, float | int | None] = {}
    for name, feature in _SAMPLING_FEATURES.items():
        value = getattr(sampling, name)
        taken = ("logprobs" if name == "top_logprobs" else name) in limits.sampling
        if value is None or taken or value == limits.fixed.get(name):
            continue
        changes[name] = None
        if name in limits.fixed or value != DEFAULT_SAMPLING.get(name):
            fitting.lose(f"$.sampling.{name}", feature, "dropped", "this model fixes or refuses it")
    highest, wanted = limits.temperature_max, sampling.temperature
    if highest and wanted is not None and wanted > highest and "temperature" not in changes:
        feature = "sampling.temperature"
        fitting.lose(f"$.{feature}", feature, "approximated", f"lowered to {highest:g}")
        changes["temperature"] = highest
    if not changes:
        return request
    return msgspec.structs.replace(request, sampling=msgspec.structs.replace(sampling, **changes))


def _fit_settings(request: Request, fitting: Fitting) -> Request:
    tier, tiers = request.service_tier, fitting.limits.service_tiers
    if tier and tiers is not None and tier not in tiers:
        fitting.lose("$.service_tier", "service_tier", "dropped", f"this model has no tier {tier}")
        request = msgspec.structs.replace(request, service_tier="")
    taken = fitting.limits.settings
    refused = [name for name in ALL_SETTINGS if name not in taken and getattr(request, name)]
    if not refused:
        return request
    for name in refused:
        fitting.lose(f"$.{name}", name, "dropped", "not taken by this provider")
    blank = {name: {} if name == "metadata" else "" for name in refused}
    return msgspec.structs.replace(request, **blank)


def _fit_stop(request: Request, fitting: Fitting) -> Request:
    stop, limits = request.stop, fitting.limits
    emulates = fitting.context.emulates
    kept = stop
    if not limits.stop_sequences:
        if not emulates:
            return request  # its dialect reports that it has no place for them
        kept = ()
    if not limits.blank_text:
        kept = tuple(sequence for sequence in kept if sequence.strip())
    if limits.stop_bytes:
        kept = tuple(
            sequence for sequence in kept if len(sequence.encode("utf-8", "replace")) <= limits.stop_bytes
        )
    if limits.stop_max:
        kept = kept[: limits.stop_max]
    if kept == stop:
        return request
    if emulates:
        _emulate_stop(request, kept, fitting)
    else:
        detail = f"{len(kept)} of {len(stop)} sent: the provider accepts no more"
        fitting.lose("$.stop", "stop_sequences", "approximated", detail)
    return msgspec.structs.replace(request, stop=kept)


def _emulate_stop(request: Request, kept: tuple[str, ...], fitting: Fitting) -> None:
    """Have the answer cut at the stop sequences that are not sent."""
    stop, sent = request.stop, frozenset(kept)
    left = [sequence for sequence in stop if sequence and sequence not in sent]
    cut = searched(left)
    fitting.emulate(stops=cut, several=(request.sampling.candidates or 1) > 1)
    detail = f"{len(kept)} of {len(stop)} sent; the answer is cut at the others"
    if not kept:
        detail = "the provider accepts none of them; the answer is cut at them"
    if len(cut) < len(left):
        detail = f"{len(kept)} of {len(stop)} sent; the answer is cut at {len(cut)} others"
        ignored = f"{len(left) - len(cut)} of {len(stop)} are ignored: too many or too long to search for"
        fitting.lose("$.stop", "stop_sequences", "dropped", ignored)
    if cut:
        fitting.lose("$.stop", "stop_sequences", "emulated", detail)


def _without_limit(request: Request, fitting: Fitting) -> Request:
    """LM Studio and llama.cpp take -1 for no limit, so clients send it; elsewhere it is invalid."""
    fitting.lose("$.max_tokens", "max_tokens", "dropped", f"{request.max_tokens} is no limit")
    return msgspec.structs.replace(request, max_tokens=None)


def _fit_max_tokens(request: Request, fitting: Fitting) -> Request:
    wanted, most, default = request.max_tokens, fitting.limits.max_tokens, fitting.limits.max_tokens_default
    if wanted is None and default:
        fitting.lose("$.max_tokens", "max_tokens", "invented", f"{default}: the dialect requires a number")
        return msgspec.structs.replace(request, max_tokens=default)
    if wanted is not None and most and wanted > most:
        detail = f"{wanted} lowered to the model's {most}"
        fitting.lose("$.max_tokens", "max_tokens", "approximated", detail)
        return msgspec.structs.replace(request, max_tokens=most)
    return request


def _raise_max_tokens(request: Request, fitting: Fitting) -> Request:
    wanted, least = request.max_tokens, fitting.limits.max_tokens_min
    if wanted is None or wanted >= least:
        return request
    fitting.lose("$.max_tokens", "max_tokens", "approximated", f"{wanted} raised to the minimum, {least}")
    return msgspec.structs.replace(request, max_tokens=least)


def _shorten_user(request: Request, fitting: Fitting) -> Request:
    """The hash is the same in every request, so it still distinguishes users."""
    longest = fitting.limits.user_max
    if len(request.user) <= longest:
        return request
    fitting.lose("$.user", "user", "approximated", f"more than {longest} characters: sent as its SHA-256")
    digest = sha256(request.user.encode("utf-8", "replace")).hexdigest()
    return msgspec.structs.replace(request, user=digest)


def _changes_parts(to: FitTarget) -> int:
    limits = to.limits
    if limits.reasoning_required:
        return ALWAYS
    needs = REASONING | SIGNED
    if not limits.blank_text:
        needs |= BLANK
    if not limits.message_names:
        needs |= NAMED
    if not limits.media_urls or limits.media != ALL_MEDIA or limits.tool_result_media != "inside":
        needs |= MEDIA
    return needs


def _changes_end(to: FitTarget) -> int:
    limits = to.limits
    continues = limits.continues or bool(limits.prefill_field) or not to.foreign
    return 0 if limits.prefill and continues else ANSWERED | CHANGED


def _spells_fields(to: FitTarget) -> int:
    if not to.has_variants:
        return 0
    limits = to.limits
    return ALWAYS if limits.max_tokens_field or limits.seed_field or limits.user_field else OWN_FIELDS


PASSES: Final[tuple[tuple[Pass, Callable[[FitTarget], int]], ...]] = (
    # What only the client's own dialect and vendor support.
    (_without_limit, lambda to: to.foreign and NO_LIMIT),
    (declare_switches, lambda to: to.foreign and OWN_FIELDS | SETTING_FIELDS | FIELDS),
    (
        apply_tool_changes,
        lambda to: to.foreign and to.client is not None and bool(to.client.client.tool_changes) and FOREIGN,
    ),
    # A change of tools, which is a foreign part, may have added one.
    (hold_back_deferred, lambda to: (to.foreign or not to.limits.hosted_tools) and DEFERRED | FOREIGN),
    (without_state, lambda to: to.foreign and OWN_FIELDS | FOREIGN | FIELDS),
    (without_files, lambda to: MEDIA),
    (convert_code, lambda to: to.foreign and to.server.client.hosted.code is not None and FOREIGN),
    (tell_in_words, lambda to: to.foreign and FOREIGN),
    (join_declared_tools, lambda to: (to.foreign or not to.limits.midway_tools) and FOREIGN),
    # The order of turns. Pieces are joined and calls are paired within whole turns.
    (arrange, lambda to: MIDWAY | FOREIGN | (NEIGHBOURS if to.foreign else 0)),
    (join_pieces, lambda to: to.in_pieces and ALWAYS),
    (_repair_pairs, lambda to: CALLS | RESULTS),
    # Parts and tools. What is left of a conversation is known from here on.
    (refuse_nothing, lambda to: LOST),
    (fit_messages, _changes_parts),
    (fit_tools, lambda to: TOOLS | ODD_CALLS | FOREIGN),
    (fit_call_ids, lambda to: ODD_IDS),
    (sign_calls, lambda to: to.limits.call_signatures and CALLS),
    # Settings. The choice of a tool depends on whether the model thinks.
    (
        _stop_thinking_in_loop,
        lambda to: (
            to.limits.thinking_in_loop and (to.foreign or to.limits.thinking_own == "fit") and THINKING
        ),
    ),
    (fit_thinking, lambda to: to.limits.thinking is not None and THINKING),
    (call_by_format, lambda to: to.foreign and to.limits.forced_choice == "format" and CHOICE),
    (fit_tool_choice, lambda to: CHOICE),
    (
        _fit_settings,
        lambda to: (to.limits.service_tiers is not None or to.limits.settings != ALL_SETTINGS) and ALWAYS,
    ),
    (
        _fit_sampling,
        lambda to: (to.limits.sampling != ALL_SAMPLING or bool(to.limits.temperature_max)) and SAMPLING,
    ),
    (_fit_stop, lambda to: STOP),
    (_fit_max_tokens, lambda to: bool(to.limits.max_tokens or to.limits.max_tokens_default) and ALWAYS),
    (_raise_max_tokens, lambda to: to.foreign and bool(to.limits.max_tokens_min) and ALWAYS),
    (_shorten_user, lambda to: to.foreign and bool(to.limits.user_max) and ALWAYS),
    # How it is spelled there.
    (spell_fields, _spells_fields),
    (use_system_role, lambda to: to.has_variants and not to.limits.developer_role and ROLES),
    (fill_in_ids, lambda to: to.has_variants and not to.foreign and NO_IDS),
    (mark_prefill, lambda to: to.has_variants and bool(to.limits.prefill_field) and ANSWERED | CHANGED),
    (answer_by_tool, lambda to: "schema" not in to.limits.output_formats and OUTPUT),
    (fit_output_schema, lambda to: OUTPUT),
    (ask_for_output, lambda to: OUTPUT),
    (fit_cache_markers, lambda to: MARKED | MARKED_PARTS),
    (respell_markers, lambda to: to.has_variants and bool(to.limits.marker_field) and MARKED_PARTS),
    (join_texts, lambda to: to.has_variants and to.limits.text_parts != ALL_TEXT_ROLES and ALWAYS),
    # Last, since others put messages at both ends.
    (refuse_wordless, lambda to: to.foreign and FOREIGN),
    (keep_turns, lambda to: to.foreign and FOREIGN),
    (fit_beginning, lambda to: to.limits.starts_with_user and UNOPENED | CHANGED),
    (fit_end, _changes_end),
)
"""The passes in order, each with the survey bits it needs at an endpoint; 0: it has nothing to do there."""
