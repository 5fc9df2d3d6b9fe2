"""Code common to Google's dialects: their list of models, rules for their counts, places in texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.listed_model import ListedModel, Query, page_size, position
from wireglot_core.dialects.lost_fields import Lost
from wireglot_core.dialects.surface import ModelLists
from wireglot_core.dialects.usage_checks import CACHED, TOTAL, Numbers
from wireglot_core.ir.content import Media
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import ToolChoice

VENDOR: Final = "gemini"
"""The issuer of file addresses in requests of each of these dialects."""

EMBED_VERBS: Final = {"embedContent": "embed_one", "batchEmbedContents": "embed"}
_PAGE: Final = 50
_BLOCK: Final = 1024
"""Characters between two known places of a text."""


class ByteOffsets:
    """Places in one text, counted in characters and in bytes of UTF-8. Each is found near a known one: a text
    has as many citations as its author likes."""

    __slots__ = ("_begins", "_text", "size")

    def __init__(self, text: str) -> None:
        self._text = text
        self._begins: list[int] | None = None  # bytes before each block of characters
        if text.isascii():
            self.size = len(text)
            return
        self._begins, self.size = [], 0
        for start in range(0, len(text), _BLOCK):
            self._begins.append(self.size)
            self.size += len(_utf8(text[start : start + _BLOCK]))

    def byte(self, character: int) -> int:
        """Bytes before a character; all for one after the end."""
        place = min(max(character, 0), len(self._text))
        if self._begins is None:
            return place
        block = min(place // _BLOCK, len(self._begins) - 1)
        return self._begins[block] + len(_utf8(self._text[block * _BLOCK : place]))

    def character(self, byte: int) -> int:
        """Whole characters before a byte."""
        place = min(max(byte, 0), self.size)
        if self._begins is None:
            return place
        block = bisect_right(self._begins, place) - 1
        data = _utf8(self._text[block * _BLOCK : (block + 1) * _BLOCK])
        return block * _BLOCK + len(data[: place - self._begins[block]].decode("utf-8", "ignore"))

    def is_at(self, quote: str, first: int, last: int) -> bool:
        """Whether the bytes of a span are those of a quoted text."""
        start = self.character(first)
        if self.byte(start) != first or self.byte(start + len(quote)) != last:
            return False
        return self._text.startswith(quote, start)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def render_list(listing: Sequence[ListedModel], query: Query) -> dict[str, Any]:
    size = page_size(query, "pageSize", _PAGE, zero_is_usual=True)
    token = query.get("pageToken", [""])[-1]
    start = position(listing, token, "pageToken") + 1 if token else 0
    page = listing[start : start + size]
    body: dict[str, Any] = {"models": [render_model(model) for model in page]}
    if start + size < len(listing):
        body["nextPageToken"] = page[-1].id
    return body


def render_model(model: ListedModel) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": f"models/{model.id}",
        "baseModelId": model.id,
        "version": "1",
        "displayName": model.title or model.id,
    }
    if model.context:
        body["inputTokenLimit"] = model.context
    if model.output:
        body["outputTokenLimit"] = model.output
    if model.embeds:
        body["supportedGenerationMethods"] = list(EMBED_VERBS)
        return body
    body["supportedGenerationMethods"] = ["generateContent", "countTokens"]
    body["thinking"] = model.thinks
    return body


MODELS: Final = ModelLists(render_list=render_list, render_model=render_model)


def check_numbers(counts: Numbers) -> list[str]:
    """Thoughts and the prompts of built-in tools are counted in addition to prompt and answer; cached tokens
    within."""
    found = []
    if counts.get("read", 0) > counts.get("input", 0):
        found.append(CACHED)
    of = counts.get
    parts = of("input", 0) + of("output", 0) + of("reasoning", 0) + of("tools", 0)
    if of("total", parts) != parts:
        found.append(TOTAL)
    return found


_BEARER: Final = "Bearer "


def server_token(headers: dict[str, Any]) -> str | None:
    """The token in the headers for an MCP server, "" without headers; None if they have more than it."""
    bearer = text_in(headers.get("Authorization"))
    if len(headers) == 1 and bearer.startswith(_BEARER):
        return bearer.removeprefix(_BEARER)
    return None if headers else ""


def server_headers(token: str) -> dict[str, Any]:
    """The field with the headers for an MCP server, if it needs any."""
    return {"headers": {"Authorization": f"{_BEARER}{token}"}} if token else {}


# Losses of both dialects, where code decides whether it is lost

NO_FREEFORM: Final = Lost("tool.custom", "dropped", "Gemini has no freeform tools")
LABELS_ONLY: Final = Lost("metadata", "dropped", "labels are short and lower-case")
MARKED_TEXT: Final = Lost("system.position", "approximated", "marked text in the user's turn")
UNSIGNED_RESULT: Final = Lost("reasoning.signature", "dropped", "results are not signed")
NO_CHOICE_ANYWAY: Final = Lost("tool_choice", "dropped", "no tool may be called anyway")
FOREIGN_FILE: Final = Lost("file_reference", "dropped", "a file id of another provider")
ALL_LOADED: Final = Lost("tool.deferred", "dropped", "every tool is loaded")
WEB_SOURCES_ONLY: Final = Lost("citations", "dropped", "only web sources are supported")
NO_OPAQUE_STATE: Final = Lost("reasoning.redacted", "dropped", "there is no opaque state to carry")
ON_BY_DEFAULT: Final = Lost("thinking.mode", "dropped", "thinking is on by default")


def lose_name(media: Media, path: str, losses: list[Loss]) -> None:
    if media.name:
        losses.append(Loss(f"{path}.name", media.kind, "dropped", "there is no field for a file name"))


def unknown_resolution(media: Media, path: str) -> Loss:
    return Loss(f"{path}.detail", "image.detail", "dropped", f"no resolution is called {media.detail}")


def highest_level(level: str, path: str) -> Loss:
    return Loss(f"{path}.effort", "thinking.effort", "approximated", f"{level} is the highest level")


def unchosen(choice: ToolChoice, path: str) -> Loss:
    """The loss for a choice of tools that Google runs."""
    detail = f"{choice.mode}: tools that Google runs cannot be chosen here"
    return Loss(path, "tool_choice", "approximated", detail)
