"""The demo model's texts: its sentences, the language of a text, and how texts are counted and cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SCRIPTS: Final = (
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
)
_FREQUENT: Final = {
    "English": "the is are what how you and of to in a please with this that my your it for",
    "German": "der die das und ist was wie du sie ich nicht ein eine mit für von bitte mein auf",
    "French": "le la les et est que comment vous je ne pas un une avec pour de dans mon quel",
    "Spanish": "el la los y es qué cómo tú yo no un una con para de en mi hola por favor",
    "Italian": "il lo la gli e è che come tu io non un una con per di nel mio ciao",
    "Portuguese": "o a os e é que como você eu não um uma com para de em meu olá",
    "Dutch": "de het een en is wat hoe je ik niet met voor van mijn op",
}
_COMMON: Final = {name: frozenset(frequent.split()) for name, frequent in _FREQUENT.items()}
_WORD: Final = re.compile(r"[^\W\d_]+")
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_PIECE: Final = re.compile(r"\s*\S+\s*|\s+")

_SENTENCE: Final = (
    "the demo model writes one word after another so that a stream has something to carry on its way"
)

# Characters of a request that the demo model quotes.
QUOTED_MAX = 2_000
# Characters of one line that the demo model quotes.
HEARD_MAX = 400
# Characters of one streamed piece of the demo model.
PIECE_MAX = 12


def language_of(text: str) -> str:
    """A guess by script and by frequent words; English if nothing matches."""
    for name, script in _SCRIPTS:
        if script.search(text):
            return name
    words = [word.lower() for word in _WORD.findall(text[:2_000])]
    scores = {name: sum(word in common for word in words) for name, common in _COMMON.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else "English"


def greeting(heard: str, model: str) -> str:
    if not heard:
        return f"Hello! I am {model or 'demo'}, the demo model that lives inside Wireglot. You sent no words."
    return (
        f"Hello! I am {model or 'demo'}, the demo model that lives inside Wireglot: no account, no network. "
        f"You said, in {language_of(heard)}: “{_own_words(heard)}”"
    )


def _own_words(heard: str) -> str:
    """The first paragraph, on one line. Agents put instructions and examples after a person's words, and some
    of them (aider) would take a quoted example for an edit."""
    paragraph = _BLANK_LINE.split(heard.strip(), 1)[0].partition("```")[0]
    line = " ".join(paragraph.split())
    if len(line) >= HEARD_MAX:
        return line[: HEARD_MAX - 1] + "…"
    return line if paragraph == heard.strip() else f"{line} …"


def prose(count: int) -> str:
    sentence = _SENTENCE.split()
    return " ".join(sentence[number % len(sentence)] for number in range(count))


def thought(heard: str, results: int = 0) -> str:
    """`results`: the number of files read, so that no two turns of such a loop have the same thought."""
    if results and not heard:
        return f"{results} results are here. I will go on as a demo should."
    return (
        f"The user writes {language_of(heard)}, {len(heard.split())} words. I will answer as a demo should."
    )


def quotation(results: list[str]) -> str:
    """A short quotation of the tools' results."""
    joined = "\n".join(results)
    if len(joined) > QUOTED_MAX:
        joined = joined[: QUOTED_MAX - 1] + "…"
    count = "The tool" if len(results) == 1 else f"The {len(results)} tools"
    return f"{count} answered:\n{joined}" if joined else f"{count} answered nothing."


def tokens(text: str) -> int:
    """About four bytes each, and at least one for a text that is not empty."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def first_tokens(text: str, count: int) -> str:
    """The beginning with at most this many tokens."""
    return text.encode("utf-8", "replace")[: 4 * count].decode("utf-8", "ignore")


def word_pieces(text: str) -> Iterator[str]:
    """The text word by word; long words, such as compact JSON, in several pieces."""
    for found in _PIECE.finditer(text):
        yield from even_pieces(found[0], PIECE_MAX)


def even_pieces(text: str, size: int = PIECE_MAX) -> Iterator[str]:
    for at in range(0, len(text), size):
        yield text[at : at + size]
