"""One `fit`: a request bent to what an endpoint takes, every bend declared."""

from __future__ import annotations

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import surface
from wireglot.dialects.surface import Surface
from wireglot.ir.loss import Feature, Loss
from wireglot.ir.request import Request, Sampling, Thinking
from wireglot.ir.trail import Trail
from wireglot.ir.turns import merge_neighbours, repair_pairs
from wireglot.providers.fit.declared import apply_tool_changes, join_declared_tools
from wireglot.providers.fit.fitted import Fitted
from wireglot.providers.fit.ids import fit_call_ids
from wireglot.providers.fit.known import Settled, join_known
from wireglot.providers.fit.markers import fit_cache_markers, respell_markers
from wireglot.providers.fit.output import ask_for_output, fit_output_schema
from wireglot.providers.fit.parts import fit_messages, sign_calls
from wireglot.providers.fit.pieces import join_pieces
from wireglot.providers.fit.spelling import join_texts, spell_for
from wireglot.providers.fit.state import declare_switches, refuse_nothing, without_files, without_state
from wireglot.providers.fit.survey import (
    CALLS,
    CHOICE,
    FIELDS,
    FOREIGN,
    MARKED,
    MEDIA,
    MIDWAY,
    NO_LIMIT,
    OUTPUT,
    OWN_FIELDS,
    SAMPLING,
    SETTING_FIELDS,
    STOP,
    TOOLS,
    asks,
    survey,
)
from wireglot.providers.fit.thinking import fit_thinking, stop_thinking_in_loop, thinks
from wireglot.providers.fit.tools import NO_ALIASES, fit_tool_choice, fit_tools
from wireglot.providers.fit.turns import fit_ends, place_system
from wireglot.providers.fit.words import tell_in_words
from wireglot.providers.limits import (
    ALL_SAMPLING,
    ALL_SETTINGS,
    ALL_TEXT_ROLES,
    DEFAULT_SAMPLING,
    Limits,
)


def fit(
    request: Request,
    limits: Limits,
    context: Context,
    dialect: str,
    regroup: bool = True,
    in_pieces: bool = False,
    client: Surface | None = None,
) -> Fitted:
    """`regroup` merges neighbours into alternating turns: for a request that came from another dialect.
    `in_pieces`: its dialect's clients send answers back as a stream has cut them. `client`: that dialect,
    where it is known."""
    losses: list[Loss] = []
    trail = Trail(request)
    settled = Settled(request.messages, context.memory)
    conversation = survey(request.messages, settled.row)
    seen = conversation.seen | asks(request)
    if not regroup and not limits.media_urls:
        # Nothing is translated, so a media URL goes to the provider as its own dialect wrote it.
        limits = msgspec.structs.replace(limits, media_urls=True)
    if regroup:
        if seen & NO_LIMIT:
            request = _without_limit(request, losses)
        if seen & (OWN_FIELDS | SETTING_FIELDS | FIELDS):
            declare_switches(request, dialect, losses, trail, bool(seen & FIELDS))
        if seen & FOREIGN and client is not None and client.client.tool_changes is not None:
            request = apply_tool_changes(request, client.client.tool_changes, losses, trail)
        if seen & (OWN_FIELDS | FOREIGN | FIELDS):
            request = without_state(request, losses, trail, bool(seen & (FOREIGN | FIELDS)))
    if seen & MEDIA:
        issuer = client.issuer if client is not None else ""
        request = without_files(
            request, losses, trail, issuer, surface(dialect).issuer, limits, own=not regroup
        )
    if seen & FOREIGN:
        if regroup:
            request = tell_in_words(request, dialect, losses, trail)
        if regroup or not limits.midway_tools:
            request = join_declared_tools(request, losses, trail)
    messages = request.messages
    if seen & (MIDWAY | FOREIGN):
        messages = place_system(messages, limits, losses, trail, dialect)
    if regroup and (conversation.neighbours or messages is not request.messages):
        messages = merge_neighbours(messages, dialect, losses, trail, join_known(settled.memory))
        if messages is not request.messages and settled.memory is not None:
            settled = Settled(messages, context.memory)
    if in_pieces:
        messages = join_pieces(messages, limits, context, dialect, losses=losses, trail=trail)
    if not settled.paired(messages):
        messages = repair_pairs(
            messages,
            losses,
            trail,
            lambda call_id, ordinal: context.lasting_id("call", call_id, str(ordinal)),
        )
    if messages is not request.messages:
        request = msgspec.structs.replace(request, messages=messages)
    if not conversation.suits(limits):
        request = fit_messages(
            request, limits, context, dialect, losses=losses, trail=trail, native=not regroup
        )
    if losses:
        refuse_nothing(request, losses)
    aliases = NO_ALIASES
    if seen & (TOOLS | CALLS | CHOICE | FOREIGN):
        foreign = regroup and (client is None or client.family != dialect)
        request, aliases = fit_tools(
            request, limits, losses, trail, dialect, memory=context.memory, settled=settled, foreign=foreign
        )
    if seen & CALLS:
        request = fit_call_ids(request, limits, losses, context, trail, settled=settled)
        if limits.call_signatures:
            request = sign_calls(request, context, losses, trail)
    asked = request.thinking
    if limits.thinking_in_loop and asked.mode != "off" and (regroup or limits.thinking_own == "fit"):
        request = stop_thinking_in_loop(request, losses)
    if limits.thinking is not None and request.thinking != _NO_THINKING:
        request = fit_thinking(request, limits, losses, dialect, foreign=regroup)
    if seen & CHOICE:
        request = fit_tool_choice(request, limits, losses, thinks(asked, request.thinking, limits))
    if limits.service_tiers is not None or limits.settings != ALL_SETTINGS:
        request = _fit_settings(request, limits, losses)
    if seen & SAMPLING:
        request = _fit_sampling(request, limits, losses)
    if seen & STOP:
        request = _fit_stop(request, limits, losses)
    if limits.max_tokens or limits.max_tokens_default:
        request = _fit_max_tokens(request, limits, losses)
    if dialect == "openai-chat":
        request = spell_for(request, limits, losses, trail, foreign=regroup, settled=settled)
    if seen & OUTPUT:
        request, wrapped = fit_output_schema(request, limits, losses)
        if wrapped:
            aliases = msgspec.structs.replace(aliases, unwraps=True)
        request = ask_for_output(request, limits, losses)
    if conversation.markers or seen & MARKED:
        request = fit_cache_markers(request, limits, losses, trail, conversation.markers)
        if limits.marker_field and dialect == "openai-chat" and conversation.markers:
            request = respell_markers(request, limits.marker_field, trail)
    if dialect == "openai-chat" and limits.text_parts != ALL_TEXT_ROLES:
        request = join_texts(request, limits, losses, foreign=regroup)
    ends = fit_ends(request.messages, limits, losses, trail, dialect, foreign=regroup)
    if ends is not request.messages:
        request = msgspec.structs.replace(request, messages=ends)
    return Fitted(request, aliases, trail, tuple(losses))


_NO_THINKING = Thinking()

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


def _fit_sampling(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    sampling = request.sampling
    if sampling == Sampling():
        return request
    changes: dict[str, float | int | None] = {}
    if limits.sampling is not ALL_SAMPLING:
        for name, feature in _SAMPLING_FEATURES.items():
            value = getattr(sampling, name)
            taken = ("logprobs" if name == "top_logprobs" else name) in limits.sampling
            if value is None or taken or value == limits.fixed.get(name):
                continue
            changes[name] = None
            if name in limits.fixed or value != DEFAULT_SAMPLING.get(name):
                detail = "this model fixes or refuses it"
                losses.append(Loss(f"$.sampling.{name}", feature, "dropped", detail))
    highest = limits.temperature_max
    if (
        highest
        and sampling.temperature is not None
        and sampling.temperature > highest
        and "temperature" not in changes
    ):
        losses.append(
            Loss("$.sampling.temperature", "sampling.temperature", "approximated", f"lowered to {highest:g}")
        )
        changes["temperature"] = highest
    if not changes:
        return request
    return msgspec.structs.replace(request, sampling=msgspec.structs.replace(sampling, **changes))


def _fit_settings(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    tier, tiers = request.service_tier, limits.service_tiers
    if tier and tiers is not None and tier not in tiers:
        losses.append(Loss("$.service_tier", "service_tier", "dropped", f"this model has no tier {tier}"))
        request = msgspec.structs.replace(request, service_tier="")
    if limits.settings == ALL_SETTINGS:
        return request
    refused = [name for name in ALL_SETTINGS if name not in limits.settings and getattr(request, name)]
    if not refused:
        return request
    for name in refused:
        losses.append(Loss(f"$.{name}", name, "dropped", "not taken by this provider"))
    blank = {name: {} if name == "metadata" else "" for name in refused}
    return msgspec.structs.replace(request, **blank)


def _fit_stop(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    stop = request.stop
    if not stop:
        return request
    kept = stop
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
    losses.append(
        Loss(
            "$.stop",
            "stop_sequences",
            "approximated",
            f"{len(kept)} of {len(stop)} sent: the provider takes no more",
        )
    )
    return msgspec.structs.replace(request, stop=kept)


def _without_limit(request: Request, losses: list[Loss]) -> Request:
    """LM Studio and llama.cpp take -1 for no limit, so clients write it; elsewhere it means nothing."""
    losses.append(Loss("$.max_tokens", "max_tokens", "dropped", f"{request.max_tokens} is no limit"))
    return msgspec.structs.replace(request, max_tokens=None)


def _fit_max_tokens(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    wanted = request.max_tokens
    if wanted is None:
        if not limits.max_tokens_default:
            return request
        losses.append(
            Loss(
                "$.max_tokens",
                "max_tokens",
                "invented",
                f"{limits.max_tokens_default}: the dialect demands a number",
            )
        )
        return msgspec.structs.replace(request, max_tokens=limits.max_tokens_default)
    if limits.max_tokens and wanted > limits.max_tokens:
        losses.append(
            Loss(
                "$.max_tokens",
                "max_tokens",
                "approximated",
                f"{wanted} lowered to the model's {limits.max_tokens}",
            )
        )
        return msgspec.structs.replace(request, max_tokens=limits.max_tokens)
    return request
