"""The vendors' schemas against every document that we write: requests, answers, stream events, errors, lists.

Documents come from the fixtures, from recorded traffic where it is at hand, from generated conversations,
from the fuzzer's mutations and from a running gateway, each in every direction between the four dialects.
What we wrote is judged; a document that a provider wrote and that is forwarded unchanged is counted apart.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from proofs.fidelity.corpus import KINDS
from proofs.fidelity.corpus import cases as recorded_cases
from proofs.judges import exceptions
from proofs.judges.oracle import NOT_DESCRIBED, Kind, Oracle, Problem, events, oracle
from proofs.judges.results import Case as Row
from proofs.judges.results import Verdict
from proofs.lab.fuzz_codecs import JsonBodies, Streams
from proofs.lab.fuzz_mutations import Mutator
from proofs.lab.questions import CLIENTS, question, whole
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, DialectName, dialect, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event
from wireglot_core.testing import strategies
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.translate import StreamTranslator, plan, translate_request, translate_response
from wireglot_core.wire.json import BadJson, decode, encode

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests" / "fixtures"
RECORDINGS: Final = Path(os.environ.get("CORPUS", ROOT.parent / "shared" / "corpus" / "dev"))
VENDORS: Final = {
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini": "gemini",
}
"""The provider whose schema a request must keep: it is fitted to that one."""
MUTATIONS: Final = 4000
EXAMPLES: Final = 300
DIRECTIVES: Final = (
    "Hello.",
    "[[demo:think]] Hello.",
    "[[demo:refuse]]",
    "[[demo:text 60]] [[demo:fail-midstream]]",
    "[[demo:text 60]] [[demo:cut]]",
    *(f"[[demo:fail {status}]]" for status in (400, 401, 403, 404, 413, 429, 500, 503, 529)),
)


T = TypeVar("T")


class Written(NamedTuple):
    """A document that we wrote, and what it was made of."""

    origin: str
    dialect: str
    kind: Kind
    document: Any


def judge() -> Verdict:
    rules = oracle(install=True)
    found: dict[str, tuple[Problem, str, int]] = {}
    counts: Counter[str] = Counter()
    sources: dict[str, Callable[[], Iterable[Written]]] = {
        "fixtures": of_fixtures,
        "recorded traffic": of_recordings,
        "generated conversations": generated,
        "mutated inputs": mutated,
        "a running gateway": served,
    }
    for name, written in sources.items():
        for each in written():
            counts[name] += 1
            problems = rules.problems(each.dialect, each.kind, each.document)
            counts["wrong"] += bool(problems)
            for problem in problems:
                _, example, times = found.get(problem.name, (problem, each.origin, 0))
                found[problem.name] = (problem, example, times + 1)
        print(f"    {name}: {counts[name]} documents", flush=True)
    wrong = counts.pop("wrong")
    others = recorded(rules)
    described = ", ".join(f"{number:,} of {name}" for name, number in counts.items())
    return Verdict(
        "schemas",
        ", ".join(f"{vendor}: {version}" for vendor, version in rules.versions.items()),
        f"what we write, by the published schemas of Anthropic, OpenAI and Google: {described}",
        counts.total() - wrong,
        tuple(
            Row(name, f"{times} times, as in {example}: {problem.detail}")
            for name, (problem, example, times) in sorted(found.items())
        )
        + tuple(unproven(others)),
        tuple(Row(name, why) for name, why in NOT_DESCRIBED.items()) + tuple(forwarded(others)),
        tuple(
            Row(f"{', '.join(rule.dialects)}: {rule.match}", "; ".join([rule.why, *rule.recorded]))
            for rule in exceptions.rules()
        ),
    )


# What we write


def translated(case: Case, kind: str, target: DialectName) -> Iterator[Written]:
    """The documents that one of another dialect becomes; none where it is refused."""
    source = dialect_name(case.dialect)
    origin = f"{case.id} -> {target}"
    with suppress(WireglotError):
        if kind == "requests":
            for stream in (False, True):
                sent = translate_request(
                    case.body, source=source, target=target, provider=VENDORS[target], stream=stream
                )
                yield Written(origin, target, "request", sent.value)
        elif kind == "streams":
            translator = StreamTranslator(source=source, target=target, request=None)
            data = translator.feed(case.data) + translator.close()
            for event in events(data):
                yield Written(origin, target, "event", event)
        else:
            answer = translate_response(case.body, source=source, target=target, status=case.status).value
            yield Written(origin, target, kind_of(target, answer, case.status), answer)


def kind_of(target: DialectName, answer: dict[str, Any], status: int = 200) -> Kind:
    """A response that failed is a whole one in OpenAI Responses."""
    failed = dialect(target).parse_error(answer, status) is not None
    return "error" if failed and answer.get("object") != "response" else "answer"


def of_fixtures() -> Iterator[Written]:
    for name in NAMES:
        for kind in ("requests", "responses", "streams", "errors"):
            for case in fixtures(FIXTURES, name, kind):
                yield from _in_every_other(case, kind)


def of_recordings() -> Iterator[Written]:
    for kind in KINDS:
        for case in recorded_cases(RECORDINGS, kind, 0):
            yield from _in_every_other(case, kind)


def _in_every_other(case: Case, kind: str) -> Iterator[Written]:
    """Code Assist's envelope holds a Gemini document, which stays as it was."""
    family = dialect(dialect_name(case.dialect)).surface.family
    for target in CLIENTS:
        if target not in (case.dialect, family):
            yield from translated(case, kind, target)


def mutated() -> Iterator[Written]:
    """The fuzzer's inputs; what cannot be read is refused."""
    chance = Random(1)
    for inputs, count in ((JsonBodies(), MUTATIONS), (Streams(), MUTATIONS // 4)):
        mutator, seeds = Mutator(chance, inputs.words), inputs.seeds()
        for number in range(count):
            one, other = chance.choice(seeds), chance.choice(seeds)
            name, _, kind = one.form.partition(" ")
            data = inputs.changed(mutator, one, other)
            case = Case(
                f"mutation {number} of {one.form}", name, data=data, status=429 if kind == "errors" else 200
            )
            if kind:
                with suppress(BadJson):
                    body = decode(data)
                    case = Case(case.id, name, body=body, status=case.status)
            if not kind or isinstance(case.body, dict):
                yield from _in_every_other(case, kind or "streams")


def generated() -> Iterator[Written]:
    """What the strategies of the laws draw, from dialects other than the one that it is written in."""
    for target in CLIENTS:
        codec, others = dialect(target), [name for name in CLIENTS if name != target]

        def request(
            drawn: Request, target: DialectName = target, codec: Dialect = codec
        ) -> Iterator[Written]:
            planned = plan(drawn, source=None, target=target, provider=VENDORS[target])
            sent = codec.render_request(planned.upstream, planned.context).value
            yield Written("a generated request", target, "request", sent)

        def answer(
            drawn: Response, target: DialectName = target, codec: Dialect = codec
        ) -> Iterator[Written]:
            told = codec.render_response(drawn, Context(), None).value
            yield Written("a generated answer", target, "answer", told)

        def stream(
            drawn: list[Event], target: DialectName = target, codec: Dialect = codec
        ) -> Iterator[Written]:
            data = codec.stream_writer(Context(), None).write(drawn)
            yield from (Written("a generated stream", target, "event", event) for event in events(data))

        yield from _drawn(strategies.requests(origins=others), request)
        yield from _drawn(strategies.responses(origins=others), answer)
        yield from _drawn(strategies.event_streams(origins=others, failing=True), stream)


def _drawn(strategy: SearchStrategy[T], write: Callable[[T], Iterable[Written]]) -> list[Written]:
    found: list[Written] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: T) -> None:
        with suppress(WireglotError):
            found.extend(write(value))

    draw()
    return found


def served() -> Iterator[Written]:
    """What a gateway sends to an upstream of another dialect, and what it answers to its clients."""
    for upstream_dialect in CLIENTS:
        with (
            ScriptedUpstream() as upstream,
            LiveGateway.before(
                upstream, upstream_dialect, retry="{ retries = 0 }", breaker="{ consecutive = 1000000 }"
            ) as gateway,
        ):
            for client in CLIENTS:
                if client == upstream_dialect:
                    continue
                for origin, path, body in _asked(client):
                    upstream.reset()
                    where = f"{client} client, {upstream_dialect} upstream, {origin}"
                    status, kind, data = _post(gateway.url + path, body, client)
                    for sent in upstream.requests:
                        if sent.body and "count" not in sent.path and "input_tokens" not in sent.path:
                            yield Written(where, upstream_dialect, "request", decode(sent.body))
                    yield from _answered(where, client, path, status, kind, data)
                yield from _lists(gateway, client)


def _asked(client: DialectName) -> Iterator[tuple[str, str, dict[str, Any]]]:
    model = "some-model"
    path, body = question(client, model)
    for text in DIRECTIVES:
        path, body = question(client, model, text)
        yield text, path, body
        yield text, *whole(path, body)
    for case in fixtures(FIXTURES, client, "requests"):
        streamed = {**case.body} if client == "gemini" else {**case.body, "model": model, "stream": True}
        yield case.id, path, streamed
        yield case.id, *whole(path, streamed)
    counted = {
        "anthropic": ("/v1/messages/count_tokens", whole(path, question(client, model)[1])[1]),
        "openai-responses": ("/v1/responses/input_tokens", {"model": model, "input": "Hello."}),
        "gemini": (f"/v1beta/models/{model}:countTokens", question(client, model)[1]),
    }
    if client in counted:
        where, asked = counted[client]
        yield "count", where, {key: value for key, value in asked.items() if key != "max_tokens"}


def _answered(
    where: str, client: DialectName, path: str, status: int, content_type: str, data: bytes
) -> Iterator[Written]:
    if content_type.startswith("text/event-stream"):
        yield from (Written(where, client, "event", event) for event in events(data))
    elif status >= 400:
        yield Written(where, client, "error", decode(data))
    elif "count" in path.lower() or path.endswith("input_tokens"):
        yield Written(where, client, "count", decode(data))
    else:
        yield Written(where, client, "answer", decode(data))


def _lists(gateway: LiveGateway, client: DialectName) -> Iterator[Written]:
    headers = {"anthropic-version": "2023-06-01"} if client == "anthropic" else {}
    request = urllib.request.Request(f"{gateway.url}/v1/models", headers=headers)
    if client != "gemini":
        with urllib.request.urlopen(request, timeout=60) as answer:
            yield Written("GET /v1/models", client, "models", decode(answer.read()))


def _post(url: str, body: dict[str, Any], client: DialectName) -> tuple[int, str, bytes]:
    headers = {"content-type": "application/json"}
    if client == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    request = urllib.request.Request(url, encode(body), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers.get("content-type", ""), answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers.get("content-type", ""), refused.read()


# What others wrote


class Others(NamedTuple):
    """What vendors and hosts wrote, by recorded exchange."""

    documents: Counter[str]
    wrong: Counter[str]
    broken: dict[str, set[str]]
    """The rules that each exchange breaks."""


def recorded(rules: Oracle) -> Others:
    others = Others(Counter(), Counter(), {})
    for kind in KINDS:
        for case in recorded_cases(RECORDINGS, kind, 0):
            for what, document in _documents(case, kind):
                problems = rules.all_problems(case.dialect, what, document)
                others.documents[case.dialect] += 1
                others.wrong[case.dialect] += bool(problems)
                others.broken.setdefault(case.id, set()).update(problem.text for problem in problems)
    return others


def _documents(case: Case, kind: str) -> Iterator[tuple[Kind, Any]]:
    if kind != "streams":
        yield "request" if kind == "requests" else "answer", case.body
        return
    with suppress(BadJson):
        yield from (("event", event) for event in events(case.data) if isinstance(event, dict))


def forwarded(others: Others) -> Iterator[Row]:
    for name, number in others.documents.items():
        yield Row(
            f"{name}: {number:,} recorded documents",
            f"written by vendors and hosts and forwarded unchanged; {others.wrong[name]:,} break the schema",
        )


def unproven(others: Others) -> Iterator[Row]:
    """Exceptions whose recorded evidence does not show what they say; none without recordings."""
    for rule in exceptions.rules() if others.broken else ():
        for record in rule.recorded:
            if not any(rule.covers(rule.dialects[0], text) for text in others.broken.get(record, ())):
                yield Row(f"exception {rule.match}", f"{record} does not break this rule")
