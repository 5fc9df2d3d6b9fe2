"""Parses and renders requests to `/api/chat`."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import FILLER, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.ollama.extras import NAME, keep, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.ollama.messages import MessageParser, MessageRenderer
from wireglot_core.dialects.ollama.settings import (
    REQUEST_FIELDS,
    offered,
    parse_output,
    parse_thinking,
    parse_tools,
    put_output,
    put_thinking,
    read_options,
    render_tools,
    write_options,
)
from wireglot_core.dialects.turns import read_turns, write_turns
from wireglot_core.ir.content import Extra, Message
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Request


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    turns = fields.array("messages")
    if not turns:
        raise fields.fault("expected at least one message", "$.messages")
    conversation = MessageParser(context)
    read_turns(conversation, turns, context, NAME)
    return read_settings(fields, tuple(conversation.messages), {"messages"}, {"native": True}, context)


def read_settings(
    fields: Fields, messages: tuple[Message, ...], taken: set[str], form: dict[str, Any], context: Context
) -> Request:
    """The request with these messages and all other fields of the body."""
    body = fields.value
    taken |= REQUEST_FIELDS.known
    settings = REQUEST_FIELDS.read(fields, taken)
    options, rest = read_options(fields, taken, form)
    sampling = options.pop("sampling", None)
    if sampling is not None:
        stated = settings["sampling"]
        settings["sampling"] = replace(sampling, logprobs=stated.logprobs, top_logprobs=stated.top_logprobs)
    if settings.get("stream") is None:
        settings["stream"] = True  # the default of every server
        form["stream"] = "absent"
    tools: tuple[AnyTool, ...] = ()
    if listed := fields.array_or_empty("tools"):
        taken.add("tools")
        tools = context.remembered(listed, NAME, lambda: context.share(parse_tools(fields), listed))
    thinking, output = parse_thinking(fields, taken), parse_output(fields, taken)
    if "model" not in body:
        form["model"] = "absent"
    extra = keep(body, taken, form) or Extra(NAME, {}, form)
    if rest:
        extra = Extra(NAME, {**extra.fields, **rest}, extra.form)
    return Request(
        messages=messages, tools=tools, thinking=thinking, output=output, extra=extra, **options, **settings
    )


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    form = own_form(request.extra, NAME)
    out = start_request(request, form)
    writer = MessageRenderer(bool(form.get("native")), losses)
    messages = write_turns(writer, request.messages, 0, context, NAME, bool(form.get("native")))
    if not messages:
        losses.append(NO_MESSAGE)
        messages.append({"role": "user", "content": FILLER})
    out["messages"] = messages
    tools = offered(request, losses)
    if tools:
        listed = context.rendered_once(tools, NAME, lambda lost: render_tools(tools, lost), losses)
        if listed:
            out["tools"] = context.as_json(tools, (NAME, "tools"), listed)
    finish_request(out, request, form, context, losses)
    return Rendered(out, tuple(losses))


def start_request(request: Request, form: dict[str, Any]) -> dict[str, Any]:
    if request.model or not (form.get("model") == "absent" or "model" in own_fields(request.extra, NAME)):
        return {"model": request.model}
    return {}


def finish_request(
    out: dict[str, Any], request: Request, form: dict[str, Any], context: Context, losses: list[Loss]
) -> None:
    """Writes everything except the conversation and the tools."""
    put_output(out, request.output, losses)
    options = write_options(request, form)
    own = own_fields(request.extra, NAME)
    if options or form.get("options") == "empty" or any(key.startswith("options.") for key in own):
        out["options"] = options
    if not request.stream or form.get("stream") != "absent":
        out["stream"] = bool(request.stream)  # without it the answer would be a stream
    put_thinking(out, request.thinking, context.reasons, losses)
    REQUEST_FIELDS.write(request, out)
    LOST.of_fields(request.sampling, "$.sampling", losses)
    LOST.of(request, "$", losses)
    put_back(out, request.extra)
