"""A part of a store whose calls hang, or fail, by their names."""

from __future__ import annotations

import asyncio
from typing import Any

from wireglot.stores.base import StoreDown


class Troubled:
    def __init__(self, behind: Any, fault: str = "the disk is full") -> None:
        self.behind = behind
        self.fault = fault
        self.hangs: set[str] = set()
        self.fails: set[str] = set()
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def called(*arguments: Any, **more: Any) -> Any:
            self.asked.append(name)
            if name in self.hangs:
                await asyncio.Event().wait()
            if name in self.fails:
                raise StoreDown(self.fault)
            return await getattr(self.behind, name)(*arguments, **more)

        return called
