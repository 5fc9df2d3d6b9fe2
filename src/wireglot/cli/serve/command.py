"""Options of `wireglot serve`, and what reads them."""

from __future__ import annotations

import argparse
from typing import Any, Final

from wireglot.cli.options import Commands, positive

_SERVER: Final = ("host", "port", "workers", "log")
"""Options that stand in for the settings of the same name in the section [server]."""


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
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.serve.process import serve

    given = {name: getattr(arguments, name) for name in _SERVER}
    server: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return serve(arguments.config, {"server": server} if server else {})


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port, got {text!r}")
    return int(text)
