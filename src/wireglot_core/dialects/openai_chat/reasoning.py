"""Reasoning in its various fields, and the opaque state that travels with it.

OpenAI's own Chat API shows no reasoning. Others write `reasoning_content` (DeepSeek, Kimi, vLLM), `reasoning`
(OpenRouter, Ollama, Groq) and `reasoning_details` (OpenRouter: a list with signatures and encrypted entries,
to be sent back whole). Opaque state of other dialects travels in `extra_content`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PLACEHOLDERS, Holder, Sealed
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.ir.content import PHASE, Extra, Media, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import BadJson, decode, encode_text

FIELDS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
CARRIER = "extra_content"
_OWN = "wireglot"
_STATE = "state"
_GOOGLE = ("google", "vertex")
_CARRIED = frozenset({_OWN, *_GOOGLE})
_THOUGHT = "thought_signature"
BETWEEN = "\n\n"
"""Separator of thoughts, and of messages, that are written as one text."""
_OPAQUE = ("signature", "data", "encrypted_content")
_COVERS_TEXT = frozenset({"anthropic"})
"""Minters whose signature becomes invalid when the text next to it changes."""


def parse_reasoning(
    message: dict[str, Any], taken: set[str], origin: Origin, answer: bool
) -> Reasoning | None:
    """The reasoning next to a message's content. In history an empty string is meaningful (Kimi: the model
    thought, and wrote nothing); in an answer it only shows that the server has the field."""
    texts = {field: value for field in FIELDS if type(value := message.get(field)) is str}
    details = message.get(DETAILS)
    has_details = type(details) is list and bool(details) and all(type(item) is dict for item in details)
    field = next((name for name, text in texts.items() if text), next(iter(texts), ""))
    text = texts.get(field, "")
    if has_details:
        assert type(details) is list
        detailed = details_text(details)
        if not text and detailed:
            field, text = "", detailed
        has_details = bool(text) or is_opaque(details)
    if not has_details and (not texts or (answer and not text)):
        return None
    form: dict[str, Any] = {}
    signature = None
    if has_details:
        assert type(details) is list
        taken.add(DETAILS)
        if is_opaque(details):
            signature = Signature(details_data(details), origin)
        else:
            form["details"] = details
            form["of"] = text
        whole = next((item for item in details if item.get(text_key(item)) == text), None)
        if whole is not None and text:
            form["detail"] = detail_template(whole)
    if field:
        taken.add(field)
    also = [name for name, other in texts.items() if name != field and other == text]
    taken.update(also)
    if also:
        form["also"] = also
    if field != FIELDS[0]:
        form["field"] = field
    return Reasoning(text, signature, extra=Extra(NAME, {}, form) if form else None)


def details_text(details: list[dict[str, Any]]) -> str:
    return "".join(
        value for item in details for key in ("text", "summary") if type(value := item.get(key)) is str
    )


def details_data(details: list[dict[str, Any]]) -> str:
    """The text of a list of details. Streams send an entry's keys in another order: here they are sorted."""
    return encode_text([dict(sorted(item.items())) for item in details])


def text_key(detail: dict[str, Any]) -> str:
    return "summary" if detail.get("type") == "reasoning.summary" else "text"


def detail_template(detail: dict[str, Any]) -> dict[str, Any]:
    """The fields that each fragment of an entry repeats: all but its text and those that come at its end."""
    return {key: value for key, value in detail.items() if key != text_key(detail) and key not in _OPAQUE}


def is_opaque(details: list[dict[str, Any]]) -> bool:
    return any(item.get(key) for item in details for key in _OPAQUE)


def opaque_details(signature: Signature) -> list[Any] | None:
    """The `reasoning_details` inside a signature of this dialect."""
    if signature.origin.dialect != NAME:
        return None
    try:
        details = decode(signature.data)
    except BadJson:
        return None
    return details if type(details) is list else None


def put_reasoning(out: dict[str, Any], parts: list[Reasoning], details: list[Any]) -> None:
    """Adds one message's reasoning, in its original fields."""
    if not parts and not details:
        return
    text = BETWEEN.join(part.text for part in parts if part.text)
    form = own_form(parts[0].extra, NAME) if parts else {}
    field = form.get("field", FIELDS[0])
    if field in FIELDS:
        out[field] = text
    for also in form.get("also", ()):
        out[also] = text
    if "details" in form and form["of"] == text:
        details = [*form["details"], *details]
    if details:
        out[DETAILS] = details


# State in `extra_content`


def call_signature(call: dict[str, Any], context: Context, google: Origin) -> tuple[Signature | None, bool]:
    """A call's signature, and whether it was in Google's own field."""
    carrier = call.get(CARRIER)
    if type(carrier) is not dict:
        return None, False
    data = _google_data(carrier)
    if data in PLACEHOLDERS:
        return None, False
    if data:
        opened = context.unseal(data)
        return (opened.signature, False) if opened else (Signature(data, google), True)
    states = _states(carrier, context)
    return (states[0].signature, False) if states else (None, False)


def _google_data(carrier: dict[str, Any]) -> str:
    for owner in _GOOGLE:
        held = carrier.get(owner)
        data = held.get(_THOUGHT) if type(held) is dict else None
        if type(data) is str and data:
            return data
    return ""


def sign_text(message: dict[str, Any], parts: list[Part], taken: set[str], google: Origin) -> None:
    """A signature that Google puts next to a whole message belongs to its last text."""
    carrier = message.get(CARRIER)
    data = _google_data(carrier) if type(carrier) is dict else ""
    if type(carrier) is not dict or not data or data in PLACEHOLDERS or not carrier.keys() <= _CARRIED:
        return
    reported = {owner: carrier[owner] for owner in _GOOGLE if owner in carrier}
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, Text) and not part.refusal:
            extra = part.extra or Extra(NAME)
            extra = Extra(extra.dialect, extra.fields, {**extra.form, CARRIER: reported})
            parts[index] = replace(part, signature=Signature(data, google), extra=extra)
            taken.add(CARRIER)
            return


def delta_signature(delta: dict[str, Any], google: Origin) -> Signature | None:
    """The same in a stream."""
    carrier = delta.get(CARRIER)
    data = _google_data(carrier) if type(carrier) is dict else ""
    return Signature(data, google) if data and data not in PLACEHOLDERS else None


def is_googles(part: ToolCall | Text, signature: Signature, context: Context) -> bool:
    """Whether the signature goes back to the endpoint that minted it, in Google's own field: because that is
    known, or because a client of this dialect wrote it there."""
    origin = signature.origin
    if origin.dialect != "gemini":
        return False
    return CARRIER in own_form(part.extra, NAME) or (
        bool(origin.provider) and origin.provider == context.provider
    )


def call_carrier(part: ToolCall, context: Context) -> dict[str, Any] | None:
    """`extra_content` toward a client: Gemini's signatures raw in Google's field, all others sealed."""
    signature = part.signature
    if signature is None:
        return None
    if signature.origin.dialect == "gemini":
        return google_carrier(part, signature)
    return {_OWN: {_STATE: context.seal(signature, "call")}}


def google_carrier(part: ToolCall | Text, signature: Signature) -> dict[str, Any]:
    raw = own_form(part.extra, NAME).get(CARRIER)
    if type(raw) is dict and any(
        type(held := raw.get(owner)) is dict and held.get(_THOUGHT) == signature.data for owner in _GOOGLE
    ):
        return raw
    return {_GOOGLE[0]: {_THOUGHT: signature.data}}


def parse_states(message: dict[str, Any], taken: set[str], context: Context) -> list[Sealed]:
    """The sealed states next to a message or delta."""
    carrier = message.get(CARRIER)
    if type(carrier) is not dict:
        return []
    states = _states(carrier, context)
    if states and carrier.keys() == {_OWN}:
        taken.add(CARRIER)
    return states


def _states(carrier: dict[str, Any], context: Context) -> list[Sealed]:
    held = carrier.get(_OWN)
    if type(held) is not dict:
        return []
    opened = (context.unseal(value) for value in held.values() if type(value) is str)
    return [state for state in opened if state is not None]


def holder_of(part: Part) -> Holder:
    if isinstance(part, Reasoning):
        return "redacted" if part.redacted else "reasoning"
    return "media" if isinstance(part, Media) else "text"


def state_field(state: Sealed, ordinal: int, context: Context) -> dict[str, Any]:
    """The field for a state: never a list, never the same key twice, which openai-python would refuse or
    concatenate."""
    key = _STATE if ordinal == 0 else f"{_STATE}_{ordinal + 1}"
    return {key: context.seal(state.signature, state.holder, state.letters)}


def carrier_of(states: dict[str, Any]) -> dict[str, Any]:
    return {_OWN: states}


def attach_states(parts: list[Part], states: list[Sealed]) -> None:
    """Give each state back to the part that held it; a part that had no other content is created again.

    States are in the order of their parts, so a redacted one belongs after the part of the state before. A
    message has one place for reasoning and one for text: if several became one text, it is split again where
    they ended. If that is unknown, a signature that covers its text exactly fits none of it, and is left out.
    """
    merged = _cut(parts, Reasoning, [state for state in states if state.holder == "reasoning"])
    _cut(parts, Text, [state for state in states if state.holder == "text"])
    place = 0
    for state in states:
        if merged and state.holder == "reasoning" and state.signature.origin.dialect in _COVERS_TEXT:
            continue
        match state.holder:
            case "redacted":
                parts.insert(place, Reasoning("", state.signature, redacted=True))
                place += 1
            case "reasoning":
                place = _attach(parts, Reasoning, state.signature, Reasoning()) + 1
            case "text":
                _attach(parts, Text, state.signature, Text(""))
            case "media":
                _attach(parts, Media, state.signature, None)
            case "call" | "unsigned":
                pass


def is_separate(kind: type[Part], signature: Signature | None) -> bool:
    """Whether a blank line follows a part if the next one of its kind continues the same text: after every
    thought, and after a text that was a separate message, as its phase shows."""
    return kind is Reasoning or (signature is not None and signature.id == PHASE)


def _cut(parts: list[Part], kind: type[Text] | type[Reasoning], states: list[Sealed]) -> bool:
    """Splits joined thoughts or messages into parts again; True if a text could not be split and remains
    several in one."""
    at = next((at for at, part in enumerate(parts) if isinstance(part, kind) and part.text), -1)
    if len(states) < 2 or at < 0:
        return False
    whole = parts[at]
    assert isinstance(whole, Text | Reasoning)
    places: list[tuple[int, int]] = []
    place, separate = 0, False
    for state in states:
        if state.letters < 0:
            return True
        if state.letters and separate and whole.text.startswith(BETWEEN, place):
            place += len(BETWEEN)
        places.append((place, place + state.letters))
        place += state.letters
        separate = bool(place) and is_separate(kind, state.signature)
    if place != len(whole.text):
        return True
    parts[at : at + 1] = [_piece(whole, start, end) for start, end in places]
    return False


def _piece(whole: Text | Reasoning, start: int, end: int) -> Text | Reasoning:
    text = whole.text[start:end]
    if isinstance(whole, Reasoning):
        return replace(whole, text=text)
    cited = tuple(
        replace(each, start=each.start - start, end=None if each.end is None else each.end - start)
        if each.start is not None
        else each
        for each in whole.citations
        if start <= (each.start or 0) < end
    )
    return replace(whole, text=text, citations=cited)


def _attach(parts: list[Part], kind: type[Any], signature: Signature, again: Part | None) -> int:
    for index, part in enumerate(parts):
        if isinstance(part, kind) and part.signature is None and not getattr(part, "redacted", False):
            parts[index] = replace(part, signature=signature)
            return index
    place = sum(isinstance(part, Reasoning) for part in parts)
    if again is not None:
        parts.insert(place, replace(again, signature=signature))
    return place


def lose_signature(path: str, losses: list[Loss], why: str = "it was issued by another provider") -> None:
    losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", why))
