"""Why an answer ended."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import EXACT, LONG
from wireglot.probe.question import Question, ask
from wireglot.probe.reply import Reply
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable

THEME: Final = Theme("stops", "Stop reasons")
_SHORT: Final = ask(LONG, most=16)
_STOPPED: Final = ask(EXACT, stop=("yellow",))
_STOPPING: Final = ("anthropic", "openai-chat", "gemini")


def _cut(reply: Reply) -> None:
    if reply.stop != "length":
        raise Broken(f"the stop reason is {reply.stop_word!r}, though no more than 16 tokens were allowed")
    if len(reply.text) > 400:
        raise Broken(f"{len(reply.text)} characters came, though no more than 16 tokens were allowed")


@THEME.case(
    "length",
    "An answer that was cut at its limit says so",
    sends="a question for a long text with a limit of 16 tokens",
    expects="max_tokens | length | incomplete, max_output_tokens | MAX_TOKENS",
    why="clients go on or warn by it; a cut answer that claims to be complete is taken for the truth",
)
def length(talk: Talk) -> None:
    _cut(talk.ask(_SHORT))


@THEME.case(
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


def _halted(reply: Reply, name: str) -> None:
    if "red" not in reply.text and reply.text.strip():
        raise Inconclusive(f"the model said {reply.text[:80]!r}")
    if "yellow" in reply.text:
        raise Broken(f"the text has the stop sequence in it: {reply.text[:80]!r}")
    if "green" in reply.text:
        raise Broken(f"the text goes on behind the stop sequence: {reply.text[:80]!r}")
    wanted = {"anthropic": ("stop_sequence", "end_turn"), "openai-chat": ("stop",), "gemini": ("STOP",)}[name]
    if reply.stop_word not in wanted:
        raise Broken(f"expected the stop reason {wanted[0]!r}, found {reply.stop_word!r}")


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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
    question: Question = ask(EXACT, stop=("purple", "violet", "yellow", "brown"))
    reply = talk.optional(question, "stop_max", "4")
    if "yellow" in reply.text:
        raise Broken(f"the third of four stop sequences is in the text: {reply.text[:80]!r}")


@THEME.case(
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
