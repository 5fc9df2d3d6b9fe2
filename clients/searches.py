"""Let real clients search the web on models that cannot: the gateway runs the search.

python -m clients.searches [--only REGEX] [--upstream DIALECT]

Claude Code, Codex and Gemini CLI are asked for a number that only the search engine knows, each with an
upstream of each dialect. PASS: the client printed it with its source. The exit code is 1 if a client
failed, 2 if nothing could run.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from clients.catalog import CLIENTS, Client
from clients.install import is_there
from clients.packages import HERE
from clients.report import Table, line, plain
from clients.seat import Outcome, Seat
from clients.servers import UPSTREAMS, DidNotStart, gateway
from proofs.search_double import SearchDouble
from wireglot.demo.service import target_of
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Part, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import decode, encode, encode_text

RUNS = HERE / ".runs" / "searches"
NAMES = ("claude-code", "codex", "codex-unknown", "codex-built-in", "gemini-cli")
"""Codex names no search for its default model where that is another provider's."""
NUMBER, SOURCE = "443,037", "https://news.example.org/today"
QUESTION = "How many people live in Zurich? Search the web."
_SEARCHES = ("WebSearch", "google_web_search", "web_search")
_NO_SEARCH = "[providers.double.limits]\nhosted_tools = false\n"
_FINDS_TOOLS = "ToolSearch"
"""Claude Code offers its WebSearch only after it was looked for with this one."""


class SearchingSeat(Seat):
    """The word to print is one that the search finds."""

    @property
    def prompt(self) -> str:
        return QUESTION

    @property
    def final(self) -> str:
        return f"{NUMBER} ([source]({SOURCE}))"


class Model:
    """Calls whatever tool searches the web, then answers from its result. It has no search of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._server = ScriptedUpstream(decide=self._answer)

    def __enter__(self) -> str:
        self._server.start()
        return self._server.url

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def _answer(self, recorded: Recorded) -> Behaviour | None:
        target = target_of(recorded.path, recorded.query, recorded.headers)
        if target is None or target.operation not in ("generate", "stream"):
            return None
        spoken, number = dialect(target.dialect), next(self._numbers)
        context = Context(seed=str(number), now=int(time.time()))
        request = spoken.parse_request(decode(recorded.body), context)
        part = self._said(request, f"call_{number}")
        if part is None:
            return None
        usage = Usage(input=10, output=5)
        response = Response(f"r{number}", "scripted", (part,), Stop("end"), usage, created=context.now)
        if not (target.operation == "stream" or request.stream):
            return Behaviour(body=encode(spoken.render_response(response, context, request).value))
        data = spoken.stream_writer(context, request).write(list(unfold(response)))
        return Behaviour(headers=(("content-type", "text/event-stream"),), pieces=(data,))

    def _said(self, request: Request, id: str) -> Part | None:
        """None: the demo model answers."""
        results = [part for turn in request.messages for part in turn.content if type(part) is ToolResult]
        if NUMBER in str(results):
            return Text(f"Zurich has {NUMBER} ([source]({SOURCE})) inhabitants.")
        offered = {tool.name for tool in request.tools if type(tool) is Tool}
        for name in _SEARCHES:
            if name in offered:
                return ToolCall(id, name, encode_text({"query": "Zurich inhabitants"}))
        if _FINDS_TOOLS in offered and QUESTION in str(request.messages):
            return ToolCall(id, _FINDS_TOOLS, encode_text({"query": "select:WebSearch", "max_results": 5}))
        return None


def run(clients: Sequence[Client], upstreams: Sequence[str]) -> Table:
    cells: dict[tuple[str, str], Outcome] = {}
    with Model() as model, SearchDouble() as engine:
        more = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n{_NO_SEARCH}'
        for upstream in upstreams:
            folder = RUNS / upstream
            with gateway(upstream, model, folder, more=more) as (base, key):
                for client in clients:
                    before = len(engine.requests)
                    outcome = one(client, base, key, folder / client.name)
                    if outcome.passed and len(engine.requests) == before:
                        outcome = Outcome(False, outcome.seconds, "the search engine was not asked")
                    cells[client.name, upstream] = outcome
                    print(line(client, upstream, outcome), flush=True)
    about = "A model without a search of its own; the gateway searches."
    return Table("Web search", about, clients, upstreams, cells)


def one(client: Client, base: str, key: str, folder: Path) -> Outcome:
    with SearchingSeat(base, key, folder) as seat:
        return seat.run(client.launch(seat), finals=1, timeout=client.timeout)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="clients.searches", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="clients whose name matches")
    parser.add_argument(
        "--upstream", action="append", choices=UPSTREAMS, help="this dialect (again for more)"
    )
    options = parser.parse_args(arguments)
    clients = [each for each in CLIENTS if each.name in NAMES and re.search(options.only, each.name)]
    if missing := {each.package.name for each in clients if not is_there(each.package)}:
        print(f"not installed: {', '.join(sorted(missing))}")
        return 2
    try:
        table = run(clients, options.upstream or UPSTREAMS)
    except DidNotStart as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"\n{plain(table)}\n\n{len(table.cells) - table.failures()} of {len(table.cells)} passed")
    return 1 if table.failures() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
