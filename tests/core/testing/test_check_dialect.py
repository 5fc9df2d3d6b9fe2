"""The parts of `check_dialect`: which samples are read, what is bent, which laws are run, what is reported."""

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from operator import ne
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.testing.toy_dialect import NAME, TOY, wire
from tests.tiers import rows
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.registry import NAMES, dialect, names, register, unregister
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import Failure, unfold
from wireglot_core.testing import LawsBroken, Samples, check_dialect, samples_in
from wireglot_core.testing.check_dialect import STRANGE, Case, _laws, bent, bent_streams, fixtures
from wireglot_core.testing.codec_laws import as_it_is

module = sys.modules["wireglot_core.testing.check_dialect"]  # its package has a function of this name
CHAT, CLAUDE = dialect("openai-chat"), dialect("anthropic")

CHUNKS = (
    b'data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)

# --- samples


def test_samples_are_read_from_a_folder_by_kind_and_name(tmp_path):
    mine = tmp_path / "mine"
    for name, text in {
        "requests/b.json": '{"n": 2}',
        "requests/a.json": '{"n": 1}',
        "requests/without-a-dot": "no",
        "responses/plain.json": '{"id": 1}',
        "responses/other.json": '{"id": 2}',
        "streams/plain.sse": "data: 1\n\n",
        "streams/alone.chunks.sse": "data: 2\n\n",
        "errors/slow.429.json": '{"error": 1}',
    }.items():
        path = mine / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert fixtures(tmp_path, "mine", "requests") == [
        Case("mine/requests/a.json", "mine", {"n": 1}),
        Case("mine/requests/b.json", "mine", {"n": 2}),
    ]
    assert fixtures(tmp_path, "mine", "errors") == [
        Case("mine/errors/slow.429.json", "mine", {"error": 1}, status=429)
    ]
    assert fixtures(tmp_path, "mine", "streams")[1] == Case(
        "mine/streams/plain.sse", "mine", data=b"data: 1\n\n"
    )
    assert samples_in(mine) == Samples(
        requests=[{"n": 1}, {"n": 2}],
        responses=[{"id": 2}, {"id": 1}],
        streams=[b"data: 2\n\n", b"data: 1\n\n"],
        errors=[(429, {"error": 1})],
        twins=[(b"data: 1\n\n", {"id": 1})],
    )
    assert samples_in(tmp_path / "nothing") == Samples([], [], [], [], [])


# --- bent


def test_a_bent_document_has_one_value_less_or_one_strange_one():
    document = {"a": [1, {"b": "x"}], "c": {"d": None}}
    random, kinds = Random(1), Counter[str]()
    for _ in range(400):
        found = bent(document, random)
        assert document == {"a": [1, {"b": "x"}], "c": {"d": None}}
        kinds[_change(document, found)] += 1
    assert set(kinds) <= {"removed", "replaced", "same"}
    assert 90 < kinds["removed"] < 190, "about a third"
    empties: list[Any] = [{}, [], 5, "x"]
    for empty in empties:
        assert bent(empty, random) in STRANGE


def _change(before: Any, after: Any) -> str:
    """What was done at the one place where they differ."""
    if type(before) is dict and type(after) is dict:
        gone = set(before) - set(after)
        if gone:
            assert len(gone) == 1
            assert {each: before[each] for each in after} == after
            return "removed"
        changed = [(before[key], after[key]) for key in before if before[key] != after[key]]
    elif type(before) is list and type(after) is list and len(after) in (len(before), len(before) - 1):
        if len(after) < len(before):
            assert any(before[:at] + before[at + 1 :] == after for at in range(len(before)))
            return "removed"
        changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    else:
        assert after in STRANGE
        return "replaced"
    if not changed:
        return "same"
    ((old, new),) = changed
    if new in STRANGE:
        return "replaced"
    return _change(old, new)


def test_every_place_of_a_document_is_bent_some_time():
    document = {"a": [1, {"b": "x"}], "c": {"d": None}}
    random = Random(2)
    found = [bent(document, random) for _ in range(400)]
    assert {"c": {"d": None}} in found
    assert {"a": [{"b": "x"}], "c": {"d": None}} in found
    assert {"a": [1, {}], "c": {"d": None}} in found
    assert {"a": [1, {"b": "x"}], "c": {}} in found
    assert {"a": [1, {"b": "x"}], "c": "2"} in found


@rows("end", [b"\n\n", b"\r\n\r\n"])
def test_a_bent_stream_has_frames_that_are_gone_doubled_moved_or_bent(end):
    frames = [b'data: {"n":%d,"text":"words"}' % number for number in range(4)] + [b"data: [DONE]"]
    data = end.join(frames) + end
    found = list(bent_streams(data, 3000, seed=5))
    assert len(found) == 3000
    assert found[:50] == list(bent_streams(data, 50, seed=5)) != list(bent_streams(data, 50, seed=6))
    assert all(each.endswith(end) for each in found)
    cut = [each.removesuffix(end).split(end) for each in found]
    sizes = Counter(map(len, cut))
    assert set(sizes) <= {3, 4, 5, 6, 7}
    assert min(sizes[size] for size in (3, 4, 6, 7)) > 0, "one or two changes each"
    assert any(sorted(each) == sorted(frames) and each != frames for each in cut), "moved"
    inside = [each for each in cut if len(each) == 5 and sum(map(ne, each, frames)) == 1]
    assert len(inside) > 20, "bent inside"
    assert any(each[-1] != frames[-1] and frames[-1].startswith(each[-1]) for each in inside), "cut off"
    for each in inside:
        assert all(changed.startswith(b"data: ") for changed in set(each) - set(frames))


def test_a_stream_of_one_frame_is_never_bent_into_nothing():
    for each in bent_streams(b"data: {}\n\n", 100):
        assert each != b"\n\n"


def test_forty_bent_documents_and_streams_are_tried_the_same_each_time():
    seen: list[Any] = []

    def parse(body: Any, context: Context) -> Any:
        seen.append(body)
        raise ClientFault("no", "$")

    body = {"a": 1, "b": [1, 2]}
    law = laws_of(replace(TOY, parse_request=parse), Samples([body]))["garbage: requests[0]"]
    law()
    first = list(seen)
    assert len(first) == 40
    law()
    assert seen == 2 * first
    assert all(type(each) is dict for each in first)
    streams: list[bytes] = []

    def listening(context: Context) -> Any:
        reader = CHAT.stream_reader(context)

        class Listening:
            end = reader.end

            def read(self, data: bytes) -> Any:
                streams.append(data)
                return reader.read(data)

        return Listening()

    codec = replace(CHAT, stream_reader=listening)
    laws_of(codec, Samples(streams=[CHUNKS]))["grammar: streams[0]"]()
    assert len(streams) == 2 * 41, "each is read, written and read again"
    assert streams[0] == CHUNKS


# --- which laws are run


def laws_of(codec: Dialect, samples: Samples, sdk: Any = None, *, plain: bool = True) -> dict[str, Any]:
    return dict(_laws(codec, samples, as_it_is, plain, 2, sdk))


WHOLE = Response(
    "id-1", "m", (Text("hello "), ToolCall("c", "look", "{}"), Text("there")), Stop("end", "stop")
)
STREAM = wire(unfold(WHOLE))
FAILED = wire([next(iter(unfold(WHOLE))), Failure(ApiError("server", "no"))])
SAMPLES = Samples([{}], [{}], [b"data: 1\n\n"], [(500, {})], [(b"data: 1\n\n", {})])


def test_every_sample_is_held_against_every_law_about_it():
    names_of_laws = set(laws_of(CLAUDE, SAMPLES, lambda _: ""))
    others = {f"pair: to {name}" for name in NAMES if name != "anthropic"}
    assert names_of_laws == others | {
        *("samples", "identity: requests[0]", "twice: requests[0]", "garbage: requests[0]"),
        *("identity: responses[0]", "garbage: responses[0]", "glance: responses[0]", "identity: errors[0]"),
        *("identity: streams[0]", "chunking: streams[0]", "grammar: streams[0]", "truncation: streams[0]"),
        *("tap: streams[0]", "tap: streams[0], cut", "ping: streams[0]", "fold: twins[0]"),
        *("silence: requests", "silence: responses", "silence: streams", "no loss of plain requests"),
        *("chunking: events one by one", "garbage: errors", "garbage: bytes", "garbage: frames"),
        *("surface: paths", "surface: statuses", "surface: models", "surface: counts"),
        *("sdk: streams[0]", "sdk: responses[0]"),
    }
    assert "no loss of plain requests" not in laws_of(CLAUDE, SAMPLES, plain=False)
    assert "sdk: streams[0]" not in laws_of(CLAUDE, SAMPLES)
    assert "surface: counts" not in laws_of(TOY, SAMPLES)


@rows("kind", ["requests", "responses", "streams"])
def test_there_must_be_samples_of_each_kind(kind):
    laws_of(TOY, SAMPLES)["samples"]()
    with pytest.raises(AssertionError, match=f"there are no {kind}"):
        laws_of(TOY, replace(SAMPLES, **{kind: []}))["samples"]()


def test_all_laws_that_do_not_hold_are_reported_and_twenty_of_them_shown(monkeypatch):
    held: list[int] = []

    def some(codec: Dialect, *_: object) -> Iterator[Any]:
        assert codec.name in names(), "it can be translated to and from the others"
        for number in range(25):
            yield f"law {number}", _raising(KeyError("x" * 1000))
            yield f"fine {number}", partial(held.append, number)

    monkeypatch.setattr(module, "_laws", some)
    before = names()
    with pytest.raises(LawsBroken) as caught:
        check_dialect(TOY, Samples())
    assert names() == before, "it is known meanwhile only"
    assert held == list(range(25))
    broken = caught.value.broken
    assert broken == [f"law {number}: KeyError: '{'x' * 599}" for number in range(25)]
    shown = "\n".join(broken[:20])
    assert str(caught.value) == f"{NAME} breaks 25 laws:\n{shown}"
    monkeypatch.setattr(module, "_laws", lambda *_: [("fine", lambda: None)])
    check_dialect(TOY, Samples())


def test_a_dialect_that_is_registered_stays_so(monkeypatch):
    monkeypatch.setattr(module, "_laws", lambda *_: [])
    check_dialect(CHAT, Samples())
    assert "openai-chat" in names()


def _raising(problem: Exception) -> Any:
    def work(*_: object, **__: object) -> Any:
        raise problem

    return work


# --- single laws


def _surface(codec: Dialect, **changed: Any) -> Dialect:
    return replace(codec, surface=replace(codec.surface, **changed))


def _client(codec: Dialect, **changed: Any) -> Dialect:
    return _surface(codec, client=replace(codec.surface.client, **changed))


COUNTS = CLAUDE.surface.counts
assert COUNTS is not None
MODELS = CHAT.surface.models
ONE = Samples([{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}])
BROKEN = [
    ("surface: paths", _client(CHAT, endpoints=("POST /nowhere",)), "there is nothing at POST /nowhere"),
    ("surface: paths", _client(CHAT, endpoints=("POST /v1/messages",)), "is a path of anthropic"),
    ("surface: paths", _surface(CHAT, family="nobody"), "there is no family 'nobody'"),
    ("surface: paths", _client(CHAT, pings={}), "there is no ping for a stream"),
    ("surface: paths", _surface(CHAT, sse_query="x"), "there is no ping for a JSON array"),
    ("surface: statuses", _surface(CHAT, status=lambda _: 399), "is reported as 399"),
    ("surface: statuses", _surface(CHAT, status=lambda _: 600), "is reported as 600"),
    ("surface: statuses", replace(CHAT, parse_error=lambda *_: None), "cannot be read again"),
    ("surface: models", _surface(CHAT, models=replace(MODELS, render_list=lambda *_: {})), "not in the list"),
    ("surface: models", _surface(CHAT, models=replace(MODELS, render_model=lambda _: {})), None),
    ("surface: counts", _surface(CLAUDE, counts=replace(COUNTS, parse_answer=lambda _: 8)), None),
]


@rows("law, codec, words", BROKEN)
def test_a_surface_that_breaks_a_law_is_noticed(law, codec, words):
    laws_of(dialect(codec.name), ONE)[law]()
    with pytest.raises(AssertionError, match=words):
        laws_of(codec, ONE)[law]()


def test_a_surface_may_report_any_error_status():
    for status in (400, 599):
        laws_of(_surface(CHAT, status=lambda _, found=status: found), ONE)["surface: statuses"]()


def test_questions_for_a_count_are_written_and_read():
    assert COUNTS is not None
    for part in ("render_request", "parse_request"):
        codec = _surface(CLAUDE, counts=replace(COUNTS, **{part: _raising(KeyError("a bug"))}))
        with pytest.raises(KeyError):
            laws_of(codec, ONE)["surface: counts"]()


def test_statuses_are_tried_for_every_kind_of_error():
    seen = set()

    def status(error: ApiError) -> int:
        seen.add((error.kind, error.status))
        return 500

    laws_of(_surface(CHAT, status=status), ONE)["surface: statuses"]()
    assert {kind for kind, _ in seen} == {
        *("invalid_request", "context_overflow", "auth", "billing", "permission", "not_found", "conflict"),
        *("too_large", "rate_limit", "overloaded", "server", "timeout", "content_policy"),
    }
    assert {status for _, status in seen} == {0, 200, 400, 404, 429, 500, 529, 600}


# --- by an SDK


def test_an_sdk_must_understand_the_text_of_what_is_written():
    samples = Samples(streams=[STREAM, FAILED], responses=[_document(WHOLE)])
    seen: list[Any] = []

    def understands(written: Any) -> str:
        seen.append(written)
        if written == FAILED:
            raise ValueError("failed")
        return "hello there"

    found = laws_of(TOY, samples, understands)
    for law in ("sdk: streams[0]", "sdk: streams[1]", "sdk: responses[0]"):
        found[law]()
    assert seen == [STREAM, FAILED, _document(WHOLE)]
    deaf = laws_of(TOY, samples, lambda _: "hello")
    for law in ("sdk: streams[0]", "sdk: responses[0]"):
        with pytest.raises(AssertionError):
            deaf[law]()
    with pytest.raises(AssertionError, match="takes a failed stream for a whole one"):
        deaf["sdk: streams[1]"]()
    refusing = Samples(responses=[{"error": {"kind": "server", "message": "no"}}])
    laws_of(TOY, refusing, _raising(KeyError("not asked")))["sdk: responses[0]"]()


def _document(response: Response) -> dict[str, Any]:
    rendered: Rendered[dict[str, Any]] = TOY.render_response(response, Context())
    return rendered.value


# --- with the others


def test_what_another_dialect_cannot_say_must_name_its_place():
    body = ONE.requests[0]
    for fault, fine in (
        (ClientFault("no", "$.messages"), True),
        (Unsupported("no", "$.messages"), True),
        (ClientFault("no", "messages"), False),
        (KeyError("a bug"), False),
    ):
        law = _paired(CHAT, Samples([body]), parse_request=_raising(fault))
        if fine:
            law()
        else:
            with pytest.raises((AssertionError, KeyError)):
                law()
    for path, fine in (("$.choices", True), ("choices", False)):
        law = _paired(CHAT, Samples(responses=[{}]), parse_response=_raising(UpstreamFault("no", path)))
        if fine:
            law()
        else:
            with pytest.raises(AssertionError):
                law()


def _paired(codec: Dialect, samples: Samples, **changed: Any) -> Any:
    """The law of a pair, for a dialect that is known meanwhile."""
    mine = _surface(replace(codec, **changed), name="mine", family="mine")

    def hold() -> None:
        register(mine)
        try:
            laws_of(mine, samples)["pair: to gemini"]()
        finally:
            unregister("mine")

    return hold


def test_a_translation_must_be_the_same_twice_and_however_a_stream_is_cut():
    _paired(CHAT, ONE)()
    count = iter(range(100))

    def numbered(body: Any, context: Any) -> Any:
        request = CHAT.parse_request(body, context)
        return replace(request, max_tokens=100 + next(count))

    with pytest.raises(AssertionError, match="twice is not equal"):
        _paired(CHAT, ONE, parse_request=numbered)()

    def piecemeal(context: Any) -> Any:
        reader = CHAT.stream_reader(context)
        inner = reader.read
        pieces = iter(range(10**6))

        class Other:
            def read(self, data: bytes) -> Any:
                return inner(data) if next(pieces) < 3 else []

            def end(self) -> Any:
                return reader.end()

        return Other()

    _paired(CHAT, Samples(streams=[CHUNKS]))()
    with pytest.raises(AssertionError):
        _paired(CHAT, Samples(streams=[CHUNKS]), stream_reader=piecemeal)()
