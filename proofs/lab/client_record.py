"""What clients of a gateway were reported before it was killed: all that must hold when it is started
again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

NAME = "client_record.json"


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that can be made again, and what it was answered."""

    name: str
    caller: str
    method: str
    path: str
    status: int
    answer: str
    """The bytes of the body; every answer here is text."""
    body: Any = None
    headers: dict[str, str] = {}
    losses: str = ""
    sent: list[tuple[str, str]] = []
    """What a provider behind the gateway got for it: its own key, and the body."""

    def json(self) -> Any:
        return msgspec.json.decode(self.answer)


class Account(msgspec.Struct, frozen=True, omit_defaults=True):
    """One acknowledged request, as its client saw it."""

    caller: str
    dialect: str
    tokens: int = -1
    """-1: the client was not sent it."""


class ClientRecord(msgspec.Struct, omit_defaults=True):
    killed: int = 0
    """Unix milliseconds."""
    admin: str = ""
    keys: dict[str, str] = {}
    """By caller."""
    shut: dict[str, str] = {}
    """Keys that open nothing any more."""
    fetched: list[Exchange] = []
    """What is stored, as it was shown: it is shown so again, to the letter."""
    again: list[Exchange] = []
    """Questions that build on what is stored or sealed and change nothing: asked again, they have the same
    answer but for ids and times."""
    replayed: list[Exchange] = []
    """Answers under an Idempotency-Key: given again byte for byte."""
    refused: list[Exchange] = []
    """Beyond a budget that is spent."""
    requests: dict[str, Account] = {}
    """By request id: each is one row of usage that says ok."""
    unapplied: list[str] = []
    """Those of them that were answered while the store took nothing."""
    crashed: dict[str, int] = {}
    """How many requests of a caller were never answered."""
    goes_on: dict[str, str] = {}
    """By what: the id of a response, a conversation, a session that a client goes on with."""
    unfinished: str = ""
    """A background response that nobody works on any more."""
    config_check: str = ""
    """What `wireglot config check` said."""


def read_client_record(folder: Path) -> ClientRecord:
    return msgspec.json.decode((folder / NAME).read_bytes(), type=ClientRecord)


def write_client_record(reported: ClientRecord, folder: Path) -> None:
    (folder / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(reported), indent=1) + b"\n")
