"""Ollama's `/api/generate`: one prompt, and all other fields of `/api/chat` except its messages.

An Ollama server is sent the request unchanged. For other upstreams a prompt is a user turn. A request to
continue a text instead of answering (`suffix`) is refused, as Ollama refuses it for models that cannot
insert; `raw`, `template` and the tokens of `context` are reported as losses.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.base import StreamWriter
from wireglot_core.dialects.common_losses import FILLER, JOINED_TEXTS, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.ollama.answer import GENERATE, idle_answer, parse_answer, render_answer
from wireglot_core.dialects.ollama.dialect import DIALECT as OLLAMA
from wireglot_core.dialects.ollama.extras import NAME as FAMILY
from wireglot_core.dialects.ollama.media import parse_images
from wireglot_core.dialects.ollama.messages import MessageRenderer
from wireglot_core.dialects.ollama.places import GENERATE_PLACES
from wireglot_core.dialects.ollama.request import finish_request, read_settings, start_request
from wireglot_core.dialects.ollama.settings import offered
from wireglot_core.dialects.ollama.stream_reader import OllamaReader
from wireglot_core.dialects.ollama.stream_writer import OllamaWriter
from wireglot_core.dialects.surface import Route
from wireglot_core.ir.content import Media, Message, Part, Text
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request

NAME: Final = "ollama-generate"
_BETWEEN: Final = "\n\n"


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    form: dict[str, Any] = {"native": True}
    taken: set[str] = set()
    if fields.text_or("suffix"):
        raise Unsupported("models behind this gateway do not insert: leave out the suffix", "$.suffix")
    messages: list[Message] = []
    if system := fields.text_or("system"):
        taken.add("system")
        messages.append(Message("system", (Text(system),)))
    parts: list[Part] = []
    if prompt := fields.text_or("prompt"):
        taken.add("prompt")
        parts.append(Text(prompt))
    if images := parse_images(fields):
        taken.add("images")
        parts += images
    if not parts:
        raise fields.fault("expected a prompt", "$.prompt")
    messages.append(Message("user", tuple(parts)))
    return read_settings(fields, tuple(messages), taken, form, context)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    form = own_form(request.extra, FAMILY)
    out = start_request(request, form)
    _put_prompt(out, request, losses)
    for index, _ in enumerate(offered(request, losses)):
        losses.append(Loss(f"$.tools[{index}]", "tool_choice", "dropped", "a prompt has no tools"))
    finish_request(out, request, form, context, losses)
    return Rendered(out, tuple(losses))


def _put_prompt(out: dict[str, Any], request: Request, losses: list[Loss]) -> None:
    """Writes the system texts and the last user turn. Earlier turns are lost."""
    first = len(request.messages)
    while first and request.messages[first - 1].role == "user":
        first -= 1
    writer = MessageRenderer(False, losses)
    system: list[str] = []
    said: list[str] = []
    images: list[str] = []
    for index, message in enumerate(request.messages):
        path = f"$.messages[{index}]"
        is_past = message.role != "system" and index < first
        kept: list[Part] = []
        for position, part in enumerate(message.content):
            if not is_past and isinstance(part, Text | Media):
                kept.append(part)
            else:
                detail = "a prompt has no history" if is_past else "a prompt has texts and pictures only"
                losses.append(Loss(f"{path}.content[{position}]", "content.position", "dropped", detail))
        if is_past and message.is_empty:
            losses.append(Loss(path, "content.empty", "dropped", "a prompt has no history"))
        losses_of_extra(message.extra, FAMILY, path, losses)
        for written in writer.write_message(replace(message, content=tuple(kept), extra=None), index):
            texts = system if message.role == "system" else said
            if written["content"]:
                texts.append(written["content"])
            images += written.get("images", ())
    for texts in (system, said):
        if len(texts) > 1:
            losses.append(JOINED_TEXTS.at("$.messages"))
    if system:
        out["system"] = _BETWEEN.join(system)
    if said:
        out["prompt"] = _BETWEEN.join(said)
    elif not images:
        losses.append(NO_MESSAGE)
        out["prompt"] = FILLER
    if images:
        out["images"] = images


def parse_response(body: dict[str, Any], context: Context) -> Response:
    return parse_answer(body, context, GENERATE)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    return render_answer(response, context, request, GENERATE)


def stream_writer(context: Context, request: Request | None = None) -> StreamWriter:
    return OllamaWriter(context, request, GENERATE)


_UPSTREAM: Final = OLLAMA.surface.upstream
assert _UPSTREAM is not None

SURFACE: Final = replace(
    OLLAMA.surface,
    name=NAME,
    client=replace(
        OLLAMA.surface.client,
        routes=(Route("POST", "/api/generate", "generate"),),
        endpoints=("POST /api/generate",),
        prefixes=(),
        probes={},
        unserved={},
        idle=partial(idle_answer, asks={"prompt": ("",), "images": ([],)}, shape=GENERATE),
        turns="",
    ),
    upstream=replace(
        _UPSTREAM, paths={"generate": "/api/generate", "stream": "/api/generate"}, of_family=True
    ),
    assist=None,
    embeddings=None,
)

DIALECT: Final = replace(
    OLLAMA,
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    stream_writer=stream_writer,
    render_request=render_request,
    parse_response=parse_response,
    stream_reader=partial(OllamaReader, shape=GENERATE),
    places=GENERATE_PLACES,
)
