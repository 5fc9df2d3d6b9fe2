"""Content of conversations: parts, and the turns that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from hypothesis import strategies as st
from msgspec.structs import replace

from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.testing.strategies import samples

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

# No surrogates: they are not text, and the JSON layer has replaced them before a dialect sees them.
_ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_TEXTS = st.one_of(st.sampled_from(samples.TEXTS), st.sampled_from(samples.TEXTS), _ANY_TEXT)
_DIGIT = st.integers(0, 9)


class DrawSource:
    """One draw in progress, and what may occur in it."""

    def __init__(self, draw: Draw, plain: bool, origins: Sequence[str]) -> None:
        self.draw = draw
        self.plain = plain
        self.origins = tuple(origins)

    def chance(self, of_ten: int) -> bool:
        """True in `of_ten` cases of ten; shrinks to False."""
        return self.digit() >= 10 - of_ten

    def digit(self) -> int:
        return cast(int, self.draw(_DIGIT))

    def rare(self, of_ten: int = 1) -> bool:
        """Like `chance`, and never in plain draws."""
        return not self.plain and self.chance(of_ten)

    def one(self, options: Sequence[T]) -> T:
        return cast(T, self.draw(st.sampled_from(options)))

    def text(self) -> str:
        text = cast(str, self.draw(_TEXTS))
        return text if text.strip() or not self.plain else "Hello"  # some dialects refuse blank text

    def maybe(self, make: Callable[[], T], of_ten: int = 1) -> T | None:
        return make() if self.rare(of_ten) else None

    def extra(self, place: str) -> Extra | None:
        homes = [name for name in self.origins if place in samples.EXTRA_HOMES.get(name, ())]
        if not homes or not self.rare():
            return None
        return Extra(self.one(homes), {"x_future": self.one(samples.UNKNOWN)})

    def cache(self) -> CacheMark | None:
        return self.maybe(lambda: CacheMark(self.one(("", "short", "long"))))

    def known(self, options: Sequence[Foreign]) -> list[Foreign]:
        return [option for option in options if option.dialect in self.origins]

    def signatures(self, options: Sequence[Signature]) -> list[Signature]:
        return [option for option in options if option.origin.dialect in self.origins]

    def part_signature(self) -> Signature | None:
        allowed = self.signatures((samples.PART_SIGNATURE,))
        return allowed[0] if allowed and self.rare(2) else None


TOOL_NAMES = ("get_weather", "search", "Bash", "mcp__files__read", "a")


class ContentSource(DrawSource):
    """Draws parts and turns; calls are counted, so that their ids are unique."""

    def __init__(self, draw: Draw, plain: bool, origins: Sequence[str]) -> None:
        super().__init__(draw, plain, origins)
        self.calls = 0

    def words(self, *, answer: bool = False) -> Text:
        text = self.text()
        if self.plain:
            return Text(text)
        return Text(
            text,
            citations=self.citations(text) if answer and self.rare() else (),
            signature=self.part_signature() if answer else None,
            cache=None if answer else self.cache(),
            extra=self.extra("text"),
        )

    def citations(self, text: str) -> tuple[Citation, ...]:
        return (Citation("https://example.com/a", "A page", start=0, end=len(text)),)

    def media(self) -> Media:
        kind = self.digit()
        if kind < 5 or self.plain:
            image = Media("image", "image/png", samples.PNG)
            if self.plain or kind == 0:
                return image
            return replace(
                image, cache=self.cache(), extra=self.extra("media"), detail=self.one(("", "", "low", "high"))
            )
        return self.one(
            (
                Media("image", url="https://example.com/cat.png"),
                Media("image", file_id="file_image_1"),
                Media("document", "application/pdf", samples.PDF, name="paper.pdf"),
                Media("document", "application/pdf", url="https://example.com/paper.pdf"),
                Media("document", "text/plain", text="plain text document"),
                Media("document", file_id="file_doc_1"),
                Media("audio", "audio/wav", samples.WAV),
                Media("video", "video/mp4", samples.MP4),
            )
        )

    def reasoning(self) -> Reasoning:
        if self.rare() and "anthropic" in self.origins:
            return Reasoning("", samples.REDACTED, redacted=True)
        allowed = self.signatures(samples.REASONING_SIGNATURES)
        signature = self.one(allowed) if allowed and self.chance(7) else None
        text = "" if signature is not None and self.chance(2) else self.text()
        return Reasoning(text, signature, extra=self.extra("reasoning"))

    def call(self, first: bool, history: bool) -> ToolCall:
        self.calls += 1
        identifier = f"call_{self.calls:02}Ab-{self.calls}"
        name = self.one(TOOL_NAMES)
        if self.rare():
            return ToolCall(identifier, name, self.one(samples.FREEFORM), "custom")
        arguments = self.one(samples.BROKEN_ARGUMENTS if self.rare() else samples.ARGUMENTS)
        return ToolCall(
            identifier,
            name,
            arguments,
            namespace="files" if self.rare() else "",
            # Gemini signs the first call of a step only.
            signature=self.part_signature() if first else None,
            cache=self.cache() if history else None,
            extra=self.extra("call"),
        )

    def result(self, call: ToolCall) -> ToolResult:
        content: list[ResultPart] = [Text(self.text()) for _ in range(self.draw(st.integers(0, 2)))]
        if self.rare(2):
            content.append(self.media())
        allowed = self.known(samples.FOREIGN_RESULTS)
        if allowed and self.rare():
            content.append(self.one(allowed))
        return ToolResult(
            call.id,
            tuple(content),
            is_error=self.chance(2),
            name=call.name if self.chance(3) else "",
            kind=call.kind,
            cache=self.cache(),
            extra=self.extra("result"),
        )

    # Turns

    def answer(self, *, history: bool) -> tuple[Part, ...]:
        """What an assistant says (or said): thinking, prose, calls, mostly in that order."""
        parts: list[Part] = []
        if self.rare(4):
            parts.append(self.reasoning())
        if self.chance(7):
            parts.append(self.words(answer=True))
        if self.chance(5) or not parts:
            for first in (True, False, False)[: self.draw(st.integers(1, 3))]:
                parts.append(self.call(first, history))
        allowed = self.known(samples.FOREIGN_ANSWERS)
        if allowed and self.rare():
            parts.insert(self.draw(st.integers(0, len(parts))), self.one(allowed))
        if self.rare():  # interleaved thinking, text after calls
            parts.append(self.reasoning() if self.chance(5) else self.words(answer=True))
        return tuple(parts)

    def question(self, open_calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        parts: list[Part] = [self.result(call) for call in open_calls]
        if not parts or self.chance(3):
            parts.append(self.words())
        if self.chance(2):
            parts.append(self.media())
        allowed = self.known(samples.FOREIGN_QUESTIONS)
        if allowed and self.rare():
            parts.append(self.one(allowed))
        return tuple(parts)

    def turn(self, open_calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        return self.nothing() if not open_calls and self.rare() else self.question(open_calls)

    def nothing(self) -> tuple[Part, ...]:
        """The content of a turn in which nothing was said."""
        return self.one(((), (Text(""),)))

    def message(self, role: Role, content: tuple[Part, ...]) -> Message:
        only_text = all(isinstance(part, Text) for part in content)
        return Message(
            role,
            content,
            name="alice" if role == "user" and only_text and self.rare() else "",
            # A turn with calls or results has no separate object in every dialect.
            extra=self.extra("message") if only_text else None,
        )

    def messages(self) -> tuple[Message, ...]:
        out: list[Message] = []
        if self.chance(5):
            out.append(Message("system", tuple(self.words() for _ in range(self.draw(st.integers(1, 2))))))
        open_calls: list[ToolCall] = []
        for _ in range(self.draw(st.integers(0, 3))):
            out.append(self.message("user", self.turn(open_calls)))
            if self.rare():
                out.append(Message("system", (self.words(),)))
            content = self.nothing() if self.rare() else self.answer(history=True)
            open_calls = [part for part in content if isinstance(part, ToolCall)]
            out.append(self.message("assistant", content))
        if open_calls or not self.rare():  # else the last turn is a prefill
            out.append(self.message("user", self.turn(open_calls)))
        if not any(message.role == "user" for message in out):
            out.insert(min(1, len(out)), Message("user", (Text("Hello"),)))
        return tuple(out)
