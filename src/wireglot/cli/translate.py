"""`wireglot translate`: one request, response or stream; `--jsonl` goes on to `dataset`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from wireglot.cli import ports
from wireglot.cli.paint import Paint, count, loss_lines, one_line
from wireglot.cli.ports import Unusable
from wireglot.dialects.registry import UnknownDialect, dialect
from wireglot.ir.errors import ClientFault, WireglotError
from wireglot.ir.loss import Loss
from wireglot.providers.spec import UnknownProvider, provider
from wireglot.translate import StreamTranslator, refuse_losses, translate_request, translate_response
from wireglot.wire.json import encode

_ONLY_FOR = {"request": ("response", "stream"), "status": ("response",), "framing": ("stream",)}
"""Options of one document that not every kind takes."""


def run(arguments: argparse.Namespace) -> int:
    try:
        _check(arguments)
        if arguments.jsonl:
            from wireglot.cli import dataset

            return dataset.run(arguments)
        if arguments.kind == "stream":
            return _stream(arguments)
        return _document(arguments)
    except (Unusable, WireglotError) as fault:
        # The client's side of a response or stream is the request it answers.
        asked = isinstance(fault, ClientFault) and arguments.kind != "request"
        place = f"--request {arguments.request}: " if asked else ""
        print(f"wireglot: {one_line(f'{place}{fault}')}", file=sys.stderr)
        return 2


def _check(arguments: argparse.Namespace) -> None:
    if arguments.jsonl:
        _check_lines(arguments)
    else:
        _check_document(arguments)
    for option, name in (("--from", arguments.source), ("--to", arguments.target)):
        if name is not None:
            try:
                dialect(name)
            except UnknownDialect as unknown:
                raise Unusable(f"{option}: {unknown}") from None
    if arguments.provider is not None:
        try:
            provider(arguments.provider)
        except UnknownProvider as unknown:
            raise Unusable(f"--provider: {unknown}") from None


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
        rendered = translate_request(ports.read_all(arguments.input), **names)
    else:
        asked = _asked(arguments)
        body = ports.read_all(arguments.input)
        rendered = translate_response(body, request=asked, status=arguments.status or 0, **names)
    text = encode(rendered.value)
    if arguments.pretty:
        text = msgspec.json.format(text, indent=2)
    ports.write_all(text + b"\n", arguments.output)
    _tell(rendered.losses, arguments)
    return 0


def _stream(arguments: argparse.Namespace) -> int:
    translator = StreamTranslator(
        source=arguments.source,
        target=arguments.target,
        request=_asked(arguments),
        model=arguments.model,
        provider=arguments.provider,
        framing=arguments.framing or "sse",
    )
    ports.refuse_same_file(arguments.input, arguments.output)
    with ports.source(arguments.input) as source:
        if arguments.strict:
            # All or nothing: what was written could not be taken back when a loss shows later.
            held = [translator.feed(piece) for piece in iter(lambda: source.read1(ports.CHUNK), b"")]
            held.append(translator.close())
            refuse_losses(translator.losses)
            ports.write_all(b"".join(held), arguments.output)
        else:
            with ports.sink(arguments.output) as sink:
                while piece := source.read1(ports.CHUNK):
                    _pass_on(translator.feed(piece), sink)
                _pass_on(translator.close(), sink)
    _tell(translator.losses, arguments)
    if not translator.failed:
        return 0
    print("wireglot: the stream broke off or reported an error, and so does its translation", file=sys.stderr)
    return 1


def _pass_on(data: bytes, sink: ports.Sink) -> None:
    if data:
        sink.write(data)
        sink.flush()


def _asked(arguments: argparse.Namespace) -> bytes | None:
    """The client's request, if it was given."""
    return None if arguments.request is None else ports.read_all(arguments.request, "--request")


def _tell(losses: Sequence[Loss], arguments: argparse.Namespace) -> None:
    if arguments.losses is not None:
        listed = msgspec.json.format(encode(losses), indent=2)
        ports.write_all(listed + b"\n", arguments.losses, "--losses")
    elif losses:
        paint = Paint(sys.stderr)
        head = f"{count(len(losses), 'loss', 'losses')} from {arguments.source} to {arguments.target}:"
        print("\n".join([paint(head, "bold"), *loss_lines(losses, paint)]), file=sys.stderr)
