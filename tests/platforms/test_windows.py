"""What must run on Windows, in a Python that lacks what is lacking there. docs/operations.md names what cannot."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("like_windows.py")
IMPORTS = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
from like_windows import become_like_windows
become_like_windows()
import wireglot, wireglot_core
names = [
    each.name
    for package in (wireglot, wireglot_core)
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not each.name.endswith("__main__")
]
for name in names:
    importlib.import_module(name)
print(len(names))
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there it needs no imitation")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WIREGLOT_", "XDG_"))}
    return {**kept, "APPDATA": str(tmp_path), "LOCALAPPDATA": str(tmp_path), "WIREGLOT_LOG": "json"}


def run(environment, *words):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words], env=environment, capture_output=True, text=True, check=False
    )


def test_every_module_can_be_imported(environment):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(SCRIPT.parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["demo", "keys list"])
def test_commands_run(environment, command):
    done = run(environment, *command.split())
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_workers_are_refused_in_one_line(environment):
    done = run(environment, "serve", "--port", "0", "--workers", "2")
    assert done.returncode != 0
    assert done.stderr == "wireglot: --workers needs a system with fork and SO_REUSEPORT\n"


def test_the_gateway_answers_and_ends_in_good_order_on_ctrl_c(environment):
    """Loops take no signal handlers there, and it did not start."""
    words = [sys.executable, str(SCRIPT), "serve", "--port", "0"]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = next(
                line["url"] for line in map(json.loads, process.stderr) if line["event"] == "listening"
            )
            with urllib.request.urlopen(f"{url}/healthz") as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGINT)
            events = [json.loads(line)["event"] for line in process.stderr]
        finally:
            process.kill()
    assert process.returncode == 0
    assert events[-2:] == ["draining", "stopped"]
