"""What a gateway remembers for a while is filled before memory is compared: it grows up to its bounds."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from proofs.lab.link import Link
from proofs.lab.paced_upstream import model
from proofs.lab.questions import question
from wireglot.gateway.state.losses.shelf import MAX_KEPT

_AT_ONCE: Final = 20
_MORE: Final = 1.1


async def fill(port: int, key: str = "") -> int:
    """Ask a `paced` provider for one word, with something that it has no place for, until the losses of as
    many requests are kept as ever are. How many were asked."""
    path, body = question("anthropic", f"paced/{model(1, 0)}")
    asked: dict[str, Any] = {**body, "top_k": 5}
    questions = iter(range(int(MAX_KEPT * _MORE)))

    async def ask() -> None:
        link = Link(port, key)
        for _ in questions:
            reply = await link.ask("POST", path, asked)
            assert reply.status == 200, reply.body[:300]
        link.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(ask())
    return int(MAX_KEPT * _MORE)
