"""What the Python programs share: where the gateway is, the prompt, and the tool."""

from __future__ import annotations

import os
from pathlib import Path

URL = os.environ["WIREGLOT_URL"]
KEY = os.environ["WIREGLOT_KEY"]
PROMPT = os.environ["WIREGLOT_PROMPT"]
NAME = "get_marker"
ABOUT = "Read the marker file at a path and return its content"
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


def get_marker(path: str) -> str:
    """The content of the file."""
    return Path(path).read_text().strip()
