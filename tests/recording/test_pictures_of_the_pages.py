"""The pictures of the pages: small, whole, and without anything that pages do not show or load from elsewhere."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tools.recording.script import COMMANDS, SERVE

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs").rglob("*.svg"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_BYTES = 200_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small_and_needs_nothing_from_elsewhere(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_BYTES
    root = ET.fromstring(text)
    assert root.find(f"{SVG}title") is not None, "what it shows, for those who do not see it"
    assert not {"script", "foreignObject", "image", "use"} & {
        element.tag.removeprefix(SVG) for element in root.iter()
    }
    assert not re.search(r"@import|@font-face|url\((?!#)|\b(?:xlink:)?href=|\bon[a-z]+=", text)
    assert not [value for element in root.iter() for value in element.attrib.values() if "//" in value]


def test_the_recording_shows_what_the_readme_says():
    text = "".join(ET.parse(ROOT / "docs" / "pictures" / "recording.svg").getroot().itertext())
    for command in (SERVE, *COMMANDS):
        assert command in text
    assert COMMANDS[0] in README
    assert SERVE in README


def test_every_picture_of_the_readme_says_what_it_shows():
    shown = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README)
    assert len(shown) >= 3
    assert all(alt and (ROOT / path).exists() for alt, path in shown)
