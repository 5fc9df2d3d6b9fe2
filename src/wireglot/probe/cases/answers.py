"""Whole answers: their shape, identity and headers."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import EXACT, HELLO, WORDS, called
from wireglot.probe.question import ask
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable

THEME: Final = Theme("answers", "Whole answers")


@THEME.case(
    "shape",
    "A whole answer has every field that clients read",
    sends="a short question, not streamed",
    expects="status 200; all required fields with their types; a known stop reason; usage",
    why="the vendors' SDKs have these fields without a default: a missing one is an AttributeError",
)
def shape(talk: Talk) -> None:
    reply = talk.ask(ask(HELLO))
    if not reply.text.strip():
        raise Broken("the answer has no text")
    if not reply.id or not reply.model:
        raise Broken(f"the answer tells no {'model' if reply.id else 'id'}")


@THEME.case(
    "nulls",
    "A field that may be null is there all the same",
    sends="a short question, and one that a tool is called for; not streamed",
    expects="stop_sequence, stop_details, container, each count of usage, citations of a text, caller of a "
    "call | logprobs, refusal, the content of a call: null, and not missing",
    why="the vendors always send it; SDKs take a missing one for null, strict readers do not",
    level="should",
    dialects=("anthropic", "openai-chat"),
)
def nulls(talk: Talk) -> None:
    talk.ask(ask(HELLO)).require("nulls")
    called(talk).require("nulls")


@THEME.case(
    "content-type",
    "A whole answer is JSON and says so",
    sends="a short question, not streamed",
    expects="content-type: application/json",
    why="SDKs parse by the content type; text/plain comes out as a string",
)
def content_type(talk: Talk) -> None:
    got = talk.send(ask(HELLO))
    kind = got.headers.get("content-type", "")
    if got.status == 200 and not kind.lower().startswith("application/json"):
        raise Broken(f"content-type: expected application/json, found {kind or 'none'}")
    talk.ask(ask(HELLO))


@THEME.case(
    "ids-differ",
    "Two answers have two ids",
    sends="two different questions",
    expects="two different ids",
    why="clients and logs tell answers apart by them",
)
def ids_differ(talk: Talk) -> None:
    first, second = talk.ask(ask(HELLO)), talk.ask(ask(EXACT))
    if not first.id or not second.id:
        raise NotApplicable("an answer has no id: answers.shape tells it")
    if first.id == second.id:
        raise Broken(f"both answers have the id {first.id!r}")


@THEME.case(
    "obeys",
    "The words of the question reach the model, and its words come back",
    sends="`Reply with exactly this and nothing else: …`",
    expects="that text, whole and in order",
    why="what is cut, reordered or decorated on the way is found here",
)
def obeys(talk: Talk) -> None:
    text = talk.ask(ask(EXACT)).text
    if WORDS not in " ".join(text.split()):
        raise Inconclusive(f"the model said {text[:80]!r}")
    if text.count(WORDS) > 1:
        raise Broken(f"the words came {text.count(WORDS)} times")


@THEME.case(
    "end",
    "An answer that is complete says so",
    sends="a short question",
    expects="end_turn, stop, completed or STOP",
    why="agents go on or stop by it",
)
def end(talk: Talk) -> None:
    reply = talk.ask(ask(HELLO))
    if reply.stop == "length":
        raise Inconclusive("the model did not come to its end")
    if reply.stop != "end":
        raise Broken(f"the stop reason is {reply.stop_word!r}")


@THEME.case(
    "request-id",
    "An answer tells under which id it is in the server's log",
    sends="a short question",
    expects="a header request-id, x-request-id or another that ends so",
    why="support asks for it; the SDKs offer it as `_request_id`",
    level="should",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def request_id(talk: Talk) -> None:
    headers = talk.send(ask(HELLO)).headers
    if not any(name.endswith(("request-id", "requestid")) for name in headers):
        raise Broken(f"no such header among {', '.join(sorted(headers))}")
