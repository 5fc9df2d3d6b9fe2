"""What is installed with us, and what happens when we are imported."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import rows
from tools.release.lock import LOCK, locked
from tools.release.sbom import differences, name

ROOT = Path(__file__).parents[1]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NUMBERS = [
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]

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
import wireglot, wireglot_core
names = [
    each.name
    for package in (wireglot, wireglot_core)
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not each.name.endswith("__main__")
]
for name in names:
    importlib.import_module(name)
print(len(names), *seen, sep="\\n")
"""


WORKFLOWS: dict[str, dict[Any, Any]] = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").iterdir())
}
JOBS: dict[str, dict[str, Any]] = {
    f"{file} {name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()
}


def locked_extras() -> list[str]:
    """What `make lock` writes down besides the package's own dependencies."""
    return re.findall(r"--extra (\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    return locked(LOCK.read_text(encoding="utf-8"))


def test_the_lock_pins_everything_that_runs_with_its_hashes(lock):
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(each for extra in locked_extras() for each in extras[extra])]
    assert {name(re.split(r"[^\w.-]", line)[0]) for line in wanted} <= lock.keys()


def test_the_lock_installs_what_the_tests_ran_with(lock):
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    tested = {name(project): release for project, release in pinned.items()}
    assert {each: lock[each] for each in lock.keys() & tested.keys()} == {
        each: tested[each] for each in lock.keys() & tested.keys()
    }


def test_few_packages_run_beside_us():
    assert len(PROJECT["dependencies"]) <= 9


def requirement(line: str) -> str:
    """The project's name, with its own extras."""
    match = re.match(r"[\w.-]+(?:\[[\w,-]+\])?", line)
    assert match is not None
    return match[0]


def test_both_security_pages_name_what_is_installed():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    said = re.search(r"^\| dependencies \| (\w+): ([^|]+) \|", page, re.MULTILINE)
    assert said is not None
    assert said[2].split(", ") == [requirement(each) for each in PROJECT["dependencies"]]
    assert NUMBERS.index(said[1]) == len(PROJECT["dependencies"])
    assert f"| {said[1]} dependencies;" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"| transitive dependencies | the {said[1]} and the extras" in page


def test_the_security_page_names_what_extras_add_and_which_of_them_the_lock_has():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    extras = {
        extra: [requirement(each) for each in lines]
        for extra, lines in PROJECT["optional-dependencies"].items()
        if extra not in ("dev", "site")
    }
    row = re.search(r"^\| what an extra adds \| ([^|]+) \|", page, re.MULTILINE)
    assert row is not None
    assert {
        extra: names.split(", ") for extra, names in re.findall(r"`(\w+)`: ([^;|]+)", row[1].strip())
    } == extras
    locked_row = re.search(
        r"^\| transitive dependencies \| [^,]+?the extras (.+?), with their", page, re.MULTILINE
    )
    assert locked_row is not None
    assert re.findall(r"`(\w+)`", locked_row[1]) == locked_extras()


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


INSTALLS = re.compile(r"(?:^|[;&|(]|\bpython -m)\s*(?:make|npm|npx|pip|pipx|uvx?)\b", re.MULTILINE)
"""What installs packages, where a command begins."""


def actions() -> list[tuple[str, str, str]]:
    """Every action of every workflow: its name, what it is pinned to, and the version in the comment."""
    found = []
    for file in WORKFLOWS:
        text = (ROOT / ".github" / "workflows" / file).read_text(encoding="utf-8")
        found += re.findall(r"uses: ([\w./-]+)(?:@(\S+))?(?: # (\S+))?$", text, re.MULTILINE)
    return found


def may_write(job: dict[str, Any]) -> bool:
    return "write" in (job.get("permissions") or {}).values()


def test_every_action_is_pinned_by_commit_to_one_version():
    foreign = [each for each in actions() if not each[0].startswith("./")]
    assert len(foreign) > 10
    assert [each for each in foreign if not re.fullmatch(r"[0-9a-f]{40}", each[1])] == []
    assert [each for each in foreign if not re.fullmatch(r"v\d+\.\d+\.\d+", each[2])] == []
    assert len(set(foreign)) == len({name for name, _, _ in foreign})


def test_every_image_that_builds_or_tests_is_pinned_by_digest():
    images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    for job in JOBS.values():
        rows = job.get("strategy", {}).get("matrix", {}).get("include", [])
        images += [row["image"] for row in rows if "image" in row]
        images += [image for image in (job.get("container"),) if image and "matrix" not in image]
    assert len(images) > 5
    assert [each for each in images if not re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", each)] == []
    # One tag has one digest, wherever it is used.
    assert len(set(images)) == len({image.partition("@")[0] for image in images})


@rows("name", JOBS)
def test_a_job_that_may_write_runs_nothing_of_an_index(name):
    """Neither the newest packages of strangers nor ours: what `make` installs has the rights of its job."""
    if may_write(JOBS[name]):
        commands = [step.get("run", "") for step in JOBS[name]["steps"]]
        assert [each for each in commands if re.search(INSTALLS, each)] == []


def test_no_workflow_gives_all_its_jobs_a_right_to_write():
    assert {file: workflow["permissions"] for file, workflow in WORKFLOWS.items()} == {
        file: {"contents": "read"} for file in WORKFLOWS
    }


def test_what_is_published_has_passed_the_checks_and_is_on_main():
    jobs = WORKFLOWS["release.yaml"]["jobs"]

    def before(name: str) -> set[str]:
        needed = jobs[name].get("needs", [])
        direct = {needed} if isinstance(needed, str) else set(needed)
        return direct.union(*(before(each) for each in direct))

    publishing = [name for name, job in jobs.items() if may_write(job)]
    assert sorted(publishing) == ["chart", "image", "pypi"]
    assert all(before(name) >= {"tag", "checks", "build"} for name in publishing)
    assert jobs["checks"]["uses"] == "./.github/workflows/checks.yaml"
    assert "workflow_call" in WORKFLOWS["checks.yaml"][True]  # YAML 1.1 reads `on` as true
    checked = [step.get("run") for step in jobs["tag"]["steps"]]
    assert 'git merge-base --is-ancestor "$GITHUB_SHA" origin/main' in checked
    assert jobs["tag"]["steps"][0]["with"]["fetch-depth"] == 0


def test_the_library_is_tested_where_agents_run():
    library = WORKFLOWS["checks.yaml"]["jobs"]["library"]
    assert {machine.split("-")[0] for machine in library["strategy"]["matrix"]["machine"]} == {
        "macos",
        "windows",
    }
    (tests,) = [step["run"] for step in library["steps"] if "pytest" in step.get("run", "")]
    folders = re.findall(r"tests/\S+", tests)
    assert folders
    assert [each for each in folders if not (ROOT / each).exists()] == []
