"""What hatchling runs while it builds: compiles the one native module, where there is a C compiler.

Without one, with `WIREGLOT_PURE=1`, or where compiling fails, the wheel is pure Python and does the same.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = Path("src/wireglot_core/wire/_scan.c")
_BUILT = _SOURCE.with_name("_scan.abi3.so")
_LINKING = {"linux": ("-Wl,--build-id=none", "-s"), "darwin": ("-undefined", "dynamic_lookup")}
"""Where it was built leaves no trace in it: the same sources and compiler give the same bytes."""
_OLDEST_GLIBC = 17


class NativeModule(BuildHookInterface[Any]):
    """A wheel with it is for one platform, and for every Python from 3.11 on (the stable ABI)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        tree = root if (root / _SOURCE).exists() else root.parent  # core/ has the project file alone
        built = tree / _BUILT
        built.unlink(missing_ok=True)
        if not os.environ.get("WIREGLOT_PURE") and sys.platform in _LINKING and _compile(tree):
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{_platform_tag(built.read_bytes())}"
            build_data["artifacts"].append(_BUILT.as_posix())


def _compile(root: Path) -> bool:
    """Whether it is there now."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    options = ["-O3", "-fPIC", "-shared", *_LINKING[sys.platform], "-I", sysconfig.get_path("include")]
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / _BUILT.name
        try:
            words = [*compiler, *options, str(_SOURCE), "-o", str(made)]
            subprocess.run(words, cwd=root, check=True, capture_output=True)
            (root / _BUILT).write_bytes(made.read_bytes())
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


def _platform_tag(built: bytes) -> str:
    """On Linux with the oldest C library that has all the functions it needs."""
    if platform.libc_ver()[0] == "glibc":
        needed = max(map(int, re.findall(rb"GLIBC_2\.(\d+)", built)), default=0)
        return f"manylinux_2_{max(needed, _OLDEST_GLIBC)}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
