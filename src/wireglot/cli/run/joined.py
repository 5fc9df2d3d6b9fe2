"""A gateway that already runs: which one, with which key, and what it serves."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from wireglot.cli.remote_gateway import Address, Answer, UnusableKey, address_of, ask, usable_key
from wireglot.gateway.config.kept_keys import kept_file, read_kept

KEY: Final = "WIREGLOT_KEY"
ANY_KEY: Final = "none"
"""For a gateway that asks for none: most clients insist on sending one."""
_ANSWER_SECONDS: Final = 10.0
_UNAUTHORIZED: Final = 401
_VERSION: Final = "2023-06-01"
"""Of Anthropic's clients, whose lists tell how much a model takes."""


class CannotJoin(Exception):
    """In words for people."""


class Joined:
    """A gateway at an address, asked with a key that it takes. What it is asked raises NoAnswer."""

    def __init__(self, address: Address, key: str = ANY_KEY) -> None:
        self.address = address
        self.key = key
        self._told: dict[str, Answer] = {}
        """What it said of a model: each question is a line in its log."""

    @property
    def url(self) -> str:
        return self.address.url

    def is_wireglot(self) -> bool:
        answer = self._get("/")
        return answer.status == 200 and answer.document().get("name") == "wireglot"

    def wants_key(self) -> bool:
        """Whether it takes no request with the key that there is."""
        return self._get("/v1/models").status == _UNAUTHORIZED

    def refusal(self, model: str) -> str:
        """What it says of a model that it does not serve; nothing if it does."""
        answer = self._model(model)
        return "" if answer.status == 200 else answer.complaint()

    def context(self, model: str) -> int:
        """Tokens that a model takes; 0 where nobody knows."""
        answer = self._model(model)
        told = answer.document().get("max_input_tokens") if answer.status == 200 else None
        return told if type(told) is int else 0

    def models(self) -> tuple[str, ...]:
        answer = self._get("/v1/models")
        listed: Any = answer.document().get("data") if answer.status == 200 else None
        if not isinstance(listed, list):
            raise CannotJoin(f"{self.url} lists no models: {answer.complaint()}")
        return tuple(str(each["id"]) for each in listed if isinstance(each, dict) and "id" in each)

    def _model(self, model: str) -> Answer:
        if model not in self._told:
            path = f"/v1/models/{quote(model, safe='/', errors='replace')}"
            self._told[model] = self._get(path, **{"anthropic-version": _VERSION})
        return self._told[model]

    def _get(self, path: str, **headers: str) -> Answer:
        return ask(self.address, "GET", path, key=self.key, headers=headers, seconds=_ANSWER_SECONDS)


def join(url: str, ask_key: Callable[[str], str]) -> Joined:
    """The gateway there, with a key that it takes; raises CannotJoin, NoAnswer, UnusableUrl, UnusableKey.
    `ask_key` asks a person, and gives "" if it cannot."""
    joined = Joined(address_of(url))
    if not joined.is_wireglot():
        raise CannotJoin(f"{joined.url}: what answers there is no gateway: start one with `wireglot serve`")
    kept = read_kept(kept_file(os.environ), [])
    for key in (usable_key(os.environ.get(KEY, ""), KEY), kept[KEY].value if KEY in kept else ""):
        if not joined.wants_key():
            return joined
        joined.key = key or joined.key
    if joined.wants_key():
        joined.key = ask_key(joined.url) or joined.key
    if joined.wants_key():
        fix = f"set {KEY} to one that `wireglot keys create NAME` has made"
        if joined.key == ANY_KEY:
            raise UnusableKey(f"the gateway at {joined.url} wants a client key: {fix}")
        raise CannotJoin(f"the gateway at {joined.url} does not take the client key: {fix}")
    return joined
