"""What is said of requests that cannot be answered."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import HELLO
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ask
from wireglot.probe.talk import Refused, Talk
from wireglot.probe.verdict import Broken, NotApplicable
from wireglot.wire.json import encode

THEME: Final = Theme("errors", "Errors")
_WRONG_KEY: Final = "sk-wireglot-probe-0000000000000000"
_NO_MODEL: Final = "no-such-model-of-the-probe"
_TURNS: Final = {"openai-responses": "input", "gemini": "contents"}
_MUCH: Final = 36 * 2**20


def _body(talk: Talk) -> dict[str, Any]:
    return talk.wire.body(talk.model, ask(HELLO))


def _post(talk: Talk, body: dict[str, Any], **more: Any) -> Got:
    return talk.post(encode(body), talk.path("generate"), **more)


def _status(found: Refused, *expected: int) -> None:
    if found.status not in expected:
        raise Broken(f"expected status {' or '.join(map(str, expected))}, found {found}")


def _without_key(talk: Talk, key: str) -> None:
    got = _post(talk, _body(talk), key=key)
    if got.status == 200:
        raise NotApplicable("it answers without a key, or with any")
    allowed = (400, 401, 403) if talk.wire.name == "gemini" else (401, 403)
    _status(talk.refusal(got), *allowed)


@THEME.case(
    "missing-key",
    "A request without a key is refused as such",
    sends="a short question without a key",
    expects="status 401 (or 403; Gemini: 400) and an error of the dialect; does not apply where no key is "
    "needed",
    why="SDKs raise AuthenticationError by the status",
    cost="free",
)
def missing_key(talk: Talk) -> None:
    _without_key(talk, "")


@THEME.case(
    "wrong-key",
    "A request with a wrong key is refused as such",
    sends="a short question with a key that nobody has",
    expects="status 401 (or 403; Gemini: 400) and an error that does not repeat the key",
    why="the same; and errors are logged",
    cost="free",
)
def wrong_key(talk: Talk) -> None:
    _without_key(talk, _WRONG_KEY)
    if _WRONG_KEY in talk.exchanges[-1].answer:
        raise Broken("the error repeats the key")


@THEME.case(
    "unknown-model",
    "A model that is not there is said to be so",
    sends=f"a short question to the model {_NO_MODEL}",
    expects="status 404 or 400 and an error of the dialect that names the model",
    why="clients offer another model after a 404; a 500 is asked again",
    cost="free",
)
def unknown_model(talk: Talk) -> None:
    body = talk.wire.body(_NO_MODEL, ask(HELLO))
    got = talk.post(encode(body), talk.path("generate", _NO_MODEL))
    if got.status == 200:
        raise NotApplicable("it answers to any name of a model")
    found = talk.refusal(got)
    _status(found, 400, 403, 404)
    if _NO_MODEL not in found.message:
        raise Broken(f"the message does not name the model: {found.message[:120]!r}")


@THEME.case(
    "bad-json",
    "A body that is no JSON is refused",
    sends='`{"model": `',
    expects="status 400 or 422 and an error of the dialect",
    why="a 500 is asked again by every SDK",
    cost="free",
)
def bad_json(talk: Talk) -> None:
    _status(talk.refusal(talk.post(b'{"model": ', talk.path("generate"))), 400, 422)


@THEME.case(
    "missing-field",
    "A request without its turns is refused",
    sends="a request without messages | input | contents",
    expects="status 400 or 422 and an error that names the field",
    why="people find their mistake by the name",
    cost="free",
)
def missing_field(talk: Talk) -> None:
    body = _body(talk)
    field = _TURNS.get(talk.wire.name, "messages")
    del body[field]
    found = talk.refusal(_post(talk, body))
    _status(found, 400, 422)
    if field not in found.message:
        raise Broken(f"the message does not name {field}: {found.message[:160]!r}")


@THEME.case(
    "missing-limit",
    "Anthropic demands max_tokens",
    sends="a request without max_tokens",
    expects="status 400 and an error that names it, or an answer with a limit of the server's own",
    why="many gateways supply one; nobody may answer with a 500",
    level="should",
    dialects=("anthropic",),
)
def missing_limit(talk: Talk) -> None:
    body = _body(talk)
    del body["max_tokens"]
    got = _post(talk, body)
    if got.status == 200:
        talk.wire.read(talk.document(got))
        return
    _status(talk.refusal(got), 400, 422)


@THEME.case(
    "wrong-type",
    "A field of the wrong type is refused",
    sends="messages | input | contents that are a number",
    expects="status 400 or 422 and an error of the dialect",
    why="a body that is silently taken for another one answers what nobody asked",
    cost="free",
)
def wrong_type(talk: Talk) -> None:
    body = _body(talk) | {_TURNS.get(talk.wire.name, "messages"): 17}
    _status(talk.refusal(_post(talk, body)), 400, 422)


def _limited(talk: Talk, most: object) -> dict[str, Any]:
    """A question with this limit, by whatever name the dialect has for it."""
    body = _body(talk)
    settings = body.get("generationConfig", body)
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"):
        if name in settings:
            settings[name] = most
    return body


@THEME.case(
    "wrong-limit",
    "A limit that is no number is refused",
    sends="`many` as the limit of tokens",
    expects="status 400 or 422 and an error of the dialect",
    why="a limit that is silently dropped is paid for",
    level="should",
    cost="free",
)
def wrong_limit(talk: Talk) -> None:
    body = _limited(talk, "many")
    _status(talk.refusal(_post(talk, body)), 400, 422)


@THEME.case(
    "huge-limit",
    "A limit beyond any model is refused in good order, or brought down",
    sends="a limit of 1,000,000,000 tokens",
    expects="an answer, or status 400 and an error of the dialect; not a 5xx",
    why="agents ask for as much as there is",
    level="should",
)
def huge_limit(talk: Talk) -> None:
    body = _limited(talk, 1_000_000_000)
    got = _post(talk, body)
    if got.status == 200:
        talk.wire.read(talk.document(got))
        return
    found = talk.refusal(got)
    talk.learn("max_tokens", "", False, str(found))
    _status(found, 400, 422)


@THEME.case(
    "unknown-path",
    "A path that is not there is a 404 with an error of the dialect",
    sends="a POST to the path with `-nowhere` behind it",
    expects="status 404 (or 405) and an error of the dialect",
    why="HTML and plain text end in errors of parsers, far from their cause",
    level="should",
    cost="free",
)
def unknown_path(talk: Talk) -> None:
    path = talk.path("models") + "-nowhere"
    _status(talk.refusal(talk.post(encode(_body(talk)), path)), 404, 405)


@THEME.case(
    "too-large",
    "A body that is too large is refused with 413",
    sends="a body of 36 MB",
    expects="status 413 (or 400) and an error of the dialect, or an answer; not a broken connection",
    why="clients compact their history after a 413",
    level="should",
    cost="large",
)
def too_large(talk: Talk) -> None:
    body = talk.wire.body(talk.model, ask("rivers " * (_MUCH // 7)))
    got = _post(talk, body)
    if got.status != 200:
        _status(talk.refusal(got), 400, 413)
