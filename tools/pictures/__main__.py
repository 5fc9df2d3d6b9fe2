"""Draw the pictures of the pages again: python -m tools.pictures."""

from __future__ import annotations

from pathlib import Path

from tools.pictures.forwarding import pictures

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
