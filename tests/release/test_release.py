"""`make release`, in a repository of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.test_package import tracked
from tests.tiers import rows
from tools.release.release import PLACES, Refused, check_version, current_version, dated

ROOT = Path(__file__).parents[2]
NEXT = "7.8.9"
SOMEBODY = {
    **{
        f"GIT_{who}_{what}": "somebody@example.invalid"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(tree, *words):
    done = subprocess.run(
        ["git", *words], cwd=tree, env={**os.environ, **SOMEBODY}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def release(tree, *words):
    environment = {**os.environ, **SOMEBODY, "PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, "-m", "tools.release.release", *words],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As it will be committed, without what takes long to copy."""
    copy = tmp_path / "tree"
    for path in tracked():
        if path.parts[0] != "tests":
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
    changelog = copy / "CHANGELOG.md"  # just after a release nothing is new
    text = changelog.read_text(encoding="utf-8").replace(
        "## Unreleased\n", "## Unreleased\n\n- a change\n", 1
    )
    changelog.write_text(text, encoding="utf-8")
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--message", "All of it")
    return copy


def test_without_write_everything_is_tried_and_nothing_changes(tree):
    before = git(tree, "rev-parse", "HEAD")
    done = release(tree, NEXT, "--no-build")
    assert done.returncode == 0, done.stderr
    assert f"+## {NEXT} - " in done.stdout
    assert (git(tree, "rev-parse", "HEAD"), git(tree, "tag"), git(tree, "status", "--porcelain")) == (
        before,
        "",
        "",
    )


def test_a_version_that_is_committed_without_its_tag_is_only_tagged(tree):
    assert release(tree, NEXT, "--write", "--no-build", "--old-proofs").returncode == 0
    committed = git(tree, "rev-parse", "HEAD")
    git(tree, "tag", "--delete", f"v{NEXT}")
    done = release(tree, NEXT, "--write", "--no-build", "--old-proofs")
    assert done.returncode == 0, done.stderr
    assert git(tree, "rev-parse", "HEAD", f"v{NEXT}^{{commit}}").split() == [committed, committed]


def test_changes_after_a_committed_version_need_the_next_one(tree):
    assert release(tree, NEXT, "--write", "--no-build", "--old-proofs").returncode == 0
    git(tree, "tag", "--delete", f"v{NEXT}")
    changelog = tree / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8").replace("## Unreleased\n", "## Unreleased\n\n- new\n")
    changelog.write_text(text, encoding="utf-8")
    git(tree, "commit", "--quiet", "--all", "--message", "More")
    done = release(tree, NEXT, "--write", "--no-build", "--old-proofs")
    assert done.returncode == 2
    assert f"CHANGELOG.md has {NEXT} already" in done.stderr
    assert git(tree, "tag") == ""


@pytest.mark.whole
def test_with_write_it_is_committed_built_checked_and_tagged(tree):
    done = release(tree, NEXT, "--write", "--old-proofs")
    assert done.returncode == 0, done.stderr
    assert current_version(tree) == NEXT
    assert git(tree, "rev-parse", f"v{NEXT}^{{commit}}") == git(tree, "rev-parse", "HEAD")
    assert set(git(tree, "show", "--name-only", "--format=", "HEAD").split()) == {"CHANGELOG.md", *PLACES}
    built = {path.name for path in (tree / "dist").iterdir()}
    wheel, core = sorted(name for name in built if name.endswith(".whl"))
    for name, found in (("wireglot", wheel), ("wireglot_core", core)):
        assert re.fullmatch(rf"{name}-{NEXT}-(py3-none-any|cp311-abi3-\w+)\.whl", found)
    archives = {f"wireglot-{NEXT}.tar.gz", f"wireglot-{NEXT}.tgz", f"wireglot-{NEXT}-image.tar.gz"}
    (bill,) = built - archives - {wheel, core}
    assert len(built) == 6
    assert json.loads((tree / "dist" / bill).read_bytes())["metadata"]["component"]["version"] == NEXT
    again = release(tree, "7.8.10", "--write", "--no-build", "--old-proofs")
    assert (again.returncode, again.stderr) == (2, "no release: CHANGELOG.md: nothing under Unreleased\n")


def test_a_tree_with_changes_is_refused(tree):
    (tree / "README.md").write_text("changed", encoding="utf-8")
    done = release(tree, NEXT, "--write", "--no-build")
    assert (done.returncode, done.stderr) == (2, "no release: there are changes that are not committed\n")


@pytest.mark.whole
def test_proofs_of_older_code_are_no_proofs_of_a_release(tree):
    """The copy has a history of its own, so none of the kept proofs is of it."""
    done = release(tree, NEXT, "--write", "--no-build")
    assert done.returncode == 2
    assert "no release: proofs made before changes in what they cover: splits, cuts, " in done.stderr
    assert git(tree, "tag") == ""


@rows("version", ["1", "1.2", "v1.2.3", "01.2.3", "1.2.3rc1", "0.0.9"])
def test_a_version_that_is_none_or_goes_back_is_refused(version):
    with pytest.raises(Refused):
        check_version(version, "0.1.0")


def test_the_version_stands_everywhere_the_same():
    assert current_version(ROOT)


@rows("heading", ["Unreleased", "0.2.0 - Unreleased", "0.1.1 - Unreleased"])
def test_what_was_unreleased_gets_a_version_and_a_date(heading):
    text = f"# Changelog\n\n## {heading}\n\n### Added\n- a\n\n## 0.1.0 - 2026-01-01\n- b\n"
    assert dated(text, "0.2.0", "2026-02-02") == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-02\n\n### Added\n- a\n\n## 0.1.0 - 2026-01-01\n- b\n"
    )
    with pytest.raises(Refused):
        dated("# Changelog\n\n## Unreleased\n\n## 0.1.0\n", "0.2.0", "2026-02-02")
