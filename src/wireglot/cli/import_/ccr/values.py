"""Values as claude-code-router means them: `$NAME` and `${NAME}` stand for variables, anywhere in a text."""

from __future__ import annotations

import re
from typing import Final

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.secret_names import Secrets

_VARIABLE: Final = re.compile(r"\$\{([^}]+)\}|\$([A-Z_][A-Z0-9_]*)")
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")


class NotKnownHere(ValueError):
    """A value that cannot be had, or cannot be used. The message says why, and nothing of the value."""


def variables_in(node: Node) -> list[str]:
    return [braced or bare for braced, bare in _VARIABLE.findall(node.text)]


def plain(node: Node, secrets: Secrets) -> str:
    """A value that the configuration has to write out."""

    def held(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        value = secrets.value(name)
        if not value:
            raise NotKnownHere(f"{name} has to be written out, and is not set here: set it, and import again")
        return value

    return _VARIABLE.sub(held, node.text or str(node.value))


def secret(node: Node, secrets: Secrets, wish: str) -> str:
    """A value that must not be written out: a reference, unless it is a mere placeholder."""
    whole = _VARIABLE.fullmatch(node.text)
    if whole is not None:
        return secrets.variable(whole[1] or whole[2])
    value = plain(node, secrets) if variables_in(node) else node.text
    if not _SENDABLE.fullmatch(value):
        raise NotKnownHere("a key has only ASCII characters, and no spaces")
    return secrets.hidden(value, wish)
