"""The agents of opencode for which the user's files set a model: others use that of the session.

A file that cannot be read is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from wireglot.cli.run.pointing import plain_json5

_FILES: Final = ("config.json", "opencode.json", "opencode.jsonc")
_TABLES: Final = ("agent", "mode")
_FOLDERS: Final = ("agent", "agents", "mode", "modes")
# Agents of opencode's files that are given a model.
MAX_AGENTS: Final = 300
# Characters of an agent's file in which its model is looked for.
_MAX_HEAD: Final = 64 * 1024
# Folders, from the current one upward, in which a project's settings are looked for.
_MAX_LEVELS: Final = 64


def agent_names(environ: Mapping[str, str], current: str) -> list[str]:
    """`current`: the folder that it is started in."""
    return list(dict.fromkeys(islice(_in_files(environ, current), MAX_AGENTS)))


def _in_files(environ: Mapping[str, str], current: str) -> Iterator[str]:
    if named := environ.get("OPENCODE_CONFIG"):
        yield from _in_tables(named)
    projects = list(_upward(current))
    home = environ.get("HOME", "")
    folders = [
        os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode"),
        os.path.join(home, ".opencode"),
        *filter(None, [environ.get("OPENCODE_CONFIG_DIR")]),
        *(os.path.join(project, ".opencode") for project in projects),
    ]
    for folder in (*folders, *projects):
        for file in _FILES:
            yield from _in_tables(os.path.join(folder, file))
    for folder in folders:
        yield from _in_folder(folder)


def _upward(folder: str) -> Iterator[str]:
    """A project's settings are also those of the folders above, up to that of its repository."""
    for _ in range(_MAX_LEVELS):
        yield folder
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = above


def _in_tables(place: str) -> Iterator[str]:
    document = plain_json5(place) or {}
    for table in _TABLES:
        found = document.get(table)
        for name, agent in found.items() if isinstance(found, dict) else ():
            if isinstance(agent, dict) and "model" in agent:
                yield name


def _in_folder(folder: str) -> Iterator[str]:
    """One Markdown file each. A subfolder is a part of its name."""
    for name in _FOLDERS:
        root = os.path.join(folder, name)
        for place, _, files in os.walk(root):
            for file in sorted(files):
                path = os.path.join(place, file)
                if file.endswith(".md") and _sets_model(path):
                    yield os.path.relpath(path.removesuffix(".md"), root)


def _sets_model(path: str) -> bool:
    """Whether the head of the file does. That of a text which looks like one does no harm."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return any(line.startswith("model:") for line in file.read(_MAX_HEAD).splitlines())
    except OSError:
        return False
