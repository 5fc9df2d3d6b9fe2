"""Questions about what is remembered, each to whoever knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wireglot.gateway.state.books import usage
from wireglot.gateway.state.keys import admin
from wireglot.gateway.state.question import Question, unavailable
from wireglot.stores import StoreDown

if TYPE_CHECKING:
    from wireglot.gateway.state.state import State


async def answer(state: State, question: Question) -> None:
    verb = question.asked.verb
    try:
        if verb == "usage":
            await usage.answer(state, question)
        elif question.asked.operation == "admin":
            await admin.answer(state, question)
        else:
            await state.held.inquire(question)
    except StoreDown:
        raise unavailable(question.head.path) from None
