"""Keys where they are: in the store itself, or behind the admin API of a gateway that runs."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol
from urllib.parse import quote

from wireglot.cli.local_gateway import ADMIN_SECRET
from wireglot.cli.remote_gateway import NoAnswer, UnusableKey, address_of, ask, usable_key
from wireglot.gateway.state.keys.ring import Keyring, told

_ROOT: Final = "/v1/admin/keys"
_REFUSED: Final = 400
_UNAUTHORIZED: Final = 401


class AdminFailed(Exception):
    """The admin API cannot be used, or refused; in words for people."""


class Keys(Protocol):
    """Keys as documents; a new key stands in its document as `key`."""

    async def list(self) -> list[dict[str, Any]]: ...

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def revoke(self, name: str) -> dict[str, Any]: ...

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]: ...

    async def delete(self, name: str) -> dict[str, Any]: ...


class InStore:
    """In the store itself."""

    def __init__(self, ring: Keyring, wipe: Callable[[str], Awaitable[object]]) -> None:
        self._ring = ring
        self._wipe = wipe

    async def list(self) -> list[dict[str, Any]]:
        return [told(row, time.time()) for row in await self._ring.all()]

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        row, key = await self._ring.create(name, fields)
        return {**told(row, time.time()), "key": key}

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return told(await self._ring.update(name, fields), time.time())

    async def revoke(self, name: str) -> dict[str, Any]:
        return told(await self._ring.revoke(name), time.time())

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        row, key = await self._ring.rotate(name, overlap)
        return {**told(row, time.time()), "key": key}

    async def delete(self, name: str) -> dict[str, Any]:
        return told(await self._ring.delete(name, self._wipe), time.time())


class AtGateway:
    """Through the admin API of a gateway that runs."""

    def __init__(self, url: str, key: str = "") -> None:
        """Raises UnusableUrl, UnusableKey. `key`: where it is not the admin secret of the environment."""
        self._address = address_of(url)
        self._secret = key or usable_key(os.environ.get(ADMIN_SECRET, ""), ADMIN_SECRET)
        if not self._secret:
            raise UnusableKey(f"--url needs the admin secret of that gateway in {ADMIN_SECRET}")

    async def list(self) -> list[dict[str, Any]]:
        found = self._ask("GET", "").get("data")
        if not isinstance(found, list):
            raise AdminFailed(f"{self._address.url}: what answers there is no gateway's admin API")
        return found

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", "", {"name": name, **fields})

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("PATCH", _path(name), fields)

    async def revoke(self, name: str) -> dict[str, Any]:
        return self._ask("DELETE", _path(name))

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        return self._ask("POST", f"{_path(name)}/rotate", {"overlap": overlap})

    async def delete(self, name: str) -> dict[str, Any]:
        return self._ask("POST", f"{_path(name)}/delete")

    def _ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            answer = ask(self._address, method, f"{_ROOT}{path}", key=self._secret, body=document)
        except NoAnswer as problem:
            raise AdminFailed(str(problem)) from None
        if answer.status == _UNAUTHORIZED:
            raise AdminFailed(f"{self._address.url} does not take the admin secret in {ADMIN_SECRET}")
        found = answer.document()
        if "error" in found or answer.status >= _REFUSED or not found:
            where = "" if "error" in found else f"{self._address.url}: "
            raise AdminFailed(f"{where}{answer.complaint()}")
        return found


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"
