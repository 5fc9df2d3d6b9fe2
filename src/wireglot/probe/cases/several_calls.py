"""What holds for the calls of one turn, streamed or whole."""

from __future__ import annotations

from wireglot.probe.reply import Reply
from wireglot.probe.verdict import Broken, Inconclusive


def check_made_several(reply: Reply) -> None:
    if len(reply.calls) < 2:
        raise Inconclusive(f"the model made {len(reply.calls)} calls")


def check_told_apart(reply: Reply) -> None:
    """Neither by their ids nor by their arguments can one be taken for another."""
    names = [found.id for found in reply.calls if found.id]
    if len(set(names)) < len(names):
        raise Broken(f"two calls have one id: {names}")
    if reply.calls[0].arguments == reply.calls[1].arguments:
        raise Broken(f"both calls have the arguments {reply.calls[0].arguments!r}")
