"""Who looks at the gateway through its inspector, and what of it they may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.page_request import PageRequest

Access = Literal["open", "admin", "key"]
"""`open`: this machine, while no key is required. `admin`: by the admin secret. `key`: by a client key."""


def _always() -> bool:
    return True


class Viewer(msgspec.Struct, frozen=True):
    access: Access
    key: str = ""
    """The name of the client key, where it is one."""
    created: int = 0
    """When that key was made, in unix milliseconds: what went before is another's of the same name."""
    until: int = 0
    """When the session ends, in unix seconds; 0: it is none."""
    holds: Callable[[], bool] = _always
    """Whether it may still look: a session ends, a key is taken away, the first key is made."""

    @property
    def sees_all(self) -> bool:
        return self.access != "key"

    def sees(self, key: str, at: float = 0.0) -> bool:
        """Whether an exchange of a client key (by its name), at a moment in unix seconds, is its to see."""
        if self.access != "key":
            return True
        return key == self.key and (not at or at * 1000 >= self.created)

    def need_all(self, what: str) -> None:
        if not self.sees_all:
            raise RequestError("permission", f"{what}: a client key may look at its own exchanges only")

    def need_admin(self) -> None:
        if self.access != "admin":
            raise RequestError("permission", "this needs the admin secret", code="admin_needed")


InspectorHandler = Callable[[PageRequest, Viewer], Awaitable[None]]
"""Answers one route of the inspector. Whether the viewer may come in at all has been checked before."""
