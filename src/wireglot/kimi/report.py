"""One line for each call, to stderr: stdout may be somebody's protocol."""

from __future__ import annotations

import sys

from wireglot.http.redaction import Redactor
from wireglot.ir.errors import legible
from wireglot.kimi.errors import KimiApiError
from wireglot.kimi.seams import Log

UNKNOWN = "unknown"
_WORD_MAX = 128


class Report:
    """Writes the lines of one call. Nothing that it says holds the key, whoever put it there."""

    def __init__(self, log: Log | None, key: str) -> None:
        self._log = log if log is not None else _to_stderr
        self._redactor = Redactor((key,))

    def clean(self, text: str) -> str:
        return self._redactor.text(legible(text))

    def hides(self, text: str) -> bool:
        """Whether something in it may not be shown."""
        return self._redactor.text(text) != text

    def success(self, model: str, prompt_tokens: int, completion_tokens: int, latency_ms: int) -> None:
        self._write(
            f"[kimi] model={self._word(model)} prompt_tokens={prompt_tokens} "
            f"completion_tokens={completion_tokens} latency_ms={latency_ms}"
        )

    def failure(self, model: str, error: KimiApiError, latency_ms: int) -> None:
        status = error.status if error.status is not None else "none"
        self._write(
            f"[kimi] error={error.code} class={error.kind} status={status} attempts={error.attempts} "
            f"model={self._word(model)} latency_ms={latency_ms} trace_id={self._word(error.trace_id)}"
        )

    def _word(self, text: str) -> str:
        """A value that cannot be taken for two fields of the line."""
        return "_".join(self.clean(text[:_WORD_MAX]).split()) or UNKNOWN

    def _write(self, line: str) -> None:
        # An answer that was paid for must not be lost because nobody could write about it.
        try:
            self._log(line)
        except Exception:  # a log that fails must not fail the call
            return


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:  # pythonw has none
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
