"""Build the container of this tree and try it.

    python -m proofs.container [--without-engine]

By docker or podman where one answers; otherwise the Dockerfile's lines are carried out in a root directory,
which needs root, `unshare`, `setpriv` (util-linux) and `ip` (iproute2). Exit status 1 where something does
not hold, 2 where neither way can be gone.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from proofs.container import fleet, network
from proofs.container.box import EngineBox, RootBox
from proofs.container.checks import as_a_group, check
from proofs.container.context import Context
from proofs.container.dockerfile import parse
from proofs.container.root import Root, built, python_for

ROOT: Final = Path(__file__).parents[2]
_ENGINES: Final = ("docker", "podman")
_NEEDED: Final = ("unshare", "nsenter", "chroot", "setpriv", "ip")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.container", description=__doc__)
    parser.add_argument("--without-engine", action="store_true", help="even where there is one")
    parser.add_argument(
        "--built", type=Path, help=argparse.SUPPRESS
    )  # what was built before it went on alone
    arguments = parser.parse_args()
    engine = None if arguments.without_engine or arguments.built else _engine()
    try:
        if engine:
            _by_engine(engine)
        elif missing := _missing():
            print(f"no container engine here, and without one this needs {missing}", file=sys.stderr)
            return 2
        elif arguments.built is None:
            return _in_a_root()
        else:
            _try(arguments.built)
    except (AssertionError, RuntimeError) as problem:
        print(f"does not hold: {problem}", file=sys.stderr)
        return 1
    return 0


def _engine() -> str | None:
    """One whose service answers: the command alone may be there without it."""
    for name in _ENGINES:
        if (
            shutil.which(name)
            and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0
        ):
            return name
    return None


def _missing() -> str:
    absent = [name for name in _NEEDED if not shutil.which(name)]
    return "root" if os.geteuid() else ", ".join(absent)


def _by_engine(engine: str) -> None:
    image = name = f"wireglot-check-{secrets.token_hex(4)}"
    # Podman's own format has no place for a health check.
    form = ["--format", "docker"] if engine == "podman" else []
    subprocess.run([engine, "build", *form, "--tag", image, str(ROOT)], check=True)
    (volume,) = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1].volumes
    box = EngineBox(engine, image, name, volume)
    try:
        check(box, _say)
    finally:
        box.remove()
        subprocess.run([engine, "rmi", "--force", image], capture_output=True, check=False)


def _in_a_root() -> int:
    """Built with the network of this machine, tried without."""
    stages = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="wireglot-container-") as work:
        os.chmod(work, 0o755)
        prefix, version = python_for(stages[-1].base)
        _say(f"no engine: the Dockerfile in a root directory, with Python {version} for {stages[-1].base}")
        root = built(stages, Context(ROOT), Path(work))
        _say("built")
        (Path(work) / "built").write_text(f"{root.directory}\n{prefix}\n", encoding="utf-8")
        return subprocess.run(network.alone_command(__package__, ["--built", work]), check=False).returncode


def _try(work: Path) -> None:
    directory, prefix = (work / "built").read_text(encoding="utf-8").split()
    stage = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
    root = Root(Path(directory), Path(prefix), exists=True)
    alone = network.Network()
    check(RootBox("wireglot", root, stage, work / "volume", alone), _say)
    as_a_group(RootBox("pod", root, stage, work / "claim", alone), work / "claim", stage.user[1])
    _say("starts with a volume of its group, as Kubernetes hands it over")
    if absent := fleet.missing():
        _say(f"the fleet was not tried: no {absent} here")
    else:
        fleet.check(root, stage, work, alone, _say)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
