"""The interface of a case to the endpoint: sends requests, returns strictly parsed answers, and keeps all
exchanges."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec

from wireglot.probe.endpoint import Endpoint, EndpointRequest, Got, NoReply
from wireglot.probe.question import ProbeQuestion
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.wires.wire import Wire
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import BadJson, decode, encode

_OK: Final = 200
_BUSY: Final = frozenset({408, 429, 503, 529})
INVALID: Final = (400, 422)
"""Statuses of an invalid request."""
_REFUSALS: Final = frozenset({400, 404, 422, 501})
_AGENT: Final = ("user-agent", "wireglot-probe")
_LEFT_OUT: Final = "x-wireglot-losses"
"""The only known header by which a gateway reports what it could not carry."""
LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict")
"""The dialects' names for the limit of an answer."""
SIZE_OF_EVIDENCE: Final = 4000


class Refused(Broken):
    """A status from 400 to 499, or 501 (not implemented), with an error of the dialect."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"status {status} ({kind}): {message[:300]}")
        self.status = status
        self.message = message


class ProbeExchange(msgspec.Struct, frozen=True, kw_only=True):
    """`status` 0: there was no answer, and `answer` contains the reason."""

    method: str
    path: str
    request: str
    status: int
    kind: str
    answer: str
    left_out: tuple[str, ...] = ()
    """What the answer itself reports as left out of the request."""
    shared: bool = False
    """Whether an earlier case sent the same request, whose answer was reused."""


class ProbeLedger:
    """What a run has sent and spent, and has learned about the endpoint, over all cases."""

    def __init__(self) -> None:
        self.known: dict[EndpointRequest, Got] = {}
        self.requests = 0
        self.input = 0
        self.output = 0
        self.most_output = 0
        """If every answer had been as long as allowed."""
        self.bytes_sent = 0
        self.facts: dict[str, dict[str, tuple[bool, str]]] = {}
        """Fact -> value -> whether it is accepted, and the evidence."""
        self.way_to_think: int | None = None


class Talk:
    """The exchanges of one case. A request that was sent before is not repeated, unless `fresh`."""

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Wire,
        model: str,
        ledger: ProbeLedger,
        *,
        case: str = "",
        fresh: bool = False,
    ) -> None:
        self.wire = wire
        self.model = model
        self.exchanges: list[ProbeExchange] = []
        self._endpoint = endpoint
        self._ledger = ledger
        self._case = case
        self._fresh = fresh

    # Requests

    def ask(self, question: ProbeQuestion) -> ProbeReply:
        """A whole answer. Raises Broken (of which Refused is one) and Inconclusive."""
        got = self.send(question)
        document = self._answered(got)
        reply = self.wire.read(document)
        self._spent(reply)
        return reply

    def stream(self, question: ProbeQuestion) -> ProbeReply:
        """A stream, read to its end; `require` of the result reports what is wrong with it."""
        got = self.send(msgspec.structs.replace(question, stream=True))
        if got.status != _OK:
            self._answered(got)
        frames = self.wire.frames(got.body)
        if not any(frame.data for frame in frames):
            # Most rules of a stream are true for an empty one.
            kind = got.headers.get("content-type", "") or "no type"
            raise Broken(f"status 200 without a stream event ({kind}): {got.body[:80]!r}")
        reply = self.wire.stream_reader(question).read(frames)
        self._spent(reply)
        return reply

    def optional(self, question: ProbeQuestion, what: str, value: str = "") -> ProbeReply:
        """The same for an optional feature: if it is rejected with a proper error, the case does not
        apply."""
        try:
            reply = self.stream(question) if question.stream else self.ask(question)
        except Refused as refused:
            if refused.status not in _REFUSALS:
                raise
            self.learn(what, value, False, str(refused))
            raise NotApplicable(f"it is rejected with a proper error: {refused}") from None
        self.learn(what, value, True, "the request was accepted")
        return reply

    def think(self, question: ProbeQuestion) -> ProbeReply:
        """With thinking, by the first of the dialect's options that is accepted."""
        known = self._ledger.way_to_think
        refused: Refused | None = None
        reply: ProbeReply | None = None
        for way in range(self.wire.thinking_ways) if known is None else (known,):
            try:
                asked = msgspec.structs.replace(question, thinking=way)
                reply = self.stream(asked) if question.stream else self.ask(asked)
            except Refused as found:
                if known is not None or found.status not in _REFUSALS:
                    raise  # thinking is accepted: something else is refused
                refused = found
                continue
            if reply.thoughts or reply.state:
                self._ledger.way_to_think = way
                self.learn("thinking", str(way), True, "thoughts were returned")
                return reply
        if reply is not None:
            return reply
        self.learn("thinking", "", False, str(refused))
        raise NotApplicable(f"thinking is rejected with a proper error: {refused}")

    def send(self, question: ProbeQuestion) -> Got:
        operation = "stream" if question.stream else "generate"
        return self.post(encode(self.wire.body(self.model, question)), self.path(operation))

    def post(
        self, body: bytes, path: str, *, key: str | None = None, method: str = "POST", fresh: bool = False
    ) -> Got:
        """Raw bytes. `fresh`: also if they were sent before. Raises Inconclusive if there is no answer."""
        about = surface(self.wire.name).upstream
        assert about is not None
        headers = (("content-type", "application/json"), *about.fixed_headers, _AGENT)
        ask = EndpointRequest(method, path, headers, body, key)
        found = self._ledger.known.get(ask)
        if found is not None and not (self._fresh or fresh):
            self._keep(ask, found, shared=True)
            return found
        self._ledger.requests += 1
        self._ledger.bytes_sent += len(body)
        self._ledger.most_output += _most(body, self.wire.settings)
        try:
            got = self._endpoint.ask(ask)
        except NoReply as fault:
            shown = _shown(ask.body)
            self.exchanges.append(
                ProbeExchange(method=method, path=path, request=shown, status=0, kind="", answer=str(fault))
            )
            raise Inconclusive(f"no answer: {fault}") from None
        if got.status not in _BUSY:
            self._ledger.known[ask] = got
        self._keep(ask, got)
        return got

    def get(self, path: str, *, key: str | None = None) -> Got:
        return self.post(b"", path, key=key, method="GET")

    def path(self, operation: str, model: str | None = None) -> str:
        about = surface(self.wire.name).upstream
        assert about is not None
        for name, path in about.paths.items():
            if name == operation:
                return path.replace("{model}", quote(self.model if model is None else model, safe="/-._~@"))
        raise NotApplicable("the dialect has no such path")

    # Checks of answers

    def document(self, got: Got) -> Any:
        try:
            return decode(got.body)
        except BadJson as bad:
            raise Broken(f"status {got.status}, and the body is not JSON: {bad}: {got.body[:80]!r}") from None

    def refusal(self, got: Got) -> Refused:
        """The error in an answer. Raises Broken if it is not one, or not in the dialect's form."""
        if got.status == _OK:
            raise Broken("status 200: the invalid request was accepted")
        if got.status in _BUSY:
            raise Inconclusive(f"status {got.status}: busy")
        kind, message = self.wire.error(self.document(got), got.status)
        return Refused(got.status, kind, message)

    def refuses(self, got: Got, *statuses: int) -> Refused:
        """The same with one of these statuses."""
        found = self.refusal(got)
        if found.status not in statuses:
            raise Broken(f"expected status {' or '.join(map(str, statuses))}, found {found}")
        return found

    def learn(self, what: str, value: str, taken: bool, how: str) -> None:
        if what:
            self._ledger.facts.setdefault(what, {})[value] = (taken, f"{self._case}: {how[:200]}")

    def unlearn(self, how: str) -> None:
        """Something that was accepted but had no effect, or a wrong one, does not count as accepted."""
        for reported in self._ledger.facts.values():
            for value, (taken, evidence) in reported.items():
                if taken and evidence.startswith(f"{self._case}: "):
                    reported[value] = (False, f"{self._case}: {how[:200]}")

    def _answered(self, got: Got) -> Any:
        if got.status == _OK:
            return self.document(got)
        refusal = self.refusal(got)
        if got.status >= 500 and got.status not in _REFUSALS:
            raise Broken(str(refusal))
        raise refusal

    def _spent(self, reply: ProbeReply) -> None:
        if reply.usage is not None and not self.exchanges[-1].shared:
            self._ledger.input += reply.usage.input
            self._ledger.output += reply.usage.output

    def _keep(self, ask: EndpointRequest, got: Got, *, shared: bool = False) -> None:
        kind = got.headers.get("content-type", "")
        reported = tuple(filter(None, got.headers.get(_LEFT_OUT, "").split(",")))
        self.exchanges.append(
            ProbeExchange(
                method=ask.method,
                path=ask.path,
                request=_shown(ask.body),
                status=got.status,
                kind=kind,
                answer=_shown(got.body),
                left_out=reported,
                shared=shared,
            )
        )


def _most(body: bytes, settings_field: str) -> int:
    """The maximum tokens of the answer."""
    try:
        document = decode(body)
    except BadJson:
        return 0
    settings = document.get(settings_field, document)
    for name in LIMITS:
        if type(settings.get(name)) is int:
            return min(int(settings[name]), 100_000)
    return 0


def _shown(data: bytes) -> str:
    text = data[:SIZE_OF_EVIDENCE].decode("utf-8", "replace")
    return text if len(data) <= SIZE_OF_EVIDENCE else f"{text}… ({len(data):,} bytes)"


Level = Literal["must", "should"]
"""must: clients break if it is violated. should: they can do without."""

Cost = Literal["free", "small", "medium", "large"]
"""free: a good endpoint spends no tokens. small: one short answer or two. medium: several. large: only on
request."""

DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama", "gemini-interactions")
WEIGHTS: Final[dict[Level, int]] = {"must": 3, "should": 1}


class CaseText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case as `cases/cases.toml` describes it."""

    title: str
    sends: str
    expects: str
    why: str
    """What breaks otherwise, and the source."""
    level: Level = "must"
    cost: Cost = "small"
    dialects: tuple[str, ...] = DIALECTS
    excuses: tuple[str, ...] = ()
    """Features that an answer may report as left out: then the case does not apply, as if it had been
    refused."""
    lacking: dict[str, str] = {}
    """Dialects without the feature, and why the case does not apply to them: nothing is sent."""
    core: bool = True
    """False: about what an endpoint says of itself, or about nulls; comparisons count it apart."""


Check = Callable[[Talk], object]
"""Raises Broken, NotApplicable or Inconclusive."""
_C = TypeVar("_C", bound=Check)


class ProbeCase(CaseText, frozen=True, kw_only=True):
    id: str
    check: Check

    @property
    def theme(self) -> str:
        return self.id.partition(".")[0]

    @property
    def weight(self) -> int:
        return WEIGHTS[self.level]


_LIST: Final = tomllib.loads((files("wireglot.probe.cases") / "cases.toml").read_text(encoding="utf-8"))


class Theme:
    """The cases of one part of the list, each with its check."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.title: str = _LIST["themes"][name]
        self._texts = msgspec.convert(_LIST[name], dict[str, CaseText])
        self._checks: dict[str, Check] = {}

    def case(self, name: str) -> Callable[[_C], _C]:
        """Make a function the check of a case."""
        assert name in self._texts, f"{self.name}.{name} is not in the list"

        def declare(check: _C) -> _C:
            self._checks[name] = check
            return check

        return declare

    @property
    def cases(self) -> tuple[ProbeCase, ...]:
        """In the order of the list."""
        return tuple(
            ProbeCase(id=f"{self.name}.{name}", check=self._checks[name], **_with_feature(text))
            for name, text in self._texts.items()
        )


def _with_feature(text: CaseText) -> dict[str, Any]:
    """The fields of a case, whose dialects are those that have the feature."""
    dialects = tuple(name for name in text.dialects if name not in text.lacking)
    return {**msgspec.structs.asdict(text), "dialects": dialects}
