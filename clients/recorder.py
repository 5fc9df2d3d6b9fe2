"""A wire recorder: passes bytes between a client and a server, and keeps both directions in files."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit


class Recorder:
    """Listens on a free port. Connection N is kept as `N.sent` (client's bytes) and `N.received`."""

    def __init__(self, target: str, folder: Path) -> None:
        place = urlsplit(target)
        assert place.hostname is not None
        assert place.port is not None
        self._target = (place.hostname, place.port)
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Recorder:
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in (*self._folder.glob("*.sent"), *self._folder.glob("*.received")):
            old.unlink()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        count = 0
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                count += 1
                server = socket.create_connection(self._target)
                for source, sink, ending in ((client, server, "sent"), (server, client, "received")):
                    file = self._folder / f"{count:03}.{ending}"
                    threading.Thread(target=_copy, args=(source, sink, file), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket, file: Path) -> None:
    with file.open("wb", buffering=0) as record, suppress(OSError):
        while data := source.recv(65536):
            record.write(data)
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
