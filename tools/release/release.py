"""Make a release: version, changelog, commit, build, check, tag.

    python -m tools.release.release 1.2.3            # in a clone that is thrown away: shows what would change
    python -m tools.release.release 1.2.3 --write    # here; nothing is pushed

A tree with changes, a version that goes back, and a changelog without anything new are refused; so are proofs
(docs/reliability.md) made before a change in the packages they cover, unless --old-proofs. The tag is set
when everything was built and has the version it should. Exit status 1 where something does not hold, 2 where
it was asked for something that cannot be.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from proofs.lab.proofs import PROOFS, is_current

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = {
    "pyproject.toml": r'^version = "([^"]+)"$',
    "core/pyproject.toml": r'^version = "([^"]+)"$',
    "src/wireglot/former_names.py": r'^VERSION: Final = "([^"]+)"$',
    "src/wireglot_core/__init__.py": r'^__version__ = "([^"]+)"$',
    "compose.yaml": r"^ +image: wireglot:(\S+)$",
    "deploy/fleet/compose.yaml": r"^ +image: wireglot:(\S+)$",
    "deploy/kubernetes/one/wireglot.yaml": r"^ +image: wireglot:(\S+)$",
    "deploy/helm/wireglot/Chart.yaml": r'^(?:version|appVersion): "?([^"\s]+)"?$',
    # Generated pages; a version of another length also needs `make docs`.
    "docs/reference/openapi.json": r'^  "version": "([^"]+)",$',
    "docs/figures/version.svg": r"[ >](\d+\.\d+\.\d+)<",
}
"""Where the version stands, and how."""
_CHANGES: Final = "CHANGELOG.md"
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class Refused(Exception):
    """Why there is no such release."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.release", description=__doc__)
    parser.add_argument("version", help="the new one: MAJOR.MINOR.PATCH")
    parser.add_argument("--write", action="store_true", help="do it here, and not in a clone")
    parser.add_argument("--no-build", action="store_true", help="leave out building and checking")
    parser.add_argument(
        "--old-proofs", action="store_true", help="release with proofs of older code, and say so"
    )
    arguments = parser.parse_args()
    try:
        check_version(arguments.version, current_version(ROOT))
        if _git(ROOT, "status", "--porcelain"):
            raise Refused("there are changes that are not committed")
        if old := old_proofs():
            listed = f"proofs made before changes in what they cover: {', '.join(old)} (make lab soak)"
            if arguments.write and not arguments.old_proofs:
                raise Refused(f"{listed}; --old-proofs releases all the same")
            print(listed)
        if arguments.write:
            _release(ROOT, arguments.version, build=not arguments.no_build)
            print("now: .ci/run, then git push --follow-tags: the workflow `release` publishes the tag")
        else:
            _rehearse(arguments.version, build=not arguments.no_build)
    except Refused as problem:
        print(f"no release: {problem}", file=sys.stderr)
        return 2
    except (RuntimeError, subprocess.CalledProcessError) as problem:
        print(f"does not hold: {problem}", file=sys.stderr)
        return 1
    return 0


def _rehearse(version: str, *, build: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="release-") as work:
        clone = Path(work) / "tree"
        _git(ROOT, "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
        _release(clone, version, build=build)
        print(_git(clone, "show", "--stat", "--patch", "--format=%s%n", "HEAD"))
    print("nothing was changed here: --write (make release ARGS=--write) does it")


def _release(tree: Path, version: str, *, build: bool) -> None:
    tag = f"v{version}"
    if _git(tree, "tag", "--list", tag):
        raise Refused(f"there is a tag {tag}")
    if not is_committed(tree, version):
        _commit(tree, version)
    if build:
        for words in (["wheel"], ["wheel", "--core"], ["artifacts"]):
            command = [sys.executable, "-m", f"tools.release.{words[0]}", *words[1:]]
            subprocess.run(command, cwd=tree, check=True)
        check_built(tree / "dist", version)
    _git(tree, "tag", "--annotate", tag, "--message", f"Wireglot {version}")
    print(f"version {version}: committed, {'built, checked and ' if build else ''}tagged {tag}")


def is_committed(tree: Path, version: str) -> bool:
    """Whether the version and its changelog are committed, and only its tag is missing."""
    text = (tree / _CHANGES).read_text(encoding="utf-8")
    if f"\n## {version} - " not in text:
        return False
    if text.partition("\n## Unreleased\n")[2].partition("\n## ")[0].strip():
        raise Refused(f"{_CHANGES} has {version} already, and changes after it: they need the next version")
    return current_version(tree) == version


def _commit(tree: Path, version: str) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    changes = tree / _CHANGES
    text = dated(changes.read_text(encoding="utf-8"), version, today)
    for name, pattern in PLACES.items():
        file = tree / name
        moved = _with_version(file.read_text(encoding="utf-8"), pattern, version, name)
        file.write_text(moved, encoding="utf-8")
    changes.write_text(text, encoding="utf-8")
    _git(tree, "commit", "--quiet", "--message", f"Version {version}", "--", _CHANGES, *PLACES)


def old_proofs() -> list[str]:
    """The published proofs that say nothing about the code as it is now, and those that were never made."""
    return [proof.name for proof in PROOFS if not is_current(proof)]


def current_version(tree: Path) -> str:
    """The one that stands everywhere."""
    found = {
        name: set(re.findall(pattern, (tree / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name, pattern in PLACES.items()
    }
    versions = set().union(*found.values())
    if len(versions) != 1 or not all(found.values()):
        raise Refused(f"the version is not the same everywhere: {found}")
    return str(versions.pop())


def check_version(new: str, current: str) -> None:
    if not _VERSION.fullmatch(new):
        raise Refused(f"{new}: expected MAJOR.MINOR.PATCH")
    # The very first release may have the version that stands there already.
    if _numbers(new) < _numbers(current):
        raise Refused(f"{new} does not come after {current}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _with_version(text: str, pattern: str, version: str, name: str) -> str:
    def moved(match: re.Match[str]) -> str:
        return match[0].replace(match[1], version)

    text, count = re.subn(pattern, moved, text, flags=re.MULTILINE)
    if not count:
        raise Refused(f"{name}: no version there")
    return text


def dated(changelog: str, version: str, today: str) -> str:
    """What was unreleased is this version's; an empty heading for what comes next is above it."""
    head, *rest = re.split(r"^## (?:[\d.]+ - )?Unreleased\n", changelog, maxsplit=1, flags=re.MULTILINE)
    if not rest or not rest[0].partition("\n## ")[0].strip():
        raise Refused(f"{_CHANGES}: nothing under Unreleased")
    return f"{head}## Unreleased\n\n## {version} - {today}\n{rest[0]}"


def check_built(folder: Path, version: str) -> None:
    """A wheel and an sdist of that version, and what they call themselves; beside them the wheel of the core,
    the chart, the context of the image and a bill of materials."""
    wheel = next(folder.glob(f"wireglot-{version}-*.whl"), None)
    sdist = folder / f"wireglot-{version}.tar.gz"
    if wheel is None or not sdist.exists():
        raise RuntimeError(f"no wheel, or no sdist, of {version} was built")
    if not list(folder.glob(f"wireglot_core-{version}-*.whl")):
        raise RuntimeError(f"no wheel of the core of {version} was built")
    for name in (f"wireglot-{version}.tgz", f"wireglot-{version}-image.tar.gz", "wireglot.cdx.json"):
        if not (folder / name).exists():
            raise RuntimeError(f"no {name} was built")
    with zipfile.ZipFile(wheel) as opened:
        reported = opened.read(f"wireglot-{version}.dist-info/METADATA").decode()
    with tarfile.open(sdist) as packed:
        member = packed.extractfile(f"wireglot-{version}/PKG-INFO")
        assert member is not None
        for text in (reported, member.read().decode()):
            if f"\nVersion: {version}\n" not in text:
                raise RuntimeError(f"what was built does not say that it is {version}")


def _git(tree: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
