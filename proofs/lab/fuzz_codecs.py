"""Fuzzed in the library alone: JSON bodies, event streams, configurations, envelopes."""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from proofs.judges.oracle import Kind, events, installed
from proofs.lab.fuzz_mutations import Mutator
from proofs.lab.fuzz_target import Found, Input
from wireglot.gateway.config import ConfigError, load
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PREFIX, UNREADABLE, Holder, seal, unseal, unseal_all
from wireglot_core.dialects.registry import NAMES, DialectName, dialect
from wireglot_core.ir.content import Origin, Signature, Text
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import Failure, unfold
from wireglot_core.testing.check_dialect import fixtures
from wireglot_core.testing.codec_laws import names_a_place
from wireglot_core.testing.laws import cut_at, ending, read_stream
from wireglot_core.translate import plan
from wireglot_core.wire.json import MAX_DEPTH, BadJson, decode, encode
from wireglot_core.wire.sse import FrameTooLarge

FIXTURES: Final = Path(__file__).parents[2] / "tests" / "fixtures"
_DIALECTS: Final[dict[str, DialectName]] = {str(name): name for name in NAMES}
_QUOTED: Final = re.compile(rb'"([a-z_A-Z]{2,24})"')


_MAX_REPORTED_DEPTH: Final = MAX_DEPTH + 16
"""Dialects put the same thing at different depths, Code Assist in an envelope: what may just be read may be
reported a few levels deeper."""


class _Still:
    """A target that needs no beginning and no end."""

    words: tuple[bytes, ...] = ()

    def begin(self) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


def json_seeds(*kinds: str) -> list[Input]:
    return [
        Input(f"{name} {kind}", encode(case.body))
        for name in NAMES
        for kind in kinds
        for case in fixtures(FIXTURES, name, kind)
    ]


def names_in(seeds: list[Input]) -> tuple[bytes, ...]:
    """The words of a dialect, as its documents have them."""
    return tuple(sorted({word for seed in seeds for word in _QUOTED.findall(seed.data)}))


_ANSWER: Final = Response("id", "m", (Text("Hi."),), Stop("end"))


class JsonBodies(_Still):
    """Requests, answers and errors of every dialect: read, fitted, and written in some of the others."""

    def __init__(self) -> None:
        self._seeds = json_seeds("requests", "responses", "errors")
        self.words = names_in(self._seeds)

    def seeds(self) -> list[Input]:
        return list(self._seeds)

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        if mutator.chance.random() < 0.8:
            return mutator.of_json(one.data, other.data)
        return mutator.of_bytes(one.data, other.data)

    def tried(self, given: Input, chance: Random) -> str:
        name, _, kind = given.form.partition(" ")
        source = _DIALECTS[name]
        if kind == "requests":
            return self._request(given.data, source, chance)
        return self._answer(given.data, source, 200 if kind == "responses" else 429, chance)

    def _request(self, data: bytes, source: DialectName, chance: Random) -> str:
        target, *more = chance.sample(NAMES, 3)
        try:
            sent = encode(translate_request(data, source=source, target=target).value)
        except Unsupported as fault:
            names_a_place(fault)
        except ClientFault as fault:
            names_a_place(fault)
            return "refused"
        else:
            self._read_again(sent, source, target)
        if chance.random() < 0.5:
            return "translated"
        context = Context()
        request = dialect(source).parse_request(decode(data), context)
        for name in more:
            with suppress(Unsupported):
                planned = plan(request, source=source, target=name, context=context)
                encode(dialect(name).render_request(planned.upstream, planned.context).value)
        # An answer tells its client some of what was asked.
        dialect(source).render_response(_ANSWER, context, request)
        dialect(source).stream_writer(context, request).write(unfold(_ANSWER))
        return "translated"

    def _read_again(self, sent: bytes, source: DialectName, target: DialectName) -> None:
        """What we ask in another dialect is a request of it."""
        if source != target:
            try:
                dialect(target).parse_request(decode(sent, _MAX_REPORTED_DEPTH), Context())
            except ClientFault as fault:
                raise Found(f"for {target} it is no request: {fault}: {sent[:300]!r}") from None

    def _answer(self, data: bytes, source: DialectName, status: int, chance: Random) -> str:
        if status == 200:
            with suppress(BadJson):
                dialect(source).surface.glance(data)
        try:
            for target in chance.sample(NAMES, 2):
                reported = encode(translate_response(data, source=source, target=target, status=status).value)
                self._reported_again(reported, data, (source, target), status)
        except UpstreamFault as fault:
            names_a_place(fault)
            return "refused"
        return "translated"

    def _reported_again(
        self, reported: bytes, data: bytes, names: tuple[DialectName, DialectName], status: int
    ) -> None:
        """An error stays one; an answer can be read, and to clients of its own dialect it is no error."""
        source, target = names
        failed = dialect(source).parse_error(decode(data), status) is not None
        body = decode(reported, _MAX_REPORTED_DEPTH)
        fails = dialect(target).parse_error(body, status) is not None
        if (failed and not fails) or (fails and not failed and source == target):
            raise Found(f"for {target} it {'is an' if fails else 'is no'} error: {reported[:300]!r}")
        if not fails:
            try:
                dialect(target).parse_response(body, Context())
            except UpstreamFault as fault:
                raise Found(f"for {target} it is no answer: {fault}: {reported[:300]!r}") from None
        whole = not fails or body.get("object") == "response"
        _keeps_the_schema(names, "answer" if whole else "error", [body])


def _keeps_the_schema(names: tuple[DialectName, DialectName], kind: Kind, documents: Iterable[Any]) -> None:
    """Answers are what the client's vendor says, whatever came; nothing is checked without the schemas. A
    client's own wrong value is passed on, so requests are not held to it."""
    source, target = names
    vendors = installed()
    if vendors is None or dialect(source).surface.family == dialect(target).surface.family:
        return
    for document in documents:
        for problem in vendors.problems(target, kind, document):
            raise Found(f"{problem.name}: {problem.detail}")


class Streams(_Still):
    """Streams of every dialect for every client: a legal end, and the end that it had. One in two is cut as
    well, for the same bytes; the others are read for the order of their events, or listened to by a tap."""

    words: tuple[bytes, ...] = (
             b"data: ", b"event: ", b"\n\n", b"\r\n\r\n", b"\r", b"id: ", b"retry: 1\n", b": x\n", b"[DONE]",
             b"\xef\xbb\xbf", b"\xe2\x80\xa8", b'{"error":{"message":"x"}}', b"[", b"]",
             b",\n", b"null")  # fmt: skip

    def __init__(self) -> None:
        self._seeds = [
            Input(name, case.data) for name in NAMES for case in fixtures(FIXTURES, name, "streams")
        ]
        self.words = (*self.words, *names_in(self._seeds))

    def seeds(self) -> list[Input]:
        return list(self._seeds)

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        end = b"\r\n\r\n" if b"\r\n\r\n" in one.data else b"\n\n"
        match mutator.chance.randrange(4):
            case 0:
                return mutator.of_bytes(one.data, other.data)
            case 1:
                return mutator.of_lines(one.data, other.data, end)
            case _:
                return self._frame_changed(mutator, one.data, other.data, end)

    def _frame_changed(self, mutator: Mutator, data: bytes, other: bytes, end: bytes) -> bytes:
        frames = data.split(end)
        at = mutator.chance.randrange(len(frames))
        head, mark, body = frames[at].rpartition(b"data: ")
        another = mutator.chance.choice(other.split(b"\n\n")).rpartition(b"data: ")[2]
        frames[at] = head + mark + mutator.of_json(body, another)
        return end.join(frames)

    def tried(self, given: Input, chance: Random) -> str:
        source, data = _DIALECTS[given.form], given.data
        target = chance.choice(NAMES)
        expected, failed = self._translated([data], source, target)
        if (ending(read_stream(dialect(target), [expected])) is Failure) is not failed:
            raise Found(f"for {target} it ends in another way: {expected[-300:]!r}")
        _keeps_the_schema((source, target), "event", events(expected))
        match chance.randrange(4):
            case 0 | 1:
                places = [chance.randint(0, len(data)) for _ in range(chance.choice((1, 1, 3, 20)))]
                if self._translated(cut_at(data, places), source, target) != (expected, failed):
                    raise Found(f"cut at {sorted(places)}, it is another stream for {target}")
            case 2:
                read_stream(dialect(source), [data])
            case _:
                self._tapped(data, source, failed)
        return "failed" if failed else "translated"

    def _tapped(self, data: bytes, source: DialectName, failed: bool) -> None:
        """A tap may say that the bytes have no frames; who pumps them ends the stream in an error then."""
        tap = dialect(source).surface.tap(Context().max_frame)
        try:
            tap.feed(data)
        except (BadJson, FrameTooLarge) as problem:
            if not failed:
                raise Found(f"the tap finds no frames where the reader does: {problem}") from None
            return
        tap.close()

    def _translated(
        self, pieces: list[bytes], source: DialectName, target: DialectName
    ) -> tuple[bytes, bool]:
        translator = StreamTranslator(source=source, target=target)
        written = b"".join([translator.feed(piece) for piece in pieces])
        written += translator.close()
        return written, translator.failed


_TOML: Final = (
    b'[server]\nhost = "127.0.0.1"\nport = 8484\nworkers = 2\nhosts = ["a.example"]\n'
    b'origins = ["https://app.example.com"]\nsecret = "a-secret-of-its-own"\nlog = "json"\n'
    b'[providers.demo]\n[keys]\nteam-a = "sha256:%b"\n' % (b"0" * 64),
    b'[providers]\ndiscover = false\n[providers.kimi]\napi_key = "env:KEY"\n[providers.mine]\n'
    b'dialect = "openai-chat"\nbase_url = "http://127.0.0.1:9001/v1"\napi_key = "x"\nconcurrency = 3\n'
    b'headers = { x-a = "b" }\nlimits = { forced_choice = "stop_thinking" }\nretry = "fixed-100ms"\n'
    b"[providers.mine.timeouts]\nconnect = 1\ntotal = 600.5\n[providers.mine.breaker]\nconsecutive = 5\n"
    b'[models]\n"claude-*" = "kimi/kimi-k3"\n"fast" = ["mine/a", "mine/b"]\n'
    b'best = [{ to = "mine/x", effort = ["high"] }, { to = ["kimi/kimi-k3"], losses = "strict" }]\n',
    b'losses = "warn"\ncurrency = "EUR"\n[limits]\nbody = 1000000\nrequests = 10\nqueue = 5\n'
    b'json_depth = 64\nheader_time = 1\n[store]\nurl = "memory:"\n[store.keep]\nidempotency_hours = 1\n'
    b'[prices."mine/*"]\ninput = 1.5\noutput = 3\n[providers.demo]\n[providers.vertex]\nproject = "p"\n'
    b'location = "global"\napi_keys = ["a", "env:KEY", { key = "b", weight = 2 }]\nbase_urls = { anthropic = '
    b'"https://h.example" }\ndialects = ["anthropic", "gemini"]\nproxy = "http://127.0.0.1:3128"\n',
)  # fmt: skip


class Configurations(_Still):
    """Configurations: read, or refused with every problem at its place."""

    words: tuple[bytes, ...] = (
             b"[", b"]]", b"[[", b"=", b'"', b"'''", b'"""', b"{", b"}", b"env:KEY", b"file:x", b"true",
             b"inf", b"nan", b"1979-05-27", b"07:32:00", b"0x_f", b"\\u0000", b"\\U00110000", b"#", b".",
             b"*", b"demo/*", b"https://[", b"http://a:b@c", b"99999999999999999999")  # fmt: skip

    def __init__(self) -> None:
        names = {word for text in _TOML for word in re.findall(rb"[a-z_]{3,}", text)}
        self.words = (*self.words, *sorted(names))
        self._folder = Path(tempfile.gettempdir()) / "no-such-folder"

    def seeds(self) -> list[Input]:
        return [Input("toml", text) for text in _TOML]

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        if mutator.chance.random() < 0.6:
            return mutator.of_lines(one.data, other.data)
        return mutator.of_bytes(one.data, other.data)

    def tried(self, given: Input, chance: Random) -> str:
        environ = {"WIREGLOT_SECRET": "a-secret-for-the-tests", "KEY": "sk-planted-0123456789abcdefghij"}
        path = self._folder / "wireglot.toml"
        try:
            load(path, environ=environ, create_secret=False, content=given.data)
        except ConfigError as refused:
            if not refused.problems or not all(one.path and one.expected for one in refused.problems):
                raise Found(f"a problem without a place: {refused}") from None
            if environ["KEY"] in str(refused):
                raise Found("a problem tells a secret") from None
            return "refused"
        return "read"


_SECRET, _OLD, _FOREIGN = b"the secret", b"the one before", b"another machine's"
_SEALED_FOR: Final = (("a", _SECRET), ("b", _SECRET), ("", _SECRET), ("a", _OLD), ("a", _FOREIGN))
_HOLDERS: Final[tuple[Holder, ...]] = ("reasoning", "redacted", "call", "text", "media", "unsigned")
_PLANTED: Final = "planted-state-of-"


class Envelopes(_Still):
    """Sealed state, changed, cut, joined, or brought by another: it opens as it was sealed, or not at all."""

    words: tuple[bytes, ...] = (
        PREFIX.encode(),
        b"=",
        b"==",
        b"-",
        b"_",
        b"+",
        b"/",
        b"V0cx",
        b"V0cy",
        b"\xc3\xa9",
        b" ",
    )

    def __init__(self) -> None:
        self._opens: dict[bytes, str] = {}
        """The bytes that were sealed, and for whom ("": for anyone who brings them)."""
        self._seeds: list[Input] = []
        for number in range(60):
            for owner, secret in (
                ("a", _SECRET),
                ("b", _SECRET),
                ("", _SECRET),
                ("a", _OLD),
                ("a", _FOREIGN),
            ):
                text = self._sealed(number, owner, secret)
                if secret is not _FOREIGN:
                    self._opens[base64.b64decode(text)] = owner
                self._seeds.append(Input(owner or "all", text.encode()))

    def _sealed(self, number: int, owner: str, secret: bytes) -> str:
        origin = Origin(("gemini", "anthropic", "openai-responses")[number % 3], "p", f"m{number % 7}", "")
        state = Signature(
            f"{_PLANTED}{owner or 'all'}-{number}" + "x" * (number * 7), origin, f"rs_{number % 5}"
        )
        return seal(state, _HOLDERS[number % 6], secret, number if number % 2 else -1, owner)

    def seeds(self) -> list[Input]:
        return list(self._seeds)

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        match mutator.chance.randrange(6):
            case 0:
                return one.data
            case 1:
                return one.data + other.data
            case 2:
                with suppress(binascii.Error, ValueError):
                    raw = base64.b64decode(one.data)
                    return base64.b64encode(mutator.of_bytes(raw, base64.b64decode(other.data)))
        return mutator.of_bytes(one.data, other.data)[:4096]

    def tried(self, given: Input, chance: Random) -> str:
        text = given.data.decode("utf-8", "replace")
        brings = chance.choice(("a", "b", ""))
        one = unseal(text, _SECRET, brings, (_OLD,))
        opened = one is not None and one.signature.origin.dialect != UNREADABLE
        if opened and not self._may_open(text, brings):
            raise Found(f"opened for {brings!r}: {one}")
        several = unseal_all(text, _SECRET, brings, (_OLD,))
        for each in several:
            if (
                f"{_PLANTED}{brings or '-'}-" not in each.signature.data
                and f"{_PLANTED}all-" not in each.signature.data
            ):
                raise Found(f"one of several opened for {brings!r}: {each}")
        if chance.random() < 0.2:
            self._carried(text, brings, chance)
        return "opened" if opened else "joined" if several else "no envelope" if one is None else "unreadable"

    def _may_open(self, text: str, brings: str) -> bool:
        plain = text.replace("-", "+").replace("_", "/").rstrip("=")
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4))
        return self._opens.get(raw, "nobody") in ("", brings)

    def _carried(self, text: str, brings: str, chance: Random) -> None:
        """In a conversation, toward any provider: nothing that is another's goes out."""
        source = chance.choice(("anthropic", "openai-responses", "gemini"))
        context = Context(secret=_SECRET, old_secrets=(_OLD,), owner=brings)
        try:
            request = dialect(source).parse_request(decode(encode(carrying(source, text))), context)
        except ClientFault as fault:
            names_a_place(fault)
            return
        for target in chance.sample(NAMES, 2):
            with suppress(Unsupported):
                planned = plan(request, source=source, target=target, context=context)
                said = encode(dialect(target).render_request(planned.upstream, planned.context).value)
                for other in {"a", "b"} - {brings}:
                    if f"{_PLANTED}{other}-".encode() in said:
                        raise Found(f"{other}'s state goes to {target} for {brings!r}")


def carrying(source: str, text: str) -> dict[str, Any]:
    """A request whose history carries an envelope."""
    thought: dict[str, Any]
    call: dict[str, Any]
    result: dict[str, Any]
    asked: dict[str, Any]
    match source:
        case "anthropic":
            thought = {"type": "thinking", "thinking": "Hm.", "signature": text}
            said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
            asked = {"role": "user", "content": "Hi."}
            return {"model": "m1", "max_tokens": 9, "messages": [asked, said, asked]}
        case "openai-responses":
            thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": text}
            call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": "c", "output": "1"}
            return {"model": "m1", "input": [{"role": "user", "content": "Hi."}, thought, call, result]}
        case _:
            call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": text}
            result = {"functionResponse": {"name": "f", "response": {}}}
            asked = {"role": "user", "parts": [{"text": "Hi."}]}
            turns = [asked, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
            return {"contents": turns}
