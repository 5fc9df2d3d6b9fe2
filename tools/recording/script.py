"""What is typed while the README's terminal is recorded."""

from __future__ import annotations

from typing import Final

TITLE: Final = "A gateway, and clients of two vendors that it answers"
SERVE: Final = "wireglot serve"
COMMANDS: Final = (
    'wireglot run claude --model demo/demo -- -p "Say hello"',
    """wireglot run claude --model demo/demo-gemini -- -p '[[demo:tool Read {"file_path": "notes.txt"}]]'""",
    'wireglot run gemini --model demo/demo-anthropic -- -p "Say hello"',
)
