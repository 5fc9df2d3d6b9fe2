"""The pictures of the pages: what is drawn is what the library makes, and everybody can read it."""

import re
from pathlib import Path
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from tools.pictures import forwarding
from tools.pictures.__main__ import FOLDER
from tools.pictures.drawing import NotThere, Picture, laid_out, mark, shortened
from tools.pictures.forwarding import pictures
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

DRAWN = pictures()
PAGE = (Path(__file__).parents[1] / "docs" / "forwarding.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_what_the_library_makes_today(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == DRAWN[name], "run `python -m tools.pictures`"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_shown_with_words_for_who_cannot_see_it(name):
    root = ElementTree.fromstring(DRAWN[name])
    assert root.findtext(f"{SVG}title")
    assert len(root.findtext(f"{SVG}desc") or "") > 100
    (words,) = re.findall(rf"!\[([^]]+)\]\(pictures/{re.escape(name)}\)", PAGE)
    assert len(words) > 40


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_needs_nothing_from_elsewhere(name):
    assert not re.findall(r"@import|@font-face|url\(|href|<script", DRAWN[name])
    assert "prefers-color-scheme: dark" in DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_outside_of_the_picture(name):
    root = ElementTree.fromstring(DRAWN[name])
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for box in root.iter(f"{SVG}rect"):
        if box.get("class") != "ground":
            assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
            assert float(box.attrib["y"]) + float(box.attrib["height"]) <= height


def test_what_is_no_longer_there_cannot_be_marked():
    assert mark(["a b"], "b", "lost") == ["a \x01lost\x02b\x03"]
    with pytest.raises(NotThere):
        mark(["a b"], "c", "lost")


def test_a_line_that_does_not_fit_is_reported():
    with pytest.raises(NotThere, match="letters"):
        Picture("t", "d", 100).panel(0, 0, 100, "head", ["x" * 50])


def test_json_is_broken_where_it_does_not_fit():
    assert laid_out({"a": [1, 2]}, 20) == ['{"a": [1, 2]}']
    assert laid_out({"a": [1, 2], "b": "c"}, 12) == ["{", ' "a": [', "  1,", "  2", " ],", ' "b": "c"', "}"]


def test_long_texts_are_cut():
    assert shortened({"a": ["x" * 40]}, 10) == {"a": ["xxxxx…"]}


def test_a_gateway_forwards_as_the_picture_shows_it():
    """To a provider with all that the catalog knows of Kimi, and the bytes of the picture."""
    answer = Behaviour(body=forwarding.ANSWERED.encode())
    with ScriptedUpstream() as upstream:
        upstream.next(answer)
        toml = f"""
            [providers.kimi]
            base_urls = {{ anthropic = "{upstream.url}" }}
            base_url = "{upstream.url}/v1"
            api_key = "x"
            [models]
            "claude-*" = "kimi/kimi-k3"
        """
        with LiveGateway(toml) as gateway:
            headers = {"content-type": "application/json"}
            asked = Request(f"{gateway.url}/v1/messages", forwarding.SENT.encode(), headers)
            with urlopen(asked) as reported:
                assert reported.read().decode() == forwarding.ANSWERED.replace("kimi-k3", "claude-sonnet-4-5")
                assert "x-wireglot-losses" not in reported.headers
        (got,) = upstream.requests
    assert got.path == "/v1/messages"
    assert got.body.decode() == forwarding.SENT.replace("claude-sonnet-4-5", "kimi-k3")
