"""The grammar of streams, a rule a case."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import (
    EXACT,
    HELLO,
    LONG,
    ONE_CITY,
    TWO_CITIES,
    WEATHER,
    WEATHER_FORCED,
    WORDS,
    called,
    check_made_several,
    check_told_apart,
)
from wireglot.probe.question import ask
from wireglot.probe.reply import Broken, Inconclusive
from wireglot.probe.talk import Talk, Theme

STREAMS: Final = Theme("streams", "Streams")
_SENDS: Final = "a short question, streamed"
_STREAMED: Final = replace(WEATHER_FORCED, stream=True)


@STREAMS.case(
    "content-type",
    "A stream is server-sent events and says so",
    sends=_SENDS,
    expects="status 200, content-type: text/event-stream, at least one frame",
    why="SDKs and browsers read no stream otherwise",
)
def content_type(talk: Talk) -> None:
    talk.stream(ask(HELLO))
    kind = talk.exchanges[-1].kind
    if not kind.lower().startswith("text/event-stream"):
        raise Broken(f"content-type: expected text/event-stream, found {kind or 'none'}")


@STREAMS.case(
    "frames",
    "Each frame is named and framed as the dialect's SDK reads it",
    sends=_SENDS,
    expects="JSON in every frame; Anthropic: `event:` equal to the type; Responses: so too, if there; "
    "Chat: no names; Gemini: nothing but `data: `",
    why="Anthropic's SDK drops frames without a name, Google's raises at comments and names",
)
def frames(talk: Talk) -> None:
    talk.stream(ask(HELLO)).require("frames")


@STREAMS.case(
    "opening",
    "A stream begins as the dialect says",
    sends=_SENDS,
    expects="message_start | a chunk with the role | response.created | a chunk with responseId, each whole",
    why="accumulators are built from the first event",
)
def opening(talk: Talk) -> None:
    talk.stream(ask(HELLO)).require("opening")


@STREAMS.case(
    "order",
    "Blocks, items and parts begin, grow and end in that order",
    sends=_SENDS,
    expects="no delta before its start or behind its end; every start has its end; `done` texts equal "
    "their deltas",
    why="an SDK raises at a delta for something that is not open",
)
def order(talk: Talk) -> None:
    talk.stream(ask(HELLO)).require("order")


@STREAMS.case(
    "nulls",
    "A field that may be null is there all the same, in a stream too",
    sends="a short question, and one that a tool is called for; streamed",
    expects="in message_start, content_block_start and message_delta the fields of a whole answer | "
    "finish_reason in every chunk: null, and not missing",
    why="the vendors' OpenAPI documents require it; SDKs take a missing one for null, strict readers do not",
    level="should",
    dialects=("anthropic", "openai-chat"),
)
def nulls(talk: Talk) -> None:
    talk.stream(ask(HELLO)).require("nulls")
    called(talk, _STREAMED).require("nulls")


@STREAMS.case(
    "indexes",
    "Indexes and sequence numbers count from 0 without gaps",
    sends="a question that makes the model call a tool, streamed",
    expects="index, output_index, tool_calls[].index and sequence_number without gaps or repeats",
    why="SDKs look blocks up by index: a gap is an IndexError",
)
def indexes(talk: Talk) -> None:
    called(talk, _STREAMED).require("indexes")


@STREAMS.case(
    "identity",
    "Ids stay the same over a whole stream",
    sends="a question that makes the model call a tool, streamed",
    expects="one id, one model, one creation time in all chunks; items keep id and call_id to the end",
    why="the Responses SDK raises `identity changed`; others mix two answers up",
    dialects=("openai-chat", "openai-responses", "gemini"),
)
def identity(talk: Talk) -> None:
    called(talk, _STREAMED).require("identity")


@STREAMS.case(
    "ending",
    "A stream ends once, and says why",
    sends=_SENDS,
    expects="one stop reason; message_stop | [DONE] | response.completed | finishReason last and once; "
    "nothing behind it",
    why="clients take a stream without its end for a broken one and ask again",
)
def ending(talk: Talk) -> None:
    talk.stream(ask(HELLO)).require("ending")


@STREAMS.case(
    "text",
    "The deltas make the whole text",
    sends="`Reply with exactly this and nothing else: …`, streamed",
    expects="that text, once",
    why="deltas that are repeated, lost or out of order show here",
)
def text(talk: Talk) -> None:
    reply, whole = talk.stream(ask(EXACT)), talk.ask(ask(EXACT)).text
    reply.require("order")
    said = reply.text
    if said.strip() == whole.strip() and WORDS in said:
        return
    if whole.strip() == WORDS and set(said.split()) <= set(WORDS.split()):
        raise Broken(f"the deltas make {said[:80]!r}, the whole answer was {whole[:80]!r}")
    raise Inconclusive(f"the model said {said[:80]!r}")


@STREAMS.case(
    "pieces",
    "A long text comes in several pieces",
    sends="a question for a long text, streamed",
    expects="more than one delta",
    why="a stream in one piece is a whole answer that took as long",
    level="should",
    cost="medium",
)
def pieces(talk: Talk) -> None:
    reply = talk.stream(ask(LONG, most=300))
    if len(reply.text) < 100:
        raise Inconclusive(f"the model said only {reply.text!r}")
    if reply.pieces < 2:
        raise Broken(f"{len(reply.text)} characters came in {reply.pieces} piece")


@STREAMS.case(
    "call",
    "A streamed call has its id and name once, and pieces that make a JSON object",
    sends="a question that makes the model call a tool, streamed",
    expects="id and name in the first piece only; arguments that join to one JSON object; never both in "
    "the start and in deltas",
    why="SDKs join repeated ids; clients that join start and deltas get invalid JSON (R-AJ-01 to R-AJ-09)",
)
def call(talk: Talk) -> None:
    reply = called(talk, _STREAMED)
    reply.require("calls")
    if '"city"' not in reply.calls[0].arguments:
        raise Broken(f"the arguments have no city: {reply.calls[0].arguments[:120]!r}")


@STREAMS.case(
    "call-grammar",
    "A stream with a call keeps to the grammar as one with text does",
    sends="a question that makes the model call a tool, streamed",
    expects="no fault of any rule, and a stop reason that tells of the call",
    why="many gateways translate texts well and calls badly",
)
def call_grammar(talk: Talk) -> None:
    reply = called(talk, _STREAMED)
    reply.require()
    if reply.stop != "tool":
        raise Broken(f"the stop reason is {reply.stop_word!r} (R-AJ-11)")


@STREAMS.case(
    "parallel",
    "Several calls in one stream are kept apart",
    sends="a question for the weather of two cities, streamed",
    expects="two calls with two ids and each its own arguments",
    why="pieces of parallel calls that are mixed up call the wrong tool",
)
def parallel(talk: Talk) -> None:
    reply = talk.stream(ask(TWO_CITIES, tools=(WEATHER,)))
    check_made_several(reply)
    reply.require()
    check_told_apart(reply)


@STREAMS.case(
    "usage",
    "A stream tells its usage where it is asked to",
    sends="a short question, streamed; on Chat with include_usage",
    expects="usage at the dialect's place, behind the answer",
    why="without it nobody can account for the request",
)
def usage(talk: Talk) -> None:
    reply = talk.stream(ask(HELLO))
    reply.require("usage")
    if reply.usage is None:
        raise Broken("no usage was told")


@STREAMS.case(
    "usage-unasked",
    "Chat tells usage only where it is asked to",
    sends="a short question, streamed, without stream_options",
    expects="no chunk with usage",
    why="clients that index `choices[0]` break on the usage chunk, which has no choices",
    level="should",
    dialects=("openai-chat",),
)
def usage_unasked(talk: Talk) -> None:
    talk.stream(ask(HELLO, usage=False)).require("usage")


@STREAMS.case(
    "refusal",
    "What is wrong with a request for a stream is told before the stream",
    sends="a request for a stream without messages",
    expects="status 400 or 422 and an error document, not a stream with status 200",
    why="SDKs raise by the status: an error inside a stream is found late or never",
    cost="free",
)
def refusal(talk: Talk) -> None:
    from wireglot.wire.json import encode

    field = {"openai-responses": "input", "gemini": "contents"}.get(talk.wire.name, "messages")
    body = talk.wire.body(talk.model, ask(ONE_CITY, stream=True))
    del body[field]
    found = talk.refusal(talk.post(encode(body), talk.path("stream")))
    if found.status not in (400, 422):
        raise Broken(f"expected status 400 or 422, found {found}")
