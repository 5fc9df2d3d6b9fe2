"""What hatchling asks while it builds: the fields of the package that pyproject.toml calls dynamic."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PackagePage(MetadataHookInterface):
    """The description, and the project's addresses where it has one."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        page = _page(root)
        home = self.config["home"]
        readme = (root / "README.md").read_text(encoding="utf-8")
        text = page.package_page(readme, home, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if home:
            metadata["urls"] = page.project_urls(home, metadata["version"])


def _page(root: Path) -> Any:
    """By its path: the tree is not on the path of the process that builds."""
    spec = importlib.util.spec_from_file_location("package_page", root / "tools/release/package_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
