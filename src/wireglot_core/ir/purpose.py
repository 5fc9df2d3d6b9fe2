"""What a request is for, according to the client's headers: its purpose, and the agent that sends it.

The values are the client's own words. They are bounded in length and characters here, once, so that routing,
log, ledger and inspector can use them unchanged.
"""

from __future__ import annotations

import re
from typing import Final, Literal, get_args

import msgspec

Purpose = Literal["", "main", "subagent", "auxiliary", "background", "compaction"]
"""What a request is for; "": not stated.

main        the conversation with the user subagent    work that an agent has delegated auxiliary   a step of
a turn outside the conversation: a web search, a safety check background  titles, summaries and other work
that no one waits for compaction  the summary of a long conversation
"""

PURPOSES: Final[tuple[str, ...]] = tuple(purpose for purpose in get_args(Purpose) if purpose)

# Characters of a purpose that a client names.
MAX_WORD: Final = 64
_UNSAFE: Final = re.compile(r"[^\x21-\x7e]+")


class RequestFacts(msgspec.Struct, frozen=True, gc=False):
    """Facts that the client's headers state about one request. "": not stated."""

    purpose: Purpose = ""
    word: str = ""
    """The client's own word for the purpose."""
    agent: str = ""
    """Name or type of the agent, if it is not the main one."""
    agent_id: str = ""
    parent_id: str = ""
    """The agent that started it, "" for the main one."""


NO_FACTS: Final = RequestFacts()


def client_word(text: str | None) -> str:
    """A header's value as a short printable word: other characters become "_"."""
    if not text:
        return ""
    return _UNSAFE.sub("_", text[: 2 * MAX_WORD].strip())[:MAX_WORD]
