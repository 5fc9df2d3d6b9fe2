"""Makes a `Trace` of a recorded exchange: scrubbed and put in order, in the writer's thread."""

from __future__ import annotations

import base64
import codecs
import contextlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from wireglot import __version__
from wireglot.gateway.trace.conversations import history_of, read_request, title_of
from wireglot.gateway.trace.recording import RecordedAttempt, Recording
from wireglot.gateway.trace.rows import facts_of, redacted, redacted_losses, repaired, row_of
from wireglot.http.copies import MessageCopy
from wireglot.http.redaction import MASK, Redactor
from wireglot_core.ir.errors import legible
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import FLAWS
from wireglot_core.traces.bodies import is_tangled
from wireglot_core.traces.shorten import shortened
from wireglot_core.traces.target import RecordedTarget
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceFrame, TraceMessage, TraceStep
from wireglot_core.wire.json import repair_text

_SECRET_HEADER: Final = re.compile(
    r"(?i)auth|secret|cookie|password|credential|x-wireglot-admin|jwt|(?:keys?|tokens?|signature|assertion)$"
)
_NO_SECRET: Final = frozenset({"idempotency-key"})
_SECRET_FIELD: Final = re.compile(r"(?i)(?:key|token|secret|password|auth|signature|credential|sig)$")
_MASK: Final = MASK.decode()
_STRING: Final = re.compile(rb'"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(?P<names>\s*+:)?|\\?\Z)', re.DOTALL)
"""Possessive, so nothing is tried twice: otherwise an image in one event would take two hundred times its
size, and block all other threads for seconds. A string that is never closed ends with the text: otherwise
each quote in it would be tried as the beginning of one."""
_DATA_LINE: Final = re.compile(rb"^data:[ ]?([^\r\n]*)", re.MULTILINE)
_ARRAY_MARKS: Final = b" \t\r\n,[]"
"""Characters around each answer of a stream that is one JSON array."""
_PLACE: Final = "index"
"""Fields whose names end with this say which choice, call or part a string belongs to, in every dialect."""
_ESCAPED: Final = re.compile(rb"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|/)")
"""Only from the first of several backslashes, and all of them."""
_STAY_ESCAPED: Final = b'"\\'
_USER: Final = re.compile(r"""(?i)(?P<before>\b[a-z][a-z0-9+.-]{0,30}://)(?P<user>[^/\s?#@"'<>]{0,1000})@""")
"""A user, and perhaps a password, in a URL."""
_NAMED: Final = re.compile(r"""(?P<before>[?&;](?P<name>[\w.~-]{1,100})=)(?P<value>[^&\s#;,"'<>]{1,10000})""")
"""A field of a URL's query."""
_SCHEME: Final = re.compile(r"(?i)(bearer|basic|digest|negotiate)\s+")
_SERVER_TOKEN: Final = re.compile(
    rb'"(?:authorization_token|authorization)"\s*:\s*(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
)
_SERVERS: Final = b'"mcp'
_SERVER_KIND: Final = "mcp"
_TELLING: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers for a tool server that are not secret."""


class Scrubber:
    """For one exchange: hides the secrets of the configuration and the credentials in this request. The value
    of a client's key is only known from the request that contains it."""

    def __init__(
        self, redactor: Redactor, headers: Iterable[tuple[str, str]], url: str, body: bytes = b""
    ) -> None:
        reported = list(headers)
        brought = {_SCHEME.sub("", value) for name, value in reported if is_secret(name)}
        brought |= {value for name, value in _fields(url) if _SECRET_FIELD.search(name)}
        for name, value in reported:
            if not is_secret(name):
                brought |= _in_urls(value)
        self.unsearched = False
        """The request has too many parts to search it for credentials: then nothing of it may be kept."""
        try:
            brought |= {_SCHEME.sub("", value) for value in _for_servers(body)}
        except TooManyParts:
            self.unsearched = True
        self._redactor = redactor.knowing(value for value in brought if value)

    def data(self, data: bytes) -> bytes:
        """Returns the same object if there is nothing to hide."""
        if b"u00" in data or b"\\/" in data:  # a secret may be spelled with escapes: as \u0071 for q
            read = _ESCAPED.sub(_unescaped, data)
            clean = self._redactor.data(read)
            if clean is not read:
                return clean
        return self._redactor.data(data)

    def open_end(self, data: bytes) -> int:
        """Like the redactor's."""
        return self._redactor.open_end(data)

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self.data(data)
        return text if clean is data else clean.decode("utf-8", "replace")

    def spread(self, pieces: list[tuple[float, bytes]], shown: int = 0) -> list[tuple[float, bytes]]:
        """A model may write a secret in many small events, none of which contains it whole. Strings are
        joined by their field, and by field within the same choice, call or part. If a joined text contains a
        secret, the first event gets the clean text and the others an empty one. `shown`: this many events
        were shown before and do not change: the first of the others gets the new text."""
        documents = [_document(data) for _, data in pieces]
        joined: dict[tuple[Any, ...], list[_Place]] = {}
        for number, document in enumerate(documents):
            for key, place in _strings(document, number):
                joined.setdefault((key[0],), []).append(place)
                if len(key) > 1:
                    joined.setdefault(key, []).append(place)
        changed = {number for places in joined.values() for number in self._hide(places, shown)}
        unread = [number for number, document in enumerate(documents) if document is None]
        said = (found for number in unread for found in _STRING.finditer(pieces[number][1]))
        whole = b"".join(found["text"] for found in said if not found["names"])
        if self.data(whole) is not whole:
            changed.update(unread)
        if not changed:
            return pieces
        return [
            (at, _rewritten(data, documents[number]) if number in changed else data)
            for number, (at, data) in enumerate(pieces)
        ]

    def _hide(self, places: list[_Place], shown: int) -> list[int]:
        """Hide secrets in joined strings. Returns the events that had to change."""
        whole = "".join(place.owner[place.name] for place in places).encode("utf-8", "surrogatepass")
        clean = self.data(whole)
        if clean is whole:
            return []
        text = clean.decode("utf-8", "replace")
        before = "".join(place.owner[place.name] for place in places if place.event < shown)
        while not text.startswith(before):  # the part that was clean
            before = before[:-1]
        text = text[len(before) :]
        places = [place for place in places if place.event >= shown]
        for place in places:
            place.owner[place.name], text = text, ""
        return [place.event for place in places]

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, _MASK if is_secret(name) else self.text(_plain(value))) for name, value in headers]

    def url(self, url: str) -> str:
        path, mark, query = url.partition("?")
        if mark:
            pairs = (pair.partition("=") for pair in query.split("&"))
            query = "&".join(
                f"{name}={_MASK}" if _SECRET_FIELD.search(name) else f"{name}{equals}{value}"
                for name, equals, value in pairs
            )
        return self.text(_USER.sub(_no_user, f"{path}{mark}{query}"))


class _Place(NamedTuple):
    """One string of an event."""

    event: int
    owner: Any
    name: str | int


def _document(data: bytes) -> Any:
    """The JSON value of an event; None if it is not JSON, or has too many parts to parse."""
    text = b"\n".join(_DATA_LINE.findall(data)) or data.strip(_ARRAY_MARKS)
    if not text.startswith(b"{") or is_tangled(text):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _rewritten(data: bytes, document: Any) -> bytes:
    if document is None:
        return MASK
    text = msgspec.json.encode(document)
    lines = _DATA_LINE.findall(data)
    if not lines:
        begin = len(data) - len(data.lstrip(_ARRAY_MARKS))
        return data[:begin] + text + data[len(data.rstrip(_ARRAY_MARKS)) :]
    first = True

    def instead(found: re.Match[bytes]) -> bytes:
        nonlocal first
        kept, first = (text if first else b""), False
        return b"data: " + kept

    return _DATA_LINE.sub(instead, data)


def _strings(document: Any, event: int) -> Iterator[tuple[tuple[Any, ...], _Place]]:
    """Each string with its key: the name of its field, then the indexes on the way to it."""
    waiting: deque[tuple[Any, str, tuple[Any, ...]]] = deque([(document, "", ())])
    while waiting:
        owner, field, indexes = waiting.popleft()
        if isinstance(owner, dict):
            own = tuple(owner[name] for name in owner if name.endswith(_PLACE) and type(owner[name]) is int)
            members: Iterable[tuple[Any, Any]] = owner.items()
            indexes += own
        elif isinstance(owner, list):
            members = enumerate(owner)
        else:
            continue
        for name, value in members:
            named = field if type(name) is int else name
            if type(value) is str:
                yield (named, *indexes), _Place(event, owner, name)
            else:
                waiting.append((value, named, indexes))


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return b"/"
    sign = bytes.fromhex(found[1].decode())
    return found[0] if sign in _STAY_ESCAPED else sign


def _in_urls(text: str) -> set[str]:
    """Credentials in the URLs of a text, as they are spelled and decoded."""
    if "=" not in text and "@" not in text:
        return set()
    found = {each["user"].partition(":")[2] for each in _USER.finditer(text)}
    found |= {each["value"] for each in _NAMED.finditer(text) if _SECRET_FIELD.search(each["name"])}
    return found | {unquote(value) for value in found}


def _plain(text: str) -> str:
    """The text without them."""
    if "=" not in text and "@" not in text:
        return text
    return _NAMED.sub(_no_value, _USER.sub(_no_user, text))


def _no_user(found: re.Match[str]) -> str:
    return f"{found['before']}{_MASK}@"


def _no_value(found: re.Match[str]) -> str:
    return f"{found['before']}{_MASK}" if _SECRET_FIELD.search(found["name"]) else found[0]


def is_secret(header: str) -> bool:
    return _SECRET_HEADER.search(header) is not None and header not in _NO_SECRET


def _for_servers(body: bytes) -> set[str]:
    """Tokens and headers in a request that its provider sends to tool servers."""
    found = set()
    for field in _SERVER_TOKEN.finditer(body):
        with contextlib.suppress(msgspec.DecodeError):
            found.add(msgspec.json.decode(field["text"], type=str))
    if _SERVERS not in body:
        return found
    try:
        asked = _read_asked(body)
        for server in _elements(asked.mcp_servers):
            if isinstance(address := _of_server(server).url, str):
                found |= _in_urls(address)
        for tool in _elements(asked.tools):
            known = _of_server(tool) if _SERVERS in bytes(tool) else None
            if known is None or known.type != _SERVER_KIND:
                continue
            if isinstance(known.server_url, str):
                found |= _in_urls(known.server_url)
            for name, value in known.headers.items() if isinstance(known.headers, dict) else ():
                if isinstance(value, str) and name.lower() not in _TELLING:
                    found.add(value)
    except msgspec.DecodeError:  # cut short, or not one of ours
        pass
    return found


def _elements(array: msgspec.Raw) -> list[msgspec.Raw]:
    """The elements of an array, undecoded. Raises TooManyParts."""
    text = bytes(array)
    if not text.startswith(b"["):
        return []
    if is_tangled(text):
        raise TooManyParts
    return msgspec.json.decode(array, type=list[msgspec.Raw])


def _of_server(element: msgspec.Raw) -> _Server:
    return _read_server(element) if bytes(element).startswith(b"{") else _Server()


class TooManyParts(Exception):
    """Searching it for credentials would block the interpreter for all requests."""


class _Asked(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw()
    mcp_servers: msgspec.Raw = msgspec.Raw()


class _Server(msgspec.Struct):
    type: Any = None
    url: Any = None
    server_url: Any = None
    headers: Any = None


_read_asked: Final = msgspec.json.Decoder(_Asked).decode
_read_server: Final = msgspec.json.Decoder(_Server).decode


def _fields(url: str) -> list[tuple[str, str]]:
    query = url.partition("?")[2]
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=64)
    except ValueError:  # too many fields: the values are found by their patterns alone
        return []


EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_UNSEARCHED: Final = (
    "the request is not recorded: it names tool servers, and has too many parts to search it for credentials"
)
_UNKEPT: Final = "what the gateway added to the request is not recorded: it has too many parts"
_SHORTEST_STEP_MS: Final = 0.05


def made_trace(recording: Recording, redactor: Redactor, worker: str) -> Trace:
    record, request = recording.record, recording.request
    body = b"".join(data for _, data in request.pieces)
    scrub = Scrubber(redactor, request.headers, request.url, body)
    row = scrubbed_row(row_of(facts_of(record), worker), scrub, redactor)
    notes = [scrub.text(note) for note in (*record.notes, *recording.notes)]
    notes += [f"the provider broke a rule: {FLAWS.get(flaw, flaw)}" for flaw in record.flaws]
    if withhold_unsearched(recording, scrub):
        notes.append(_UNSEARCHED)
    most = recording.body_bytes
    said = read_request(record.dialect, _fitted(body, most)[0]) if not scrub.unsearched else None
    history = None if row.session else history_of(said)
    row = msgspec.structs.replace(row, title=_title(said, scrub), history=history)
    attempts = [
        traced_attempt(asked, scrub, redactor, record.started, notes, most) for asked in recording.attempts
    ]
    return Trace(
        version=__version__,
        row=row,
        request=traced_message(request, scrub, record.started, most),
        answer=traced_message(recording.answer, scrub, record.started, most),
        attempts=attempts,
        losses=redacted_losses(record.losses, redactor),
        steps=traced_steps(recording),
        notes=list(dict.fromkeys(notes)),
    )


def _title(said: Request | None, scrub: Scrubber) -> str:
    return legible(scrub.text(repair_text(title_of(said))))


def recorded_title(recording: Recording, redactor: Redactor) -> str:
    """The last words of the user, without secrets, of a recording without a trace."""
    request = recording.request
    body = b"".join(data for _, data in request.pieces)
    scrub = Scrubber(redactor, request.headers, request.url, body)
    if scrub.unsearched:
        return _title(None, scrub)
    return _title(read_request(recording.record.dialect, _fitted(body, recording.body_bytes)[0]), scrub)


def withhold_unsearched(recording: Recording, scrub: Scrubber) -> bool:
    """Whether nothing of its requests may be shown, since they could not be searched for credentials."""
    if scrub.unsearched:
        for side in (recording.request, *(asked.request for asked in list(recording.attempts))):
            side.withhold()
    return scrub.unsearched


def scrubbed_row(row: Row, scrub: Scrubber, redactor: Redactor) -> Row:
    row = redacted(repaired(row), redactor)
    texts = {name: scrub.text(getattr(row, name)) for name in ("agent", "session", "asked", "path", "error")}
    return msgspec.structs.replace(row, **texts)


def traced_attempt(
    asked: RecordedAttempt, scrub: Scrubber, redactor: Redactor, started: float, notes: list[str], most: int
) -> Attempt:
    target = asked.target
    return Attempt(
        provider=target.provider.name,
        model=scrub.text(target.model),
        dialect=target.dialect,
        began_ms=milliseconds(asked.began, started),
        passthrough=asked.passthrough,
        request=traced_message(asked.request, scrub, started, most),
        answer=traced_message(asked.answer, scrub, started, most) if asked.answer is not None else None,
        error=scrub.text(asked.error),
        limits=_limits(asked, scrub, notes),
        losses=redacted_losses(asked.losses, redactor),
    )


def _limits(asked: RecordedAttempt, scrub: Scrubber, notes: list[str]) -> dict[str, Any]:
    target = RecordedTarget(
        limits=asked.target.limits, stream=asked.stream, account=asked.account, emulates=asked.emulates
    )
    known = target.written()
    if asked.differing is None:
        return known
    whole = msgspec.json.encode(asked.differing)
    if scrub.unsearched or is_tangled(whole):  # viewers of the trace must parse it in one step
        notes.append(_UNKEPT)
        return known
    try:
        clean = msgspec.json.decode(scrub.data(whole), type=msgspec.Raw)  # only its syntax is checked
    except msgspec.DecodeError:  # a hidden secret was not inside a string: then nothing is reported
        return known
    return {**known, "asked": clean}


def _fitted(data: bytes, most: int) -> tuple[bytes, int]:
    """A body in `most` bytes, and how many of its strings were cut for that; 0: it ends there."""
    return shortened(data, most) or (data[:most], 0)


def traced_message(side: MessageCopy, scrub: Scrubber, started: float, most: int) -> TraceMessage:
    """`most`: bytes of a body that was held whole."""
    whole = b"".join(data for _, data in side.pieces)
    clean = scrub.data(whole)
    message = TraceMessage(
        method=side.method,
        url=scrub.url(side.url),
        status=side.status,
        headers=scrub.headers(side.headers),
        bytes=side.size,
        truncated=side.truncated,
    )
    if side.streamed:
        frames = _frames(side, whole, scrub, clean is not whole, started)
        return msgspec.structs.replace(message, frames=frames)
    fitted, strings = (clean[:most], 0) if side.truncated else _fitted(clean, most)
    cut = side.truncated or len(clean) > most
    text, coded = _text(fitted, cut=cut and not strings)
    return msgspec.structs.replace(message, body=text, base64=coded, truncated=cut, shortened=strings)


def _text(data: bytes, *, cut: bool) -> tuple[str, bool]:
    """The data as text, or in base64 if it is not text. The last character of cut data may be incomplete."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(data, final=not cut), False
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), True


def _frames(
    side: MessageCopy, whole: bytes, scrub: Scrubber, dirty: bool, started: float
) -> list[TraceFrame]:
    """Events of a stream, each with the time of its last byte; without events, the pieces as they came."""
    cut = _events(side, whole) or side.pieces
    if dirty:
        cut = clean_events(cut, scrub)
    else:
        cut = scrub.spread(cut)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [TraceFrame(milliseconds(at, started), decoder.decode(data)) for at, data in cut]


def clean_events(
    cut: list[tuple[float, bytes]], scrub: Scrubber, shown: int = 0
) -> list[tuple[float, bytes]]:
    """One result for each event, or one for all if a secret spans two. `shown`: see `spread`."""
    clean = [(at, scrub.data(data)) for at, data in cut]
    joined = b"".join(data for _, data in clean)
    if scrub.data(joined) is not joined:  # a secret spans two events: nothing of it may be left
        clean = [*cut[:shown], (cut[-1][0], scrub.data(b"".join(data for _, data in cut[shown:])))]
    return scrub.spread(clean, shown)


def open_events(cut: list[tuple[float, bytes]], scrub: Scrubber) -> int:
    """How many events at the end must not be shown before more has come: a secret may begin in them."""
    documents = [_document(data) for _, data in cut]
    joined: dict[tuple[Any, ...], list[tuple[int, bytes]]] = {}
    for number, document in enumerate(documents):
        if document is None:
            joined.setdefault((), []).append((number, cut[number][1].rstrip(b"\r\n")))
            continue
        for key, place in _strings(document, number):
            text = place.owner[place.name].encode("utf-8", "surrogatepass")
            joined.setdefault((key[0],), []).append((number, text))
            if len(key) > 1:
                joined.setdefault(key, []).append((number, text))
    first = len(cut)
    for pieces in joined.values():
        left = scrub.open_end(b"".join(text for _, text in pieces))
        while left > 0:
            number, text = pieces.pop()
            first, left = min(first, number), left - len(text)
    return len(cut) - first


def is_event_stream(side: MessageCopy) -> bool:
    return any(name == "content-type" and "event-stream" in value for name, value in side.headers)


def _events(side: MessageCopy, whole: bytes) -> list[tuple[float, bytes]]:
    """[] if it is not a stream of events."""
    if not is_event_stream(side):
        return []
    ends = [found.end() for found in EVENT_END.finditer(whole)]
    if not ends or ends[-1] < len(whole):
        ends.append(len(whole))
    events: list[tuple[float, bytes]] = []
    begin = arrived = piece = 0
    at = 0.0
    for end in ends:
        while arrived < end:
            at, data = side.pieces[piece]
            arrived += len(data)
            piece += 1
        if end > begin:
            events.append((at, whole[begin:end]))
        begin = end
    return events


def traced_steps(recording: Recording) -> list[TraceStep]:
    record = recording.record
    began, steps = record.started, list[TraceStep]()
    stretches = list(recording.stretches)
    if stretches and record.finished:
        stretches.append(("events" if record.stream else "answer", record.finished))
    for name, ended in stretches:
        step = TraceStep(name, milliseconds(began, record.started), milliseconds(ended, record.started))
        if step.ended_ms - step.began_ms >= _SHORTEST_STEP_MS:
            steps.append(step)
        began = ended
    return steps


def milliseconds(at: float, started: float) -> float:
    return round((at - started) * 1000, 3)
