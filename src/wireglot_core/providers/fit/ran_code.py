"""Converts code of earlier turns that another provider has run to the form of the endpoint's dialect."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot_core.dialects.capabilities import CodeForm
from wireglot_core.dialects.registry import names, surface
from wireglot_core.ir.content import Extra, Foreign, Message, Part
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.providers.converted_code import CodeConverter
from wireglot_core.providers.fit.fitting import Fitting


def convert_code(request: Request, fitting: Fitting) -> Request:
    """What was only shown to the client is left out behind the provider's own part, which it repeats. Code
    without a result is left for renderers to report, and so is a result without its code."""
    own = fitting.target.server.client.hosted.code
    assert own is not None
    dialect, trail, losses = fitting.dialect, fitting.trail, fitting.losses
    converters: dict[str, CodeConverter | None] = {dialect: None}
    whole: set[int] | None = None
    before: Part | None = None

    def new_id(number: int, stated: str) -> str:
        return stated or fitting.context.lasting_id("call", "code", str(number))

    def converter(name: str) -> CodeConverter | None:
        if name not in converters:
            form = surface(name).client.hosted.code if name in names() else None
            converters[name] = CodeConverter(form, own, new_id) if form is not None else None
        return converters[name]

    def converted(part: Part) -> Part | None:
        nonlocal before, whole
        last, before = before, part
        found = converter(part.dialect) if type(part) is Foreign else None
        if found is None:
            return part
        assert type(part) is Foreign
        if type(last) is Foreign and last.dialect == dialect and _is_same(last, own, part, found.source):
            return None
        form = found.source
        if form.read(part) is None:
            return part
        if whole is None:
            whole = _whole(request.messages, converter)
        path = trail.of(part)
        new = found.convert(part, path, losses) if id(part) in whole else None
        if new is None:
            return part
        if part.value.get(form.signature):
            fitting.lose(f"{path}.signature", "reasoning.signature", "dropped", f"issued by {part.dialect}")
        known = form.fields | {form.signature}
        rest = {key: value for key, value in part.value.items() if key not in known}
        losses_of_extra(Extra(part.dialect, rest), dialect, path, losses)
        return new

    messages = trail.changed_parts(request.messages, converted)
    return request if messages is request.messages else msgspec.structs.replace(request, messages=messages)


def _whole(messages: tuple[Message, ...], converter: Callable[[str], CodeConverter | None]) -> set[int]:
    """The parts of code that has a result, and the results, by their identity."""
    whole: set[int] = set()
    calls: dict[tuple[str, str], Part] = {}
    for message in messages:
        for part in message.content:
            found = converter(part.dialect) if type(part) is Foreign else None
            ran = found.source.read(part) if found is not None and type(part) is Foreign else None
            if ran is None or type(part) is not Foreign:
                continue
            if ran.call is not None:
                calls[part.dialect, ran.id] = part
            elif (call := calls.pop((part.dialect, ran.id), None)) is not None:
                whole |= {id(call), id(part)}
    return whole


def _is_same(last: Foreign, own: CodeForm, part: Foreign, form: CodeForm) -> bool:
    """Whether both are code, or both are its result."""
    first, second = own.read(last), form.read(part)
    if first is None or second is None:
        return False
    return (first.call is None) == (second.call is None)
