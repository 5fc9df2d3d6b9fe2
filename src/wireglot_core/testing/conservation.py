"""Checks that a translation loses nothing unreported: every word, call, result and image of a conversation.

Weaker than equality, and therefore checkable between any two dialects: each piece of content of the source
must be findable somewhere in the target, or a loss must name its place and its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from wireglot_core.dialects.registry import names, surface
from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request, Tool
from wireglot_core.traces.canonical import canonical_arguments, empty_turns


class Atom(msgspec.Struct, frozen=True):
    """One piece of content and its place in the neutral conversation."""

    path: str
    kind: str
    value: str


_EXCUSES: dict[str, frozenset[Feature]] = {
    "text": frozenset({"content.empty", "refusal", "tool_result.pairing", "prefill"}),
    "refusal": frozenset({"refusal"}),
    "reasoning": frozenset({"reasoning.text", "reasoning.redacted", "reasoning.signature"}),
    "call": frozenset({"tool_call.arguments", "tool_result.pairing"}),
    "result": frozenset({"tool_result.pairing", "tool_call.id"}),
    "media": frozenset(
        {"image", "document", "audio", "video", "file_reference", "tool_result.media", "tool_result.pairing"}
    ),
    "foreign": frozenset(),
    "code": frozenset(),
    "note": frozenset({"metadata"}),
    "tool": frozenset({"tool.name", "tool.custom", "tool.namespace"}),
    "stop": frozenset({"stop_sequences"}),
    "empty turn": frozenset({"content.empty"}),
}


_PROSE = ("text", "refusal", "result", "media")
_ANYWHERE: frozenset[Feature] = frozenset({"content.position", "foreign_part", "conversation_state"})
_RENAMED: frozenset[Feature] = frozenset({"tool.name", "tool.namespace", "tool.custom"})


def lost(
    source: Request | Response, target: Request | Response, losses: Iterable[Loss], dialect: str
) -> list[Atom]:
    """The atoms of `source` that are neither in `target` nor reported as lost. `dialect` is that of the
    target."""
    declared = list(losses)
    found: dict[str, list[str]] = {}
    for atom in _atoms(target):
        found.setdefault(atom.kind, []).append(atom.value)
    prose = [value for kind in _PROSE for value in found.get(kind, ())]
    return [
        atom
        for atom in _atoms(source)
        if not _is_there(atom, found, prose)
        and not _is_declared(atom, declared)
        # Extras of the same dialect come back by the law of identity.
        and not (atom.kind in ("foreign", "note") and atom.value.startswith(f"{dialect}:"))
    ]


def _is_there(atom: Atom, found: dict[str, list[str]], prose: list[str]) -> bool:
    if atom.kind in _PROSE:  # a lowered or labelled text is part of a longer one
        # A text that is split at citations is in neighbouring texts.
        return any(atom.value in other for other in (*prose, "".join(found.get("text", ()))))
    if atom.kind == "reasoning":
        return any(atom.value in other for other in found.get("reasoning", ()))
    return atom.value in found.get(atom.kind, ())


def _is_declared(atom: Atom, losses: list[Loss]) -> bool:
    excuses = _EXCUSES[atom.kind] | _ANYWHERE
    return any(
        (loss.feature in excuses and (_is_within(atom.path, loss.path) or _is_within(loss.path, atom.path)))
        # A tool is renamed once, and its calls with it.
        or (loss.feature in _RENAMED and atom.kind == "call")
        # A narrowed choice may leave the other tools out.
        or (loss.feature == "tool_choice" and atom.kind == "tool")
        # A deferred tool is held back until the client has found it.
        or (
            (loss.feature, loss.action, atom.kind) == ("tool.deferred", "emulated", "tool")
            and _is_within(loss.path, atom.path)
        )
        for loss in losses
    )


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _atoms(value: Request | Response) -> Iterator[Atom]:
    if isinstance(value, Response):
        yield from _parts(value.content, "$")
        return
    for index, message in enumerate(value.messages):
        yield from _parts(message.content, f"$.messages[{index}]")
    for index in empty_turns(value.messages):
        yield Atom(f"$.messages[{index}]", "empty turn", value.messages[index].role)
    for index, tool in enumerate(value.tools):
        if isinstance(tool, Tool):
            yield Atom(f"$.tools[{index}]", "tool", tool.name)
    for index, sequence in enumerate(value.stop):
        yield Atom(f"$.stop[{index}]", "stop", sequence)


def _parts(parts: tuple[Part, ...], path: str) -> Iterator[Atom]:
    for index, part in enumerate(parts):
        yield from _atom(part, f"{path}.content[{index}]")


def _atom(part: Part, path: str) -> Iterator[Atom]:
    match part:
        case Text():
            if part.text.strip():
                yield Atom(path, "refusal" if part.refusal else "text", part.text)
        case Reasoning():
            if part.text.strip():
                yield Atom(path, "reasoning", part.text)
        case ToolCall():
            arguments = canonical_arguments(part.arguments) if part.kind == "function" else part.arguments
            yield Atom(path, "call", f"{part.name}({arguments})")
        case ToolResult():
            yield from _result_atoms(part, path)
        case Media():
            yield Atom(path, "media", part.data or part.text or part.url or part.file_id or "")
        case Foreign():
            ran = _code(part)
            kind = "note" if part.for_vendor else "foreign" if ran is None else "code"
            yield Atom(path, kind, ran or f"{part.dialect}:{part.type}")


def _result_atoms(result: ToolResult, path: str) -> Iterator[Atom]:
    for index, item in enumerate(result.content):
        if not isinstance(item, Text):
            yield from _atom(item, f"{path}.content[{index}]")
        elif item.text.strip():
            yield Atom(f"{path}.content[{index}]", "result", item.text)


def _code(part: Foreign) -> str | None:
    """The code that a part contains, or its result; None for any other part."""
    form = surface(part.dialect).client.hosted.code if part.dialect in names() else None
    ran = form.read(part) if form is not None else None
    if ran is None:
        return None
    if ran.call is not None:
        return f"code {ran.call.input['code']}"
    return f"result {ran.result.text}" if ran.result is not None else None
