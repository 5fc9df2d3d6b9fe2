"""Cases about answers: their shape, their text, why they stop, what they used."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import (
    EXACT,
    HELLO,
    LONG,
    SYSTEM,
    WEATHER,
    WEATHER_FORCED,
    WORDS,
    called,
    must_speak,
    with_results,
)
from wireglot.probe.question import Called, Midway, ProbeQuestion, ProbeResult, User, ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply, ProbeUsage
from wireglot.probe.talk import Talk, Theme

ANSWERS: Final = Theme("answers", "Whole answers")


@ANSWERS.case(
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


@ANSWERS.case(
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


@ANSWERS.case(
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


@ANSWERS.case(
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


@ANSWERS.case(
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


@ANSWERS.case(
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


@ANSWERS.case(
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


USAGE: Final = Theme("usage", "Usage")
_HISTORY: Final = ProbeQuestion(
    turns=(User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 8), User((HELLO,)))
)


def counted(reply: ProbeReply) -> ProbeUsage:
    if reply.usage is None:
        raise Broken("no usage was told")
    return reply.usage


@USAGE.case(
    "positive",
    "An answer costs something",
    sends="a short question",
    expects="input and output above 0",
    why="0 tokens are accounted as a free request",
)
def positive(talk: Talk) -> None:
    usage = counted(talk.ask(ask(HELLO)))
    if usage.input < 1 or usage.output < 1:
        raise Broken(f"input {usage.input}, output {usage.output}")


@USAGE.case(
    "total",
    "The total is the sum of its parts",
    sends="a short question, whole and streamed",
    expects="total = input + output (Gemini: + thoughts + prompts of tools)",
    why="budgets are kept by the total",
    dialects=("openai-chat", "openai-responses", "gemini"),
)
def total(talk: Talk) -> None:
    for reply in (talk.ask(ask(HELLO)), talk.stream(ask(HELLO))):
        usage = counted(reply)
        if usage.total != usage.input + usage.output:
            raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")


@USAGE.case(
    "stream-equals-whole",
    "A stream counts the same prompt alike",
    sends="the same question whole and streamed",
    expects="the same input tokens; the same output tokens where the texts are equal",
    why="who counts streams otherwise cannot be compared with the bill",
)
def stream_equals_whole(talk: Talk) -> None:
    whole, stream = talk.ask(ask(EXACT)), talk.stream(ask(EXACT))
    one, other = counted(whole), counted(stream)
    if one.input != other.input:
        raise Broken(f"input tokens: {one.input} whole, {other.input} streamed")
    if whole.text == stream.text and not one.reasoning and not other.reasoning and one.output != other.output:
        raise Broken(f"output tokens of the same text: {one.output} whole, {other.output} streamed")


@USAGE.case(
    "grows",
    "A longer prompt costs more",
    sends="a short question alone, and at the end of a history",
    expects="more input tokens with the history, cached ones included",
    why="where it does not grow, history is cut or usage is made up",
)
def grows(talk: Talk) -> None:
    short, long = counted(talk.ask(ask(HELLO))), counted(talk.ask(_HISTORY))
    if long.input < short.input + 50:
        raise Broken(f"{short.input} tokens alone, {long.input} with some 150 more before it")


@USAGE.case(
    "cached",
    "What was cached is a part of the input",
    sends="a conversation of two turns",
    expects="cached tokens, where they are told, not above the input",
    why="cached tokens cost a tenth: who adds them to the input charges them twice",
    cost="medium",
)
def cached(talk: Talk) -> None:
    reply = called(talk)
    results = (ProbeResult(call, "17 degrees and rain") for call in reply.calls)
    usage = counted(talk.ask(with_results(WEATHER_FORCED, reply, *results)))
    if usage.cached is None:
        raise NotApplicable("it tells nothing of a cache")
    if usage.cached > usage.input:
        raise Broken(f"{usage.cached} cached of {usage.input} input tokens")
    plain = counted(reply)
    if usage.input > 20 * plain.input + 200:
        raise Broken(f"{plain.input} input tokens became {usage.input} with one result more")


@USAGE.case(
    "output-follows",
    "Output tokens follow the length of the answer",
    sends="a question for a long text with a limit of 16 tokens, and one with 300",
    expects="at most 16 tokens in the first; more in the second",
    why="output is the dear part of a bill",
    cost="medium",
)
def output_follows(talk: Talk) -> None:
    short, long = talk.ask(ask(LONG, most=16)), talk.ask(ask(LONG, most=300))
    if len(long.text) < 3 * max(1, len(short.text)):
        raise Inconclusive(f"the model said only {len(long.text)} characters")
    if counted(short).output > 16:
        raise Broken(f"{counted(short).output} output tokens of at most 16")
    if counted(long).output <= counted(short).output:
        raise Broken(f"{counted(short).output} tokens, and {counted(long).output} for three times the text")


@USAGE.case(
    "tools",
    "Tools that are offered cost input",
    sends="the same question with a tool and without",
    expects="more input tokens with the tool",
    why="a tool that costs nothing was not offered to the model",
    level="should",
)
def tools(talk: Talk) -> None:
    bare, offered = (
        counted(talk.ask(ask(HELLO))),
        counted(talk.ask(ask(HELLO, tools=(WEATHER,), choice="auto"))),
    )
    if offered.input <= bare.input:
        raise Broken(f"{bare.input} without, {offered.input} with")


@USAGE.case(
    "reasoning",
    "Tokens of reasoning are a part of the output",
    sends="a question with thinking asked for",
    expects="reasoning tokens, where they are told, not above the output",
    why="they are billed as output",
    cost="medium",
)
def reasoning(talk: Talk) -> None:
    usage = counted(talk.think(ask(HELLO)))
    if usage.reasoning is None:
        raise NotApplicable("it tells no tokens of reasoning")
    if usage.reasoning > usage.output:
        raise Broken(f"{usage.reasoning} of reasoning in {usage.output} of output")
    if usage.total is not None and usage.total != usage.input + usage.output:
        raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")


TEXTS: Final = Theme("texts", "Texts and systems")
_LETTERS: Final = 'Grüße, naïve café — 東京 Ελλάδα עברית 🙂 a\\b "c" <d> & e'
_SAY_LETTERS: Final = f"Reply with exactly this and nothing else: {_LETTERS}"


def _costs_more(talk: Talk, question: ProbeQuestion, tokens: int, what: str, value: str = "") -> None:
    """What reaches the model is paid for: so it is seen, whatever the model makes of it."""
    bare = counted(talk.ask(ask(HELLO)))
    reply = talk.optional(question, what, value) if what else talk.ask(question)
    must_speak(reply)
    if counted(reply).input < bare.input + tokens:
        raise Broken(
            f"it did not reach the model: {bare.input} input tokens without, {counted(reply).input} with it"
        )


@TEXTS.case(
    "parts",
    "A question may be a list of text parts",
    sends="two text parts, the first of them long",
    expects="an answer that costs as many tokens as both",
    why="Claude Code sends lists; endpoints that read only the first or last part lose the rest",
)
def parts(talk: Talk) -> None:
    _costs_more(talk, ProbeQuestion(turns=(User((LONG, HELLO), parts=True),)), 15, "text_parts", "user")


@TEXTS.case(
    "system",
    "A system text is taken where the dialect has its place",
    sends="system | a system message | instructions | systemInstruction",
    expects="an answer that costs more tokens than without",
    why="a system that is lost shows in nothing else",
)
def system(talk: Talk) -> None:
    _costs_more(talk, ask(HELLO, system=(SYSTEM,)), 8, "")


@TEXTS.case(
    "system-parts",
    "A system may be a list of texts",
    sends="two system texts as a list of parts",
    expects="an answer that costs more tokens than without",
    why="Claude Code sends several blocks, each with its own cache mark",
)
def system_parts(talk: Talk) -> None:
    question = ask(HELLO, system=(SYSTEM, "Speak English."), system_parts=True)
    _costs_more(talk, question, 16, "text_parts", "system")


@TEXTS.case(
    "system-stream",
    "A system text is taken in a stream too",
    sends="a system text, streamed",
    expects="the same input tokens as in a whole answer",
    why="streams often have a path of their own",
    level="should",
)
def system_stream(talk: Talk) -> None:
    question = ask(HELLO, system=(SYSTEM,))
    whole, stream = counted(talk.ask(question)), counted(talk.stream(question))
    if whole.input != stream.input:
        raise Broken(f"{whole.input} input tokens whole, {stream.input} streamed")


@TEXTS.case(
    "system-midway",
    "The system may speak in the middle of a conversation",
    sends="a system message behind a question",
    expects="an answer, or a refusal in good order",
    why="Claude Code and agents remind the model so; some templates refuse it",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def system_midway(talk: Talk) -> None:
    turns = (User((HELLO,)), Called("Hello!"), User((HELLO,)), Midway(SYSTEM))
    must_speak(talk.optional(ProbeQuestion(turns=turns), "system_midway"))


@TEXTS.case(
    "developer",
    "The role developer is known",
    sends="a message with the role developer",
    expects="an answer, or a refusal in good order",
    why="OpenAI's newer name for the system; clones often refuse it",
    dialects=("openai-chat", "openai-responses"),
)
def developer(talk: Talk) -> None:
    question = ProbeQuestion(turns=(Midway(SYSTEM, "developer"), User((HELLO,))))
    _costs_more(talk, question, 8, "developer_role")


@TEXTS.case(
    "history",
    "Earlier turns are taken",
    sends="a conversation of three turns",
    expects="an answer that costs more tokens than the last turn alone",
    why="a gateway that forwards only the last message is no gateway",
)
def history(talk: Talk) -> None:
    turns = (User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 4), User((HELLO,)))
    _costs_more(talk, ProbeQuestion(turns=turns), 40, "")


@TEXTS.case(
    "two-users",
    "Two turns of the user may follow one another",
    sends="two user messages in a row",
    expects="an answer that costs as many tokens as both",
    why="clients add reminders and attachments so",
)
def two_users(talk: Talk) -> None:
    _costs_more(talk, ProbeQuestion(turns=(User((LONG,)), User((HELLO,)))), 15, "")


@TEXTS.case(
    "letters",
    "Letters of every script come through",
    sends="umlauts, dashes, CJK, Greek, Hebrew, emoji, quotes and backslashes to be repeated",
    expects="the same letters, whole and streamed",
    why="a stream that is cut inside a character or escaped twice",
)
def letters(talk: Talk) -> None:
    for said in (talk.ask(ask(_SAY_LETTERS)).text, talk.stream(ask(_SAY_LETTERS)).text):
        if _LETTERS in said:
            continue
        if "�" in said or "\\u" in said or "Ã" in said or "&lt;" in said:
            raise Broken(f"letters came back broken: {said[:160]!r}")
        if "Gr" in said and "naïve" not in said and "東京" not in said:
            raise Broken(f"letters are missing: {said[:160]!r}")
        raise Inconclusive(f"the model said {said[:160]!r}")


@TEXTS.case(
    "picture",
    "A question may hold a picture",
    sends="a small PNG in base64 and a text",
    expects="an answer, or a refusal in good order",
    why="screenshots are pasted into every client",
)
def picture(talk: Talk) -> None:
    question = ProbeQuestion(turns=(User(("What colour is this? One word.",), picture=True),))
    must_speak(talk.optional(question, "media", "image"))


STOPS: Final = Theme("stops", "Stop reasons")
_SHORT: Final = ask(LONG, most=16)
_STOPPED: Final = ask(EXACT, stop=("yellow",))
_STOPPING: Final = ("anthropic", "openai-chat", "gemini")


def _cut(reply: ProbeReply) -> None:
    if reply.stop != "length":
        raise Broken(f"the stop reason is {reply.stop_word!r}, though no more than 16 tokens were allowed")
    if len(reply.text) > 400:
        raise Broken(f"{len(reply.text)} characters came, though no more than 16 tokens were allowed")


@STOPS.case(
    "length",
    "An answer that was cut at its limit says so",
    sends="a question for a long text with a limit of 16 tokens",
    expects="max_tokens | length | incomplete, max_output_tokens | MAX_TOKENS",
    why="clients go on or warn by it; a cut answer that claims to be complete is taken for the truth",
)
def length(talk: Talk) -> None:
    _cut(talk.ask(_SHORT))


@STOPS.case(
    "length-stream",
    "The same in a stream",
    sends="the same, streamed",
    expects="the same stop reason, and a stream in good order",
    why="in Responses it is another event: response.incomplete",
)
def length_stream(talk: Talk) -> None:
    reply = talk.stream(_SHORT)
    reply.require()
    _cut(reply)


def _halted(reply: ProbeReply, name: str) -> None:
    if "red" not in reply.text and reply.text.strip():
        raise Inconclusive(f"the model said {reply.text[:80]!r}")
    if "yellow" in reply.text:
        raise Broken(f"the text has the stop sequence in it: {reply.text[:80]!r}")
    if "green" in reply.text:
        raise Broken(f"the text goes on behind the stop sequence: {reply.text[:80]!r}")
    wanted = {"anthropic": ("stop_sequence", "end_turn"), "openai-chat": ("stop",), "gemini": ("STOP",)}[name]
    if reply.stop_word not in wanted:
        raise Broken(f"expected the stop reason {wanted[0]!r}, found {reply.stop_word!r}")


@STOPS.case(
    "sequence",
    "A stop sequence ends the answer before it",
    sends="`Reply with exactly this…: red orange yellow…` with the stop sequence `yellow`",
    expects="text that ends before it; stop_sequence (or end_turn) | stop | STOP",
    why="parsers of ReAct agents depend on it",
    dialects=_STOPPING,
    excuses=("stop_sequences",),
)
def sequence(talk: Talk) -> None:
    _halted(talk.optional(_STOPPED, "stop_max"), talk.wire.name)


@STOPS.case(
    "sequence-stream",
    "The same in a stream",
    sends="the same, streamed",
    expects="the same; no piece of the stop sequence is sent",
    why="a sequence that is cut over two deltas is easily sent in part",
    dialects=_STOPPING,
    excuses=("stop_sequences",),
)
def sequence_stream(talk: Talk) -> None:
    reply = talk.optional(replace(_STOPPED, stream=True), "stop_max")
    reply.require()
    _halted(reply, talk.wire.name)


@STOPS.case(
    "several-sequences",
    "Four stop sequences may be given",
    sends="a short question with four stop sequences",
    expects="an answer, or a refusal in good order",
    why="OpenAI takes four, Gemini five; some take one",
    level="should",
    dialects=_STOPPING,
    excuses=("stop_sequences",),
)
def several_sequences(talk: Talk) -> None:
    question: ProbeQuestion = ask(EXACT, stop=("purple", "violet", "yellow", "brown"))
    reply = talk.optional(question, "stop_max", "4")
    if "yellow" in reply.text:
        raise Broken(f"the third of four stop sequences is in the text: {reply.text[:80]!r}")


@STOPS.case(
    "which-sequence",
    "Anthropic tells which stop sequence matched",
    sends="the same question, whole and streamed",
    expects="stop_sequence as the reason and the sequence beside it; never the one without the other",
    why="clients with several sequences branch by it; does not apply where end_turn is told: no other "
    "dialect has a word for it, so a gateway may not know",
    dialects=("anthropic",),
    excuses=("stop_sequences",),
)
def which_sequence(talk: Talk) -> None:
    for reply in (talk.optional(_STOPPED, "stop_max"), talk.stream(_STOPPED)):
        if "red" not in reply.text:
            raise Inconclusive(f"the model said {reply.text[:80]!r}")
        if reply.stop_word == "end_turn" and reply.sequence is None and "yellow" not in reply.text:
            raise NotApplicable("it does not tell that a stop sequence matched")
        if reply.stop_word != "stop_sequence" or reply.sequence != "yellow":
            raise Broken(f"stop_reason {reply.stop_word!r} with stop_sequence {reply.sequence!r}")
