"""The wheel and the sdist: what is in them, and what the package's page says."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = "https://code.example/wireglot/wireglot"
NEVER = re.compile(
    r"\.venv|\.git/|__pycache__|\.pyc$|\.installed|\.runs|\.hypothesis|_cache/|\.env$|\.pth$|\.so$"
)
NATIVE = "wireglot_core/wire/_scan.abi3.so"
BUILD = "import hatchling.build as made; made.build_sdist('dist'); made.build_wheel('dist')"


def tracked() -> list[Path]:
    """What is committed or about to be; an unpacked sdist has no history, and is all there is."""
    if not (ROOT / ".git").exists():
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        return [path for path in found if (ROOT / path).is_file() and not NEVER.search(path.as_posix())]
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def build(tree: Path) -> Path:
    (tree / "dist").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tree / "dist"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    for path in tracked():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, copy / path)
    return copy


@pytest.fixture(scope="module")
def dist(tree: Path) -> Path:
    return build(tree)


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    (found,) = dist.glob("*.whl")
    return zipfile.ZipFile(found)


@pytest.fixture(scope="module")
def sdist(dist: Path) -> set[str]:
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.mark.whole
def test_the_wheel_has_the_package_whole_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    ours = {path.relative_to("src").as_posix() for path in tracked() if path.is_relative_to("src")}
    assert names - {NATIVE} == ours
    assert "wireglot/py.typed" in names
    rest = {name.rpartition("/")[2] for name in wheel.namelist() if ".dist-info/" in name}
    assert rest == {"METADATA", "RECORD", "WHEEL", "LICENSE", "entry_points.txt"}


def test_the_sdist_has_everything_that_is_committed_and_nothing_else(sdist):
    committed = {path.as_posix() for path in tracked()}
    assert sdist - committed == {"PKG-INFO"}
    assert committed <= sdist
    assert not [name for name in sdist if NEVER.search(name)]


def test_the_core_says_of_itself_what_the_whole_says(tree):
    whole, core = (
        tomllib.loads((tree / name / "pyproject.toml").read_text())["project"] for name in (".", "core")
    )
    for field in ("version", "requires-python", "license", "classifiers"):
        assert core[field] == whole[field], field
    assert core["dependencies"] == [each for each in whole["dependencies"] if each.startswith("msgspec")]
    assert (tree / "core" / "LICENSE").read_bytes() == (tree / "LICENSE").read_bytes()


@pytest.mark.whole
def test_the_wheel_of_the_core_has_its_package_as_it_is_in_the_whole(tree, wheel, tmp_path):
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy, ignore=shutil.ignore_patterns("dist"))
    code = "import hatchling.build as made; made.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", code], cwd=copy / "core", capture_output=True, check=True)
    (found,) = (copy / "core" / "dist").glob("wireglot_core-*.whl")
    with zipfile.ZipFile(found) as core:
        inside = {name for name in core.namelist() if ".dist-info/" not in name}
        assert inside == {name for name in wheel.namelist() if name.startswith("wireglot_core/")}
        assert all(core.read(name) == wheel.read(name) for name in inside - {NATIVE})


@pytest.mark.whole
def test_a_wheel_made_of_the_sdist_is_the_same_wheel(dist, tmp_path):
    (packed,), (first,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(packed) as opened:
        opened.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    (second,) = build(unpacked).glob("*.whl")
    assert second.read_bytes() == first.read_bytes()


def test_extras_are_those_of_the_page(wheel):
    reported = metadata(wheel)
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `wireglot\[(\w+)\]` \|", page, re.MULTILINE)
    assert sorted(["dev", "site", *named]) == sorted(reported.get_all("Provides-Extra") or ())
    assert reported["Requires-Python"] == ">=3.11"


def test_without_an_address_the_page_of_the_package_leads_nowhere_in_vain(wheel):
    """M9: relative links lead nowhere on a package's page."""
    reported = metadata(wheel)
    assert reported.get_all("Project-URL") is None
    page = reported.get_payload()
    assert isinstance(page, str)
    outside_code = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"\]\((?!https?:)[^)]*\)", outside_code) == []
    assert "mermaid" not in page
    assert page.lstrip().startswith("# Wireglot")


@pytest.mark.whole
def test_with_an_address_links_lead_to_the_released_version(tree, tmp_path):
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy, ignore=shutil.ignore_patterns("dist", "tests"))
    settings = copy / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    assert text.count('\nhome = ""\n') == 1
    settings.write_text(text.replace('\nhome = ""\n', f'\nhome = "{HOME}"\n'), encoding="utf-8")
    (found,) = build(copy).glob("*.whl")
    reported = metadata(zipfile.ZipFile(found))
    assert f"Homepage, {HOME}" in (reported.get_all("Project-URL") or ())
    page = reported.get_payload()
    assert isinstance(page, str)
    assert f"]({HOME}/blob/v{reported['Version']}/docs/" in page
    assert not re.findall(r"\]\(docs/", page)


@pytest.mark.parametrize("file", ["requirements.lock", "constraints.txt"])
def test_what_pins_versions_names_no_host(file):
    """A host would be asked by everybody who installs from it, or would tell where we do."""
    text = (ROOT / file).read_text(encoding="utf-8")
    assert not re.findall(
        r"://|^-|--(?:index|find|trusted|extra)|@\s|\b[\w-]+\.(?:com|org|net|io|dev)\b", text, re.MULTILINE
    )


def test_the_address_of_the_project_stands_in_one_place():
    """The one that publishes it changes one line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert len(re.findall(r"^home = ", text, re.MULTILINE)) == 1
    assert not re.findall(r"^\[project\.urls\]", text, re.MULTILINE)
