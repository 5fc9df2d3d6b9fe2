"""Where foreign text comes in, by what the code declares: each of these has a row of the law of bounded work."""

from __future__ import annotations

from typing import Final

from wireglot.cli.import_.importing import CONVERTERS
from wireglot.gateway.composition import hosted_runners
from wireglot.probe.run import WIRES
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.request import Request, Tool
from wireglot_core.wire.json import encode

PAGE: Final = "page text"
CONFIG: Final = "configuration file"
TRACE: Final = "trace file"
STORE: Final = "export of a store"

_NAME: Final = "a_tool_of_this_name"


def takes_tools(name: str) -> bool:
    """Whether a request of the dialect can declare tools."""
    asked = Request("m", (Message("user", (Text("go"),)),), tools=(Tool(_NAME, "", {"type": "object"}),))
    return _NAME.encode() in encode(dialect(name).render_request(asked, Context()).value)


def request_of(name: str) -> str:
    return f"request of {name}"


def answer_of(name: str) -> str:
    return f"answer of {name}"


def stream_of(name: str) -> str:
    return f"stream of {name}"


def schema_of(name: str) -> str:
    return f"schema of {name}"


def hosted(kind: str) -> str:
    return f"hosted tool {kind}"


def imported(program: str) -> str:
    return f"configuration of {program}"


def probed(name: str) -> str:
    return f"stream of a probed endpoint: {name}"


def entry_points() -> set[str]:
    runners = hosted_runners(lambda exchange: None, lambda exchange: None, None, None)  # type: ignore[arg-type]  # none is asked
    return {
        *(of(name) for of in (request_of, answer_of, stream_of) for name in NAMES),
        *(schema_of(name) for name in NAMES if takes_tools(name)),
        *map(hosted, runners),
        *map(imported, CONVERTERS),
        *map(probed, WIRES),
        PAGE,
        CONFIG,
        TRACE,
        STORE,
    }
