"""Responses that were answered, and that the store did not take: whoever asks for one is told why it is not
there.

In the memory of the process that answered. Another one knows nothing of them, and says that there is no such
response; so does this one, once it has forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

REMEMBERED_MOST: Final = 10_000
WHY: Final = "It was answered with store: false, because the gateway's store was not available."

Name = tuple[str, str]
"""A caller, and the id of one of its responses."""


class Unstored:
    def __init__(self, most: int = REMEMBERED_MOST) -> None:
        self._most = most
        self._names: OrderedDict[Name, bool] = OrderedDict()
        """With whether something of it may lie in the store: a call that was given up may have happened."""

    def add(self, caller: str, id: str, *, doubtful: bool = True) -> None:
        self._names[caller, id] = doubtful
        while len(self._names) > self._most:
            self._names.popitem(last=False)

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def doubtful(self) -> list[Name]:
        return [name for name, doubtful in self._names.items() if doubtful]

    def cleared(self, name: Name) -> None:
        """Nothing of it lies in the store."""
        if name in self._names:
            self._names[name] = False
