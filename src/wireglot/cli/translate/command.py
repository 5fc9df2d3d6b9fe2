"""Options of `wireglot translate`, and one request, response or stream; `--jsonl` goes on to `dataset`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wireglot.cli.exit_status import FAILED, OK, UNUSABLE
from wireglot.cli.named_dialect import find_dialect
from wireglot.cli.options import Commands, positive
from wireglot.cli.paint import Paint, count, loss_lines, one_line
from wireglot.cli.translate import ports
from wireglot.cli.translate.ports import Unusable
from wireglot.dialects.registry import UnknownDialect
from wireglot.ir.errors import ClientFault, WireglotError
from wireglot.ir.loss import Loss
from wireglot.providers.spec import UnknownProvider, provider
from wireglot.translate import StreamTranslator, refuse_losses, translate_request, translate_response
from wireglot.wire.json import encode

_DESCRIPTION: Final = """\
Translate one document from standard input to standard output, or, with --jsonl, a whole file of them.

What could not cross as it was (the losses) is told on standard error, or written to --losses FILE as JSON.
"""

_EXAMPLES: Final = """\
examples:
  wireglot translate request  --from anthropic --to gemini --model gemini-2.5-pro < in.json > out.json
  wireglot translate response --from gemini --to openai-chat --request asked.json < in.json > out.json
  wireglot translate stream   --from gemini --to anthropic < in.sse > out.sse
  wireglot translate --jsonl --jobs 4 < cases.jsonl > results.jsonl

exit status:
  0  translated (with --jsonl: every line)
  1  the stream broke off or reported an error (with --jsonl: at least one line failed)
  2  bad input or an unusable command line; one line on standard error says where and what was expected
"""

_ONLY_FOR: Final = {"request": ("response", "stream"), "status": ("response",), "framing": ("stream",)}
"""Options of one document that not every kind takes."""


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate a request, a response, a stream, or a file of them",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("request", "response", "stream"),
        help="what the one document is (not with --jsonl)",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", help="the dialect the input is written in"
    )
    parser.add_argument("--to", dest="target", metavar="DIALECT", help="the dialect to write")
    parser.add_argument(
        "--model", metavar="NAME", help="the model the request is for; it replaces the one in the body"
    )
    parser.add_argument(
        "--provider", metavar="NAME", help="the provider whose limits apply (see `wireglot providers`)"
    )
    parser.add_argument("--strict", action="store_true", help="a loss is an error: all or nothing")
    parser.add_argument("--in", dest="input", metavar="FILE", help="read this file instead of standard input")
    parser.add_argument(
        "--out", dest="output", metavar="FILE", help="write this file instead of standard output"
    )

    single = parser.add_argument_group("one document")
    single.add_argument(
        "--request",
        metavar="FILE",
        help="the client's original request, in the dialect of --to (response and stream only)",
    )
    single.add_argument(
        "--status", type=int, metavar="CODE", help="the HTTP status the response came with (response only)"
    )
    single.add_argument(
        "--framing",
        choices=("sse", "json-array"),
        help="how to write a Gemini stream (stream only; default: sse)",
    )
    single.add_argument(
        "--losses", metavar="FILE", help="write the losses there as a JSON array instead of telling them"
    )
    single.add_argument("--pretty", action="store_true", help="indent the JSON written")

    lines = parser.add_argument_group("many documents")
    lines.add_argument(
        "--jsonl",
        action="store_true",
        help="read one case a line and write one result a line; --from, --to, --model and --provider "
        "stand in where a line has none of its own",
    )
    lines.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="work in N processes; the order stays (default: 1)",
    )
    lines.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress on standard error (default: if it is a terminal)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        _check(arguments)
        if arguments.jsonl:
            from wireglot.cli.translate import dataset

            return dataset.run(arguments)
        if arguments.kind == "stream":
            return _stream(arguments)
        return _document(arguments)
    except (Unusable, WireglotError) as fault:
        # The client's side of a response or stream is the request it answers.
        asked = isinstance(fault, ClientFault) and arguments.kind != "request"
        place = f"--request {arguments.request}: " if asked else ""
        print(f"wireglot: {one_line(f'{place}{fault}')}", file=sys.stderr)
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
    return OK


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
        return OK
    print("wireglot: the stream broke off or reported an error, and so does its translation", file=sys.stderr)
    return FAILED


def _pass_on(data: bytes, sink: ports.Sink) -> None:
    if data:
        sink.write(data)
        sink.flush()


def _asked(arguments: argparse.Namespace) -> bytes | None:
    """The client's request, if it was given."""
    return None if arguments.request is None else ports.read_all(arguments.request, "--request")


def _tell(losses: Sequence[Loss], arguments: argparse.Namespace) -> None:
    if arguments.losses is not None:
        listed = msgspec.json.format(encode([loss.told() for loss in losses]), indent=2)
        ports.write_all(listed + b"\n", arguments.losses, "--losses")
    elif losses:
        paint = Paint(sys.stderr)
        head = f"{count(len(losses), 'loss', 'losses')} from {arguments.source} to {arguments.target}:"
        print("\n".join([paint(head, "bold"), *loss_lines(losses, paint)]), file=sys.stderr)
