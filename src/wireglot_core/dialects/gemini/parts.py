"""Parses parts. One parser per document, because ids are made up by counting calls."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from wireglot_core.dialects.arguments import arguments_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PLACEHOLDERS, Sealed, is_sealed
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.media import nested_rest, parse_blob, parse_file
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.results import ResultParser, call_id
from wireglot_core.ir.content import Extra, Foreign, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import is_blank

_TEXT = frozenset({"text", "thoughtSignature"})
_THOUGHT = frozenset({"text", "thought", "thoughtSignature"})
_CALL = frozenset({"functionCall", "thoughtSignature"})
_RESULT = frozenset({"functionResponse"})
_CALL_FIELDS = frozenset({"id", "name", "args"})
_PREFIXES = ("default_api:", "default_api.")


def open_signature(text: str, context: Context) -> Sealed:
    """The signature that a client echoed: our envelope, or a signature of Gemini's own."""
    return context.unseal(text) or Sealed(Signature(text, Origin(OWN)), "reasoning")


class Mark(msgspec.Struct, frozen=True):
    """The progress of a parser."""

    calls: int
    results: int
    pending: tuple[ToolCall, ...]


class PartParser:
    """`origin` None: a client's document (envelopes are opened); else the minter of the signatures in it."""

    def __init__(
        self,
        context: Context,
        fault: type[WireglotError],
        origin: Origin | None = None,
        response_id: str = "",
    ) -> None:
        self.context = context
        self.fault = fault
        self.origin = origin
        self.response_id = response_id
        self.calls = 0
        self.results = ResultParser(context, fault)

    def state(self) -> Hashable:
        """All state from earlier parts that parsing the next part depends on."""
        return (self.calls, *self.results.state())

    def mark(self) -> Mark:
        return Mark(self.calls, self.results.count, tuple(self.results.pending))

    def go_on(self, mark: Mark) -> None:
        """Continue as if everything up to this mark had been parsed."""
        self.calls = mark.calls
        self.results.count = mark.results
        self.results.pending = list(mark.pending)

    def parse(self, value: Any, path: str) -> Part:
        if type(value) is str:  # SDKs accept this as a part; it is written as a part
            return Text(value)
        if type(value) is dict and len(value) == 1 and type(text := value.get("text")) is str and text:
            return Text(text)
        if type(value) is dict and len(value) == 1 and type(call := value.get("functionCall")) is dict:
            plain = self._plain_call(call)
            if plain is not None:
                return plain
        part = names.PART.read(value, path, self.fault)
        given = part.value
        if given.get("functionCall") is not None:
            return self._call(part)
        if given.get("text") is not None:
            return self._text(part, part.text("text"))
        if given.get("functionResponse") is not None and self.origin is None:
            answer = names.FUNCTION_RESPONSE.child(part, "functionResponse")
            return self.results.parse(answer, part.rest(_RESULT, OWN))
        if given.get("inlineData") is not None:
            return self._inline(part)
        if given.get("fileData") is not None:
            return self._file(part)
        kind = next((key for key, item in given.items() if key not in _MODIFIERS and item is not None), "")
        if kind:
            return Foreign(OWN, kind, given)
        return self._text(part, "")

    def sign(self, part: Fields) -> tuple[Signature | None, bool]:
        """The part's signature, and whether it represents redacted reasoning."""
        text = part.text_or("thoughtSignature")
        if not text or text in PLACEHOLDERS:
            return None, False
        if self.origin is not None:
            return Signature(text, self.origin), False
        sealed = open_signature(text, self.context)
        if sealed.holder == "unsigned":
            return None, False
        return sealed.signature, sealed.holder == "redacted"

    def _placeholder(self, part: Fields) -> dict[str, Any]:
        """Spelling: the part is returned unchanged to its own dialect."""
        stated = part.value.get("thoughtSignature")
        return {"thoughtSignature": stated} if type(stated) is str and stated in PLACEHOLDERS else {}

    def _text(self, part: Fields, text: str) -> Text | Reasoning:
        signature, redacted = self.sign(part)
        given = part.value
        form: dict[str, Any] = self._placeholder(part)
        if "text" not in given or given["text"] is None:
            form["part"] = "bare"
        elif not text and signature is None and not form:
            form["part"] = "empty"
        if given.get("thought") is True or redacted:
            return Reasoning(text, signature, redacted, part.rest(_THOUGHT, OWN, form))
        return Text(text, signature=signature, extra=part.rest(_TEXT, OWN, form))

    def _plain_call(self, call: dict[str, Any]) -> ToolCall | None:
        """An ordinary call, unsigned and without additional fields; None: it needs the full conversion."""
        name, args, identifier = call.get("name"), call.get("args"), call.get("id", "")
        if (
            type(name) is not str
            or not name
            or name.startswith(_PREFIXES)
            or type(args) is not dict
            or type(identifier) is not str
            or len(call) != (3 if identifier else 2)
        ):
            return None
        arguments = arguments_text(args)
        extra = None if identifier else Extra(OWN, {}, {"id": "absent"})
        plain = ToolCall(identifier or self.mint(name, arguments), name, arguments, extra=extra)
        self.calls += 1
        self.results.pending.append(plain)
        return plain

    def _call(self, part: Fields) -> Part:
        call = names.FUNCTION_CALL.child(part, "functionCall")
        stated = call.text_or("name")
        if not stated and self.origin is not None:
            return Foreign(OWN, "functionCall", part.value)
        if not stated:
            raise call.wrong("name", "a function name")
        form: dict[str, Any] = self._placeholder(part)
        name = plain_name(stated)
        if name != stated:
            form["name"] = stated
        args = call.dict_or_none("args")
        if args is None:
            form["args"] = "absent"
        arguments = "{}" if args is None else arguments_text(args)
        identifier = call_id(call)
        if not identifier:
            form["id"] = "absent"
            identifier = self.mint(name, arguments)
        self.calls += 1
        signature, _ = self.sign(part)
        result = ToolCall(
            identifier,
            name,
            arguments,
            signature=signature,
            extra=nested_rest(part, _CALL, "functionCall", call, inner_known=_CALL_FIELDS, form=form),
        )
        self.results.pending.append(result)
        return result

    def mint(self, name: str, arguments: str) -> str:
        context, ordinal = self.context, str(self.calls)
        if self.origin is None:
            return context.lasting_id(context.call_prefix, ordinal, name)
        return context.new_id(context.call_prefix, self.response_id, ordinal, name, arguments)

    def _inline(self, part: Fields) -> Part:
        signature, _ = self.sign(part)
        return parse_blob(part, names.BLOB.child(part, "inlineData"), signature)

    def _file(self, part: Fields) -> Part:
        signature, _ = self.sign(part)
        return parse_file(part, names.FILE.child(part, "fileData"), signature)


_MODIFIERS = frozenset(
    {"text", "thought", "thoughtSignature", "videoMetadata", "mediaResolution"}
    | {"mediaProcessing", "speechMetadata", "partMetadata"}
)
"""Fields next to a part's data that are not data themselves."""


def is_more_than_text(extra: Extra | None) -> bool:
    """Whether a piece of text has fields other than the text."""
    return extra is not None and any(not is_blank(value) for value in extra.fields.values())


def is_ours(signature: Signature | None) -> bool:
    return signature is not None and is_sealed(signature.data)


def plain_name(name: str) -> str:
    """The name without the namespace from Google's own prompt, with which models sometimes answer."""
    for prefix in _PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name
