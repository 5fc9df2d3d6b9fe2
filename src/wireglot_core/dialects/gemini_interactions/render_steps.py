"""Renders steps of a request toward an upstream."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import OPAQUE_REASONING, guessed_type
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini_interactions.content import render_content
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import FUNCTION_RESULT, OWN, THOUGHT, put_back
from wireglot_core.dialects.gemini_interactions.steps import render_call, summary_of
from wireglot_core.dialects.google_shared import UNSIGNED_RESULT
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, feature_of
from wireglot_core.ir.outcome import Response
from wireglot_core.wire.json import BadJson, decode

CONTINUATION: Final = "continuation_token"
"""A message with only this part requests the continuation of the answer to the same request."""
_BY_SUFFIX: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mov": "video/mov",
    "webm": "video/webm",
}
_BY_KIND: Final = {
    "image": "image/jpeg",
    "document": "application/pdf",
    "audio": "audio/wav",
    "video": "video/mp4",
}


def resumed(response: Response) -> Message | None:
    """The message added to a request to have its answer continued."""
    token = own_fields(response.extra, OWN).get(CONTINUATION)
    if response.stop.reason != "paused" or type(token) is not str or not token:
        return None
    return Message("user", (Foreign(OWN, CONTINUATION, {CONTINUATION: token}),))


def without_token(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """The messages without the continuation token, and the request field for it. It is the last part:
    neighbouring messages of one role may have been joined."""
    last = messages[-1] if messages else None
    part = last.content[-1] if last is not None and last.content else None
    if last is None or type(part) is not Foreign or part.dialect != OWN or part.type != CONTINUATION:
        return messages, {}
    rest = (replace(last, content=last.content[:-1]),) if len(last.content) > 1 else ()
    return messages[:-1] + rest, part.value


def content_of(part: Text | Media | Foreign, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    """One entry of a step's content. Google requires the type of a medium."""
    if type(part) is Media and not part.mime and _wants_mime(part):
        guess = _guessed_mime(part)
        losses.append(guessed_type(part.kind, guess, path))
        part = replace(part, mime=guess)
    return render_content(part, path, losses)


def _wants_mime(media: Media) -> bool:
    is_own = media.extra is not None and media.extra.dialect == OWN
    return not is_own and (media.data is not None or media.url is not None)


def _guessed_mime(media: Media) -> str:
    suffix = (media.url or media.name).partition("?")[0].rpartition(".")[2].lower()
    guess = _BY_SUFFIX.get(suffix, "")
    is_kind = guess.startswith(f"{media.kind}/") or (media.kind == "document" and suffix in ("pdf", "csv"))
    return guess if is_kind else _BY_KIND[media.kind]


def render_replayed_thought(
    part: Reasoning, context: Context, path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    """A thought for the upstream that signed it. All others are left out: Google refuses a thought without
    a signature, even its own (googleapis/js-genai#1735)."""
    signature = part.signature
    LOST.of(part, path, losses)
    if signature is not None and signature.data and context.may_replay(signature, OWN):
        if part.redacted:
            losses.append(Loss(path, "reasoning.redacted", "approximated", "a thought with a signature"))
        return _thought(part, signature)
    placeholder = own_form(part.extra, OWN).get("signature")
    if placeholder and signature is None:  # a client's placeholder for a lost signature
        return {**_thought(part, None), "signature": placeholder}
    if part.redacted:
        losses.append(OPAQUE_REASONING.at(path))
        return None
    if signature is not None:
        lose_signature(signature, path, losses)
    if part.text:
        detail = "without a signature it is refused" if signature is None else "thoughts of another provider"
        losses.append(Loss(path, "reasoning.text", "dropped", detail))
    return None


def _thought(part: Reasoning, signature: Signature | None) -> dict[str, Any]:
    step: dict[str, Any] = {"type": THOUGHT}
    fields, form = own_fields(part.extra, OWN), own_form(part.extra, OWN)
    stated = fields.get("summary", form.get("summary"))
    if type(stated) is list and _texts(stated) == part.text:
        step["summary"] = stated
    elif part.text:
        step["summary"] = summary_of(part.text)
    if signature is not None:
        step["signature"] = signature.data
    return put_back(step, part.extra)


def _texts(summary: list[Any]) -> str:
    return "".join(item["text"] for item in summary if type(item) is dict and type(item.get("text")) is str)


def lose_signature(signature: Signature, path: str, losses: list[Loss]) -> None:
    minter = signature.origin.dialect or "nobody"
    losses.append(Loss(f"{path}.signature", feature_of(signature), "dropped", f"issued by {minter}"))


def render_signing_thought(
    part: Text | Media | ToolCall, context: Context, path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    """The thought before a part that carries a signature of this upstream: in this dialect only thoughts have
    one."""
    signature = part.signature
    if signature is None:
        return None
    if signature.data and context.may_replay(signature, OWN):
        return {"type": THOUGHT, "signature": signature.data}
    lose_signature(signature, path, losses)
    return None


def render_called(call: ToolCall, context: Context, path: str, losses: list[Loss]) -> dict[str, Any]:
    """A call must have an id: a minted one is sufficient if the result has the same."""
    if not call.id:
        losses.append(Loss(f"{path}.id", "tool_call.id", "invented", "a call must have an id"))
        call = replace(call, id=context.lasting_id(context.call_prefix, path, call.name))
    elif own_form(call.extra, OWN).get("id") == "absent" and not is_minted(call.id):
        return {**render_call(call, path, losses), "id": call.id}
    return render_call(call, path, losses)


def render_result(result: ToolResult, called: str, path: str, losses: list[Loss]) -> dict[str, Any]:
    """`called`: the name of the function whose call it answers, "" if unknown."""
    LOST.of(result, path, losses)
    form = own_form(result.extra, OWN)
    step: dict[str, Any] = {"type": FUNCTION_RESULT, "call_id": result.call_id}
    name = result.name or (called if not form else "")
    if name:
        step["name"] = name
    step["result"] = _result_value(result.content, form.get("result"), path, losses)
    if result.is_error:
        step["is_error"] = True
    elif form.get("is_error") is False:
        step["is_error"] = False
    return put_back(step, result.extra)


def _result_value(content: tuple[ResultPart, ...], form: Any, path: str, losses: list[Loss]) -> Any:
    only = content[0] if len(content) == 1 else None
    if type(only) is Text and form in ("string", "value") and (only.extra is None or not only.extra.fields):
        return only.text if form == "string" else _value(only.text)
    if not content and form in ("string", "null"):
        return "" if form == "string" else None
    entries = []
    for number, part in enumerate(content):
        place = f"{path}.content[{number}]"
        if type(part) is not Foreign and part.signature is not None:
            losses.append(UNSIGNED_RESULT.at(f"{place}.signature"))
        entry = content_of(part, place, losses)
        if entry is not None:
            entries.append(entry)
    return entries


def _value(text: str) -> Any:
    """The object in a result's text; any other text is the result itself."""
    try:
        value = decode(text)
    except BadJson:
        return text
    return value if type(value) in (dict, list) else text
