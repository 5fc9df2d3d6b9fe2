"""A recording as a picture: what was seen when, and nothing that a page would refuse to show."""

import xml.etree.ElementTree as ET

from tools.recording.picture import Frame, Pane, Run, Seen, picture, seen

HELLO, THERE = (Run(0, "hello"),), (Run(0, "there"),)
FRAMES = [Frame(0.0, (HELLO, ())), Frame(1.0, (HELLO, THERE)), Frame(2.0, (THERE, ()))]


def drawn(frames=FRAMES):
    return picture("A title", [Pane("one", 80, 24, frames)])


def test_a_row_is_seen_from_its_coming_to_its_going():
    assert list(seen(FRAMES)) == [
        Seen(0, HELLO, 0.0, 2.0),
        Seen(0, THERE, 2.0, None),
        Seen(1, THERE, 1.0, 2.0),
    ]


def test_without_animation_the_last_moment_is_seen():
    rows = [
        element
        for element in ET.fromstring(drawn()).iter()
        if element.get("y") and element.tag.endswith("text")
    ]
    shown = ["".join(row.itertext()) for row in rows if row.get("visibility") != "hidden"]
    assert shown == ["one", "there"], "the title, and what stood there last"


def test_what_comes_and_goes_has_its_times():
    text = drawn()
    total = 2.0 + 5.0
    assert f"{100 * 1 / total:.2f}%{{visibility:visible}}" in text
    assert f"{100 * 2 / total:.2f}%,100%{{visibility:hidden}}" in text
    assert text.count("@keyframes") == 3


def test_what_a_terminal_shows_is_no_markup():
    text = drawn([Frame(0.0, ((Run(0, "<script>&"),),))])
    assert "<script" not in text
    assert "&lt;script&gt;&amp;" in text


def test_columns_stand_below_one_another_whatever_the_font():
    text = drawn([Frame(0.0, ((Run(10, "abcde", "green", True),),))])
    assert 'textLength="39.15"' in text
    assert 'font-weight="600"' in text
