"""Renders a request to an upstream."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.common_losses import FILLER, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_chat.extras import NAME, put_back
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.openai_chat.outcome import render_tier
from wireglot_core.dialects.openai_chat.render_messages import render_messages
from wireglot_core.dialects.openai_chat.settings import REQUEST_FIELDS, put_thinking, render_output
from wireglot_core.dialects.openai_chat.tools import WEB_SEARCH, render_choice, render_hosted, render_tool
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.request import MIDWAY, AnyTool, HostedTool, Request


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    form = own_form(request.extra, NAME)
    native = bool(form.get("native"))
    LOST.of(request, "$", losses)
    out: dict[str, Any] = {}
    if request.model or not (form.get("model") == "absent" or "model" in own_fields(request.extra, NAME)):
        out["model"] = request.model
    messages = render_messages(request, native, context, losses)
    if not messages:
        losses.append(NO_MESSAGE)
        messages.append({"role": "user", "content": FILLER})
    out["messages"] = messages
    _put_tools(out, request, native, losses, context)
    _put_limits(out, request, form)
    REQUEST_FIELDS.write(request, out, {"seed": form["seed"]} if "seed" in form else {})
    if request.sampling.top_k is not None:
        if native:
            out["top_k"] = request.sampling.top_k
        else:
            losses.append(Loss("$.sampling.top_k", "sampling.top_k", "dropped", "Chat has no top_k"))
    if "n" in form:
        out.setdefault("n", form["n"])
    put_thinking(out, request.thinking, losses)
    if request.output is not None:
        out["response_format"] = render_output(request.output, losses)
    if request.verbosity:
        out["verbosity"] = request.verbosity
    _put_stream(out, request, form, native)
    _put_account(out, request, form, native, losses)
    put_back(out, request.extra)
    return Rendered(out, tuple(losses))


def _put_tools(
    out: dict[str, Any], request: Request, native: bool, losses: list[Loss], context: Context
) -> None:
    tools = request.tools
    rendered = context.rendered_once(tools, NAME, lambda lost: _render_tools(tools, lost), losses)
    for key, entries in rendered.items():
        # Search options are an object: other fields of the request may have to be added to it.
        out[key] = entries.copy() if key == WEB_SEARCH else context.as_json(tools, (NAME, key), entries)
    declared = native or "tools" in out or "functions" in out
    choice = request.tool_choice
    if choice is not None:
        if declared:
            legacy = own_form(choice.extra, NAME).get("legacy")
            out["function_call" if legacy else "tool_choice"] = render_choice(choice, request.tools, losses)
        elif choice.mode != "auto" or choice.only:
            losses.append(
                Loss("$.tool_choice", "tool_choice", "dropped", "there are no tools to choose from")
            )
        else:
            LOST.of(choice, "$.tool_choice", losses)
    if request.parallel_tools is not None:
        if declared:
            out["parallel_tool_calls"] = request.parallel_tools
        elif not request.parallel_tools:
            losses.append(Loss("$.parallel_tools", "parallel_tools", "dropped", "there are no tools"))


def _render_tools(tools: tuple[AnyTool, ...], losses: list[Loss]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for index, tool in enumerate(tools):
        path = f"$.tools[{index}]"
        if isinstance(tool, HostedTool):
            hosted = render_hosted(tool, path, losses)
            if hosted is None:
                continue
            key, entry = hosted
        elif MIDWAY in own_form(tool.extra, NAME):
            continue  # it is in the message that declares it
        else:
            key, entry = render_tool(tool, path, losses)
        if key == WEB_SEARCH:
            out[WEB_SEARCH] = entry
        else:
            out.setdefault(key, []).append(entry)
    return out


def _put_limits(out: dict[str, Any], request: Request, form: dict[str, Any]) -> None:
    if request.max_tokens is not None:
        # The spelling of the request, or the only one that the provider's limits allow.
        out[form.get("limit", "max_completion_tokens")] = request.max_tokens
        if "max_tokens" in form:
            out["max_tokens"] = form["max_tokens"]
    if request.stop:
        single = form.get("stop") == "string" and len(request.stop) == 1
        out["stop"] = request.stop[0] if single else list(request.stop)


def _put_stream(out: dict[str, Any], request: Request, form: dict[str, Any], native: bool) -> None:
    if request.stream is not None:
        out["stream"] = request.stream
    # `stream_options` are refused without a stream: they are also changed if streaming was turned on or off
    # after the request was parsed.
    turned = native and bool(request.stream) != ("stream" in form)
    if "stream_options" in form and not turned:
        out["stream_options"] = form["stream_options"]
    elif request.stream and (turned or not native):
        # Other dialects always report usage at the end of a stream; here it must be requested.
        out["stream_options"] = {"include_usage": True}


def _put_account(
    out: dict[str, Any], request: Request, form: dict[str, Any], native: bool, losses: list[Loss]
) -> None:
    if request.user:
        spelling = form.get("user", "safety_identifier")
        if spelling == "both":
            out["user"] = out["safety_identifier"] = request.user
        else:
            out[spelling] = request.user
    if request.metadata:
        out["metadata"] = dict(request.metadata)
    if request.service_tier:
        raw = form.get("service_tier")
        tier = raw if raw is not None else render_tier(request.service_tier, native, "$.service_tier", losses)
        if tier is not None:
            out["service_tier"] = tier
    if request.cache is not None:
        _put_cache_options(out, request, losses)
    if request.cache_key:
        out["prompt_cache_key"] = request.cache_key


def _put_cache_options(out: dict[str, Any], request: Request, losses: list[Loss]) -> None:
    mark = request.cache
    assert mark is not None
    losses_of_extra(mark.extra, NAME, "$.cache", losses)
    raw = own_form(mark.extra, NAME).get("raw")
    if raw is not None:
        out["prompt_cache_options"] = dict(raw)
        return
    options = {"mode": "implicit"}
    if mark.ttl:
        options["ttl"] = "30m"
        if mark.ttl == "long":
            losses.append(
                Loss("$.cache.ttl", "cache_marker", "approximated", "Chat keeps a whole prompt 30 minutes")
            )
    out["prompt_cache_options"] = options
