"""Cases about errors, unknown fields and lists of models."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.cases.answers import counted
from wireglot.probe.cases.prompts import HELLO, LONG, SYSTEM, must_speak
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ProbeQuestion, ask
from wireglot.probe.reply import Broken, NotApplicable, ProbeReply
from wireglot.probe.talk import INVALID, LIMITS, Refused, Talk, Theme
from wireglot_core.wire.json import encode

ERRORS: Final = Theme("errors")
_WRONG_KEY: Final = "sk-wireglot-probe-0000000000000000"
_NO_MODEL: Final = "no-such-model-of-the-probe"
_MUCH: Final = 36 * 2**20


def _body(talk: Talk) -> dict[str, Any]:
    return talk.wire.body(talk.model, ask(HELLO))


def _post(talk: Talk, body: dict[str, Any], **more: Any) -> Got:
    return talk.post(encode(body), talk.path("generate"), **more)


@ERRORS.case("missing-key")
def missing_key(talk: Talk, key: str = "") -> None:
    got = _post(talk, _body(talk), key=key)
    if got.status == 200:
        raise NotApplicable("it accepts requests without a key, or with any key")
    talk.refuses(got, *talk.wire.key_refusals)


@ERRORS.case("wrong-key")
def wrong_key(talk: Talk) -> None:
    missing_key(talk, _WRONG_KEY)
    if _WRONG_KEY in talk.exchanges[-1].answer:
        raise Broken("the error repeats the key")


@ERRORS.case("unknown-model")
def unknown_model(talk: Talk) -> None:
    body = talk.wire.body(_NO_MODEL, ask(HELLO))
    got = talk.post(encode(body), talk.path("generate", _NO_MODEL))
    if got.status == 200:
        raise NotApplicable("it accepts any model name")
    found = talk.refuses(got, 400, 403, 404)
    if _NO_MODEL not in found.message:
        raise Broken(f"the message does not name the model: {found.message[:120]!r}")


@ERRORS.case("bad-json")
def bad_json(talk: Talk) -> None:
    talk.refuses(talk.post(b'{"model": ', talk.path("generate")), *INVALID)


@ERRORS.case("missing-field")
def missing_field(talk: Talk) -> None:
    body, field = _body(talk), talk.wire.turns
    del body[field]
    found = talk.refuses(_post(talk, body), *INVALID)
    if field not in found.message:
        raise Broken(f"the message does not name {field}: {found.message[:160]!r}")


@ERRORS.case("missing-limit")
def missing_limit(talk: Talk) -> None:
    body = _body(talk)
    del body["max_tokens"]
    got = _post(talk, body)
    if got.status == 200:
        talk.wire.read(talk.document(got))
    else:
        talk.refuses(got, *INVALID)


@ERRORS.case("wrong-type")
def wrong_type(talk: Talk) -> None:
    talk.refuses(_post(talk, _body(talk) | {talk.wire.turns: 17}), *INVALID)


def _limited(talk: Talk, most: object) -> dict[str, Any]:
    """A request with this limit, in the dialect's field for it."""
    body = _body(talk)
    settings = body.get(talk.wire.settings, body)
    for name in LIMITS:
        if name in settings:
            settings[name] = most
    return body


@ERRORS.case("wrong-limit")
def wrong_limit(talk: Talk) -> None:
    talk.refuses(_post(talk, _limited(talk, "many")), *INVALID)


@ERRORS.case("huge-limit")
def huge_limit(talk: Talk) -> None:
    got = _post(talk, _limited(talk, 1_000_000_000))
    if got.status == 200:
        talk.wire.read(talk.document(got))
        return
    talk.learn("max_tokens", "", False, str(talk.refusal(got)))
    talk.refuses(got, *INVALID)


@ERRORS.case("unknown-path")
def unknown_path(talk: Talk) -> None:
    talk.refuses(talk.post(encode(_body(talk)), talk.path("models") + "-nowhere"), 404, 405)


@ERRORS.case("too-large")
def too_large(talk: Talk) -> None:
    got = _post(talk, talk.wire.body(talk.model, ask("rivers " * (_MUCH // 7))))
    if got.status != 200:
        talk.refuses(got, 400, 413)


FIELDS: Final = Theme("fields")
_SAMPLING: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"temperature": 0.5},
    "openai-chat": {"temperature": 0.5, "seed": 7},
    "openai-responses": {"temperature": 0.5},
    "gemini": {"generationConfig": {"temperature": 0.5, "topK": 20, "seed": 7}},
    "ollama": {"options": {"temperature": 0.5, "top_k": 20, "seed": 7}},
    "gemini-interactions": {"generation_config": {"seed": 7}},
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"metadata": {"user_id": "probe"}},
    "openai-chat": {"user": "probe"},
    "openai-responses": {"metadata": {"purpose": "probe"}, "user": "probe"},
}


@FIELDS.case("unknown")
def unknown(talk: Talk) -> None:
    try:
        must_speak(talk.ask(ask(HELLO, extra={"x_wireglot_probe": {"on": True}})))
    except Refused as refused:
        talk.learn("unknown_fields", "", False, str(refused))
        if refused.status not in INVALID or "x_wireglot_probe" not in refused.message:
            raise Broken(f"expected status 400 or 422 that names the field, found {refused}") from None
        return
    talk.learn("unknown_fields", "", True, "the request was accepted")


@FIELDS.case("sampling")
def sampling(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_SAMPLING[talk.wire.name]), "sampling"))


@FIELDS.case("metadata")
def metadata(talk: Talk) -> None:
    must_speak(talk.optional(ask(HELLO, extra=_METADATA[talk.wire.name]), "settings", "metadata"))


def _require_cut(reply: ProbeReply) -> None:
    if reply.stop != "length":
        raise Broken(f"the limit had no effect: {reply.stop_word!r}, {len(reply.text)} characters")


@FIELDS.case("older-limit")
def older_limit(talk: Talk) -> None:
    body = talk.wire.body(talk.model, ask(LONG, most=16))
    body["max_tokens"] = body.pop("max_completion_tokens")
    got = _post(talk, body)
    if got.status != 200:
        talk.learn("max_tokens_field", "max_tokens", False, str(talk.refusal(got)))
        return
    talk.learn("max_tokens_field", "max_tokens", True, "the request was accepted")
    _require_cut(talk.wire.read(talk.document(got)))


@FIELDS.case("newer-limit")
def newer_limit(talk: Talk) -> None:
    reply = talk.optional(ask(LONG, most=16), "max_tokens_field", "max_completion_tokens")
    if reply.stop != "length":
        talk.learn("max_tokens_field", "max_completion_tokens", False, "it has no effect")
    _require_cut(reply)


@FIELDS.case("cache-marks")
def cache_marks(talk: Talk) -> None:
    part = {"type": "text", "text": HELLO, "cache_control": {"type": "ephemeral"}}
    question = ask(HELLO, extra={"messages": [{"role": "user", "content": [part]}]})
    must_speak(talk.optional(question, "cache_markers"))


@FIELDS.case("snake-case")
def snake_case(talk: Talk) -> None:
    bare = counted(talk.ask(ask(HELLO)))
    found = counted(talk.ask(ask(HELLO, extra={"system_instruction": {"parts": [{"text": SYSTEM}]}})))
    if found.input <= bare.input:
        raise Broken(f"{bare.input} input tokens without, {found.input} with it")


LISTS: Final = Theme("lists")
_ABSENT: Final = frozenset({404, 405, 501})


def _list(talk: Talk, page: str = "") -> Got:
    got = talk.get(talk.path("models") + page)
    if got.status in _ABSENT:
        raise NotApplicable("it lists no models")
    return got


@LISTS.case("models")
def models(talk: Talk) -> None:
    got = _list(talk)
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    if not talk.wire.models(talk.document(got)):
        raise Broken("the list is empty")


@LISTS.case("listed")
def listed(talk: Talk) -> None:
    """On any of its pages, since SDKs read all of them."""
    wanted, names, page = talk.model.removeprefix("models/"), set[str](), ""
    while wanted not in names:
        document = talk.document(_list(talk, page))
        found = set(talk.wire.models(document)) - names
        names |= found
        page = talk.wire.next_page(document)
        if wanted not in names and not (page and found):  # the last page, or the same one again
            raise Broken(f"{talk.model} is not one of the {len(names)} listed models")


def _count(talk: Talk, question: ProbeQuestion) -> int:
    body = talk.wire.count_body(talk.model, question)
    assert body is not None
    got = talk.post(encode(body), talk.path("count"))
    if got.status in _ABSENT:
        talk.learn("counts", "", False, f"status {got.status}")
        raise NotApplicable("it does not count tokens")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    talk.learn("counts", "", True, "it counts tokens")
    return talk.wire.count(talk.document(got))


@LISTS.case("count")
def count(talk: Talk) -> None:
    if _count(talk, ask(HELLO)) < 1:
        raise Broken("0 tokens")


@LISTS.case("count-grows")
def count_grows(talk: Talk) -> None:
    short, long = _count(talk, ask(HELLO)), _count(talk, ask(LONG))
    if long <= short:
        raise Broken(f"{short} for a short prompt, {long} for a long one")


@LISTS.case("count-agrees")
def count_agrees(talk: Talk) -> None:
    counts, used = _count(talk, ask(LONG)), counted(talk.ask(ask(LONG, most=16))).input
    if not used / 2 - 8 <= counts <= used * 1.5 + 8:
        raise Broken(f"counted {counts}, used {used}")
