"""What is installed with us, and what happens when we are imported."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.tiers import rows
from tools.release.lock import LOCK, locked
from tools.release.sbom import differences, name

ROOT = Path(__file__).parents[1]

FLOORS = {
    "apsw": "3.54.1.0",  # carries SQLite 3.54.1: below 3.51.3 a WAL reset can damage a database
    "cryptography": "50.0.2",
    "httptools": "0.9.0",
    "msgspec": "0.22.0",
    "redis": "8.1.0",
    "certifi": "2026.1.1",  # authorities that were distrusted since
}
"""The oldest versions without a known fault that matters here, as of 2026-11-14."""

WATCHED = """
import pkgutil, sys, importlib
seen = []
def watch(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.", "os.system", "os.exec")):
        seen.append(event)
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append(f"writes {arguments[0]}")
sys.addaudithook(watch)
sys.dont_write_bytecode = True
import wireglot
names = [each.name for each in pkgutil.walk_packages(wireglot.__path__, "wireglot.") if not each.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names), *seen, sep="\\n")
"""


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    return locked(LOCK.read_text(encoding="utf-8"))


def test_the_lock_pins_everything_that_runs_with_its_hashes(lock):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["fleet"], *extras["login"], *extras["web"]]
    assert {name(re.split(r"[^\w.-]", line)[0]) for line in wanted} <= lock.keys()


def test_the_lock_installs_what_the_tests_ran_with(lock):
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    tested = {name(project): release for project, release in pinned.items()}
    assert {each: lock[each] for each in lock.keys() & tested.keys()} == {
        each: tested[each] for each in lock.keys() & tested.keys()
    }


def test_few_packages_run_beside_us():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 9


@rows("project", FLOORS)
def test_nothing_older_than_its_last_known_fault_is_locked_or_tested(project, lock):
    assert numbers(lock[project]) >= numbers(FLOORS[project])
    assert numbers(version(project)) >= numbers(FLOORS[project])


@pytest.mark.parametrize(
    "text",
    [
        "msgspec==0.22.0\n",
        "msgspec>=0.22 \\\n    --hash=sha256:" + "0" * 64 + "\n",
        "--index-url https://example.invalid/simple\n",
        "msgspec @ https://example.invalid/msgspec.whl\n",
    ],
)
def test_a_line_without_version_or_hash_is_no_lock(text):
    with pytest.raises(ValueError, match="not a pinned version with hashes"):
        locked(text)


def test_a_bill_of_materials_that_differs_from_the_lock_is_reported():
    lock = {"msgspec": "0.22.0", "uvloop": "0.23.0"}
    assert differences({"wireglot": "0.1.0", "msgspec": "0.22.0", "pip": "26.0"}, lock) == []
    assert differences({"msgspec": "0.21.0", "stranger": "1"}, lock) == [
        "msgspec 0.21.0 is installed, 0.22.0 is locked",
        "stranger 1 is installed, but not locked",
        "wireglot itself is missing",
    ]


def test_importing_us_reaches_no_network_starts_nothing_and_writes_nothing():
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True)
    modules, *seen = done.stdout.splitlines()
    assert int(modules) > 200
    assert seen == []
