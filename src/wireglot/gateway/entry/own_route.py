"""A path that is the gateway's own, and no dialect's."""

from __future__ import annotations

import msgspec


class OwnRoute(msgspec.Struct, frozen=True):
    """A page of the gateway itself; `*` stands for an id. Those of its admin are told in the common dialect,
    the others in that of whoever asks."""

    method: str
    path: str
    verb: str

    @property
    def is_admin(self) -> bool:
        return self.path.startswith("/v1/admin/")
