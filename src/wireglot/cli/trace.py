"""`wireglot trace`: recorded exchanges of a running gateway, in a file, or in the folder of a configuration's
store."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from json import dumps as escaped
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from wireglot.cli.remote_gateway import (
    ADMIN_SECRET,
    GatewayAddress,
    GatewayAnswer,
    StoreNote,
    address_of,
    ask,
    operated_gateway,
    reachable,
    usable_key,
)
from wireglot.cli.terminal import FAILED, OK, Failed, Paint, Unusable, complain, one_line, say
from wireglot.cli.trace_view import Shown, list_lines, upstream_of
from wireglot.cli.trust import settings_of
from wireglot.gateway.observe.log import Level
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.conversations import with_sessions
from wireglot.gateway.trace.filters import PARAMETERS, BadFilter, parse_parameters, quoted
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf
from wireglot.gateway.trace.wanted import Wanted, found_in_bodies, found_in_row
from wireglot.stores.seal import Sealer
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import UnknownDialect, dialect
from wireglot_core.ir.errors import WireglotError
from wireglot_core.traces.again import without_error
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.bodies import UnreadableBody, amount, holds_text
from wireglot_core.traces.cache_truth import CacheTruth, exchange_cache
from wireglot_core.traces.diff import Difference, differences, outline
from wireglot_core.traces.file import MAX_BYTES, SUFFIX, BadTrace, read_trace, write_trace
from wireglot_core.traces.replay import Replayed, replay
from wireglot_core.traces.trace import Row, Trace
from wireglot_core.wire.json import BadJson

_API: Final = "/inspector/api"
_KEY: Final = "WIREGLOT_KEY"
_DONE: Final = 200
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404


class NoTrace(Failed):
    """There is none, or it is unavailable."""


class TraceListing(msgspec.Struct, frozen=True):
    rows: list[Row] = []
    next: str | None = None


class _CachePage(msgspec.Struct, frozen=True):
    turns: list[CacheTruth] = []


class TraceSource(Protocol):
    def rows(self, filters: dict[str, str], limit: int) -> TraceListing:
        """The newest first. `q` among the filters: a text of the filter language."""
        ...

    def trace(self, id: str) -> Trace:
        """Raises NoTrace."""
        ...

    def cache(self, trace: Trace) -> CacheTruth | None:
        """What the provider's cache should have contained of it; None if that is unavailable."""
        ...


def is_file(id: str) -> bool:
    """Whether an ID names a file: ids of exchanges contain neither dots nor slashes."""
    return id.endswith((SUFFIX, ".json", ".gz")) or os.sep in id or "/" in id or Path(id).is_file()


def from_file(name: str) -> Trace:
    """Raises NoTrace; an OSError where it cannot be read."""
    with Path(name).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    try:
        return read_trace(data)
    except BadTrace as fault:
        raise Unusable(f"{one_line(name)}: {one_line(str(fault))}") from None


class TracesAtGateway:
    """Through the inspector of a running gateway."""

    def __init__(self, url: str, key: str = "") -> None:
        """Raises Unusable. `key`: if it is not one of the environment's."""
        self.address: GatewayAddress = address_of(url)
        self._named = ADMIN_SECRET if os.environ.get(ADMIN_SECRET) else _KEY
        self._secret = key or usable_key(os.environ.get(self._named, ""), self._named)

    def has_inspector(self) -> bool:
        return ask(self.address, "GET", f"{_API}/session", key=self._secret).status == _DONE

    def rows(self, filters: dict[str, str], limit: int) -> TraceListing:
        found: list[Row] = []
        before: dict[str, str] = {}
        while True:
            asked = {"limit": str(limit - len(found)), **filters, **before}
            page = self._read(self._get(f"/exchanges?{urlencode(asked, errors='replace')}"), TraceListing)
            found += page.rows
            # A search covers some hundreds at a time.
            if page.next is None or len(found) >= limit or "q" not in filters:
                return TraceListing(found, page.next)
            before = {"before": page.next}

    def trace(self, id: str) -> Trace:
        answer = self._get(f"/exchanges/{quote(id, safe='')}")
        if "format" not in answer.document():
            raise NoTrace(
                f"the bodies of {one_line(id)} were not recorded: see [trace], or `wireglot serve --trace`"
            )
        try:
            return read_trace(answer.body)
        except BadTrace as fault:
            raise NoTrace(f"{self.address.url}: {one_line(str(fault))}") from None

    def cache(self, trace: Trace) -> CacheTruth | None:
        try:
            answer = self._get(f"/exchanges/{quote(trace.row.id, safe='')}/cache")
        except NoTrace:  # an older gateway, or the exchange was removed meanwhile
            return None
        with suppress(msgspec.DecodeError):
            turns = msgspec.json.decode(answer.body, type=_CachePage).turns
            return turns[0] if turns else None
        return None

    def send_again(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The gateway's answer about a request that is sent again, or would be."""
        headers = {} if self._secret else {"x-wireglot-csrf": self._token()}
        path = f"{_API}/replay"
        answer = ask(self.address, "POST", path, key=self._secret, body=asked, headers=headers, seconds=600.0)
        return self._checked(answer).document()

    def _token(self) -> str:
        token = self._get("/session").document().get("csrf")
        return token if isinstance(token, str) else ""

    def _get(self, path: str) -> GatewayAnswer:
        return self._checked(ask(self.address, "GET", f"{_API}{path}", key=self._secret))

    def _checked(self, answer: GatewayAnswer) -> GatewayAnswer:
        if answer.status == _UNAUTHORIZED:
            if self._secret:
                raise NoTrace(f"{self.address.url} rejects the secret in {self._named}")
            raise Unusable(
                f"{self.address.url} requires its admin secret in {ADMIN_SECRET}, or a client key in {_KEY}"
            )
        if answer.status == _NOT_FOUND and answer.document().get("error"):
            raise NoTrace(answer.complaint())
        if answer.status != _DONE:
            raise NoTrace(f"{self.address.url}: {answer.complaint()}")
        return answer

    def _no_inspector(self) -> str:
        return f"{self.address.url}: the server has no inspector: check the address"

    def _read(self, answer: GatewayAnswer, kind: type[TraceListing]) -> TraceListing:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise NoTrace(self._no_inspector()) from None


def at_running_gateway(config_file: str | None) -> TracesAtGateway | None:
    """The gateway that runs here, unless its inspector is off."""
    running = operated_gateway(config_file)
    if running is None:
        return None
    found = TracesAtGateway(reachable(running.url), running.key)
    return found if found.has_inspector() else None


def compared(one: Trace, other: Trace) -> list[Difference]:
    """Raises NoTrace."""
    return differences(_said(one), _said(other))


def compared_lines(found: list[Difference]) -> list[str]:
    paint = Paint(sys.stdout)
    lines = [] if found else ["both answers are the same"]
    for each in found:
        lines += [
            paint(one_line(each.pointer) or "/", "bold"),
            paint(f"  - {one_line(each.before)}", "dropped"),
            paint(f"  + {one_line(each.after)}", "ok"),
        ]
    return lines


def _said(trace: Trace) -> dict[str, Any]:
    try:
        spoken = dialect(trace.row.dialect)
        came = amount(trace.answer, spoken.name, "its answer")
        error = spoken.parse_error(came.document, trace.answer.status)
        if error is not None and not came.stops:
            return {"error": error.message}
        reported: dict[str, Any] = {}
        try:
            reported = outline(spoken.parse_response(without_error(came.document), Context()))
        except WireglotError:
            if error is None:
                raise
        if came.stops:
            reported["stop"] = came.stops
        return {**reported, "error": error.message} if error is not None else reported
    except (UnreadableBody, WireglotError, UnknownDialect) as fault:
        raise NoTrace(f"{one_line(trace.row.id)}: {one_line(str(fault))}") from None


_REFUSED: Final = 400
_MILLION: Final = 1_000_000


def send_again(arguments: argparse.Namespace, trace: Trace) -> int:
    """Raises Unusable without consent."""
    url = arguments.url
    gateway = at_running_gateway(arguments.config) if url is None else TracesAtGateway(url)
    if gateway is None:
        raise Unusable("no running gateway found to send it again: use --url, or --offline to send nothing")
    asked = {**_request(trace, arguments), "to": arguments.to or upstream_of(trace.row) or trace.row.asked}
    say(_price(gateway.send_again({**asked, "dry": True}), asked["to"]))
    if not arguments.yes and not _agreed():
        raise Unusable("not sent: confirm with --yes")
    sent = gateway.send_again({**asked, "dry": False})
    status, id = sent.get("status"), one_line(str(sent.get("id", "")))
    if arguments.json:
        print(json.dumps(sent, indent=2, ensure_ascii=False))
    else:
        print(f"{id}  {one_line(str(status))}")
        _tell(gateway, trace, id)
    return FAILED if isinstance(status, int) and status >= _REFUSED else OK


def _request(trace: Trace, arguments: argparse.Namespace) -> dict[str, Any]:
    """The gateway has its own recordings; a request to the upstream, or one in a file, is sent to it."""
    dialect, message = trace.row.dialect, trace.request
    if arguments.raw:
        attempt = trace.attempts[-1] if trace.attempts else None
        if attempt is None or attempt.request is None:
            raise Unusable("--raw: nothing went upstream in this exchange")
        dialect, message = attempt.dialect, attempt.request
    elif not is_file(arguments.id):
        return {"id": trace.row.id}
    if message.truncated:
        raise Unusable("the recorded request is incomplete and cannot be sent again")
    return {"dialect": dialect, "body": message.body, "stream": trace.row.stream}


def _tell(gateway: TracesAtGateway, before: Trace, id: str) -> None:
    """Report how the answers differ, if the new one was recorded too."""
    try:
        lines = compared_lines(compared(before, gateway.trace(id)))
    except NoTrace as problem:
        say(f"not compared: {problem}")
        return
    for line in lines:
        print(line)


def _price(dry: dict[str, Any], to: str) -> str:
    estimate = dry.get("estimate")
    known = estimate if isinstance(estimate, dict) else {}
    tokens = f"about {known.get('input', '?')} tokens in, at most {known.get('max_output', '?')} out"
    cost, currency = known.get("cost"), one_line(str(known.get("currency", "")))
    price = "at an unknown price"
    if isinstance(cost, (int, float)):
        price = f"for at most {cost / _MILLION:.6f} {currency}".rstrip()
    pays = one_line(str(dry.get("pays") or ""))
    paid = f"paid with the key in {pays}" if pays else "not paid with any key"
    return one_line(f"This sends a request to {to}: {tokens}, {price}; {paid}.")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    say("Send it? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


_LAST: Final = "last"
_PIPE: Final = "-"
_LOOKED_AT: Final = 100
_FOLLOW_SECONDS: Final = 1.0
_FOLLOWED: Final = 200
"""Rows that are read each time; of a gateway with more than that in a second the newest are shown."""
_MAX_FOLLOWED: Final = 20_000
"""Exchanges that `wireglot trace list --follow` remembers as shown."""


def run(arguments: argparse.Namespace) -> int:
    return _ACTIONS[arguments.action](arguments)


def _source(arguments: argparse.Namespace) -> TraceSource:
    if arguments.url is not None:
        return TracesAtGateway(arguments.url)
    running = at_running_gateway(arguments.config)
    if running is not None:
        return running
    return OnDisk(arguments.config)


def _trace(arguments: argparse.Namespace, id: str) -> Trace:
    return with_analysis(from_file(id) if is_file(id) else _found(_source(arguments), id))


def _found(source: TraceSource, id: str) -> Trace:
    if id != _LAST:
        return source.trace(id)
    rows = source.rows({}, _LOOKED_AT).rows
    newest = next((row for row in rows if row.recorded), None)
    if newest is None:
        raise NoTrace("no recently recorded exchange: see [trace], or `wireglot serve --trace`")
    return source.trace(newest.id)


def _list(arguments: argparse.Namespace) -> int:
    filters = {name: value for name in PARAMETERS if (value := getattr(arguments, name))}
    terms = [*arguments.filter, *([quoted(arguments.search)] if arguments.search else [])]
    if terms:
        filters["q"] = " ".join(terms)
    try:
        parse_parameters(filters, time.time())
    except BadFilter as problem:
        raise Unusable(one_line(str(problem))) from None
    source = _source(arguments)
    if arguments.follow:
        return _follow(source, filters, arguments.limit, as_json=arguments.json)
    found = source.rows(filters, arguments.limit)
    if arguments.json:
        _print_json({"rows": found.rows, "next": found.next})
        return OK
    _print(list_lines(found.rows, sys.stdout))
    return OK


def _follow(source: TraceSource, filters: dict[str, str], limit: int, *, as_json: bool) -> int:
    """Exchanges as they end, the oldest first, until interrupted."""
    known: dict[str, None] = {}
    aligned: list[Row] = []
    while True:
        found = source.rows(filters, _FOLLOWED if known else limit).rows
        ended = [row for row in found[::-1] if row.state != "running" and row.id not in known]
        known |= dict.fromkeys(row.id for row in ended)
        for id in list(known)[: max(0, len(known) - _MAX_FOLLOWED)]:
            del known[id]
        if as_json:
            lines = [_printable(msgspec.json.encode(row).decode()) for row in ended]
        else:
            lines = list_lines(ended, sys.stdout, like=aligned, heading=not aligned) if ended else []
            aligned = [*aligned, *ended][-_FOLLOWED:]
        _print(lines)
        sys.stdout.flush()
        time.sleep(_FOLLOW_SECONDS)


def _show(arguments: argparse.Namespace) -> int:
    source = None if is_file(arguments.id) else _source(arguments)
    trace = with_analysis(from_file(arguments.id) if source is None else _found(source, arguments.id))
    if arguments.json:
        _print_json(trace)
    else:
        cache = source.cache(trace) if source is not None else None
        _print(Shown(sys.stdout, full=arguments.full).trace(trace, cache))
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
        try:
            lines = Shown(sys.stdout, full=arguments.full).sides(trace)
        except (BadJson, UnreadableBody) as fault:  # a gateway has linked more of it than it sends
            raise NoTrace(
                f"{one_line(trace.row.id)}: there are no two sides to compare: a body is not JSON ({fault})"
            ) from None
        _print(lines)
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
            "not written to a terminal: write a file with -o FILE, read the exchange with `trace show`, "
            f"or force terminal output with -o {_PIPE}"
        )
    data = write_trace(_trace(arguments, arguments.id), packed=arguments.gzip)
    if to_pipe:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return OK
    Path(arguments.output).write_bytes(data)
    say(
        f"wrote {arguments.output}: {len(data):,} bytes. It contains conversation text: check before sharing."
    )
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
            lines.append(f"{paint('=', 'ok')} {title}: same as recorded")
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
    """Nothing in it can control a terminal: invisible characters are escaped as in JSON."""
    print(_printable(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\n" else escaped(each)[1:-1] for each in text)


_ACTIONS: Final = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "export": _export,
    "replay": _replay,
}


class OnDisk:
    """Unexpired recordings of gateways with this configuration."""

    def __init__(self, config_file: str | None) -> None:
        """Raises ConfigError, Unusable."""
        settings = settings_of(config_file)
        folder = _folder(settings)
        self._note = StoreNote(settings, folder=str(folder))
        self._shelf = TraceShelf(folder, _sealer(settings), _warn)

    def rows(self, filters: dict[str, str], limit: int) -> TraceListing:
        found = self._rows(filters, limit)
        self._note.say()
        return found

    def _rows(self, filters: dict[str, str], limit: int) -> TraceListing:
        wanted = Wanted.of(parse_parameters(filters, time.time()))
        rows: list[Row] = []
        for kept in self._shelf.listed():
            row = self._shelf.row(kept)
            if row is None or not wanted.matches(row):
                continue
            is_wanted = found_in_row(row, wanted.texts)
            if is_wanted is None:
                trace = self._shelf.trace(kept)
                is_wanted = trace is not None and found_in_bodies(row, trace, wanted.texts, holds_text)
            if not is_wanted:
                continue
            if len(rows) == limit:
                return TraceListing(rows, rows[-1].id)
            rows.append(row)
        return TraceListing(rows)

    def trace(self, id: str) -> Trace:
        kept = self._shelf.find(id)
        trace = self._shelf.trace(kept) if kept is not None else None
        if trace is None:
            raise NoTrace(
                f"no recorded exchange {one_line(id)[:64]}: see `wireglot trace list`; to search a running "
                "gateway, use --url"
            )
        self._note.say()
        return trace

    def cache(self, trace: Trace) -> CacheTruth | None:
        rows = [row for kept in self._shelf.listed() if (row := self._shelf.row(kept)) is not None]
        rows = with_sessions(rows)
        row = next((each for each in rows if each.id == trace.row.id), trace.row)
        turns = [each for each in rows if row.session and (each.session, each.key) == (row.session, row.key)]
        return exchange_cache(row, turns, self._shelf.reader())


def _folder(settings: Settings) -> Path:
    if not settings.store.folder:
        raise Unusable("the store is in the gateway's memory: use the gateway with --url")
    return Path(settings.store.folder) / FOLDER


def _sealer(settings: Settings) -> Sealer:
    server = settings.server
    return Sealer(server.secret.value.encode() or b"none", [old.value.encode() for old in server.old_secrets])


def _warn(level: Level, event: str, **fields: Any) -> None:
    text = ", ".join(f"{name} {value}" for name, value in fields.items())
    complain(f"{event}: {one_line(text)}")
