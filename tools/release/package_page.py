"""What the page of the package says: the README, with links that lead somewhere from there.

`home` in pyproject.toml is the project's address, and the only place that has it. While it is empty there are
no URLs, and links into the repository become plain text. Pictures written as mermaid are left out: a page
shows only their source. Used by metadata_hook.py, so nothing but the standard library is imported here.
"""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"^(```[^\n]*\n.*?^```[ \t]*\n?)", re.DOTALL | re.MULTILINE)
_MERMAID: Final = re.compile(r"^```mermaid\n.*?^```[ \t]*\n+", re.DOTALL | re.MULTILINE)
_IMAGE: Final = re.compile(r"!\[([^]]*)\]\(([^)\s]+)\)")
_IMAGE_TAG: Final = re.compile(r'<img\b[^>]*?\bsrc="([^"]+)"[^>]*>')
_LINK: Final = re.compile(r"(?<!!)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


def package_page(readme: str, home: str, version: str) -> str:
    """Code is left as it is."""
    pieces = _FENCE.split(_MERMAID.sub("", readme))
    return "".join(piece if piece.startswith("```") else _rewritten(piece, home, version) for piece in pieces)


def project_urls(home: str, version: str) -> dict[str, str]:
    if not home:
        return {}
    base = home.rstrip("/")
    pages = {"Changelog": "CHANGELOG.md", "Documentation": "docs", "Security": "SECURITY.md"}
    return {
        "Homepage": base,
        "Source": base,
        "Issues": f"{base}/issues",
        **{name: _place(path, base, version, "blob") for name, path in pages.items()},
    }


def _place(path: str, home: str, version: str, kind: str) -> str:
    """At the version that was released: the page does not change afterwards, but the tree does."""
    return f"{home.rstrip('/')}/{kind}/v{version}/{path}"


def _rewritten(text: str, home: str, version: str) -> str:
    def image(match: re.Match[str]) -> str:
        alt, target = match.groups()
        if _ABSOLUTE.match(target):
            return match[0]
        return f"![{alt}]({_place(target, home, version, 'raw')})" if home else ""

    def tag(match: re.Match[str]) -> str:
        if _ABSOLUTE.match(match[1]):
            return match[0]
        return match[0].replace(match[1], _place(match[1], home, version, "raw")) if home else ""

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        if _ABSOLUTE.match(target):
            return match[0]
        if target.startswith("#") or not home:
            return label
        return f"[{label}]({_place(target, home, version, 'blob')})"

    return _LINK.sub(link, _IMAGE_TAG.sub(tag, _IMAGE.sub(image, text)))
