"""What `wireglot trace` does."""

from __future__ import annotations

import argparse
import sys
from json import dumps as escaped
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.cli.exit_status import FAILED, OK, UNUSABLE
from wireglot.cli.paint import Paint, one_line
from wireglot.cli.remote_gateway import NoAnswer, UnusableKey, UnusableUrl
from wireglot.cli.telling import complain, say
from wireglot.cli.trace.access import (
    AtGateway,
    NoTrace,
    Source,
    Unusable,
    at_running_gateway,
    from_file,
    is_file,
)
from wireglot.cli.trace.answers import compared, compared_lines
from wireglot.cli.trace.resend import send_again
from wireglot.cli.trace.show import Shown
from wireglot.cli.trace.table import list_lines
from wireglot.gateway import config
from wireglot.traces.file import write_trace
from wireglot.traces.replay import Replayed, replay
from wireglot.traces.told import with_told
from wireglot.traces.trace import Trace

_LAST: Final = "last"
_PIPE: Final = "-"
_LOOKED_AT: Final = 100
_FILTERS: Final = ("model", "provider", "client", "status", "loss", "session", "key")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _ACTIONS[arguments.action](arguments)
    except (config.ConfigError, UnusableUrl, UnusableKey, Unusable) as problem:
        complain(problem)
        return UNUSABLE
    except (NoAnswer, NoTrace) as problem:
        complain(problem)
        return FAILED


def _source(arguments: argparse.Namespace) -> Source:
    if arguments.url is not None:
        return AtGateway(arguments.url)
    running = at_running_gateway(arguments.config)
    if running is not None:
        return running
    from wireglot.cli.trace.kept import OnDisk

    return OnDisk(arguments.config)


def _trace(arguments: argparse.Namespace, id: str) -> Trace:
    return with_told(from_file(id) if is_file(id) else _found(_source(arguments), id))


def _found(source: Source, id: str) -> Trace:
    if id != _LAST:
        return source.trace(id)
    rows = source.rows({}, _LOOKED_AT).rows
    newest = next((row for row in rows if row.recorded), None)
    if newest is None:
        raise NoTrace("no exchange was recorded lately: see [trace], or `wireglot serve --trace`")
    return source.trace(newest.id)


def _list(arguments: argparse.Namespace) -> int:
    filters = {name: value for name in _FILTERS if (value := getattr(arguments, name))}
    if arguments.search:
        filters["q"] = arguments.search
    found = _source(arguments).rows(filters, arguments.limit)
    if arguments.json:
        _print_json({"rows": found.rows, "next": found.next})
        return OK
    _print(list_lines(found.rows, sys.stdout))
    return OK


def _show(arguments: argparse.Namespace) -> int:
    trace = _trace(arguments, arguments.id)
    if arguments.json:
        _print_json(trace)
    else:
        _print(Shown(sys.stdout, full=arguments.full).trace(trace))
    return OK


def _diff(arguments: argparse.Namespace) -> int:
    trace = _trace(arguments, arguments.id)
    if arguments.other is not None:
        return _compare(arguments, trace, _trace(arguments, arguments.other))
    attempt = trace.attempts[-1] if trace.attempts else None
    if attempt is None or not attempt.links:
        reason = trace.notes[0] if trace.notes else "nothing was sent upstream"
        raise NoTrace(f"{one_line(trace.row.id)}: there are no two sides to compare: {one_line(reason)}")
    if arguments.json:
        _print_json({"links": attempt.links, "losses": trace.losses, "summary": attempt.summary})
    else:
        _print(Shown(sys.stdout, full=arguments.full).sides(trace))
    return OK


def _compare(arguments: argparse.Namespace, one: Trace, other: Trace) -> int:
    found = compared(one, other)
    if arguments.json:
        _print_json({"differences": found})
    else:
        _print(compared_lines(found))
    return OK


def _export(arguments: argparse.Namespace) -> int:
    to_pipe = arguments.output in (None, _PIPE)
    if arguments.output is None and sys.stdout.isatty():
        raise Unusable(
            "a trace is a file, which a terminal shows badly: -o FILE writes it, `trace show` is to read, "
            f"and -o {_PIPE} writes to the terminal all the same"
        )
    data = write_trace(_trace(arguments, arguments.id), packed=arguments.gzip)
    if to_pipe:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return OK
    Path(arguments.output).write_bytes(data)
    say(f"wrote {arguments.output}: {len(data):,} bytes. It holds what was said: look before you share it.")
    return OK


def _replay(arguments: argparse.Namespace) -> int:
    if arguments.offline:
        if arguments.to is not None:
            raise Unusable("--to: nothing is sent with --offline")
        if arguments.raw:
            raise Unusable("--raw: nothing is sent with --offline")
        return _replay_offline(arguments)
    return send_again(arguments, _trace(arguments, arguments.id))


def _replay_offline(arguments: argparse.Namespace) -> int:
    again = replay(_trace(arguments, arguments.id))
    if arguments.json:
        _print_json({"same": again.is_same, **msgspec.to_builtins(again)})
    else:
        _print(_replayed_lines(again))
    return OK if again.is_same else FAILED


def _replayed_lines(again: Replayed) -> list[str]:
    paint = Paint(sys.stdout)
    lines = []
    for name, title, found in (
        ("request", "upstream request", again.request),
        ("answer", "client answer", again.answer),
    ):
        if name not in again.compared:
            lines.append(f"{paint('?', 'degraded')} {title}: not compared")
        elif not found:
            lines.append(f"{paint('=', 'ok')} {title}: as it was recorded")
        else:
            lines.append(f"{paint('~', 'serious')} {title}: differs in {len(found)}")
            for each in found:
                lines += [f"    {one_line(each.pointer) or '/'}", f"      was {one_line(each.before)}"]
                lines.append(f"      is  {one_line(each.after)}")
    return lines + [paint(f"  {one_line(note)}", "dim") for note in again.notes]


def _print(lines: list[str]) -> None:
    for line in lines:
        print(line)


def _print_json(value: Any) -> None:
    """Nothing in it steers a terminal: what is not to be seen is written as JSON has it."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    print("".join(each if each.isprintable() or each == "\n" else escaped(each)[1:-1] for each in text))


_ACTIONS: Final = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "export": _export,
    "replay": _replay,
}
