"""What a conversation is made of: parts inside messages.

Every value may carry an `Extra`: the fields its own dialect sent and the IR has no name for. Only that
dialect may render them again; for every other dialect they are a `Loss`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, final

import msgspec

Role = Literal["system", "user", "assistant"]


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of one dialect that the IR does not model.

    `fields` is information (lost elsewhere, and declared); `form` is spelling only: string shorthand, item
    ids, echoes of the request. It reproduces the same bytes in the same dialect and is never a loss.
    """

    dialect: str
    fields: dict[str, Any] = {}
    form: dict[str, Any] = {}


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The minter of an opaque value. Empty strings mean unknown, which matches anyone of that dialect."""

    dialect: str
    provider: str = ""
    model: str = ""
    account: str = ""


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """Opaque reasoning state, verbatim, with its minter. `id` is the item id some minters bind it to."""

    data: str
    origin: Origin
    id: str = ""


PHASE: Final = "phase"
"""The `id` of a signature that proves nothing but labels the role of its text in the answer (Responses:
commentary on the way, or the final answer). Its minter needs it back like any other state."""


UNSIGNED: Final = "unsigned"
"""The `id` of a signature that proves nothing but names the writer of an unsigned thought; `data` has its
original spelling. Only used on the way through a client of another dialect (`providers/carried.py`)."""

FOREIGN: Final = "foreign"
"""The same for a whole part that the client's dialect has no equivalent for: `data` contains it."""


APART: Final = "cut"
"""Key in the form of a message's extra: the message is a turn by itself, although the one before it has the
same role."""


class CacheMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt-cache breakpoint after the value that carries it. `ttl` is `short` or `long`."""

    ttl: Literal["", "short", "long"] = ""
    extra: Extra | None = None


class Citation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source for a span of text; offsets count characters of the part's text.

    `native` holds a citation of a kind only one dialect has (page, file, search-result locations).
    """

    url: str = ""
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None
    extra: Extra | None = None
    native: Foreign | None = None


class TokenLogprob(msgspec.Struct, frozen=True, omit_defaults=True):
    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@final
class Text(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """Prose. `refusal` marks the model's own refusal text, which is separate in OpenAI's dialects."""

    text: str
    refusal: bool = False
    citations: tuple[Citation, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    signature: Signature | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    def is_plain(self, dialect: str, *, marked: bool = False) -> bool:
        """Whether the text has nothing but its characters in this dialect, as most texts. `marked`: it may
        have a cache marker."""
        extra = self.extra
        return (
            (extra is None or (extra.dialect != dialect and not extra.fields))
            and (marked or self.cache is None)
            and self.signature is None
            and not self.refusal
            and not self.citations
            and not self.logprobs
        )


@final
class Reasoning(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """The model's thinking. Empty text is meaningful: the model thought, and shows nothing of it.

    `redacted`: the whole block is opaque (`signature.data` holds it) and there is no text to show.
    """

    text: str = ""
    signature: Signature | None = None
    redacted: bool = False
    extra: Extra | None = None
    minter: Origin | None = None
    """The writer of unsigned reasoning, if the component that stored the answer knows it."""


@final
class ToolCall(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """`arguments` is the text the model wrote: JSON for functions (maybe invalid), anything for `custom`."""

    id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"
    namespace: str = ""
    signature: Signature | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None

    def is_plain(self) -> bool:
        """Whether it is a function call with only its id, name and arguments."""
        return (
            self.kind == "function"
            and not self.namespace
            and self.signature is None
            and self.cache is None
            and self.extra is None
        )


@final
class Media(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """An image, document, audio or video: exactly one of `data` (base64), `text`, `url`, `file_id`."""

    kind: Literal["image", "document", "audio", "video"]
    mime: str = ""
    data: str | None = None
    text: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str = ""
    detail: str = ""
    signature: Signature | None = None
    cache: CacheMark | None = None
    extra: Extra | None = None


@final
class Foreign(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """A part that only one dialect has (server tools, compaction, newer features), verbatim."""

    dialect: str
    type: str
    value: dict[str, Any]
    text: str = ""
    """Its content as text for other dialects; "": it has none that can be expressed."""
    stands_elsewhere: bool = False
    """All of its content is repeated in another place of the same request: leaving it out loses little."""
    for_vendor: bool = False
    """A note to the dialect's own vendor, which models do not read."""


@final
class ToolResult(msgspec.Struct, frozen=True, tag_field="part", tag=True, omit_defaults=True):
    """The result of a call, a part of a user turn. `name` is set if the dialect states it."""

    call_id: str
    content: tuple[ResultPart, ...] = ()
    is_error: bool = False
    name: str = ""
    kind: Literal["function", "custom"] = "function"
    cache: CacheMark | None = None
    extra: Extra | None = None

    def plain_texts(self, dialect: str) -> list[str] | None:
        """Its non-empty texts; None if there is any other content, or a text with more than its characters in
        this dialect."""
        texts: list[str] = []
        for item in self.content:
            if type(item) is not Text or not item.is_plain(dialect):
                return None
            if item.text:
                texts.append(item.text)
        return texts


ResultPart = Text | Media | Foreign
Part = Text | Reasoning | ToolCall | ToolResult | Media | Foreign


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message as divided by its dialect. Neighbours of one role are equivalent to one merged message."""

    role: Role
    content: tuple[Part, ...]
    name: str = ""
    extra: Extra | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it is a turn in which nothing was said: no parts, or only texts without a character."""
        if self.role == "system":
            return False
        for part in self.content:
            if type(part) is not Text or part.text or part.signature is not None:
                return False
        return True
