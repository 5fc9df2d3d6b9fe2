"""Keys where they are: in the store itself, or behind the admin API of a gateway that runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from wireglot.cli.paint import one_line
from wireglot.gateway.state.keys.ring import Keyring, told

_SECRET: Final = "WIREGLOT_ADMIN_SECRET"
_ANSWER_SECONDS: Final = 30.0


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

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._secret = os.environ.get(_SECRET, "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AdminFailed(f"--url: expected http://... or https://..., got {one_line(url)}")
        if not self._secret:
            raise AdminFailed(f"--url needs the admin secret of that gateway in {_SECRET}")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_ANSWER_SECONDS)
        self._root = f"{parts.path.rstrip('/')}/v1/admin/keys"

    async def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "")["data"]
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
        headers = {"authorization": f"Bearer {self._secret}"}
        body = None
        if document is not None:
            body, headers["content-type"] = json.dumps(document), "application/json"
        try:
            self._connection.request(method, self._root + path, body, headers)
            answer = self._connection.getresponse()
            data = answer.read()
            found = json.loads(data)
        except (OSError, HTTPException, ValueError) as problem:
            raise AdminFailed(
                f"{self._connection.host}: {one_line(str(problem)) or type(problem).__name__}"
            ) from None
        if answer.status >= 400:
            error = found.get("error") if isinstance(found, dict) else None
            message = error.get("message") if isinstance(error, dict) else None
            raise AdminFailed(one_line(str(message or f"the gateway answered with status {answer.status}")))
        if not isinstance(found, dict):
            raise AdminFailed("the gateway's answer is no JSON object")
        return found


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"
