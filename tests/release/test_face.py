"""What people and machines meet first: workflows, templates, hooks. They name nothing that is not there."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import rows

ROOT = Path(__file__).parents[2]
FILES = {
    str(path.relative_to(ROOT)): path
    for path in [*(ROOT / ".github").rglob("*.y*ml"), ROOT / ".pre-commit-config.yaml"]
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
CHECKS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/checks.yaml").read_text(encoding="utf-8"))


@rows("file", FILES)
def test_every_file_is_yaml_and_every_target_of_make_exists(file):
    text = FILES[file].read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    for line in re.findall(r"(?:run|entry): make ([a-z -]+)$", text, re.MULTILINE):
        assert set(line.split()) <= TARGETS


def test_the_workflow_runs_what_a_change_must_pass_on_every_supported_python_and_on_arm():
    job = CHECKS["jobs"]["checks"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    rows = job["strategy"]["matrix"]["include"]
    assert any("arm" in each["machine"] for each in rows)
    assert all(each["image"].startswith(f"python:{each['python']}-") for each in rows)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reported = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert reported <= {each["python"] for each in rows}  # a newer one is tried before it is promised


def test_the_workflow_may_read_and_nothing_more():
    assert CHECKS["permissions"] == {"contents": "read"}
    steps = [step for job in CHECKS["jobs"].values() for step in job["steps"]]
    fetched = [step["uses"] for step in steps if "uses" in step]
    assert {name.partition("@")[0] for name in fetched} == {
        "actions/checkout",
        "actions/setup-node",
        "actions/setup-python",
        "azure/setup-helm",
    }
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"])
def test_pages_at_the_top_lead_somewhere_and_name_what_there_is(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert (ROOT / link).exists(), link
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= TARGETS
    for path in re.findall(r"`((?:src|tests|tools|gateway|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists() or (ROOT / "src/wireglot" / path).exists(), path


def test_hooks_are_the_projects_own_tools():
    hooks = yaml.safe_load(FILES[".pre-commit-config.yaml"].read_text(encoding="utf-8"))
    assert {each["repo"] for each in hooks["repos"]} == {"local"}
    assert all(each["language"] == "system" for repo in hooks["repos"] for each in repo["hooks"])


@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="needs the history")
def test_what_ci_runs_may_be_run():
    listed = subprocess.run(
        ["git", "ls-files", "--stage", ".ci/run", "tools/install_servers.sh"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert [line.split()[0] for line in listed.splitlines()] == ["100755", "100755"]
