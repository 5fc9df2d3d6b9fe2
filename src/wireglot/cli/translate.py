"""`wireglot translate` of one request, response or stream; `--jsonl`: see `translate_dataset`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from wireglot.cli.argument_parser import near
from wireglot.cli.terminal import (
    FAILED,
    OK,
    UNUSABLE,
    Paint,
    Unusable,
    complain,
    count,
    loss_lines,
    one_line,
    say,
)
from wireglot.cli.translate_io import (
    CHUNK,
    ByteSink,
    find_dialect,
    open_sink,
    open_source,
    read_all,
    refuse_same_file,
    write_all,
)
from wireglot_core.dialects.registry import UnknownDialect, names
from wireglot_core.ir.errors import ClientFault, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.providers.spec import UnknownProvider, provider
from wireglot_core.providers.spec import names as provider_names
from wireglot_core.translate import StreamTranslator, refuse_losses, translate_request, translate_response
from wireglot_core.wire.json import encode

_ONLY_FOR: Final = {"request": ("response", "stream"), "status": ("response",), "framing": ("stream",)}
"""Options for one document that not every kind accepts."""


def run(arguments: argparse.Namespace) -> int:
    try:
        _check(arguments)
        if arguments.jsonl:
            from wireglot.cli import translate_dataset

            return translate_dataset.run(arguments)
        if arguments.kind == "stream":
            return _stream(arguments)
        return _document(arguments)
    except (Unusable, WireglotError) as fault:
        # The client's side of a response or stream is the request it answers.
        asked = isinstance(fault, ClientFault) and arguments.kind != "request"
        place = f"--request {arguments.request}: " if asked else ""
        if not asked and isinstance(fault, WireglotError) and arguments.input is not None:
            place = f"--in {arguments.input}: "
        complain(one_line(f"{place}{fault}"))
        return UNUSABLE


def _check(arguments: argparse.Namespace) -> None:
    if arguments.jsonl:
        _check_lines(arguments)
    else:
        _check_document(arguments)
    for option, name in (("--from", arguments.source), ("--to", arguments.target)):
        if name is not None:
            try:
                find_dialect(name)
            except UnknownDialect as unknown:
                raise Unusable(f"{option}: {_meant('dialect', name, names()) or unknown}") from None
    if arguments.provider is not None:
        try:
            provider(arguments.provider)
        except UnknownProvider as unknown:
            reported = _meant("provider", arguments.provider, provider_names())
            raise Unusable(f"--provider: {reported or unknown}") from None


def _meant(kind: str, name: str, known: Iterable[str]) -> str:
    meant = near(name, known)
    return f"there is no {kind} {name}: did you mean {meant}?" if meant else ""


def _check_lines(arguments: argparse.Namespace) -> None:
    if arguments.kind is not None:
        raise Unusable(f"{arguments.kind}: expected no kind with --jsonl, each line has its own")
    for option in ("request", "status", "framing", "losses", "pretty"):
        if getattr(arguments, option) not in (None, False):
            raise Unusable(f"--{option}: expected without --jsonl only")


def _check_document(arguments: argparse.Namespace) -> None:
    kind = arguments.kind
    if kind is None:
        raise Unusable("expected request, response or stream after translate, or --jsonl")
    if arguments.source is None or arguments.target is None:
        option = "--from" if arguments.source is None else "--to"
        raise Unusable(f"{option}: expected a dialect (see `wireglot dialects`)")
    for option, kinds in _ONLY_FOR.items():
        if getattr(arguments, option) is not None and kind not in kinds:
            raise Unusable(f"--{option}: expected with {' or '.join(kinds)} only")
    if kind == "stream" and arguments.pretty:
        raise Unusable("--pretty: expected with request or response only")
    if arguments.jobs != 1 or arguments.progress is not None:
        raise Unusable(f"--{'jobs' if arguments.jobs != 1 else 'progress'}: expected with --jsonl only")


def _document(arguments: argparse.Namespace) -> int:
    names: dict[str, Any] = {
        "source": arguments.source,
        "target": arguments.target,
        "model": arguments.model,
        "provider": arguments.provider,
        "strict": arguments.strict,
    }
    if arguments.kind == "request":
        rendered = translate_request(read_all(arguments.input), **names)
    else:
        asked = _asked(arguments)
        body = read_all(arguments.input)
        rendered = translate_response(body, request=asked, status=arguments.status or 0, **names)
    text = encode(rendered.value)
    if arguments.pretty:
        text = msgspec.json.format(text, indent=2)
    if arguments.losses is not None:  # first: if they cannot be written, nothing is
        _tell(rendered.losses, arguments)
    write_all(text + b"\n", arguments.output)
    if arguments.losses is None:
        _tell(rendered.losses, arguments)
    return OK


def _stream(arguments: argparse.Namespace) -> int:
    translator = StreamTranslator(
        source=arguments.source,
        target=arguments.target,
        request=_asked(arguments),
        model=arguments.model,
        provider=arguments.provider,
        framing=arguments.framing,
    )
    refuse_same_file(arguments.input, arguments.output)
    with open_source(arguments.input) as source:
        if arguments.strict:
            # All or nothing: written output could not be removed if a loss is found later.
            held = [translator.feed(piece) for piece in iter(lambda: source.read1(CHUNK), b"")]
            held.append(translator.close())
            refuse_losses(translator.losses)
            write_all(b"".join(held), arguments.output)
        else:
            with open_sink(arguments.output) as sink:
                while piece := source.read1(CHUNK):
                    _pass_on(translator.feed(piece), sink)
                _pass_on(translator.close(), sink)
    _tell(translator.losses, arguments)
    if not translator.failed:
        return OK
    complain("the stream broke off or reported an error, and so does its translation")
    return FAILED


def _pass_on(data: bytes, sink: ByteSink) -> None:
    if data:
        sink.write(data)
        sink.flush()


def _asked(arguments: argparse.Namespace) -> bytes | None:
    """The client's request, if it was given."""
    return None if arguments.request is None else read_all(arguments.request, "--request")


def _tell(losses: Sequence[Loss], arguments: argparse.Namespace) -> None:
    if arguments.losses is not None:
        listed = msgspec.json.format(encode([loss.as_dict() for loss in losses]), indent=2)
        write_all(listed + b"\n", arguments.losses, "--losses")
    elif losses:
        paint = Paint(sys.stderr)
        head = f"{count(len(losses), 'loss', 'losses')} from {arguments.source} to {arguments.target}:"
        say("\n".join([paint(head, "bold"), *loss_lines(losses, paint)]))
