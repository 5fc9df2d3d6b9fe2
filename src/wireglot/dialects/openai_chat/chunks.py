"""The chunks of one stream: everything about them that does not change, encoded once."""

from __future__ import annotations

from typing import Any

from wireglot.wire.json import encode
from wireglot.wire.sse import frame


class Chunks:
    def __init__(self, envelope: dict[str, Any], with_usage: bool) -> None:
        self.envelope = envelope
        self._with_usage = with_usage
        usage = b',"usage":null' if with_usage else b""
        # What stands before and behind a delta.
        self.head = b'data: %b,"choices":[{"index":0,"delta":' % encode(envelope)[:-1]
        self.tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % usage

    def chunk(
        self,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        logprobs: Any = None,
        choice: dict[str, Any] | None = None,
        top: dict[str, Any] | None = None,
    ) -> bytes:
        """A whole chunk; unknown fields of the choice and of the chunk never replace known ones."""
        only = {**(choice or {}), "index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        chunk = {**self.envelope, "choices": [only]}
        if self._with_usage:
            chunk["usage"] = None
        for key, value in (top or {}).items():
            chunk.setdefault(key, value)
        return frame(encode(chunk))

    def plain(self, fields: dict[str, Any]) -> bytes:
        """A chunk with other choices than the one that is being told."""
        return frame(encode({**self.envelope, **fields}))
