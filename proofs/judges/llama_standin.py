"""A pytest plugin for the tests of llama.cpp's server: the server that they start is the gateway.

A server of one model needs no model name in requests and serves its paths without `/v1` too; a gateway does
not, so requests get both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(os.environ["LLAMA_TESTS"])))
utils = import_module("utils")  # llama.cpp's

GATEWAY = urlsplit(os.environ["GATEWAY_URL"])


def start(server: Any, timeout_seconds: int = 0) -> None:
    server.server_host, server.server_port = GATEWAY.hostname, GATEWAY.port


def with_model(send: Callable[..., Any]) -> Callable[..., Any]:
    def sent(server: Any, method: str, path: str, data: Any = None, *rest: Any, **more: Any) -> Any:
        start(server)
        if isinstance(data, dict) and method == "POST":
            data = {**data, "model": data.get("model") or "llama"}
        if path in ("/chat/completions", "/responses"):
            path = f"/v1{path}"
        return send(server, method, path, data, *rest, **more)

    return sent


utils.ServerProcess.start = start
utils.ServerProcess.stop = lambda server: None
utils.ServerPreset.load_all = staticmethod(lambda: None)
utils.ServerProcess.make_request = with_model(utils.ServerProcess.make_request)
utils.ServerProcess.make_stream_request = with_model(utils.ServerProcess.make_stream_request)
