"""How the program is installed, and a package that is missing added: the way it was installed itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from itertools import pairwise
from pathlib import PurePath
from typing import Final
from urllib.parse import unquote, urlsplit

SOURCE: Final = "."
"""What an installer is given: no index has the package, so it is the folder of a checkout. Pages and hints
follow it (`make docs`, tools/install_lines.py). Once an index has the package, this is its name there."""
_NAME: Final = "wireglot"
_PACKAGES: Final = ("wireglot/", "wireglot_core/")


def own_file(filename: str) -> str:
    """A source file of ours without where it is installed, "wireglot/http/retry.py"; "" for others."""
    found = PurePath(filename)
    above = PurePath(__file__).parents[1]
    inside = found.relative_to(above).as_posix() if found.is_relative_to(above) else ""
    return inside if inside.startswith(_PACKAGES) else ""


def install_hint(extra: str = "") -> str:
    """The command that adds an extra, or all that the program needs, for display: nothing here runs it."""
    from importlib import metadata  # only needed if something is missing

    try:
        found = metadata.distribution(_NAME)
        required, origin = found.requires or [], json.loads(found.read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):  # run from its sources alone
        required, origin = [], {}
    packages = [
        re.split(r"[;\s]", each)[0]
        for each in required
        if extra and re.search(rf"""extra == ['"]{extra}['"]""", each)
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
    folder = _folder(origin)
    wanted = requirement(extra, folder or SOURCE)
    if _holds(prefix, ("uv", "tools")):
        return f"uv tool install --force {wanted}"
    if packages and not folder:  # from an index, or a link: they are on the index in any case
        return f"{pip} install {shlex.join(packages)}"
    return f"{pip} install {'-e ' if _is_checkout(origin) else ''}{wanted}"


def requirement(extra: str = "", source: str = SOURCE) -> str:
    """What an installer is given, as it is written in a shell."""
    return shlex.quote(f"{source}[{extra}]" if extra else source)


def upgrade_hint() -> str:
    """How a newer version gets here, for display."""
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    return upgrade_for(PurePath(sys.prefix).parts, origin, _pip())


def upgrade_for(prefix: tuple[str, ...], origin: dict[str, object], pip: str = "pip") -> str:
    folder = _folder(origin)
    if not folder or "dir_info" not in origin:  # a wheel, an archive, or an index
        return "install a newer version of wireglot"
    pulled = f"git -C {shlex.quote(folder)} pull"
    if _is_checkout(origin):
        return pulled
    if _holds(prefix, ("pipx", "venvs")):
        return f"{pulled} && pipx install --force {shlex.quote(folder)}"
    return f"{pulled} && {hint_for('', prefix, [], origin, pip)}"


def _folder(origin: dict[str, object]) -> str:
    """Of the checkout, or the path of the wheel, that was installed."""
    url = str(origin.get("url", ""))
    return unquote(urlsplit(url).path) if url.startswith("file:") else ""


def _is_checkout(origin: dict[str, object]) -> bool:
    details = origin.get("dir_info")
    return isinstance(details, dict) and bool(details.get("editable"))


def _holds(parts: tuple[str, ...], run: tuple[str, str]) -> bool:
    return run in pairwise(parts)
