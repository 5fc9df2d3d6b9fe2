"""Parses and renders function responses. Gemini requires an object; results in the IR are text and media.

`{"output": x}` is success, `{"error": x}` failure, any other object is itself the output. Strings are passed
unchanged in both directions; anything else is the JSON text of the value, and is marked as not being a
string.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.media import parse_blob, parse_file
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.ir.content import Extra, Foreign, ResultPart, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import WireglotError
from wireglot_core.wire.json import BadJson, decode, encode_text

_KNOWN = frozenset({"id", "name", "response", "parts"})


class ResultParser(msgspec.Struct, eq=False):
    """Parses the results of one document, each paired with its call: ids may be missing on either side.
    `pending`: calls without a result so far."""

    context: Context
    fault: type[WireglotError]
    count: int = 0
    pending: list[ToolCall] = []

    def state(self) -> tuple[Hashable, ...]:
        return (self.count, *((call.id, call.name, _made_up(call)) for call in self.pending))

    def parse(self, answer: Fields, outer: Extra | None) -> ToolResult:
        name = answer.text_or("name")
        form: dict[str, Any] = {}
        call_id = self._pair(answer, name, form)
        text, is_error = _read_response(answer, form)
        content: list[ResultPart] = [Text(text)] if text else []
        media = answer.value.get("parts")
        if media is not None:
            if type(media) is not list:
                form["parts"] = "single"
            elif not media:
                form["parts"] = "empty"
            for index, item in enumerate(names.listed(media)):
                content.append(_parse_media(item, f"{answer.path}.parts[{index}]", self.fault))
        fields = dict(outer.fields) if outer is not None else {}
        within = {key: item for key, item in answer.value.items() if key not in _KNOWN or item is None}
        if within:
            fields["functionResponse"] = within
        extra = Extra(OWN, fields, form) if fields or form else None
        self.count += 1
        return ToolResult(call_id, tuple(content), is_error, name, extra=extra)

    def _pair(self, answer: Fields, name: str, form: dict[str, Any]) -> str:
        """The call this answers: by id, else the first pending call of that name."""
        given = call_id(answer)
        for index, call in enumerate(self.pending if given else ()):
            if call.id == given:
                del self.pending[index]
                return given
        for index, call in enumerate(self.pending):
            # An id may be stated on one side only: clients that drop unknown fields lose it on the call.
            if call.name == name and (not given or _made_up(call)):
                del self.pending[index]
                form["id"] = given or "absent"
                return call.id
        if given:
            return given
        form["id"] = "absent"
        return self.context.lasting_id(self.context.call_prefix, "result", str(self.count), name)


def call_id(call: Fields) -> str:
    """Ids are strings; numbers have been seen."""
    value = call.value.get("id")
    if value is None:
        return ""
    if type(value) is int:
        return str(value)
    return call.text("id")


def _made_up(call: ToolCall) -> bool:
    return own_form(call.extra, OWN).get("id") == "absent"


def _read_response(answer: Fields, form: dict[str, Any]) -> tuple[str, bool]:
    response = answer.dict_or_none("response")
    if response is None:
        form["response"] = "absent"
        return "", False
    if len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error"):
            if type(value) is str:
                return value, key == "error"
            form["response"] = "value"
            return encode_text(value), key == "error"
    form["response"] = "object"
    return encode_text(response), False


def _parse_media(value: Any, path: str, fault: type[WireglotError]) -> ResultPart:
    part = names.PART.read(value, path, fault)
    if part.value.get("inlineData") is not None:
        return parse_blob(part, names.BLOB.child(part, "inlineData"), None)
    if part.value.get("fileData") is not None:
        return parse_file(part, names.FILE.child(part, "fileData"), None)
    return Foreign(OWN, next(iter(part.value), ""), part.value)


def response_object(text: str, is_error: bool, form: str | None) -> dict[str, Any] | None:
    """The `response` for a result's text, in its original form (`form`) if it came from Gemini. None: it had
    none."""
    key = "error" if is_error else "output"
    if form == "absent" and not text:
        return None
    if form in ("value", "object"):
        try:
            value = decode(text)
        except BadJson:
            return {key: text}
        if form == "value" and type(value) is not str:
            return {key: value}
        if form == "object" and type(value) is dict and not is_error:
            return value
    return {key: text}
