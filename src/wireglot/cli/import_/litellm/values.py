"""Values as LiteLLM means them: `os.environ/NAME` stands for a variable."""

from __future__ import annotations

import re
from typing import Final

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.secret_names import Secrets

_VARIABLE: Final = "os.environ/"
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")


class NotKnownHere(ValueError):
    """A value that cannot be had, or cannot be used. The message says why, and nothing of the value."""


def variable_of(node: Node | None) -> str:
    """The variable that a value stands for, "" if it is a value itself."""
    text = node.text if node is not None else ""
    return text.removeprefix(_VARIABLE).strip() if text.startswith(_VARIABLE) else ""


def plain(node: Node, secrets: Secrets) -> str:
    """A value that the configuration has to write out."""
    name = variable_of(node)
    if not name:
        return node.text if isinstance(node.value, str) else str(node.value)
    found = secrets.value(name)
    if not found:
        raise NotKnownHere(f"{name} has to be written out, and is not set here: set it, and import again")
    return found


def reference(node: Node, secrets: Secrets) -> str:
    """A value that is no secret, and may be a reference."""
    name = variable_of(node)
    return secrets.variable(name) if name else node.text or str(node.value)


def word(node: Node, secrets: Secrets) -> str:
    """The same of a value that becomes part of an address."""
    found = reference(node, secrets)
    if not variable_of(node) and not _WORD.fullmatch(found):
        raise NotKnownHere("its region, project or version has characters that no address has")
    return found


def secret(node: Node, secrets: Secrets, wish: str) -> str:
    """A value that must not be written out: a reference, always."""
    name = variable_of(node)
    if not name and not _SENDABLE.fullmatch(node.text or str(node.value)):
        raise NotKnownHere("a key has only ASCII characters, and no spaces")
    return secrets.variable(name) if name else secrets.hidden(node.text or str(node.value), wish)
