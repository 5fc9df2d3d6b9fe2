"""Providers as real HTTP servers: each host of the catalog is a folder of one of them, or no server."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from proofs.http_double import DoubleHandler, HttpDouble
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ProviderSpec

GOOD_KEY = "sk-good-0123456789abcdef"
BAD_KEY = "sk-bad-0123456789abcdef"
OPENAI_REFUSAL = {
    "error": {
        "message": f"Incorrect API key provided: {BAD_KEY}.",
        "type": "invalid_request_error",
        "code": "invalid_api_key",
    }
}


class Reply(msgspec.Struct):
    """Of one host."""

    models: tuple[str, ...] = ("model-a", "model-b")
    status: int = 200
    """To anyone who has a good key."""
    body: Any = None
    wants_key: bool = True
    open_list: bool = False
    """Anybody may see the list of models."""
    no_list: bool = False


class ProviderDouble(HttpDouble):
    def __init__(self, hosts: Mapping[str, Reply], now: float | None = None) -> None:
        super().__init__()
        self.hosts = hosts
        self.now = now
        """What its clock says; None: the right time."""
        self.requests: list[str] = []

    class Handler(DoubleHandler):
        protocol_version = "HTTP/1.0"
        owner: ProviderDouble

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            host, _, path = self.path.lstrip("/").partition("/")
            self.owner.requests.append(f"{self.command} {host} /{path}")
            status, document = self.owner._reply(self.command, headers, host, f"/{path}")
            self.send(status, document if isinstance(document, bytes) else json.dumps(document).encode())

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(self.owner.now, usegmt=True)

    def base(self, host: str, path: str = "/v1") -> str:
        return f"{self.url}/{host}{path}"

    def _reply(self, method: str, headers: dict[str, str], host: str, path: str) -> tuple[int, Any]:
        reply = self.hosts.get(host)
        if reply is None:
            return 404, b"<html>nothing here</html>"
        names = ("x-api-key", "x-goog-api-key", "api-key", "authorization")
        sent = next((headers[name] for name in names if headers.get(name)), "")
        is_list = path.endswith("/models") and method == "GET"
        if is_list and reply.no_list:
            return 404, b"no such page"
        if reply.wants_key and not (is_list and reply.open_list) and GOOD_KEY not in sent:
            return 401, OPENAI_REFUSAL
        if reply.status != 200:
            return reply.status, reply.body
        if is_list:
            return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in reply.models]}
        if path.endswith("/key"):
            return 200, {"data": {"label": "mine"}}
        return 400, {"error": {"message": "messages: expected a list", "type": "invalid_request_error"}}


def dead_url() -> str:
    """Where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def modes_are_obeyed() -> bool:
    """Not by root, as a rule, nor on every system."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o500)
        try:
            return not os.access(folder, os.W_OK)
        finally:
            Path(folder).chmod(0o700)


@contextmanager
def catalog_at(double: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalog with its hosts in the double; those that the double does not have are dead."""
    real = catalog.provider
    dead = dead_url()

    def moved(url: str) -> str:
        place = urlsplit(url)
        if place.scheme not in ("http", "https"):
            return url
        start = double.url if place.netloc in double.hosts else dead
        return f"{start}/{place.netloc}{place.path}"

    def provider(name: str) -> ProviderSpec:
        spec = real(name)
        urls = {dialect: moved(url) for dialect, url in spec.base_urls.items()}
        return msgspec.structs.replace(spec, base_url=moved(spec.base_url), base_urls=urls)

    monkeypatch.setattr(catalog, "provider", provider)
    with double:
        yield
    monkeypatch.undo()


def set_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of this machine's own configuration, keys, data, clients or proxies; gives the home."""
    home, project, programs = (folder / name for name in ("home", "project", "bin"))
    for each in (home, project, programs):
        each.mkdir()
    keys = {name for each in catalog.names() for name in catalog.provider(each).api_key_env}
    others = {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AZURE_CLIENT_SECRET"}
    others |= {"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_FEDERATED_TOKEN_FILE", "HTTPS_PROXY", "https_proxy"}
    others |= {"ALL_PROXY", "all_proxy", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"}
    for name in keys | others:
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.startswith("WIREGLOT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(project)
    return home
