"""A pytest plugin for vLLM's tests of its server: the server that they start is the gateway.

It is also what those tests import as `tests.utils`. Other modules of vLLM, and torch, which they import and
do not need to send requests, are empty. A server of one model needs no model name in requests; a gateway
does, so requests get one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import anthropic
import openai

GATEWAY: Final = os.environ["GATEWAY_URL"]
VLLM_PATH: Final = Path("vllm")
ROCM_EXTRA_ARGS: Final[list[str]] = []
_KEY: Final = "token-abc123"


class Client(openai.AsyncOpenAI):
    async def _prepare_options(self, options: Any) -> Any:
        options = await super()._prepare_options(options)
        if isinstance(options.json_data, dict):
            options.json_data = {**options.json_data, "model": options.json_data.get("model") or "vllm"}
        return options


class RemoteOpenAIServer:
    def __init__(self, *arguments: Any, **more: Any) -> None: ...

    def __enter__(self) -> RemoteOpenAIServer:
        return self

    def __exit__(self, *problem: object) -> None: ...

    def url_for(self, *parts: str) -> str:
        return "/".join((GATEWAY, *(part.strip("/") for part in parts)))

    def get_async_client(self, **more: Any) -> Client:
        return Client(base_url=self.url_for("v1"), api_key=_KEY, max_retries=0, **more)

    def get_async_client_anthropic(self, **more: Any) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=GATEWAY, api_key=_KEY, max_retries=0, **more)


class EmptyModule(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "iinfo":  # torch's, of a whole number of 64 bits
            return lambda kind: SimpleNamespace(min=-(2**63), max=2**63 - 1)
        return MagicMock(**{"is_rocm.return_value": False})


class EmptyModules(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.partition(".")[0] in ("vllm", "torch") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


sys.meta_path.insert(0, EmptyModules())
