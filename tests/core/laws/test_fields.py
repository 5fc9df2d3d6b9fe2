"""No field of the neutral form is lost by forgetting it: setting it changes what is written, or is reported.

Each field of each struct is set, in small documents (`field_samples`), and written by each dialect: in a request, a
whole answer, a streamed answer, an error. A change counts if the dialect's own reader finds it again, and with it the
word in the value; spelling and minted ids do not. A loss counts if it is about this field: its path is that of the field, or the whole value
around it is reported as dropped, or it comes and goes with the field.
"""

import base64
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from msgspec.structs import replace

from tests.core.laws.cases import every_dialect
from tests.core.laws.field_samples import (
    ELSEWHERE,
    REACHED,
    SAMPLES,
    WORD,
    Doc,
    Place,
    Sample,
    errors,
    places,
    requests,
    responses,
    sample_of,
    streams,
    values_of,
)
from tests.core.laws.neutral import ASKED
from wireglot_core.dialects.base import Dialect, StreamWriter
from wireglot_core.dialects.context import Context, Rendered, is_minted
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.content import Extra, Foreign, Message, Part, Text, ToolCall
from wireglot_core.ir.errors import ApiError, Unsupported
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop, StopReason, Usage
from wireglot_core.ir.request import HostedChoice, Request
from wireglot_core.ir.stream import (
    BrokenGrammar,
    Event,
    ForeignEvent,
    PartEnd,
    StreamFailed,
    check,
    fold,
    unfold,
)
from wireglot_core.ir.usage import COUNTS
from wireglot_core.providers.fit.fit import Fitter
from wireglot_core.providers.spec import limits_for
from wireglot_core.testing.laws import read_stream, write_stream
from wireglot_core.translate import plan
from wireglot_core.wire.json import decode, encode

CONTEXT = Context(now=1700000001, provider="p", model="m", account="a")
FAMILIES = tuple(name for name in NAMES if dialect(name).surface.family == name)
DOCUMENTS: dict[str, Callable[[str], Iterable[Doc]]] = {
    "request": requests,
    "answer": responses,
    "stream": lambda origin: [*responses(origin), *streams(origin)],
    "error": errors,
}


class Exempt(NamedTuple):
    """Fields that may be lost in silence, in these dialects (those that have a family in common count as one) and
    kinds of documents; () means all. Each field, each dialect and each kind must need its row."""

    fields: tuple[str, ...]
    reason: str
    dialects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


ANSWERS, ERRORS = ("answer", "stream"), ("error", "stream")
EXEMPT: tuple[Exempt, ...] = (
    Exempt(
        ("Extra.form",),
        "spelling, by definition: it never changes what is said",
        kinds=("request", *ANSWERS),
    ),
    Exempt(
        ("Stop.raw", "Stop.dialect"),
        "the spelling of `reason` in its own dialect: all others ignore it",
        kinds=ANSWERS,
    ),
    Exempt(
        ("Response.id", "Start.id"),
        "an address, not content: answers of this dialect have no id",
        dialects=("ollama",),
        kinds=ANSWERS,
    ),
    Exempt(
        ("Response.created", "Start.created"),
        "an address, not content: answers of these dialects have no date",
        dialects=("anthropic", "gemini"),
        kinds=ANSWERS,
    ),
    Exempt(
        ("Origin.provider", "Origin.model", "Origin.account"),
        "a client of the minter's own dialect gets the signature as it is; whoever reads it knows its provider",
        dialects=("anthropic", "openai-responses", "gemini", "gemini-interactions"),
        kinds=ANSWERS,
    ),
    Exempt(
        ("Reasoning.minter",),
        "for requests: in an answer the provider's name is in the signature (`providers.carried`)",
        kinds=ANSWERS,
    ),
    Exempt(
        ("ToolResult.kind",),
        "the kind of its call, which is reported there; these dialects have one kind of results",
        dialects=("anthropic", "gemini", "gemini-interactions", "ollama"),
        kinds=("request",),
    ),
    Exempt(
        ("ApiError.kind",),
        "fewer words for errors than there are kinds: the message says the rest",
        dialects=("anthropic", "gemini", "ollama"),
        kinds=ERRORS,
    ),
    Exempt(
        ("ApiError.type", "ApiError.extra"),
        "the source's own word for `kind`, and its body as it was: only for its own dialect",
        kinds=ERRORS,
    ),
    Exempt(
        ("ApiError.status", "ApiError.retry_after", "ApiError.request_id"),
        "HTTP's status and headers, which the gateway sends; no stream has them at its end",
        kinds=ERRORS,
    ),
)
MAX_EXEMPT = 10


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4}){2,}")

# --- what is written


class Written(NamedTuple):
    found: Any
    """What the dialect's own reader finds in the document."""
    losses: tuple[Loss, ...]


def written(codec: Dialect, kind: str, value: Any, *, own: bool) -> Written:
    """`own`: the document is from a client or a provider of the dialect itself."""
    if kind == "request":
        return _request(codec, value, own)
    if kind == "answer":
        rendered = codec.render_response(value, CONTEXT, ASKED)
        parsed = codec.parse_error(rendered.value) or codec.parse_response(rendered.value, CONTEXT)
        return Written(_plain(parsed), rendered.losses)
    if kind == "stream":
        events = list(check(value if isinstance(value, list) else unfold(value)))
        stream = write_stream(codec, events, CONTEXT, ASKED)
        again = read_stream(codec, [stream.value], CONTEXT)
        foreign = [event for event in again if isinstance(event, ForeignEvent)]
        try:
            return Written(_plain([fold(again), foreign]), stream.losses)
        except StreamFailed:
            return Written(_plain(again), stream.losses)
    error = codec.render_error(value, CONTEXT)
    status = codec.surface.status(value)
    return Written(_plain([status, codec.parse_error(error.value, status)]), error.losses)


def _request(codec: Dialect, request: Request, own: bool) -> Written:
    planned = plan(
        request,
        source=codec.name if own else None,
        target=codec.name,
        model=request.model,
        fitter=_fitter(codec.name, own),
        context=CONTEXT,
    )
    rendered = codec.render_request(planned.upstream, planned.context)
    assert codec.surface.upstream is not None
    path = codec.surface.upstream.paths["stream" if request.stream else "generate"]
    found = [
        codec.parse_request(decode(encode(rendered.value)), CONTEXT),
        path.replace("{model}", planned.upstream.model),
        planned.aliases,
    ]
    return Written(_plain(found), planned.losses + planned.retraced(rendered.losses))


@cache
def _fitter(name: str, own: bool) -> Fitter:
    source = name if own else None
    return Fitter.between(limits_for(name, "m", "", own), source, name)


def _plain(value: Any) -> Any:
    """A value without spelling and minted ids."""
    if isinstance(value, Extra):
        return [value.dialect, _plain(value.fields)] if value.fields else None
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return "minted" if isinstance(value, str) and is_minted(value) else value


# --- the law


def is_silent(before: Written, after: Written, unset: Written, place: Place, field: str, value: Any) -> bool:
    """`unset`: the document with the field's default. A change of what is found must be that of the value: its word
    is there, unless a loss comes or goes with it."""
    moved = ({*after.losses} ^ {*before.losses}) | ({*after.losses} ^ {*unset.losses})
    if before.found != after.found:
        return WORD in str(value) and not moved and WORD not in _text(after.found)
    path = f"{place.path}.{field}"
    if any(_is_under(loss.path, path) or _is_whole(loss, place, path) for loss in after.losses):
        return False
    return not any(_is_of(loss, place, field, value) for loss in moved)


def _text(found: Any) -> str:
    """All that is found, with what is inside of base64: sealed state, or a text sent as a file."""
    text = str(found)
    inside = (base64.b64decode(each + "==") for each in _BASE64.findall(text))
    return text + "".join(each.decode("latin-1") for each in inside)


def _is_of(loss: Loss, place: Place, field: str, value: Any) -> bool:
    """Whether a loss that comes or goes with a field is reported where it belongs: at the field, its struct, the
    part or tool that holds it; or under the names that the value gives to fields of the dialect."""
    path, around = f"{place.path}.{field}", place.path.rpartition(".")[0] or "$"
    holder = around if around.endswith("]") else place.path
    if _is_under(path, loss.path) and _is_under(loss.path, holder):
        return True
    named = [f"{place.path}.{name}" for name in _names(value)]
    named += [f"{around}.{name}" for name in (field, *_names(place.holder), *_names(value))]
    return any(_is_under(loss.path, each) for each in (path, *named))


def _names(value: Any) -> list[str]:
    fields = value.fields if isinstance(value, Extra) else value
    return [name for name in fields if isinstance(name, str)] if isinstance(fields, dict | tuple) else []


def _is_under(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _is_whole(loss: Loss, place: Place, path: str) -> bool:
    """Whether the loss is that of a whole part, tool or other value that contains the field."""
    match place.holder:
        case Foreign() | ForeignEvent() if loss.path == place.path and loss.feature.startswith("foreign_"):
            return True
        case HostedChoice() if loss.path.startswith("$.tool_choice."):
            return True
    if not _is_under(path, loss.path) or loss.path in ("$", "$.messages", "$.content", "$.tools"):
        return False
    if loss.path.startswith("$.messages[") and loss.path.endswith("]") and "content" not in loss.path:
        return loss.path == place.path
    return loss.action == "dropped"


class Case(NamedTuple):
    field: str
    place: str
    value: Any
    is_silent: bool

    def __str__(self) -> str:
        return f"{self.field} = {str(self.value)[:80]} at {self.place}"


def tried(codec: Dialect, kind: str, only: tuple[str, ...] = ()) -> Iterator[Case]:
    """Every field (or only these) in every document of a kind: from elsewhere, and from the dialect itself unless
    it is a variant of another, whose code it shares."""
    family = codec.surface.family
    for origin in (ELSEWHERE, family) if codec.name == family else (ELSEWHERE,):
        for doc in DOCUMENTS[kind](origin):
            yield from _tried(codec, kind, doc, origin, only)


def _tried(codec: Dialect, kind: str, doc: Doc, origin: str, only: tuple[str, ...]) -> Iterator[Case]:
    own = origin != ELSEWHERE
    try:
        before = written(codec, kind, doc.value, own=own)
    except Unsupported:
        return
    assert written(codec, kind, doc.value, own=own) == before, "no two are equal: nothing could be found out"
    for place in places(doc):
        for field in place.holder.__struct_fields__:
            name = f"{type(place.holder).__name__}.{field}"
            if only and name not in only:
                continue
            for value in values_of(place, field, codec.surface.family, origin):
                silent = _is_lost(codec, kind, before, place, field, value, own)
                at = f"{place.path} of {doc.title}, {kind} from {origin}"
                yield Case(name, at, value, silent)


def _is_lost(
    codec: Dialect, kind: str, before: Written, place: Place, field: str, value: Any, own: bool
) -> bool:
    def with_value(new: Any) -> Written:
        return written(codec, kind, place.put(replace(place.holder, **{field: new})), own=own)

    try:
        after = with_value(value)
        if not is_silent(before, after, before, place, field, value):
            return False
        default = _default(type(place.holder), field)
        if default is msgspec.NODEFAULT or default == getattr(place.holder, field):
            return True
        return is_silent(before, after, with_value(default), place, field, value)
    except (Unsupported, BrokenGrammar):  # it is refused, with a message
        return False


def _default(kind: type[msgspec.Struct], field: str) -> Any:
    return next(each.default for each in msgspec.structs.fields(kind) if each.name == field)


@cache
def cases(name: str) -> dict[str, list[Case]]:
    """By kind of document; no requests to a dialect that has only clients. Several tests look at them."""
    codec = dialect(name)
    kinds = [kind for kind in DOCUMENTS if kind != "request" or codec.surface.upstream is not None]
    return {kind: list(tried(codec, kind)) for kind in kinds}


def forgotten(codec: Dialect, kind: str, found: Iterable[Case]) -> list[str]:
    return [str(case) for case in found if case.is_silent and not _is_exempt(case, codec, kind)]


def _is_exempt(case: Case, codec: Dialect, kind: str) -> bool:
    return any(
        case.field in row.fields
        and (not row.dialects or codec.surface.family in row.dialects)
        and (not row.kinds or kind in row.kinds)
        for row in EXEMPT
    )


def without_sample(structs: Iterable[type[msgspec.Struct]]) -> list[str]:
    """Fields for which there is no value."""
    return [
        f"{kind.__name__}.{field}: add a value for it to SAMPLES in tests/core/laws/field_samples.py"
        for kind in structs
        for field in kind.__struct_fields__
        if sample_of(kind, field) is None
    ]


ALL_FIELDS = frozenset(f"{kind.__name__}.{field}" for kind in REACHED for field in kind.__struct_fields__)


def test_every_field_has_a_value_to_try():
    assert not without_sample(REACHED)


def test_every_value_belongs_to_a_field_and_is_not_its_default():
    for kind, samples in SAMPLES.items():
        for field, sample in samples.items():
            assert field in kind.__struct_fields__, f"{kind.__name__} has no {field}"
            assert any(value != _default(kind, field) for value in sample.values), f"{kind.__name__}.{field}"


@every_dialect
def test_no_field_is_lost_in_silence(name):
    found = [
        line
        for kind, tried_ones in cases(name).items()
        for line in forgotten(dialect(name), kind, tried_ones)
    ]
    assert not found, f"{len(found)} are neither written nor reported by {name}:\n" + "\n".join(found[:40])


@pytest.mark.parametrize("name", FAMILIES)
def test_every_field_is_tried(name):
    """Variants take no history, or have no upstream: there some are not."""
    tried_ones = {case.field for found in cases(name).values() for case in found}
    assert tried_ones == ALL_FIELDS


def _pairs(codec: Dialect, kind: str, doc: Doc, origin: str) -> Iterator[Case]:
    """Every field next to every other of its struct, which is set first. One loss may report both, if it reports
    the field when it is set alone."""
    family, own = codec.surface.family, origin != ELSEWHERE
    try:
        plain = written(codec, kind, doc.value, own=own)
    except Unsupported:
        return
    for place in places(doc):
        unset = [
            name
            for name in place.holder.__struct_fields__
            if getattr(place.holder, name) == _default(type(place.holder), name)
        ]
        for other in unset:
            for value in values_of(place, other, family, origin)[:1]:
                holder = replace(place.holder, **{other: value})
                with contextlib.suppress(Unsupported):
                    before = written(codec, kind, place.put(holder), own=own)
                    beside = place._replace(holder=holder)
                    for case in _beside(codec, kind, (plain, before), (place, beside), origin):
                        if case.field != f"{type(holder).__name__}.{other}":
                            yield case._replace(place=f"{case.place} of {doc.title} with {other}")


def _beside(
    codec: Dialect, kind: str, seen: tuple[Written, Written], at: tuple[Place, Place], origin: str
) -> Iterator[Case]:
    own = origin != ELSEWHERE
    (plain, before), (place, beside) = seen, at
    for field in place.holder.__struct_fields__:
        for value in values_of(beside, field, codec.surface.family, origin)[:2]:
            silent = _is_lost(codec, kind, before, beside, field, value, own)
            if silent:
                both, one = (
                    written(codec, kind, place.put(replace(each.holder, **{field: value})), own=own).losses
                    for each in (beside, place)
                )
                silent = not ({*one} - {*plain.losses}) & {*both}
            yield Case(f"{type(place.holder).__name__}.{field}", f"{place.path}, {kind}", value, silent)


@pytest.mark.whole
@pytest.mark.parametrize("name", FAMILIES)
def test_no_field_is_lost_beside_another(name):
    codec = dialect(name)
    found = [
        line
        for kind, documents in DOCUMENTS.items()
        for origin in (ELSEWHERE, name)
        for doc in documents(origin)
        for line in forgotten(codec, kind, _pairs(codec, kind, doc, origin))
    ]
    assert not found, f"{len(found)} are neither written nor reported by {name}:\n" + "\n".join(found[:40])


def test_no_unknown_field_has_the_name_of_a_known_one():
    """Its loss would be taken for that of the known one."""
    known = {field.partition(".")[2] for field in ALL_FIELDS}
    for documents in DOCUMENTS.values():
        for doc in documents(ELSEWHERE):
            for place in places(doc):
                if isinstance(place.holder, Extra):
                    assert not known & {*place.holder.fields}, doc.title


def test_few_fields_are_exempt():
    assert len(EXEMPT) <= MAX_EXEMPT
    for row in EXEMPT:
        assert {*row.fields} <= ALL_FIELDS, row.fields


@pytest.mark.parametrize("row", EXEMPT, ids=lambda row: row.fields[0])
def test_an_exemption_is_needed(row):
    """Each of its fields, dialects and kinds of documents: what is not lost any more must not be again."""
    lost = {
        (case.field, name, kind)
        for name in row.dialects or FAMILIES
        for kind in row.kinds or DOCUMENTS
        for case in tried(dialect(name), kind, row.fields)
        if case.is_silent
    }
    fields, names, kinds = ({each[index] for each in lost} for index in range(3))
    assert fields == {*row.fields}
    assert names == {*(row.dialects or FAMILIES)}
    assert kinds == {*(row.kinds or DOCUMENTS)}


# --- usage and stop reasons: of these the value counts, not only that something changes


def _answered(codec: Dialect, kind: str, answer: Response) -> tuple[Response | ApiError, tuple[Loss, ...]]:
    """What a client reads of an answer."""
    if kind == "answer":
        whole = codec.render_response(answer, CONTEXT, ASKED)
        error = codec.parse_error(whole.value)
        return error or codec.parse_response(whole.value, CONTEXT), whole.losses
    stream = write_stream(codec, list(unfold(answer)), CONTEXT, ASKED)
    try:
        return fold(read_stream(codec, [stream.value], CONTEXT)), stream.losses
    except StreamFailed as failed:
        return failed.error, stream.losses


@every_dialect
@pytest.mark.parametrize("kind", ANSWERS)
def test_every_count_is_reported_or_in_the_total_or_a_loss(name, kind):
    for count in COUNTS:
        usage = replace(Usage(input=100, output=50), **{count: 23})
        read, losses = _answered(dialect(name), kind, Response("r", "m", (Text("Hi."),), Stop("end"), usage))
        assert isinstance(read, Response)
        assert read.usage is not None
        assert (read.usage.total_input, read.usage.total_output) == (usage.total_input, usage.total_output)
        if getattr(read.usage, count) != 23:
            assert [loss.feature for loss in losses if loss.path == f"$.usage.{count}"] == ["usage.detail"]


class WiderUsage(Usage, frozen=True, kw_only=True):
    """With the counts of some future provider, which no dialect knows."""

    future_input: int = 0
    future_output: int = 0

    @property
    def total_input(self) -> int:
        return super().total_input + self.future_input

    @property
    def total_output(self) -> int:
        return super().total_output + self.future_output

    @property
    def total(self) -> int:
        return self.total_input + self.total_output


@every_dialect
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_count_that_no_dialect_knows_is_in_the_totals(name, kind):
    usage = WiderUsage(input=10, cache_read=20, output=5, reasoning=3, future_input=60, future_output=7)
    read, _ = _answered(dialect(name), kind, Response("r", "m", (Text("Hi."),), Stop("end"), usage))
    assert isinstance(read, Response)
    assert read.usage is not None
    assert (read.usage.total_input, read.usage.total_output) == (90, 15)


_CONTENT: dict[str, tuple[Part, ...]] = {
    "tool_calls": (ToolCall("call_1", "weather", "{}"),),
    "refused": (Text("I will not.", refusal=True),),
}


@every_dialect
@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("reason", get_args(StopReason))
def test_every_stop_reason_is_read_again_or_a_loss_or_an_error(name, kind, reason):
    answer = Response("r", "m", _CONTENT.get(reason, (Text("Hi."),)), Stop(reason), Usage(input=1, output=1))
    read, losses = _answered(dialect(name), kind, answer)
    if isinstance(read, ApiError):
        assert reason == "malformed_call"
    elif read.stop.reason != reason:
        features = {"stop_reason", "refusal"} if reason == "refused" else {"stop_reason"}
        assert [loss for loss in losses if loss.feature in features]


# --- the law itself can fail


class Colored(Request, frozen=True):
    """A request with a field that was added later."""

    color: str = ""


class ColoredAnswer(Response, frozen=True):
    color: str = ""


def test_a_field_without_a_value_to_try_is_named():
    assert without_sample([Colored]) == [
        "Colored.color: add a value for it to SAMPLES in tests/core/laws/field_samples.py"
    ]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("request", Colored("m", (Message("user", (Text("Hi."),)),), stream=False)),
        ("answer", ColoredAnswer("r", "m", (Text("Hi."),), Stop("end"))),
        ("stream", ColoredAnswer("r", "m", (Text("Hi."),), Stop("end"))),
    ],
    ids=["request", "answer", "stream"],
)
def test_a_field_that_no_dialect_writes_is_found(name, kind, value, monkeypatch):
    monkeypatch.setitem(SAMPLES, type(value), {"color": Sample(("red",))})
    (case,) = _tried(
        dialect(name), kind, Doc("colored", value), ELSEWHERE, (f"{type(value).__name__}.color",)
    )
    assert case.is_silent


def _without_user(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    return dialect("openai-chat").render_request(replace(request, user=""), context)


def _blaming_another(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = _without_user(request, context)
    blamed = Loss("$.metadata", "metadata", "dropped", "none") if request.user else None
    return Rendered(rendered.value, (*rendered.losses, blamed) if blamed else rendered.losses)


def _in_another_form(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = _without_user(request, context)
    messages = [
        *rendered.value["messages"],
        *([{"role": "user", "content": "More."}] if request.user else []),
    ]
    return Rendered({**rendered.value, "messages": messages}, rendered.losses)


def _under_a_random_id(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = _without_user(request, context)
    return Rendered(
        {**rendered.value, "prompt_cache_key": context.new_id("key", request.user)}, rendered.losses
    )


def _reporting(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = _without_user(request, context)
    lost = (Loss("$.user", "user", "dropped", "none"),) if request.user else ()
    return Rendered(rendered.value, (*rendered.losses, *lost))


@pytest.mark.parametrize(
    ("render", "is_found"),
    [
        (_without_user, True),
        (_blaming_another, True),
        (_in_another_form, True),
        (_under_a_random_id, True),
        (_reporting, False),
    ],
)
def test_a_renderer_that_forgets_a_field_is_found(render, is_found):
    codec = replace(dialect("openai-chat"), render_request=render)
    found = list(tried(codec, "request", ("Request.user",)))
    assert found
    assert bool(forgotten(codec, "request", found)) is is_found


def test_a_stream_that_loses_what_the_whole_answer_says_is_found():
    def writer(context: Context, request: Request | None = None) -> StreamWriter:
        return Forgetful(dialect("openai-chat").stream_writer(context, request))

    codec = replace(dialect("openai-chat"), stream_writer=writer)
    assert not forgotten(codec, "answer", tried(codec, "answer", ("Text.citations",)))
    assert forgotten(codec, "stream", tried(codec, "stream", ("Text.citations",)))


class Forgetful:
    """Writes no citations."""

    def __init__(self, inner: StreamWriter) -> None:
        self._inner = inner
        self.losses = inner.losses

    def write(self, events: Iterable[Event]) -> bytes:
        return self._inner.write(
            replace(event, citations=()) if isinstance(event, PartEnd) else event for event in events
        )
