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
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trustme

from wireglot.providers.spec import names, provider
from wireglot.testing.scripted_upstream import ScriptedUpstream

_LOCAL_PORTS: Final = (11434,)
"""Ollama's. What else runs on one's own machine is not asked by any page."""
_CLOUDS: Final = (
    "my-resource.openai.azure.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    "aiplatform.googleapis.com",
)
"""Hosts of the examples: the catalog has only their form."""
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
    found = set(_CLOUDS)
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
        stack.enter_context(ScriptedUpstream(port=443, tls=context))
        for port in _LOCAL_PORTS:
            stack.enter_context(ScriptedUpstream(port=port))
        yield dict.fromkeys(("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE"), str(certificates))


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
