"""Options of `wireglot serve`, and what reads them."""

from __future__ import annotations

import argparse
import os
import re
import time
from typing import Any, Final

from wireglot.cli.options import Commands, positive

_SERVER: Final = ("host", "port", "workers", "log")
"""Options that stand in for the settings of the same name in the section [server]."""

_MODELS: Final = "WIREGLOT_MODELS"
_LAST_PORT: Final = 65535
_TRACE_MINUTES: Final = 15.0
_TRACE_MINUTES_MOST: Final = 24 * 60


def add_command(commands: Commands) -> None:
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
    parser.add_argument("--workers", type=positive, metavar="N", help="processes that share the port")
    parser.add_argument(
        "--log", choices=("auto", "json", "pretty", "off"), help="how to log requests (default: auto)"
    )
    parser.add_argument(
        "--model",
        type=_rule,
        action="append",
        default=[],
        metavar="NAME=PROVIDER/MODEL",
        help="send a model name or pattern to a provider's model, before what [models] says; can be repeated",
    )
    parser.add_argument(
        "--trace",
        type=_minutes,
        nargs="?",
        const=_TRACE_MINUTES,
        metavar="MINUTES",
        help=f"record the bodies of all exchanges for so long (default: {_TRACE_MINUTES:g} minutes)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.serve.process import serve

    options = {}
    if arguments.model:
        if not os.environ.get(_MODELS):
            options[_MODELS] = "--model"
        # The variable reaches every worker, and its entries stand before the file's.
        rules = [*arguments.model, os.environ.get(_MODELS, "")]
        os.environ[_MODELS] = ";".join(filter(None, rules))
    given = {name: getattr(arguments, name) for name in _SERVER}
    server: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    until = time.time() + arguments.trace * 60 if arguments.trace else 0.0
    return serve(arguments.config, {"server": server} if server else {}, options, record_until=until)


def _minutes(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text) or not 0 < float(text) <= _TRACE_MINUTES_MOST:
        raise argparse.ArgumentTypeError(
            f"expected minutes, {_TRACE_MINUTES_MOST} at most, got {text[:40]!r}"
        )
    return float(text)


def _port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_LAST_PORT}, got {text[:40]!r}")
    return int(text)


def _rule(text: str) -> str:
    name, equals, targets = text.partition("=")
    if not equals or not name.strip() or not targets.strip() or ";" in text:
        raise argparse.ArgumentTypeError(f"expected NAME=PROVIDER/MODEL, got {text!r}")
    return text
