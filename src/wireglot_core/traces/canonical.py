"""What counts as "the same" conversation: the equality behind the laws.

Two values are the same if their canonical forms are equal. A renderer that is silent (no losses) promises
that its document parses back to the same value in this sense; one that reports a loss claims it does not.
Each rule below forgives one difference, for the reason given. Nothing else is forgiven.

Cutting:
- Neighbouring messages of one role and one name are merged: dialects cut turns differently and mean the same.
- Empty text without a signature vanishes, as do system messages without content, and turns without content
  next to another turn of the same role: several APIs refuse them, and no model sees them. Any other turn
  without content remains: without it, the turns around it would be joined, or another one would be the last.
- Reasoning that shows nothing and proves nothing (no text, signature, redaction or field) vanishes: most
  dialects cannot say it, and no provider takes it back.
- Neighbouring plain texts inside a tool result are joined with a newline: half of the dialects have one
  string there.
- `ToolResult.name` is cleared if it names its own call: only Gemini repeats it.

Spelling:
- `Extra.form`, blank `Extra.fields`, `Usage.raw`, `Stop.raw`, `Stop.dialect`: one dialect's spelling by
  definition.
- Function arguments compare as JSON, and nothing is `{}`: some dialects carry text, some an object.
- Options of a hosted tool are already in its native declaration.
- `Signature.origin` keeps its dialect only: provider, model and account are stamped by the one that read it.
- JSON Schemas compare by what they accept: `$schema`, an empty `required` or `properties` say nothing;
  `const` is an `enum` of one, and strings in it are of type string; OpenAPI's `nullable` is the type null. A
  tool without a schema takes an empty object.
- A missing description and an empty one; `strict` None and False; an `OutputFormat.name` that we made up
  where a dialect demands one.
- Thinking that is off and effort `none`: some dialects have the one word, some the other.

Defaults:
- `ToolChoice("auto")` is the default of every API that has tools; so are `parallel_tools=True` and plain text
  output.
- One answer: `candidates` 1 and None.
- A document of plain text, and the same text in base64 (dialects have the one or the other).
- An answer of the standard tier and one that says nothing of its tier (one dialect must print it).
- `Usage.reasoning` None and 0; a usage of zeros and none at all (some dialects must print one).

Addresses, which belong to the transport rather than the conversation: `Request.model`, `Request.stream`,
`Response.id`, `Response.created`, `Response.model`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import is_blank
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.request import AnyTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.ir.stream import Event, fold
from wireglot_core.wire.json import BadJson, decode, encode_text

SignedPart = TypeVar("SignedPart", Text, ToolCall, Media)

_UNNAMED = "response"
_EMPTY_SCHEMAS: tuple[dict[str, Any], ...] = ({}, {"type": "object"})


def canonical_request(request: Request) -> Request:
    return replace(
        request,
        model="",
        messages=_messages(request.messages),
        tools=tuple(_tool(tool) for tool in request.tools),
        tool_choice=_tool_choice(request.tool_choice),
        parallel_tools=None if request.parallel_tools else request.parallel_tools,
        sampling=_sampling(request.sampling),
        thinking=_thinking(request.thinking),
        output=_output(request.output),
        stream=None,
        cache=_cache(request.cache),
        extra=canonical_extra(request.extra),
        safeguards=tuple(replace(each, extra=canonical_extra(each.extra)) for each in request.safeguards),
    )


def canonical_response(response: Response) -> Response:
    return replace(
        response,
        id="",
        model="",
        content=_parts(response.content, {}),
        stop=_stop(response.stop),
        usage=_usage(response.usage),
        created=0,
        service_tier="" if response.service_tier == "standard" else response.service_tier,
        others=tuple(_candidate(other) for other in response.others),
        extra=canonical_extra(response.extra),
        safeguard_results=tuple(
            replace(each, extra=canonical_extra(each.extra)) for each in response.safeguard_results
        ),
    )


def canonical_events(events: Iterable[Event]) -> Response:
    """The canonical form of the answer in a stream; raises StreamFailed if it ends in a Failure."""
    return canonical_response(fold(events))


def canonical_extra(extra: Extra | None) -> Extra | None:
    if extra is None:
        return None
    fields = {key: value for key, value in extra.fields.items() if not is_blank(value)}
    return Extra(extra.dialect, fields) if fields else None


def canonical_arguments(text: str) -> str:
    """Function arguments with their keys sorted; text that is not a JSON object is returned unchanged."""
    if not text.strip():
        return "{}"
    try:
        value = decode(text)
    except BadJson:
        return text
    if value is None:
        return "{}"
    return encode_text(_sorted(value)) if type(value) is dict else text


def canonical_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema in one spelling where several are equivalent."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$schema" or (key in ("required", "properties") and not value):
            continue
        if key == "const":
            out["enum"] = [value]
        elif key in ("properties", "$defs", "definitions") and isinstance(value, dict):
            out[key] = {name: _schema(item) for name, item in value.items()}
        elif key == "required" and isinstance(value, list):
            out[key] = sorted(value, key=str)  # a set of names
        elif key in ("enum", "default", "examples", "example"):
            out[key] = value
        elif isinstance(value, list):
            out[key] = [_schema(item) for item in value]
        else:
            out[key] = _schema(value)
    if out.get("type") == "string" and all(isinstance(item, str) for item in out.get("enum", [None])):
        del out["type"]  # implied by the enum
    if out.get("nullable") is True and isinstance(out.get("type"), str):
        del out["nullable"]
        out["type"] = [out["type"], "null"]
    return out


def _schema(value: Any) -> Any:
    return canonical_schema(value) if isinstance(value, dict) else value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    names: dict[str, str] = {}  # call id -> tool name, of the calls so far
    empty = empty_turns(messages)
    out: list[Message] = []
    for index, message in enumerate(messages):
        content = _parts(message.content, names)
        if not content and index not in empty:
            continue
        extra = canonical_extra(message.extra)
        if out and (out[-1].role, out[-1].name, out[-1].extra) == (message.role, message.name, extra):
            content = out.pop().content + content
        out.append(Message(message.role, content, message.name, extra))
    return tuple(out)


def empty_turns(messages: tuple[Message, ...]) -> list[int]:
    """The indexes of turns in which nothing was said. Neighbouring messages of one role are one turn."""
    found: list[int] = []
    speaker, is_empty = "", False
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role != speaker:
            speaker, is_empty = message.role, message.is_empty
            if is_empty:
                found.append(index)
        elif is_empty and not message.is_empty:
            is_empty = False
            found.pop()
    return found


def _parts(parts: tuple[Part, ...], names: dict[str, str]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        match part:
            case Text():
                if part.text or part.signature is not None:
                    out.append(_text(part))
            case Reasoning():
                plain = replace(
                    part, signature=_signature(part.signature), extra=canonical_extra(part.extra), minter=None
                )
                if plain != Reasoning():
                    out.append(plain)
            case ToolCall():
                names[part.id] = part.name
                out.append(_call(part))
            case ToolResult():
                out.append(_result(part, names))
            case Media():
                out.append(_media(part))
            case Foreign():
                out.append(part)
    return tuple(out)


def _text(part: Text) -> Text:
    return _carried(part, citations=tuple(_citation(citation) for citation in part.citations))


def _call(part: ToolCall) -> ToolCall:
    return (
        _carried(part, arguments=canonical_arguments(part.arguments))
        if part.kind == "function"
        else _carried(part)
    )


def _media(part: Media) -> Media:
    if part.kind == "document" and part.mime == "text/plain" and part.data is not None:
        with suppress(ValueError):
            part = replace(part, text=b64decode(part.data, validate=True).decode(), data=None)
    return _carried(part, detail="" if part.detail == "auto" else part.detail)


def _carried(part: SignedPart, **changes: Any) -> SignedPart:
    """A part with these changes, and its additional fields in canonical form."""
    return replace(
        part,
        signature=_signature(part.signature),
        cache=_cache(part.cache),
        extra=canonical_extra(part.extra),
        **changes,
    )


def _result(part: ToolResult, names: dict[str, str]) -> ToolResult:
    content: list[ResultPart] = []
    for item in part.content:
        match item:
            case Text():
                if not item.text and item.signature is None:
                    continue
                text = _text(item)
                if content and _is_plain(text) and _is_plain(before := content[-1]):
                    assert isinstance(before, Text)
                    content[-1] = Text(f"{before.text}\n{text.text}")
                else:
                    content.append(text)
            case Media():
                content.append(_media(item))
            case Foreign():
                content.append(item)
    mark = part.cache
    if mark is None and content and isinstance(last := content[-1], Text | Media) and last.cache is not None:
        # A marker after the last part of a result belongs after the result.
        mark, content[-1] = last.cache, replace(last, cache=None)
    return replace(
        part,
        content=tuple(content),
        name="" if names.get(part.call_id) == part.name else part.name,
        cache=_cache(mark),
        extra=canonical_extra(part.extra),
    )


def _is_plain(part: ResultPart) -> bool:
    return isinstance(part, Text) and part == Text(part.text)


def _signature(signature: Signature | None) -> Signature | None:
    return signature and Signature(signature.data, Origin(signature.origin.dialect), signature.id)


def _cache(mark: CacheMark | None) -> CacheMark | None:
    return mark and CacheMark(mark.ttl, canonical_extra(mark.extra))


def _citation(citation: Citation) -> Citation:
    return replace(citation, extra=canonical_extra(citation.extra))


def _tool(tool: AnyTool) -> AnyTool:
    if not isinstance(tool, Tool):
        return replace(tool, options={}, untold=())
    schema = canonical_schema(tool.schema or {})
    return replace(
        tool,
        description=tool.description or None,
        schema=None if schema in _EMPTY_SCHEMAS else schema,
        strict=tool.strict or None,
        cache=_cache(tool.cache),
        extra=canonical_extra(tool.extra),
    )


def _tool_choice(choice: ToolChoice | None) -> ToolChoice | None:
    if choice is None:
        return None
    plain = replace(choice, extra=canonical_extra(choice.extra))
    return None if plain == ToolChoice("auto") else plain


def _sampling(sampling: Sampling) -> Sampling:
    return replace(sampling, candidates=None) if sampling.candidates == 1 else sampling


def _thinking(thinking: Thinking) -> Thinking:
    plain = replace(thinking, extra=canonical_extra(thinking.extra))
    if plain.effort == "none" and plain.mode in (None, "off"):
        return replace(plain, mode="off", effort=None)
    return plain


def _output(output: OutputFormat | None) -> OutputFormat | None:
    if output is None:
        return None
    plain = replace(
        output,
        name="" if output.name == _UNNAMED else output.name,
        schema=output.schema and canonical_schema(output.schema),
        description=output.description or None,
        strict=output.strict or None,
        extra=canonical_extra(output.extra),
    )
    return None if plain == OutputFormat("text") else plain


def _stop(stop: Stop) -> Stop:
    return Stop(stop.reason, sequence=stop.sequence, extra=canonical_extra(stop.extra))


def _usage(usage: Usage | None) -> Usage | None:
    if usage is None:
        return None
    plain = replace(usage, reasoning=usage.reasoning or None, raw=None)
    return None if plain == Usage() else plain


def _candidate(other: Candidate) -> Candidate:
    return Candidate(_parts(other.content, {}), _stop(other.stop), canonical_extra(other.extra))
