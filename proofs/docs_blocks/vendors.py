"""The Internet as far as pages need it: the vendors' hosts, stood in for by our scripted upstream.

Only inside namespaces of one's own (`alone_command`): names of hosts lead to this machine there, and port 443
is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trustme

from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.providers.spec import names, provider
from wireglot_core.wire.json import encode

_LOCAL_MODELS: Final = {11434: "qwen3:8b"}
"""Ollama's port, and what it has. What else runs on one's own machine is not asked by any page."""
_WRONG: Final = "wrong"
"""In a key that the vendors refuse."""
_REFUSAL: Final = b'{"error": {"message": "Incorrect API key provided: %b.", "code": "invalid_api_key"}}'
_EXAMPLES: Final = (
    "llm.example.com",
    "my-resource.openai.azure.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    "aiplatform.googleapis.com",
)
"""Hosts of the pages' examples: of clouds the catalog has only their form."""
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1


def alone_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Runs a module with a network, mounts and process ids of its own: whatever it starts ends with it."""
    return [*_lonely(), sys.executable, "-m", module, *arguments]


def can_be_alone() -> bool:
    """Linux, as root or where users may have namespaces."""
    try:
        return subprocess.run([*_lonely(), "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _lonely() -> list[str]:
    alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*alone, *(["--user", "--map-root-user"] if os.geteuid() else [])]


def hosts() -> list[str]:
    """Of every provider in the catalog."""
    found = set(_EXAMPLES)
    for name in names():
        spec = provider(name)
        found.update(urlsplit(url).hostname or "" for url in (spec.base_url, *spec.base_urls.values()))
    return sorted(host for host in found if "." in host and "{" not in host and not host.startswith("127."))


def key_variables() -> list[str]:
    return sorted({variable for name in names() for variable in provider(name).api_key_env})


@contextlib.contextmanager
def standing_in(folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which programs trust the stand-ins."""
    _loopback_up()
    found = hosts()
    lines = ["127.0.0.1 localhost", *(f"127.0.0.1 {host}" for host in found)]
    table = folder / "hosts"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(["mount", "--bind", str(table), "/etc/hosts"], check=True)
    authority = trustme.CA()
    certificates = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(certificates))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*found).configure_cert(context)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ScriptedUpstream(port=443, tls=context, decide=_as_the_vendor))
        for port in _LOCAL_MODELS:
            stack.enter_context(ScriptedUpstream(port=port, decide=_as_the_local_server))
        yield dict.fromkeys(("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE"), str(certificates))


def _as_the_vendor(asked: Recorded) -> Behaviour | None:
    """Models are those of the catalog, and a key may be wrong. The demo model does the rest."""
    key = asked.headers.get("authorization", "").removeprefix("Bearer ") or asked.headers.get("x-api-key", "")
    if _WRONG in key:
        return _document(_REFUSAL % key.encode(), status=401)
    if not _lists(asked):
        return None
    host = asked.headers.get("host", "")
    theirs = (provider(name) for name in names() if host in provider(name).base_url)
    models = [model.match for spec in theirs for model in spec.models if model.is_name and not model.retired]
    return _document(_listing(list(dict.fromkeys(models)))) if models else None


def _as_the_local_server(asked: Recorded) -> Behaviour | None:
    port = int(asked.headers.get("host", "").rpartition(":")[2])
    return _document(_listing([_LOCAL_MODELS[port]])) if _lists(asked) else None


def _lists(asked: Recorded) -> bool:
    """In the way that most have in common; Google's is the scripted upstream's own."""
    return asked.method == "GET" and asked.path.endswith("/models") and "/v1beta" not in asked.path


def _listing(models: list[str]) -> bytes:
    listed = [{"id": model, "object": "model", "type": "model", "display_name": model} for model in models]
    return encode({"object": "list", "data": listed, "has_more": False})


def _document(body: bytes, status: int = 200) -> Behaviour:
    """With the time, by which `wireglot doctor` looks at the clock."""
    headers = (("content-type", "application/json"), ("date", formatdate(usegmt=True)))
    return Behaviour(status=status, headers=headers, body=body)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
