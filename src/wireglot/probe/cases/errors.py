"""Cases about errors, unknown fields and lists of models."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.cases.answers import counted
from wireglot.probe.cases.prompts import HELLO, LONG, must_speak
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ProbeQuestion, ask
from wireglot.probe.reply import Broken, NotApplicable
from wireglot.probe.talk import Refused, Talk, Theme
from wireglot.wire.json import encode

ERRORS: Final = Theme("errors", "Errors")
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
    "bad-json",
    "A body that is no JSON is refused",
    sends='`{"model": `',
    expects="status 400 or 422 and an error of the dialect",
    why="a 500 is asked again by every SDK",
    cost="free",
)
def bad_json(talk: Talk) -> None:
    _status(talk.refusal(talk.post(b'{"model": ', talk.path("generate"))), 400, 422)


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


@ERRORS.case(
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


FIELDS: Final = Theme("fields", "Fields and settings")
_SAMPLING: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"temperature": 0.5},
    "openai-chat": {"temperature": 0.5, "seed": 7},
    "openai-responses": {"temperature": 0.5},
    "gemini": {"generationConfig": {"temperature": 0.5, "topK": 20, "seed": 7}},
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"metadata": {"user_id": "probe"}},
    "openai-chat": {"user": "probe"},
    "openai-responses": {"metadata": {"purpose": "probe"}, "user": "probe"},
}


@FIELDS.case(
    "unknown",
    "A field that nobody knows is left alone, or refused in good order",
    sends="a short question with the field x_wireglot_probe",
    expects="an answer, or status 400 or 422 with an error that names the field",
    why="clients send new fields before servers know them",
)
def unknown(talk: Talk) -> None:
    from wireglot.probe.talk import Refused

    try:
        must_speak(talk.ask(ask(HELLO, extra={"x_wireglot_probe": {"on": True}})))
    except Refused as refused:
        talk.learn("unknown_fields", "", False, str(refused))
        if refused.status not in (400, 422) or "x_wireglot_probe" not in refused.message:
            raise Broken(f"expected status 400 or 422 that names the field, found {refused}") from None
        return
    talk.learn("unknown_fields", "", True, "it was answered")


@FIELDS.case(
    "sampling",
    "Sampling may be set",
    sends="temperature (and seed or topK where the dialect has them)",
    expects="an answer, or a refusal in good order",
    why="thinking models refuse it; a gateway must not fail with a 500",
)
def sampling(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_SAMPLING[talk.wire.name]), "sampling"))


@FIELDS.case(
    "metadata",
    "The end user may be named",
    sends="metadata or user",
    expects="an answer, or a refusal in good order",
    why="Claude Code and agents send it with every request",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def metadata(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_METADATA[talk.wire.name]), "settings", "metadata"))


@FIELDS.case(
    "older-limit",
    "Chat's older name for the limit is known",
    sends="max_tokens instead of max_completion_tokens",
    expects="an answer no longer than the limit, or a refusal in good order",
    why="most clients still say it",
    dialects=("openai-chat",),
)
def older_limit(talk: Talk) -> None:
    from wireglot.probe.cases.prompts import LONG
    from wireglot.wire.json import encode

    body = talk.wire.body(talk.model, ask(LONG, most=16))
    body["max_tokens"] = body.pop("max_completion_tokens")
    got = talk.post(encode(body), talk.path("generate"))
    if got.status != 200:
        talk.learn("max_tokens_field", "max_tokens", False, str(talk.refusal(got)))
        return
    talk.learn("max_tokens_field", "max_tokens", True, "it was answered")
    reply = talk.wire.read(talk.document(got))
    if reply.stop != "length":
        raise Broken(f"the limit had no effect: {reply.stop_word!r}, {len(reply.text)} characters")


@FIELDS.case(
    "newer-limit",
    "Chat's newer name for the limit has an effect",
    sends="max_completion_tokens of 16",
    expects="an answer no longer than the limit, or a refusal in good order",
    why="a server that ignores it writes, and charges, without end",
    dialects=("openai-chat",),
)
def newer_limit(talk: Talk) -> None:
    from wireglot.probe.cases.prompts import LONG

    reply = talk.optional(ask(LONG, most=16), "max_tokens_field", "max_completion_tokens")
    if reply.stop != "length":
        talk.learn("max_tokens_field", "max_completion_tokens", False, "it has no effect")
        raise Broken(f"the limit had no effect: {reply.stop_word!r}, {len(reply.text)} characters")


@FIELDS.case(
    "cache-marks",
    "Marks for the cache may be set",
    sends="cache_control on the request",
    expects="an answer, or a refusal in good order",
    why="Claude Code sets four of them in every request",
    dialects=("anthropic",),
)
def cache_marks(talk: Talk) -> None:
    part = {"type": "text", "text": HELLO, "cache_control": {"type": "ephemeral"}}
    question = ask(HELLO, extra={"messages": [{"role": "user", "content": [part]}]})
    must_speak(talk.optional(question, "cache_markers"))


@FIELDS.case(
    "snake-case",
    "Gemini's fields may be written with underscores",
    sends="generation_config and system_instruction",
    expects="an answer that costs more tokens than without the system",
    why="proto-JSON takes both spellings, and clients use both",
    level="should",
    dialects=("gemini",),
)
def snake_case(talk: Talk) -> None:
    from wireglot.probe.cases.answers import counted
    from wireglot.probe.cases.prompts import SYSTEM

    bare = counted(talk.ask(ask(HELLO)))
    found = counted(talk.ask(ask(HELLO, extra={"system_instruction": {"parts": [{"text": SYSTEM}]}})))
    if found.input <= bare.input:
        raise Broken(f"{bare.input} input tokens without, {found.input} with it")


LISTS: Final = Theme("lists", "Models and counts")
_COUNTING: Final = ("anthropic", "openai-responses", "gemini")
_ABSENT: Final = frozenset({404, 405, 501})


@LISTS.case(
    "models",
    "Models are listed in the dialect's shape",
    sends="GET models",
    expects="a list with every field that its SDK reads",
    why="clients fill their menus from it",
    cost="free",
)
def models(talk: Talk) -> None:
    got = talk.get(talk.path("models"))
    if got.status in _ABSENT:
        raise NotApplicable("it lists no models")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    if not talk.wire.models(talk.document(got)):
        raise Broken("the list is empty")


@LISTS.case(
    "listed",
    "The model that was asked for is in the list",
    sends="GET models",
    expects="its name",
    why="clients refuse names that are not listed",
    level="should",
    cost="free",
)
def listed(talk: Talk) -> None:
    got = talk.get(talk.path("models"))
    if got.status in _ABSENT:
        raise NotApplicable("it lists no models")
    names = talk.wire.models(talk.document(got))
    if talk.model.removeprefix("models/") not in names:
        raise Broken(f"{talk.model} is none of the {len(names)} that are listed")


def _count(talk: Talk, question: ProbeQuestion) -> int:
    body = talk.wire.count_body(talk.model, question)
    assert body is not None
    got = talk.post(encode(body), talk.path("count"))
    if got.status in _ABSENT:
        talk.learn("counts", "", False, f"status {got.status}")
        raise NotApplicable("it does not count")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    talk.learn("counts", "", True, "it counts")
    return talk.wire.count(talk.document(got))


@LISTS.case(
    "count",
    "Tokens are counted in the dialect's shape",
    sends="a short question to the counting endpoint",
    expects="input_tokens | totalTokens above 0",
    why="clients decide by it when to compact",
    cost="free",
    dialects=_COUNTING,
)
def count(talk: Talk) -> None:
    if _count(talk, ask(HELLO)) < 1:
        raise Broken("0 tokens")


@LISTS.case(
    "count-grows",
    "A longer prompt counts more",
    sends="a short and a long question",
    expects="more tokens for the long one",
    why="a made-up count keeps clients from compacting in time",
    cost="free",
    dialects=_COUNTING,
)
def count_grows(talk: Talk) -> None:
    short, long = _count(talk, ask(HELLO)), _count(talk, ask(LONG))
    if long <= short:
        raise Broken(f"{short} for a short prompt, {long} for a long one")


@LISTS.case(
    "count-agrees",
    "The count agrees with the usage of an answer",
    sends="the same question counted and answered",
    expects="not more than half as much again, or half, apart",
    why="as above; counts are estimates",
    level="should",
    dialects=_COUNTING,
)
def count_agrees(talk: Talk) -> None:
    counts, used = _count(talk, ask(LONG)), counted(talk.ask(ask(LONG, most=16))).input
    if not used / 2 - 8 <= counts <= used * 1.5 + 8:
        raise Broken(f"counted {counts}, used {used}")
