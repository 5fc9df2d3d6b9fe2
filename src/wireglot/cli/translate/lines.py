"""One line of `--jsonl`: a case in, a result out, whatever the case holds."""

from __future__ import annotations

import traceback
from typing import Any

import msgspec

from wireglot.cli.named_dialect import find_dialect
from wireglot.dialects.fields import Fields, describe
from wireglot.dialects.registry import UnknownDialect
from wireglot.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
from wireglot.ir.loss import Loss
from wireglot.providers.spec import UnknownProvider
from wireglot.translate import StreamTranslator, refuse_losses, translate_request, translate_response
from wireglot.wire.json import BadJson, decode, encode

MAX_LINE = 64 * 1024 * 1024

_KINDS = ("request", "response", "stream")


class BadLine(WireglotError):
    """The line is not a case. `path` points into the line."""


_TYPES: dict[type[WireglotError], str] = {
    BadLine: "bad_line",
    ClientFault: "client_fault",
    UpstreamFault: "upstream_fault",
    Unsupported: "unsupported",
    StrictLoss: "strict_loss",
}
"""Stable names of what can be wrong with a case; `internal_error` is a bug of ours."""


class Defaults(msgspec.Struct, frozen=True):
    """What the command line says for lines that do not say it themselves."""

    source: str | None = None
    target: str | None = None
    model: str | None = None
    provider: str | None = None
    strict: bool = False


class Result(msgspec.Struct, frozen=True):
    line: bytes
    ok: bool
    lossy: bool = False


def translate_line(line: bytes, number: int, defaults: Defaults) -> Result:
    """The result of one case. `number` names the line where no id can."""
    identity: Any = None
    try:
        case = _case(line, number)
        identity = case.value.get("id")
        return _translated(identity, case, defaults)
    except WireglotError as fault:
        return _failed(identity, _TYPES.get(type(fault), "internal_error"), fault.path, fault.message)
    except Exception as bug:  # a bug of ours must not stop the rest of a data set
        return _failed(identity, "internal_error", "$", _whereabouts(bug))


def overlong(number: int) -> Result:
    return _failed(None, "bad_line", "$", f"line {number}: expected at most {MAX_LINE >> 20} MiB on a line")


def _case(line: bytes, number: int) -> Fields:
    try:
        value = decode(line)
    except BadJson as bad:
        raise BadLine(f"line {number}: expected a JSON object: {bad}") from None
    if type(value) is not dict:
        raise BadLine(f"line {number}: expected a JSON object, got {describe(value)}")
    return Fields(value, "$", BadLine)


def _translated(identity: Any, case: Fields, defaults: Defaults) -> Result:
    kind = case.value.get("kind")
    if kind not in _KINDS:
        raise case.wrong("kind", 'one of "request", "response", "stream"')
    names: dict[str, Any] = {
        "source": _dialect(case, "from", defaults.source),
        "target": _dialect(case, "to", defaults.target),
        "model": case.text_or_none("model") or defaults.model,
        "provider": case.text_or_none("provider") or defaults.provider,
    }
    losses: tuple[Loss, ...] | list[Loss]
    answer: dict[str, Any] = {"id": identity, "ok": True}
    try:
        if kind == "stream":
            losses = _stream(case, names, answer)
            if defaults.strict:
                refuse_losses(losses)
        elif kind == "request":
            body = case.object("body").value
            rendered = translate_request(body, strict=defaults.strict, **names)
            answer["body"], losses = rendered.value, rendered.losses
        else:
            rendered = translate_response(
                _answer(case),
                request=case.dict_or_none("request"),
                status=case.integer("status") or 0,
                strict=defaults.strict,
                **names,
            )
            answer["body"], losses = rendered.value, rendered.losses
    except UnknownProvider as unknown:
        raise BadLine(str(unknown), "$.provider") from None
    answer["losses"] = [loss.told() for loss in losses]
    return Result(encode(answer), True, bool(losses))


def _stream(case: Fields, names: dict[str, Any], answer: dict[str, Any]) -> list[Loss]:
    data = case.text("sse").encode("utf-8", "replace")
    pieces = _cut(data, case)
    translator = StreamTranslator(request=case.dict_or_none("request"), **names)
    out = [translator.feed(piece) for piece in pieces]
    out.append(translator.close())
    answer["sse"] = b"".join(out).decode("utf-8", "replace")
    if case.value.get("splits") is not None:
        answer["fed_chunks"] = len(pieces)
    return translator.losses


def _cut(data: bytes, case: Fields) -> list[bytes]:
    """The bytes cut at the offsets of `splits`, also in the middle of a character."""
    pieces: list[bytes] = []
    start = 0
    for index, offset in enumerate(case.array_or_empty("splits")):
        if type(offset) is not int or not start <= offset <= len(data):
            expected = f"expected byte offsets in ascending order, here from {start} to {len(data)}"
            raise BadLine(
                f"{expected}, got {offset if type(offset) is int else describe(offset)}", f"$.splits[{index}]"
            )
        pieces.append(data[start:offset])
        start = offset
    pieces.append(data[start:])
    return pieces


def _dialect(case: Fields, key: str, default: str | None) -> str:
    name = case.text_or_none(key) or default
    if name is None:
        raise case.wrong(key, "the name of a dialect")
    try:
        find_dialect(name)
    except UnknownDialect as unknown:
        raise BadLine(str(unknown), f"$.{key}") from None
    return name


def _answer(case: Fields) -> dict[str, Any] | bytes:
    """The body of a response. Some providers wrap an error in an array, which the translation knows about."""
    body = case.value.get("body")
    if type(body) is dict:
        return body
    if type(body) is not list:
        raise case.wrong("body", "an object")
    return encode(body)


def _failed(identity: Any, type_: str, path: str, message: str) -> Result:
    error = {"type": type_, "path": path, "message": message}
    return Result(encode({"id": identity, "ok": False, "error": error}), False)


def _whereabouts(bug: Exception) -> str:
    """What happened and where, without the text of the exception: it could quote the document."""
    frames = traceback.extract_tb(bug.__traceback__)
    module = (
        frames[-1]
        .filename.replace("\\", "/")
        .rpartition("/wireglot/")[2]
        .removesuffix(".py")
        .replace("/", ".")
    )
    return f"unexpected {type(bug).__name__} in {module}, line {frames[-1].lineno}; please report it"
