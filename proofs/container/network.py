"""A private network of this process: a bridge, and on it a namespace with an address for each machine.

`alone_command` starts a program in namespaces of its own: no port of this machine is taken, and when the
program ends, however it ends, everything it started and mounted is gone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_BRIDGE: Final = "bridge0"
_NETWORK: Final = "10.84.84"


def alone_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Runs a module in namespaces of its own."""
    lonely = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*lonely, sys.executable, "-m", module, *arguments]


class Network:
    """Only inside of `alone_command`."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        _do("mount", "-t", "tmpfs", "run", "/run")  # names of namespaces are files there
        _do("ip", "link", "set", "lo", "up")
        _do("ip", "link", "add", _BRIDGE, "type", "bridge")
        _do("ip", "address", "add", f"{_NETWORK}.1/24", "dev", _BRIDGE)
        _do("ip", "link", "set", _BRIDGE, "up")

    def add(self, name: str) -> str:
        """A machine: its address. `joining` starts something there."""
        number = len(self.addresses) + 2
        address = self.addresses[name] = f"{_NETWORK}.{number}"
        outer, inner = f"out{number}", f"in{number}"
        _do("ip", "netns", "add", name)
        _do("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        _do("ip", "link", "set", outer, "master", _BRIDGE, "up")
        _do("ip", "link", "set", inner, "netns", name)
        for words in (("lo", "up"), (inner, "up")):
            _do("ip", "-n", name, "link", "set", *words)
        _do("ip", "-n", name, "address", "add", f"{address}/24", "dev", inner)
        return address

    def joining(self, name: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{name}"]


def _do(*command: str) -> None:
    subprocess.run(command, check=True)
