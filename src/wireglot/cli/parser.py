"""Commands and options, and nothing that does the work: `--help` answers at once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from wireglot import __version__
from wireglot.cli.parser_keys import add_keys
from wireglot.cli.parser_store import add_store
from wireglot.cli.parser_usage import add_usage

_TRANSLATE = """\
Translate one document from standard input to standard output, or, with --jsonl, a whole file of them.

What could not cross as it was (the losses) is told on standard error, or written to --losses FILE as JSON.
"""

_TRANSLATE_EXAMPLES = """\
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

_EXAMPLES = """\
examples:
  wireglot demo
  wireglot serve
  wireglot translate request --from anthropic --to gemini < in.json > out.json
  wireglot translate --jsonl < cases.jsonl > results.jsonl
  wireglot dialects
"""


class _Parser(argparse.ArgumentParser):
    """argparse with its complaint on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"wireglot: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"wireglot {__version__}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wireglot",
        description="Translate between the API dialects of language models, and say what could not cross.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, default=argparse.SUPPRESS, help="show the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_serve(commands)
    _add_config(commands)
    _add_translate(commands)
    commands.add_parser(
        "demo",
        help="see a gateway answer a real request in every dialect",
        description="Start a gateway on a free port with the model that lives inside it, ask it over HTTP in "
        "every dialect, stream a tool call, and show what went over the wire.",
    )
    _add_pairs(commands)
    _add_smoke(commands)
    add_usage(commands)
    add_store(commands)
    add_keys(commands)
    commands.add_parser(
        "dialects", help="list the dialects", description="List the dialects that --from and --to take."
    )
    commands.add_parser(
        "providers", help="list the providers", description="List the providers that --provider takes."
    )
    commands.add_parser(
        "losses",
        help="list the names of what can be lost",
        description="List every feature name that a loss can carry, and what it means.",
    )
    return parser


def _add_serve(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the gateway",
        description="Run the gateway: any client, any provider. Without a configuration, providers whose "
        "keys are in the environment are on; without any key, a demo model that lives in the process.",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the configuration (default: wireglot.toml, if there)"
    )
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, metavar="N", help="and on which port (default: 8484; 0: any)")
    parser.add_argument("--workers", type=_positive, metavar="N", help="processes that share the port")
    parser.add_argument(
        "--log", choices=("auto", "json", "pretty", "off"), help="how to log requests (default: auto)"
    )


def _add_config(commands: Any) -> None:
    parser = commands.add_parser(
        "config",
        help="check a configuration",
        description="Check a configuration: tell every problem with its place and what was expected there, "
        "or what the gateway would do with it. The exit status is 1 if there are problems.",
    )
    parser.add_argument("action", choices=("check",), help="what to do with it")
    parser.add_argument("--config", metavar="FILE", help="the same as PATH, as `wireglot serve` spells it")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file (default: the one `wireglot serve` would find)"
    )


def _add_translate(commands: Any) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate a request, a response, a stream, or a file of them",
        description=_TRANSLATE,
        epilog=_TRANSLATE_EXAMPLES,
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
        type=_positive,
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


def _add_pairs(commands: Any) -> None:
    parser = commands.add_parser(
        "pairs",
        help="translate a bundled conversation between all dialects and show it",
        description="Translate a bundled coding-agent conversation between all ordered pairs of the four "
        "main dialects, and show one request beside its translation.",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIALECT", default="anthropic", help="the request shown on the left"
    )
    parser.add_argument(
        "--to", dest="target", metavar="DIALECT", default="gemini", help="and its translation"
    )


def _add_smoke(commands: Any) -> None:
    parser = commands.add_parser(
        "smoke",
        help="ask a gateway everything once",
        description="Exercise whole answers, streams, tools, model lists and token counts on every endpoint "
        "of a gateway, and print what passed, how long it took and what was lost. The exit status is the "
        "number of failures.",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help="where a gateway listens (default: start one here, configured as `wireglot serve` would be)",
    )
    parser.add_argument("--key", metavar="KEY", help="a client key, where the gateway asks for one")
    parser.add_argument("--provider", metavar="NAME", help="test the first model listed for this provider")
    parser.add_argument("--model", metavar="NAME", help="test this model (with --provider: of that provider)")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 up, got {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port, got {text!r}")
    return int(text)
