"""What a release has beside wheel and sdist: the chart, the context of the image and a bill of materials.

    python -m tools.release.artifacts [--out dist]

Nothing is fetched, and the same tree makes the same bytes. `make sbom` writes the bill from an environment
with everything installed, and compares it with the lock.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import tarfile
from collections.abc import Set
from pathlib import Path
from typing import Any

from proofs.container.context import Context
from proofs.container.dockerfile import parse
from tools.release.lock import LOCK, locked

ROOT = Path(__file__).parents[2]
CHART = Path("deploy/helm/wireglot")
_VERSION = re.compile(r"^version: (\S+)$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.artifacts", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out: Path = parser.parse_args().out
    for made in (pack_chart(ROOT / CHART, out), pack_image(ROOT, out), write_bill(ROOT, out)):
        print(f"{made}: {made.stat().st_size} bytes")
    return 0


def version_of(chart: Path) -> str:
    """The chart has the version of the package (`tools.release.release.PLACES`)."""
    found = _VERSION.search((chart / "Chart.yaml").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{chart}/Chart.yaml: expected a line `version: MAJOR.MINOR.PATCH`")
    return found[1]


def pack_chart(chart: Path, out: Path) -> Path:
    """As `helm package` does."""
    files = {f"{chart.name}/{path.relative_to(chart)}": path for path in _files(chart)}
    return _packed(out / f"{chart.name}-{version_of(chart)}.tgz", files)


def pack_image(tree: Path, out: Path) -> Path:
    """The Dockerfile and what it copies: `docker build - < wireglot-VERSION-image.tar.gz`."""
    context = Context(tree)
    text = (tree / "Dockerfile").read_text(encoding="utf-8")
    names = {"Dockerfile": tree / "Dockerfile", ".dockerignore": tree / ".dockerignore"}
    for stage in parse(text):
        for each in stage.instructions:
            if each.name == "COPY" and not each.flags:
                for source in context.sources(each):
                    names |= {str(path.relative_to(tree)): path for path in _files(source, context.never)}
    return _packed(out / f"wireglot-{version_of(tree / CHART)}-image.tar.gz", names)


def write_bill(tree: Path, out: Path) -> Path:
    """CycloneDX, of the projects that the lock installs."""
    version = version_of(tree / CHART)
    found = locked((tree / LOCK.name).read_text(encoding="utf-8"))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("wireglot", version, kind="application")},
        "components": [_component(name, found[name]) for name in sorted(found)],
    }
    target = out / "wireglot.cdx.json"
    out.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    return target


def _component(name: str, version: str, kind: str = "library") -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": reference, "name": name, "version": version, "purl": reference}


def _files(place: Path, never: Set[str] = frozenset()) -> list[Path]:
    """`never`: names of files and folders that are left out."""
    if place.is_file():
        return [place]
    return [path for path in place.rglob("*") if path.is_file() and not never & set(path.parts)]


def _packed(target: Path, files: dict[str, Path]) -> Path:
    """Without anything of this machine: times, owners, modes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            content = files[name].read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    target.write_bytes(gzip.compress(whole.getvalue(), mtime=0))
    return target


if __name__ == "__main__":
    raise SystemExit(main())
