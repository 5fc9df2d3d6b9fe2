"""Where bad input is tried: hosts that answer wrongly or not at all, and a folder with files of all kinds."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import trustme

from wireglot.cli.examples import conversation
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.wire.json import encode

KEY: Final = "wg-the-right-key-0123456789"
ADMIN: Final = "the-admin-secret-0123456789"
WRONG: Final = "wg-some-wrong-key-0123456789"
_GATEWAY: Final = (
    f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n[limits]\nauth_failures = 1000000\n'
    f'[keys]\nme = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"\n'
)
_PAGE: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>"
_MOVED: Final = (
    b"HTTP/1.1 301 Moved\r\nlocation: https://gateway.example/?key=hush\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class Silent:
    """Takes a connection, and says nothing. `asked` is set once somebody waits."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._held: list[socket.socket] = []

    def __call__(self, connection: socket.socket) -> None:
        self._held.append(connection.dup())  # it stays open
        self.asked.set()


class Hosts:
    """All of them listen on loopback; `names` are their URLs, for command lines to name."""

    def __init__(self) -> None:
        self.silent = Silent()
        self.names: dict[str, str] = {}

    @contextmanager
    def up(self) -> Iterator[Hosts]:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)

        def secure(connection: socket.socket) -> None:
            with context.wrap_socket(connection, server_side=True):
                pass

        with ExitStack() as stack:
            gateway = stack.enter_context(LiveGateway(_GATEWAY))
            refused = stack.enter_context(_bound())  # bound, so that nobody else listens; not listening
            listeners: dict[str, Callable[[socket.socket], None]] = {
                "silent": self.silent,
                "tls": secure,
                "banner": _says(b"SSH-2.0-OpenSSH_9.2\r\n"),
                "page": _says(_PAGE),
                "moved": _says(_MOVED),
            }
            ports = {name: stack.enter_context(_listening(serve)) for name, serve in listeners.items()}
            port = gateway.url.rpartition(":")[2]
            self.names = {
                "gateway": gateway.url,
                "taken": port,
                "tls_at_plain": f"https://127.0.0.1:{port}",
                "refused": f"http://127.0.0.1:{refused.getsockname()[1]}",
                "untrusted": f"https://127.0.0.1:{ports['tls']}",
                **{name: f"http://127.0.0.1:{number}" for name, number in ports.items()},
            }
            yield self


def _bound() -> socket.socket:
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    return found


def _says(words: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(words)

    return serve


@contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    listener = _bound()
    listener.listen()

    def work() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # it was closed
                return
            with connection:
                try:
                    serve(connection)
                except OSError:  # the client has gone, or speaks something else
                    continue

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def furnish(folder: Path) -> dict[str, str]:
    """Files of all kinds, and an environment that knows nothing but this folder."""
    home, programs, temporary = folder / "home", folder / "bin", folder / "tmp"
    for each in (home, programs, temporary, folder / "folder"):
        each.mkdir()
    (folder / "loop").symlink_to("loop")  # what not even root can read
    texts: dict[str, Any] = {
        "broken.toml": "[server\n",
        "wrong.toml": "[server]\nprot = 1\n",
        "two.toml": "[server]\nprot = 1\nhots = 2\n",
        "demo.toml": "[providers.demo]\n",
        "nokey.toml": "[providers.kimi]\n",
        "keyed.toml": f'[providers.demo]\n[keys]\nme = "sha256:{"0" * 64}"\n',
        "memory.toml": '[providers.demo]\n[store]\nurl = "memory:"\n',
        "nostore.toml": f'[providers.demo]\n[store]\nurl = "sqlite://{folder}/note.txt/wireglot.db"\n',
        "badstore.toml": f'[providers.demo]\n[store]\nurl = "sqlite://{folder}/note.txt"\n',
        "deadstore.toml": '[providers.demo]\n[store]\nurl = "postgresql://me:hush@127.0.0.1:1/x?sslmode=disable"\n',
        "note.txt": "This is a note, and neither a database nor JSON.\n" * 20,
        "config.yaml": "model_list:\n- model_name: fast\n  litellm_params: {model: groq/llama-3, api_key: os.environ/GROQ_API_KEY}\n",
        "config.json": '{"Providers": [{"name": "groq", "models": ["m"], "api_key": "sk-hush", "api_base_url": '
        '"https://api.groq.com/openai/v1/chat/completions"}], "Router": {"default": "groq,m"}}',
        "broken.yaml": "model_list: [\n",
        "broken.json": '{"model": ',
        "one.wgtrace.json": '{"format": "wireglot-trace/1", "row": {"id": "req_1", "at": 1, "dialect": "anthropic"}, '
        '"request": {"body": "{\\"a\\": 1}"}, "answer": {}, "attempts": [{"provider": "p", "model": "m", "passthrough": true, '
        '"dialect": "anthropic", "request": {"body": "{\\"a\\": 1}"}}]}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "request.json").write_bytes(encode(conversation.document("anthropic", "request")))
    (folder / "stream.sse").write_bytes(conversation.stream("gemini"))
    (folder / "script").write_text("no program\n")
    client = programs / "claude"
    client.write_text("#!/bin/sh\necho started\n")
    client.chmod(0o755)
    return {
        "HOME": str(home),
        "PATH": f"{programs}:/usr/bin:/bin",
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "LANG": "C.UTF-8",
    }
