"""Recordings on their way to the disk: one thread, a short queue. What finds no place in it is counted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.trace.recording import Recording

WAITING_MOST: Final = 1_000
_THREAD_NAME: Final = "traces"


class Writer:
    """`write` is called in its thread, `written` in the thread's too: it is told each recording that is
    through, however that went."""

    def __init__(
        self,
        write: Callable[[Recording], None],
        through: Callable[[Recording], None],
        note: Note,
        most: int = WAITING_MOST,
    ) -> None:
        self._write = write
        self._through = through
        self._note = note
        self._most = most
        self._waiting: deque[Recording] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._working = False
        self._closed = False
        self._trouble = ""
        self.failed = 0
        """Recordings that could not be written."""

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._most

    def take(self, recording: Recording) -> None:
        """Never waits, but for a lock that nobody holds for long."""
        with self._changed:
            self._waiting.append(recording)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name=_THREAD_NAME, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written. Whether it is."""
        until = time.monotonic() + seconds
        with self._changed:
            while (self._waiting or self._working) and self._thread is not None:
                if not self._changed.wait(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                    return False
        return True

    def close(self, seconds: float) -> None:
        self.flush(seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._working = False
                self._changed.notify_all()
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                recording = self._waiting.popleft()
                self._working = True
            self._step(recording)

    def _step(self, recording: Recording) -> None:
        try:
            self._write(recording)
            self._trouble = ""
        except Exception as fault:  # one recording that cannot be written holds up no other
            self.failed += 1
            trouble = (
                f"{type(fault).__name__}: {fault}" if isinstance(fault, OSError) else type(fault).__name__
            )
            if trouble != self._trouble:
                self._trouble = trouble
                self._note("error", "trace not written", detail=trouble)
        finally:
            self._through(recording)
