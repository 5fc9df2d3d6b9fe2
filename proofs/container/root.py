"""The stages of a Dockerfile carried out in root directories, for where there is no container engine.

Needs root and `unshare` (util-linux). The base image is stood in for by this machine: its `/usr`, read-only,
with the Python that the FROM line asks for at `/usr/local`. So what an image would lack of this machine's
`/usr` is not found out here; that the lines run, what they install and who may write where is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from proofs.container.context import Context, copy_into
from proofs.container.dockerfile import Instruction, Stage, Unreadable

_FOLDERS: Final = (
    "proc", "dev", "sys", "run", "opt", "home", "root", "usr", "etc", "tmp", "var/lib", "var/tmp",
)  # fmt: skip
_OF_THE_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS: Final = (
    "alternatives", "ca-certificates", "default", "host.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "login.defs", "nsswitch.conf", "pam.d", "pip.conf", "resolv.conf", "security", "ssl",
)  # fmt: skip
"""Of /etc, as an image of the same system has them. Users are the system's own, without this machine's."""
_TOP: Final = PurePosixPath("/")
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_READ_ONLY: Final = """read_only() {
    tries=1
    until mount -o remount,bind,ro "$1"; do
        [ "$tries" -lt 20 ] || return 1
        tries=$((tries + 1)); sleep 0.1
    done
}"""
"""Somebody who reads there for the first time writes down when, and the mount is busy for that moment."""
_PASSED_ON: Final = re.compile(
    r"(?i)(https?|no)_proxy|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|DEFAULT_TIMEOUT)|SSL_CERT_FILE"
)
"""How this machine reaches an index is needed while building, and is not part of what is built."""


def python_for(base: str) -> tuple[Path, str]:
    """Prefix and version of the Python that `python:X.Y-...` asks for, or of the one that runs this."""
    asked = re.match(r"python:(\d+\.\d+)", base)
    if asked is None:
        raise Unreadable(f"FROM {base}: expected python:X.Y")
    names = [f"python{asked[1]}", *map(str, sorted(_pyenv().glob(f"{asked[1]}.*/bin/python{asked[1]}")))]
    for name in (*names, sys.executable):
        found = shutil.which(name)
        reported = found and subprocess.run(
            [found, "-c", "import sys; print(sys.base_prefix, '%d.%d' % sys.version_info[:2], sep='\\n')"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        # A shim of pyenv exists for versions that are not switched on.
        if reported and reported.returncode == 0:
            prefix, version = reported.stdout.split()
            return Path(prefix), version
    raise Unreadable(f"FROM {base}: no Python here")


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


class Root:
    """One root directory: what it stands on, and commands in it."""

    def __init__(self, directory: Path, prefix: Path, *, exists: bool = False) -> None:
        self.directory = directory
        self._prefix = prefix
        if not exists:
            self._furnish(directory)

    def _furnish(self, directory: Path) -> None:
        """As a base image is, without a Python."""
        for name in _FOLDERS:
            (directory / name).mkdir(parents=True)
        for name in ("tmp", "var/tmp"):
            (directory / name).chmod(0o1777)
        for name in _OF_THE_SYSTEM:
            here = Path("/") / name
            if here.is_symlink():
                (directory / name).symlink_to(os.readlink(here))
            elif here.is_dir():
                (directory / name).mkdir()
        for name in _SETTINGS:
            self._copy_setting(Path("/etc") / name)
        for name, plain in (("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("group", "root:x:0:\n")):
            master = Path(f"/usr/share/base-passwd/{name}.master")
            text = master.read_text(encoding="utf-8") if master.exists() else plain
            (directory / "etc" / name).write_text(text, encoding="utf-8")
        self.name_hosts({})

    def _copy_setting(self, source: Path) -> None:
        target = self.directory / "etc" / source.name
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copy2(source, target)  # what a link leads to: it may lie outside

    def name_hosts(self, addresses: Mapping[str, str]) -> None:
        lines = [f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **addresses}.items()]
        (self.directory / "etc" / "hosts").write_text("".join(lines), encoding="utf-8")

    def mounting(self, volumes: Mapping[PurePosixPath, Path] | None = None, *, read_only: bool) -> str:
        """A script for a mount namespace of its own: then `chroot` leads into the root."""
        root = shlex.quote(str(self.directory))
        lines = ["set -e", _READ_ONLY, f"mount --bind {root} {root}"]
        for name in ("usr", *_OF_THE_SYSTEM):
            if (self.directory / name).is_dir() and not (self.directory / name).is_symlink():
                lines.append(f"mount --bind /{name} {root}/{name}; read_only {root}/{name}")
        if self._prefix != Path("/usr"):
            prefix = shlex.quote(str(self._prefix))
            lines.append(f"mount --bind {prefix} {root}/usr/local; read_only {root}/usr/local")
        lines.append(f"mount -t proc proc {root}/proc")
        lines.append(f"mount -t tmpfs -o mode=755,nosuid dev {root}/dev")
        for name in _DEVICES:
            lines.append(f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}")
        for inside, outside in (volumes or {}).items():
            lines.append(f"mount --bind {shlex.quote(str(outside))} {root}{inside}")
        if read_only:
            lines += [f"read_only {root}", f"mount -o remount,ro {root}/dev"]
        return "\n".join(lines)

    def build(self, line: str, environment: Mapping[str, str], directory: PurePosixPath) -> None:
        """A RUN line, as root, in a shell, with this machine's way to an index."""
        passed = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        variables = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "HOME": "/root"}
        inside = entering(
            self.directory,
            ["/bin/sh", "-c", f"cd {directory} && {line}"],
            {**variables, **passed, **environment},
        )
        script = f"{self.mounting(read_only=False)}\nexec {inside}"
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"RUN {line}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")


def entering(
    root: Path, command: Sequence[str], environment: Mapping[str, str], user: tuple[int, int] | None = None,
    directory: PurePosixPath = _TOP,
) -> str:  # fmt: skip
    """The words that go into a root: as that user without any capability, or as root."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    lowered: list[str] = []
    if user is not None:
        lowered = ["/usr/bin/setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups"]
        lowered += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
    there = [*lowered, "/usr/bin/env", "-i", f"--chdir={directory}", *variables, *command]
    return shlex.join(["chroot", str(root), *there])


def built(stages: Sequence[Stage], context: Context, work: Path) -> Root:
    """The root of the last stage."""
    roots: dict[str, Root] = {}
    for number, stage in enumerate(stages):
        prefix, _ = python_for(stage.base)
        root = roots[stage.name] = Root(work / f"stage-{number}", prefix)
        root.build("ldconfig", {}, _TOP)  # Python's own library stands at another place than here
        environment: dict[str, str] = {}
        directory = _TOP
        for each in stage.instructions:
            if each.name == "ENV":
                environment |= each.pairs()
            elif each.name == "WORKDIR":
                directory /= each.value
                _inside(root, directory).mkdir(parents=True, exist_ok=True)
            elif each.name == "RUN":
                root.build(each.value, environment, directory)
            elif each.name == "COPY":
                _copy(each, root, directory, context, roots)
    return roots[stages[-1].name]


def _copy(
    copy: Instruction, root: Root, directory: PurePosixPath, context: Context, roots: Mapping[str, Root]
) -> None:
    *sources, target = copy.words()
    into = _inside(root, directory / target)
    if "from" not in copy.flags:
        context.copy(copy, into)
        return
    for source in sources:
        copy_into(_inside(roots[copy.flags["from"]], PurePosixPath(source)), into, skip=set())


def _inside(root: Root, path: PurePosixPath) -> Path:
    return root.directory / path.relative_to("/")
