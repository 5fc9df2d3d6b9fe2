"""Texts, systems and histories: in how many forms the same may be said."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import HELLO, LONG, SYSTEM, must_speak
from wireglot.probe.cases.usage import counted
from wireglot.probe.question import Called, Midway, Question, User, ask
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive

THEME: Final = Theme("texts", "Texts and systems")
_LETTERS: Final = 'Grüße, naïve café — 東京 Ελλάδα עברית 🙂 a\\b "c" <d> & e'
_SAY_LETTERS: Final = f"Reply with exactly this and nothing else: {_LETTERS}"


def _costs_more(talk: Talk, question: Question, tokens: int, what: str, value: str = "") -> None:
    """What reaches the model is paid for: so it is seen, whatever the model makes of it."""
    bare = counted(talk.ask(ask(HELLO)))
    reply = talk.optional(question, what, value) if what else talk.ask(question)
    must_speak(reply)
    if counted(reply).input < bare.input + tokens:
        raise Broken(
            f"it did not reach the model: {bare.input} input tokens without, {counted(reply).input} with it"
        )


@THEME.case(
    "parts",
    "A question may be a list of text parts",
    sends="two text parts, the first of them long",
    expects="an answer that costs as many tokens as both",
    why="Claude Code sends lists; endpoints that read only the first or last part lose the rest",
)
def parts(talk: Talk) -> None:
    _costs_more(talk, Question(turns=(User((LONG, HELLO), parts=True),)), 15, "text_parts", "user")


@THEME.case(
    "system",
    "A system text is taken where the dialect has its place",
    sends="system | a system message | instructions | systemInstruction",
    expects="an answer that costs more tokens than without",
    why="a system that is lost shows in nothing else",
)
def system(talk: Talk) -> None:
    _costs_more(talk, ask(HELLO, system=(SYSTEM,)), 8, "")


@THEME.case(
    "system-parts",
    "A system may be a list of texts",
    sends="two system texts as a list of parts",
    expects="an answer that costs more tokens than without",
    why="Claude Code sends several blocks, each with its own cache mark",
)
def system_parts(talk: Talk) -> None:
    question = ask(HELLO, system=(SYSTEM, "Speak English."), system_parts=True)
    _costs_more(talk, question, 16, "text_parts", "system")


@THEME.case(
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


@THEME.case(
    "system-midway",
    "The system may speak in the middle of a conversation",
    sends="a system message behind a question",
    expects="an answer, or a refusal in good order",
    why="Claude Code and agents remind the model so; some templates refuse it",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def system_midway(talk: Talk) -> None:
    turns = (User((HELLO,)), Called("Hello!"), User((HELLO,)), Midway(SYSTEM))
    must_speak(talk.optional(Question(turns=turns), "system_midway"))


@THEME.case(
    "developer",
    "The role developer is known",
    sends="a message with the role developer",
    expects="an answer, or a refusal in good order",
    why="OpenAI's newer name for the system; clones often refuse it",
    dialects=("openai-chat", "openai-responses"),
)
def developer(talk: Talk) -> None:
    question = Question(turns=(Midway(SYSTEM, "developer"), User((HELLO,))))
    _costs_more(talk, question, 8, "developer_role")


@THEME.case(
    "history",
    "Earlier turns are taken",
    sends="a conversation of three turns",
    expects="an answer that costs more tokens than the last turn alone",
    why="a gateway that forwards only the last message is no gateway",
)
def history(talk: Talk) -> None:
    turns = (User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 4), User((HELLO,)))
    _costs_more(talk, Question(turns=turns), 40, "")


@THEME.case(
    "two-users",
    "Two turns of the user may follow one another",
    sends="two user messages in a row",
    expects="an answer that costs as many tokens as both",
    why="clients add reminders and attachments so",
)
def two_users(talk: Talk) -> None:
    _costs_more(talk, Question(turns=(User((LONG,)), User((HELLO,)))), 15, "")


@THEME.case(
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


@THEME.case(
    "picture",
    "A question may hold a picture",
    sends="a small PNG in base64 and a text",
    expects="an answer, or a refusal in good order",
    why="screenshots are pasted into every client",
)
def picture(talk: Talk) -> None:
    question = Question(turns=(User(("What colour is this? One word.",), picture=True),))
    must_speak(talk.optional(question, "media", "image"))
