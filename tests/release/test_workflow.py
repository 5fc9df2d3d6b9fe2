"""The workflow that publishes a tag: nothing but what `make` builds, with no secret and no more rights than needed."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "release.yaml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]


def uses(job: str) -> list[str]:
    return [step["uses"].partition("@")[0] for step in JOBS[job]["steps"] if "uses" in step]


def test_only_a_tag_of_a_version_is_published():
    assert WORKFLOW[True] == {"push": {"tags": ["v*.*.*"]}}  # YAML 1.1 reads `on` as true
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_pypi_trusts_the_workflow_and_gets_attestations():
    assert JOBS["pypi"]["permissions"] == {"id-token": "write"}
    assert JOBS["pypi"]["environment"]["name"] == "pypi"
    publish = JOBS["pypi"]["steps"][-1]
    assert publish["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert publish["with"] == {"packages-dir": "packages/", "attestations": True}


def test_no_secret_is_needed():
    assert re.findall(r"secrets\.\w+", TEXT) == []


def test_no_job_before_the_build_publishes():
    assert JOBS["build"].get("permissions") is None
    assert uses("build") == ["actions/checkout", "actions/upload-artifact"]
    assert {name: job.get("needs") for name, job in JOBS.items()} == {
        "tag": None,
        "checks": "tag",
        "build": "checks",
        "pypi": "build",
        "image": "build",
        "chart": "image",
    }


def test_what_it_builds_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {word for line in re.findall(r"run: make (.+)", TEXT) for word in line.split()}
    assert targets == {"wheel", "packages", "artifacts"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_names_in_the_registry_have_no_capitals():
    """An owner may have some: `github.repository` is as it is written."""
    assert "github.repository }}" not in TEXT
    assert '"name=ghcr.io/${GITHUB_REPOSITORY,,}"' in TEXT
    assert "ghcr.io/${GITHUB_REPOSITORY_OWNER,,}/charts" in TEXT
