"""Parses and renders whole answers. `/api/chat` and `/api/generate` differ in where the message is."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, assert_never

from wireglot_core.dialects.body import Body, stated_model
from wireglot_core.dialects.common_losses import NO_RESULTS_IN_ANSWERS
from wireglot_core.dialects.context import Context, Rendered, reported_model
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.iso_time import iso_time, unix_seconds
from wireglot_core.dialects.ollama.calls import parse_call, render_call
from wireglot_core.dialects.ollama.extras import NAME, UNKNOWN, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST, LOST_IN_ANSWERS
from wireglot_core.dialects.ollama.media import parse_media, render_media
from wireglot_core.dialects.ollama.outcome import (
    METRICS,
    parse_logprobs,
    parse_stop,
    parse_usage,
    render_logprobs,
    render_stop,
    render_usage,
)
from wireglot_core.ir.content import (
    Extra,
    Foreign,
    Media,
    Part,
    Reasoning,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.loss import Loss, left_out, losses_of_extra
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.verdict import malformed
from wireglot_core.wire.splice import Outline

Document = dict[str, Any]
Blanks = dict[str, tuple[Any, ...]]
Fragment = dict[str, Any]
"""Fields of a message: `content`, `thinking`, `images`, `tool_calls`."""


class AnswerShape(NamedTuple):
    """The place of the message in an answer."""

    holder: str
    """The object that contains it; "": the answer itself."""
    text: str
    """The name of its text field."""

    def message(self, chunk: Fields) -> Fields:
        return chunk.object(self.holder) if self.holder else chunk

    def put(self, out: dict[str, Any], fragment: Fragment) -> dict[str, Any]:
        said = {self.text if key == "content" else key: value for key, value in fragment.items()}
        if self.holder:
            out[self.holder] = {"role": "assistant", **said}
        else:
            out.update(said)
        return out


CHAT: Final = AnswerShape("message", "content")
GENERATE: Final = AnswerShape("", "response")

_TOP: Final = frozenset({"model", "created_at", "done", "done_reason", *METRICS})


def parse_answer(body: dict[str, Any], context: Context, shape: AnswerShape) -> Response:
    fields = Fields(body, "$", UpstreamFault)
    message = shape.message(fields)
    taken = set(_TOP)
    form: dict[str, Any] = {"native": True}
    spoken = taken if message is fields else {"role"}
    if message is not fields:
        taken.add(shape.holder)
        if message.value.get("role") != "assistant":
            spoken.discard("role")
            form["role"] = "stated"
    logprobs = parse_logprobs(body.get("logprobs"))
    parts: list[Part] = []
    calls = 0

    def mint(name: str) -> str:
        return context.new_id(context.call_prefix, str(calls), name)

    if thinking := message.text_or("thinking"):
        spoken.add("thinking")
        parts.append(Reasoning(thinking))
    if text := message.text_or(shape.text):
        spoken.add(shape.text)
        if logprobs is not None:
            taken.add("logprobs")
            form["logprobs"] = body["logprobs"]
        parts.append(Text(text, logprobs=logprobs or ()))
    elif shape.text not in message.value:
        form["content"] = "absent"
    if images := message.texts("images"):
        spoken.add("images")
        parts += map(parse_media, images)
    for call in message.objects("tool_calls"):
        spoken.add("tool_calls")
        parts.append(parse_call(call, mint))
        calls += 1
    is_done = body.get("done") is True
    if not is_done:
        taken.discard("done")
        form["done"] = "stated"
    if not body.get("done_reason") or not is_done:
        taken.discard("done_reason")
    created, model = body.get("created_at"), fields.text_or("model")
    if created is not None:
        form["created_at"] = created
    else:
        form["created_at"] = None
    if not model:
        taken.discard("model")
        form["model"] = "stated"
    kept: dict[str, Any] = {}
    hollow: dict[str, Any] = {}
    UNKNOWN.sift(body, taken, kept, hollow)
    if message is not fields:
        UNKNOWN.sift(message.value, spoken, kept, hollow, f"{shape.holder}.")
    return Response(
        "",
        model,
        tuple(parts),
        parse_stop(body.get("done_reason"), calls > 0, is_done=is_done),
        usage=parse_usage(body),
        created=unix_seconds(created),
        extra=Extra(NAME, {**kept, **hollow}, form),
    )


def parse_response(body: dict[str, Any], context: Context) -> Response:
    return parse_answer(body, context, CHAT)


# Out

_THOUGHT, _SAID, _SHOWN, _CALLED = range(4)
"""The order in which a message is parsed."""
BETWEEN_THOUGHTS: Final = "\n\n"
_ORDER: Final = "a message has one field for each kind"


class AnswerParts:
    """Puts the parts of an answer, in order, into the fields of a message; reports the losses."""

    __slots__ = ("_rank", "_scored", "calls", "losses", "native", "spoken", "thought")

    def __init__(self, losses: list[Loss], native: bool = False) -> None:
        self.losses = losses
        self.native = native
        """The answer came from this dialect and is reported unchanged."""
        self.calls = 0
        self.spoken = self.thought = False
        self._rank = _THOUGHT
        self._scored = False

    def place(self, part: Part, path: str) -> Fragment | None:
        """The fields that a whole part adds to the message; None: none. Texts are joined by the caller."""
        match part:
            case Text():
                return self._text(part, path)
            case ToolCall():
                self._ordered(_CALLED, path)
                self.calls += 1
                return {"tool_calls": [render_call(part, path, self.losses, self.calls - 1)]}
            case Reasoning():
                return self._reasoning(part, path)
            case Media():
                return self._media(part, path)
            case Foreign():
                self.losses.append(left_out(part, path))
                return None
            case ToolResult():
                self.losses.append(NO_RESULTS_IN_ANSWERS.at(path))
                return None
            case _:
                assert_never(part)

    def _media(self, part: Media, path: str) -> Fragment | None:
        if not self.native:
            # ollama-python reads `images` of an answer as files to send, and fails at base64.
            self.losses.append(Loss(path, part.kind, "dropped", f"an answer cannot hold {part.kind}"))
            between = "\n" if self.spoken else ""
            self.spoken = True
            self._ordered(_SAID, path)
            return {"content": f"{between}[{part.kind} left out]\n"}
        data = render_media(part, path, self.losses)
        if data is None:
            return None
        self._ordered(_SHOWN, path)
        return {"images": [data]}

    def _ordered(self, rank: int, path: str, again: bool = False) -> None:
        if rank < self._rank or again:
            self.losses.append(Loss(path, "content.position", "approximated", _ORDER))
        self._rank = max(rank, self._rank)

    def _text(self, part: Text, path: str) -> Fragment | None:
        LOST_IN_ANSWERS.of(part, path, self.losses)
        if not part.text and not part.logprobs:
            return None
        self._ordered(_SAID, path, self.spoken)
        self.spoken = True
        if part.logprobs and not part.text:
            detail = "there is no text they are about"
            self.losses.append(Loss(f"{path}.logprobs", "logprobs", "dropped", detail))
        return {"content": part.text}

    def _reasoning(self, part: Reasoning, path: str) -> Fragment | None:
        if part.redacted:
            losses_of_extra(part.extra, NAME, path, self.losses)
            self.losses.append(Loss(path, "reasoning.redacted", "dropped", "thinking is plain text"))
            return None
        LOST.of(part, path, self.losses)
        if not part.text:
            return None
        self._ordered(_THOUGHT, path, self.thought)
        self.thought = True
        return {"thinking": part.text}


def joined(message: Fragment, fragment: Fragment) -> None:
    """Merge a further fragment into a message."""
    for key, value in fragment.items():
        if key not in message or not message[key]:
            message[key] = value
        elif key == "thinking":
            message[key] += BETWEEN_THOUGHTS + value
        else:
            message[key] = message[key] + value


def render_answer(
    response: Response, context: Context, request: Request | None, shape: AnswerShape
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    if response.stop.reason == "malformed_call" and response.stop.dialect != NAME:
        return Rendered({"error": malformed(response.stop).message})
    LOST.of(response, "$", losses)
    form = own_form(response.extra, NAME)
    parts = AnswerParts(losses, response.extra is not None and response.extra.dialect == NAME)
    message: Fragment = {"content": ""}
    logprobs: list[TokenLogprob] = []
    for index, part in enumerate(response.content):
        fragment = parts.place(part, f"$.content[{index}]")
        if fragment is not None:
            joined(message, fragment)
            if type(part) is Text and part.text:
                logprobs += part.logprobs
    if form.get("content") == "absent" and not message["content"]:
        del message["content"]
    out = answer_head(response.model, response.created, form, context, request)
    shape.put(out, message)
    if form.get("role") == "stated" and shape.holder:
        del out[shape.holder]["role"]
    if form.get("done") != "stated":
        out["done"] = True
    out.update(answer_tail(response, parts, losses))
    if logprobs:
        raw = form.get("logprobs")
        same = parse_logprobs(raw) == tuple(logprobs)
        out["logprobs"] = raw if same else render_logprobs(tuple(logprobs))
    return Rendered(put_back(out, response.extra), tuple(losses))


_NOTHING: Final = 4
"""Maximum bytes of an empty member: `null`, `""`, `[]`, `[ ]`."""
_ZERO: Final = "+-0.hmsnu\u00b5"
"""The characters of a zero Go duration: `0`, `0s`, `0h0m`."""


def is_blank(outline: Outline, asks: Blanks) -> bool:
    """Whether each member in `asks` has one of the blank values given there, or is missing."""
    for name, blanks in asks.items():
        start, end = outline.members.get(name, (0, 0))
        if end - start > _NOTHING or outline.get(name) not in (None, *blanks):
            return False
    return True


def idle_answer(body: Body, context: Context, asks: Blanks, shape: AnswerShape) -> Document | None:
    """The answer if all members in `asks` are blank: the request is to load or unload the model. Nothing
    needs to be done for that."""
    outline = body.outline
    if not is_blank(outline, asks):
        return None
    unloads = _is_zero(outline.get("keep_alive"))
    out = answer_head(stated_model(outline), 0, {}, context, None)
    shape.put(out, {"content": ""})
    return {**out, "done": True, "done_reason": "unload" if unloads else "load"}


def _is_zero(duration: Any) -> bool:
    if type(duration) is str:
        return bool(duration) and not duration.strip(_ZERO)
    return type(duration) in (int, float) and duration == 0


def answer_head(
    model: str, created: int, form: dict[str, Any], context: Context, request: Request | None
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if form.get("model") != "stated":
        out["model"] = reported_model(model, context, request)
    stamp = form.get("created_at", "")
    if stamp and unix_seconds(stamp) == created:
        out["created_at"] = stamp
    elif stamp is not None:
        out["created_at"] = iso_time(created or context.now)
    return out


def answer_tail(response: Response, parts: AnswerParts, losses: list[Loss]) -> dict[str, Any]:
    """The last fields of an answer: its stop reason and its usage."""
    reason = render_stop(response.stop, parts.calls > 0, losses)
    return {**({"done_reason": reason} if reason else {}), **render_usage(response.usage, losses)}


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    return render_answer(response, context, request, CHAT)
