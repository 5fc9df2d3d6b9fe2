"""A viewer of the inspector, and what it may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest

Access = Literal["open", "admin", "key"]
"""`open`: a local user, while no key is required. `admin`: by the admin secret. `key`: by a client key."""


def _always() -> bool:
    return True


class Viewer(msgspec.Struct, frozen=True):
    access: Access
    key: str = ""
    """The name of the client key, if it is one."""
    created: int = 0
    """When that key was created, in unix milliseconds: earlier data belongs to another of the same name."""
    until: int = 0
    """When the session ends, in unix seconds; 0: there is no session."""
    holds: Callable[[], bool] = _always
    """Whether it still has access: a session ends, a key is revoked, the first key is created."""

    @property
    def sees_all(self) -> bool:
        return self.access != "key"

    def sees(self, key: str, at: float = 0.0) -> bool:
        """Whether it may see an exchange of a client key (by its name), at a time in unix seconds."""
        if self.access != "key":
            return True
        return key == self.key and (not at or at * 1000 >= self.created)

    def need_all(self, what: str) -> None:
        if not self.sees_all:
            raise RequestError("permission", f"{what}: a client key can only access its own exchanges")

    def need_admin(self) -> None:
        if self.access != "admin":
            raise RequestError("permission", "this needs the admin secret", code="admin_needed")


InspectorHandler = Callable[[PageRequest, Viewer], Awaitable[None]]
"""Answers one route of the inspector. The viewer's access has been checked before."""
