"""What a long run has done already, on disk: ended at any time, it goes on with the next piece."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from proofs.lab.result import FOLDER, commit

_SUFFIX: Final = ".part.json"


class _Kept(msgspec.Struct):
    commit: str
    reported: str
    """The options of the run: others begin again."""
    done: list[str] = []
    counts: dict[str, int] = {}
    problems: list[str] = []
    seconds: float = 0.0


class Progress:
    """`counts` and `problems` of all pieces so far. Another commit, or other options, begin again."""

    def __init__(self, name: str, reported: str, out: str | Path | None = None) -> None:
        folder = Path(out) if out is not None and Path(out).suffix != ".json" else FOLDER
        self._path = folder / f"{name}{_SUFFIX}"
        self._kept = _Kept(commit(), reported)
        if self._path.exists():
            before = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
            if (before.commit, before.reported) == (self._kept.commit, reported):
                self._kept = before
        self.counts = Counter(self._kept.counts)
        self.problems = self._kept.problems

    @property
    def seconds(self) -> float:
        """Of all pieces together."""
        return self._kept.seconds

    def left(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces that are not done. One is done when the next is asked for."""
        for piece in pieces:
            if piece in self._kept.done:
                continue
            began = time.monotonic()
            yield piece
            self._kept.seconds += time.monotonic() - began
            self._kept.done.append(piece)
            self._keep()

    def end(self) -> None:
        """The run is through: its result file says it all."""
        self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        self._kept.counts = dict(self.counts)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unready = self._path.with_name(f"{self._path.name}.new")
        unready.write_bytes(msgspec.json.encode(self._kept))
        unready.replace(self._path)
