"""How to install an optional package in this installation: the way it was installed itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from itertools import pairwise
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

_NAME = "wireglot"


def install_hint(extra: str) -> str:
    """The command that adds an extra, for display: it is never run by itself."""
    from importlib import metadata  # only needed if something is missing

    try:
        found = metadata.distribution(_NAME)
        required, origin = found.requires or [], json.loads(found.read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):  # run from its sources alone
        required, origin = [], {}
    packages = [
        re.split(r"[;\s]", each)[0] for each in required if re.search(rf"""extra == ['"]{extra}['"]""", each)
    ]
    return hint_for(extra, PurePath(sys.prefix).parts, packages, origin, _pip())


def _pip() -> str:
    """With its path if `pip` alone would be another environment's: a virtual one that is not activated."""
    import shutil

    if sys.prefix == sys.base_prefix:
        return "pip"
    own = str(PurePath(sys.prefix, "Scripts" if os.name == "nt" else "bin", "pip"))
    found = shutil.which("pip")
    if found is not None and PurePath(found).parent == PurePath(own).parent:
        return "pip"
    if shutil.which(own) is None:  # uv makes environments without
        return f"VIRTUAL_ENV={shlex.quote(sys.prefix)} uv pip"
    return shlex.quote(own)


def hint_for(
    extra: str, prefix: tuple[str, ...], packages: list[str], origin: dict[str, object], pip: str = "pip"
) -> str:
    """`prefix`: of this Python. `origin`: pip's metadata of an installation that is not from an index."""
    if packages and _holds(prefix, ("pipx", "venvs")):
        return f"pipx inject {_NAME} {shlex.join(packages)}"
    url = str(origin.get("url", ""))
    folder = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    wanted = shlex.quote(f"{folder or _NAME}[{extra}]") if folder else f"'{_NAME}[{extra}]'"
    if _holds(prefix, ("uv", "tools")):
        return f"uv tool install --force {wanted}"
    details = origin.get("dir_info")
    is_checkout = isinstance(details, dict) and bool(details.get("editable"))
    return f"{pip} install {'-e ' if is_checkout else ''}{wanted}"


def _holds(parts: tuple[str, ...], run: tuple[str, str]) -> bool:
    return run in pairwise(parts)
