"""Install the clients below `clients/.installed`; what is there at the right version is left alone.

python -m clients.install [PATTERN]     # a regular expression over package names; none: all
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from clients.packages import INSTALLED, NODE22, NODE24, PACKAGES, Package


class CannotInstall(Exception):
    """Says what was tried and the end of what the installer printed."""


def install(package: Package) -> str:
    """Make the package usable and tell what was done."""
    if is_there(package):
        return "have"
    for wanted, node in ((package.node22, NODE22), (package.node24, NODE24)):
        if wanted and not is_there(node):
            install(node)
    shutil.rmtree(package.folder, ignore_errors=True)
    package.folder.mkdir(parents=True)
    if package.kind == "npm":
        _npm(package)
    else:
        _pip(package)
    if not is_there(package):
        raise CannotInstall(f"{package.name}: installed, but another version or it does not start")
    return "installed"


def is_there(package: Package) -> bool:
    """Whether each package has its exact version and the program starts."""
    found = _npm_version if package.kind == "npm" else _pip_version
    if any(found(package, name) != version for name, version in package.versions.items()):
        return False
    return not package.program or _starts(package)


def node_path(package: Package) -> str:
    """PATH with the Node the package wants in front, and its own programs."""
    fronts = [str(package.binaries)]
    fronts += [
        str(node.binaries) for wanted, node in ((package.node22, NODE22), (package.node24, NODE24)) if wanted
    ]
    return os.pathsep.join([*fronts, os.environ.get("PATH", os.defpath)])


def _npm_version(package: Package, name: str) -> str | None:
    manifest = package.folder / "node_modules" / name / "package.json"
    if not manifest.is_file():
        return None
    version: str | None = json.loads(manifest.read_text()).get("version")
    return version


def _pip_version(package: Package, name: str) -> str | None:
    escaped = re.escape(re.sub(r"[-_.]+", "_", name))
    for folder in package.folder.glob("lib/python3*/site-packages/*.dist-info"):
        if found := re.fullmatch(rf"{escaped}-(.+)\.dist-info", folder.name, re.IGNORECASE):
            return found[1]
    return None


def _starts(package: Package) -> bool:
    # A scratch home: even `--version` makes some clients write settings or look for updates.
    with tempfile.TemporaryDirectory(prefix="clients-probe-") as home:
        env = {
            "HOME": home,
            "PATH": node_path(package),
            "CI": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        try:
            done = subprocess.run(
                [package.binaries / package.program, "--version"],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=90,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0 and re.search(rb"\d", done.stdout) is not None


def _npm(package: Package) -> None:
    (package.folder / "package.json").write_text('{"private": true}\n')
    quiet = ["--no-audit", "--no-fund", "--no-progress"]
    _run(
        package,
        ["npm", "install", "--save-exact", "--include=optional", *quiet, *package.specs],
        {"PATH": node_path(package)},
    )


def _pip(package: Package) -> None:
    _run(package, [sys.executable, "-m", "venv", "--clear", str(package.folder)])
    pip = [str(package.binaries / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run(package, [*pip, "-c", str(package.pins), *package.specs])


def _run(package: Package, command: list[str], env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=package.folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
    except FileNotFoundError as missing:
        raise CannotInstall(f"{package.name}: {missing.filename} is not installed") from missing
    except subprocess.TimeoutExpired as slow:
        raise CannotInstall(
            f"{package.name}: {' '.join(command)} took more than {slow.timeout:.0f} s"
        ) from slow
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise CannotInstall(f"{package.name}: {' '.join(command)}\n{tail}")


def main(arguments: list[str]) -> int:
    """Install all packages whose name matches; the exit code is the number that failed."""
    pattern = re.compile(arguments[0] if arguments else "")
    failed = 0
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not pattern.search(package.name):
            continue
        try:
            state = install(package)
        except CannotInstall as problem:
            failed += 1
            print(f"FAILED     {problem}", flush=True)
        else:
            print(f"{state:10} {package.name:12} {' '.join(package.specs)}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
