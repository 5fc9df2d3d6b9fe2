"""Checks a custom dialect against every law, in one call. Needs `pip install hypothesis`.

    def test_my_dialect_keeps_the_laws() -> None:
        check_dialect(DIALECT, samples_in(Path(__file__).parent / "samples"))

Samples are documents and streams as the vendor's own servers and clients write them; the more of them and the
stranger, the better. What the laws draw by themselves is added to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import msgspec

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.paths import Paths
from wireglot_core.dialects.registry import (
    NAMES,
    DialectName,
    dialect_name,
    names,
    register,
    surfaces,
    unregister,
)
from wireglot_core.ir.content import Text
from wireglot_core.ir.errors import ApiError, ClientFault, ErrorKind, Unsupported, UpstreamFault
from wireglot_core.ir.stream import Failure, StreamFailed, fold
from wireglot_core.testing import codec_laws as laws
from wireglot_core.testing.laws import every_cut, read_stream
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import BadJson, decode, encode


class Case(msgspec.Struct, frozen=True):
    """One document (`body`) or stream (`data`) of a dialect; `request` is the one it answers, if known."""

    id: str
    dialect: str
    body: Any = None
    data: bytes = b""
    status: int = 200
    request: dict[str, Any] | None = None


def fixtures(root: Path, dialect: str, kind: str) -> list[Case]:
    """The fixtures of one kind (`requests`, `responses`, `streams`, `errors`), ordered by name."""
    cases = []
    for path in sorted((root / dialect / kind).glob("*.*")):
        name = f"{dialect}/{kind}/{path.name}"
        raw = path.read_bytes()
        if kind == "streams":
            cases.append(Case(name, dialect, data=raw))
        else:
            status = int(path.stem.rpartition(".")[2]) if kind == "errors" else 200
            cases.append(Case(name, dialect, body=decode(raw), status=status))
    return cases


STRANGE: tuple[Any, ...] = (None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"x": None}, [[]], "2", 10**30)


def bent_streams(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """The stream with frames dropped, doubled, swapped, or changed inside."""
    random = Random(seed)
    end = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    if data.startswith(b"{"):
        end = b"\n"  # lines of JSON
    frames = [frame for frame in data.split(end) if frame]
    for _ in range(count):
        bent = list(frames)
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(bent))
            match random.randrange(5):
                case 0 if len(bent) > 1:
                    del bent[at]
                case 1:
                    bent.insert(random.randrange(len(bent) + 1), bent[at])
                case 2:
                    other = random.randrange(len(bent))
                    bent[at], bent[other] = bent[other], bent[at]
                case _:
                    bent[at] = _bent_frame(bent[at], random)
        yield end.join(bent) + end


def _bent_frame(frame: bytes, random: Random) -> bytes:
    head, mark, body = frame.rpartition(b"data: ")
    try:
        return head + mark + encode(bent(decode(body), random))
    except BadJson:
        return head + mark + body[: random.randrange(len(body) + 1)]


def bent(document: Any, random: Random) -> Any:
    """The document with one value somewhere inside removed, or replaced by something strange."""
    document = _copied(document)
    places = list(_places(document))
    if not places:
        return random.choice(STRANGE)
    container, key = random.choice(places)
    if random.random() < 0.35:
        del container[key]
    else:
        container[key] = _copied(random.choice(STRANGE))
    return document


def _copied(value: Any) -> Any:
    """Like `deepcopy`, which takes five times as long for JSON."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)


Sdk = Callable[[bytes | dict[str, Any]], str]
"""A vendor's own SDK: takes a written stream, or a whole answer, and returns the text that it has understood.
Any exception means that the SDK treats the stream as failed."""

_BENT = 40
_KINDS: tuple[ErrorKind, ...] = (
    "invalid_request", "context_overflow", "auth", "billing", "permission", "not_found", "conflict",
    "too_large", "rate_limit", "overloaded", "server", "timeout", "content_policy",
)  # fmt: skip


class Samples(msgspec.Struct, frozen=True):
    requests: Sequence[dict[str, Any]] = ()
    responses: Sequence[dict[str, Any]] = ()
    streams: Sequence[bytes] = ()
    errors: Sequence[tuple[int, Any]] = ()
    """Status and body."""
    twins: Sequence[tuple[bytes, dict[str, Any]]] = ()
    """The same answer, streamed and whole."""


def samples_in(folder: Path) -> Samples:
    """Of a folder as `wireglot_core.testing.check_dialect` describes it: `requests/*.json` and so on."""
    found = {
        kind: fixtures(folder.parent, folder.name, kind)
        for kind in ("requests", "responses", "streams", "errors")
    }

    def stem(id: str) -> str:
        return id.rpartition("/")[2].partition(".")[0]

    return Samples(
        [case.body for case in found["requests"]],
        [case.body for case in found["responses"]],
        [case.data for case in found["streams"]],
        [(case.status, case.body) for case in found["errors"]],
        [
            (stream.data, response.body)
            for stream in found["streams"]
            for response in found["responses"]
            if stem(stream.id) == stem(response.id)
        ],
    )


class LawsBroken(AssertionError):
    """`broken`: each broken law and how, one line each."""

    def __init__(self, name: str, broken: list[str]) -> None:
        super().__init__(f"{name} breaks {len(broken)} laws:\n" + "\n".join(broken[:20]))
        self.broken = broken


def check_dialect(
    dialect: Dialect,
    samples: Samples,
    *,
    spelling: laws.Spelling = laws.as_it_is,
    plain: bool = True,
    examples: int = 30,
    sdk: Sdk | None = None,
) -> None:
    """Run every law and raise LawsBroken with all that do not hold.

    `spelling` makes one of spellings that the dialect treats as equal. `plain=False`: it cannot express even
    a common conversation (for example without a place for history). `examples`: how many are drawn for each
    law.
    """
    broken: list[str] = []
    with _known(dialect):
        for law, hold in _laws(dialect, samples, spelling, plain, examples, sdk):
            try:
                hold()
            except Exception as problem:  # with any exception the law is broken; all are reported
                broken.append(f"{law}: {type(problem).__name__}: {str(problem)[:600]}")
    if broken:
        raise LawsBroken(dialect.name, broken)


@contextmanager
def _known(dialect: Dialect) -> Iterator[None]:
    """Registered temporarily, so that it can be translated to and from the others."""
    if dialect.name in names():
        yield
        return
    register(dialect)
    try:
        yield
    finally:
        unregister(dialect.name)


_Law = tuple[str, Callable[[], object]]


def _laws(
    codec: Dialect, samples: Samples, spelling: laws.Spelling, plain: bool, examples: int, sdk: Sdk | None
) -> Iterator[_Law]:
    yield "samples", lambda: _are_enough(samples)
    yield from _of_documents(codec, samples, spelling)
    yield from _of_streams(codec, samples)
    yield from _drawn(codec, plain, examples)
    yield from _of_pairs(codec, samples)
    yield from _of_surface(codec, samples)
    if sdk is not None:
        yield from _of_sdk(codec, samples, sdk)


def _are_enough(samples: Samples) -> None:
    for kind in ("requests", "responses", "streams"):
        assert getattr(samples, kind), f"there are no {kind}"


def _of_documents(codec: Dialect, samples: Samples, spelling: laws.Spelling) -> Iterator[_Law]:
    for index, body in enumerate(samples.requests):
        yield f"identity: requests[{index}]", _on(laws.request_comes_back, codec, body, spelling)
        yield f"twice: requests[{index}]", _on(laws.twice_is_equal, codec, body)
        yield (
            f"garbage: requests[{index}]",
            _on(_each_bent, codec, body, laws.strange_request_is_the_clients_fault),
        )
    for index, body in enumerate(samples.responses):
        yield f"identity: responses[{index}]", _on(laws.response_comes_back, codec, body, spelling)
        yield (
            f"garbage: responses[{index}]",
            _on(_each_bent, codec, body, laws.strange_response_is_the_upstreams_fault),
        )
        yield f"glance: responses[{index}]", _on(laws.glance_sees_what_the_parser_reads, codec, body)
    for index, (status, body) in enumerate(samples.errors):
        yield f"identity: errors[{index}]", _on(laws.error_comes_back, codec, body, status)


def _of_streams(codec: Dialect, samples: Samples) -> Iterator[_Law]:
    for index, data in enumerate(samples.streams):
        place = f"streams[{index}]"
        yield f"identity: {place}", _on(laws.stream_comes_back, codec, data)
        yield f"chunking: {place}", _on(laws.cutting_does_not_change_events, codec, data)
        yield f"grammar: {place}", _on(_grammar, codec, data)
        yield f"truncation: {place}", _on(laws.cut_is_noticed, codec, data)
        yield f"tap: {place}", _on(laws.tap_hears_what_the_reader_reads, codec, data)
        yield f"tap: {place}, cut", _on(laws.cut_is_heard, codec, data)
        yield f"ping: {place}", _on(laws.ping_does_not_show, codec, data)
    for index, (data, body) in enumerate(samples.twins):
        yield f"fold: twins[{index}]", _on(laws.stream_folds_to_its_twin, codec, data, body)


def _grammar(codec: Dialect, data: bytes) -> None:
    laws.events_follow_the_grammar(codec, data)
    for mutated in bent_streams(data, _BENT, crc32(data)):
        laws.events_follow_the_grammar(codec, mutated)


def _each_bent(codec: Dialect, body: Any, law: Callable[[Dialect, dict[str, Any]], object]) -> None:
    random = Random(crc32(encode(body)))
    for _ in range(_BENT):
        document = bent(body, random)
        if isinstance(document, dict):
            law(codec, document)


def _drawn(codec: Dialect, plain: bool, examples: int) -> Iterator[_Law]:
    """The laws for arbitrary conversations. Imported here: only they need Hypothesis."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    from wireglot_core.testing.strategies import event_streams, requests, responses

    quiet = settings(
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )

    def drawn(strategy: st.SearchStrategy[Any], law: Callable[[Dialect, Any], object]) -> Callable[[], None]:
        @quiet
        @given(strategy)
        def hold(value: Any) -> None:
            law(codec, value)

        return hold

    yield "silence: requests", drawn(requests(), laws.request_is_honest)
    yield "silence: responses", drawn(responses(), laws.response_is_honest)
    yield "silence: streams", drawn(event_streams(), laws.stream_is_honest)
    if plain:
        yield "no loss of plain requests", drawn(requests(plain=True), laws.plain_request_loses_nothing)
    yield (
        "chunking: events one by one",
        drawn(event_streams(failing=True), laws.events_one_by_one_are_the_same_bytes),
    )
    values = st.recursive(
        st.sampled_from(STRANGE) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
    statuses = st.sampled_from((0, 200, 400, 404, 429, 500, 529))
    yield (
        "garbage: errors",
        drawn(st.tuples(values, statuses), lambda it, pair: laws.any_body_is_an_error_or_none(it, *pair)),
    )
    yield "garbage: bytes", drawn(st.binary(max_size=200), lambda it, data: read_stream(it, [data]))
    frames = st.lists(st.dictionaries(st.text(max_size=8), values, max_size=4), max_size=4)
    yield (
        "garbage: frames",
        drawn(
            frames, lambda it, some: read_stream(it, [b"".join(b"data: %b\n\n" % encode(f) for f in some)])
        ),
    )


# --- with the others


def _of_pairs(codec: Dialect, samples: Samples) -> Iterator[_Law]:
    for other in NAMES:
        if other == codec.name:
            continue
        yield f"pair: to {other}", _on(_translates, codec, samples, other)


def _translates(codec: Dialect, samples: Samples, other: DialectName) -> None:
    for body in samples.requests:
        try:
            first, second = (
                translate_request(body, source=dialect_name(codec.name), target=other) for _ in range(2)
            )
        except (ClientFault, Unsupported) as fault:
            laws.names_a_place(fault)
            continue
        assert encode(first.value) == encode(second.value), "twice is not equal"
        _comes_again(first.value, other, dialect_name(codec.name))
    for body in samples.responses:
        try:
            translate_response(body, source=dialect_name(codec.name), target=other)
        except UpstreamFault as fault:
            laws.names_a_place(fault)
    for data in samples.streams:
        whole, by_byte, *_ = every_cut(data, 1)
        assert _streamed(dialect_name(codec.name), other, whole) == _streamed(
            dialect_name(codec.name), other, by_byte
        )


def _comes_again(body: dict[str, Any], source: DialectName, target: DialectName) -> None:
    try:
        translate_request(body, source=source, target=target)
    except (ClientFault, Unsupported) as fault:
        laws.names_a_place(fault)


def _streamed(source: DialectName, target: DialectName, pieces: list[bytes]) -> bytes:
    translator = StreamTranslator(source=source, target=target)
    return b"".join(translator.feed(piece) for piece in pieces) + translator.close()


# --- over HTTP


def _of_surface(codec: Dialect, samples: Samples) -> Iterator[_Law]:
    surface = codec.surface
    yield "surface: paths", lambda: _paths(codec)
    yield "surface: statuses", lambda: _statuses(codec)
    yield "surface: models", lambda: _models(codec)
    if surface.counts is not None:
        yield "surface: counts", lambda: _counts(codec, samples)


def _paths(codec: Dialect) -> None:
    """Each documented path is found as a path of this dialect, next to those of all others."""
    paths = Paths(surfaces())
    for line in codec.surface.client.endpoints:
        method, _, path = line.partition(" ")
        found = paths.find(method, path.replace("{model}", "some-model"))
        assert found is not None, f"there is nothing at {line}"
        assert found.surface.name == codec.name, f"{line} is a path of {found.surface.name}"
    assert codec.surface.family in (*names(), codec.name), f"there is no family {codec.surface.family!r}"
    assert "sse" in codec.surface.client.pings, "there is no ping for a stream of events"
    if codec.surface.sse_query:
        assert "json-array" in codec.surface.client.pings, "there is no ping for a JSON array"


def _statuses(codec: Dialect) -> None:
    for kind in _KINDS:
        for status in (0, 200, 400, 404, 429, 500, 529, 600):
            reported = codec.surface.status(ApiError(kind, "x", status=status))
            assert 400 <= reported <= 599, f"{kind} is reported as {reported}"
            body = codec.render_error(ApiError(kind, "x", status=reported), laws.CONTEXT).value
            assert codec.parse_error(body, reported) is not None, f"{kind} cannot be read again"


def _models(codec: Dialect) -> None:
    listing = [ListedModel(f"model-{number}", "someone", context=1000 * number) for number in range(3)]
    reported = encode(codec.surface.models.render_list(listing, {}))
    for model in listing:
        assert model.id.encode() in reported, f"{model.id} is not in the list"
        assert model.id.encode() in encode(codec.surface.models.render_model(model))


def _counts(codec: Dialect, samples: Samples) -> None:
    counts = codec.surface.counts
    assert counts is not None
    assert counts.parse_answer(counts.render_answer(7)) == 7
    for body in samples.requests:
        request = codec.parse_request(body, laws.CONTEXT)
        asked = counts.render_request(request, laws.CONTEXT, "https://example.com").value
        counts.parse_request(asked, laws.CONTEXT)


# --- by the vendor's SDK


def _of_sdk(codec: Dialect, samples: Samples, sdk: Sdk) -> Iterator[_Law]:
    for index, data in enumerate(samples.streams):
        yield f"sdk: streams[{index}]", _on(_sdk_reads, codec, data, sdk)
    for index, body in enumerate(samples.responses):
        yield f"sdk: responses[{index}]", _on(_sdk_reads_whole, codec, body, sdk)


def _sdk_reads(codec: Dialect, data: bytes, sdk: Sdk) -> None:
    events = read_stream(codec, [data])
    written = codec.stream_writer(laws.CONTEXT).write(events)
    if isinstance(events[-1], Failure):
        try:
            sdk(written)
        except Exception:  # which exception is up to the SDK
            return
        raise AssertionError("the SDK takes a failed stream for a whole one")
    try:
        said = "".join(part.text for part in fold(events).content if isinstance(part, Text))
    except StreamFailed:
        return
    assert sdk(written) == said


def _sdk_reads_whole(codec: Dialect, body: dict[str, Any], sdk: Sdk) -> None:
    if codec.parse_error(body) is not None:
        return
    response = codec.parse_response(body, laws.CONTEXT)
    said = "".join(part.text for part in response.content if isinstance(part, Text))
    assert sdk(codec.render_response(response, laws.CONTEXT).value) == said


def _on(law: Callable[..., object], *arguments: Any) -> Callable[[], object]:
    return lambda: law(*arguments)
