"""HTML as text, charsets, and HTML that was made to be slow."""

from __future__ import annotations

import threading

import pytest

from tests.tiers import rows
from wireglot.web.page_text import decoded, html_text, read_page

URL = "https://example.com/a/b"


def text(html: str) -> str:
    return html_text(html, URL, 1_000_000)[1]


FORMS = [
    ("<p>one</p><p>two</p>", "one\n\ntwo"),
    ("one<br>two", "one\ntwo"),
    ("<h1>A <b>b</b></h1><h3>C</h3>d", "# A b\n\n### C\n\nd"),
    ("<ul><li>one<li>two</ul>", "- one\n- two"),
    ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"),
    ("<pre>x\n  y\n\n z</pre>", "x\n  y\n\n z"),
    ("<p>  much\n\t white   space  </p>", "much white space"),
    ("<p>a <b> b</b> c", "a b c"),
    ("<p>one<!-- comment -->two<script>bad()</script><style>x{}</style>", "onetwo"),
    ("<p>&lt;b&gt; &amp; &euro; &#x41;&nbsp;", "<b> & € A"),
    ("<a href='/x?y=1#z'>link</a>", "[link](https://example.com/x?y=1)"),
    ("<a href='c'>link</a>", "[link](https://example.com/a/c)"),
    (
        "<a href='#top'>top</a> <a href='javascript:x()'>js</a> <a>none</a> <a href='mailto:a@b'>m</a>",
        "top js none m",
    ),
    ("<a href='/x'><img src='y'></a>z", "z"),
    ("<div hidden>no</div><div style='color: red; DISPLAY : none'>no</div>yes", "yes"),
    ("<div hidden><div>no</div>no</div><p style='visibility:hidden'>no</p>yes", "yes"),
    ("<template>no</template><noscript>no</noscript><svg><title>no</title></svg>yes", "yes"),
    ("plain", "plain"),
    ("", ""),
    ("<!-- only -->", ""),
    ("<p>unclosed <b>tags <i>everywhere", "unclosed tags everywhere"),
    ("</p></div>stray", "stray"),
]


@rows("html, shown", FORMS)
def test_html_becomes_text_that_can_be_read(html, shown):
    assert text(html) == shown


def test_what_frames_a_page_is_left_out_unless_there_is_nothing_else():
    framed = b"<nav><a href=/>home</a></nav><main>content</main><footer>imprint</footer>"
    assert read_page(framed, "text/html", "", URL, 100)[1] == "content"
    assert read_page(b"<nav>only this</nav>", "text/html", "", URL, 100)[1] == "only this"


TITLES = [
    ("<title> A  &amp;\n b </title><h1>C</h1>", "A & b"),
    ("<title></title><h1>C <b>d</b></h1>", "C d"),
    ("<p>none", ""),
    ("<title>first</title><title>second</title>", "first"),
    ("<title>" + "x" * 999 + "</title>", "x" * 300),
]


@rows("html, title", TITLES)
def test_the_title_is_the_pages_own_or_its_first_heading(html, title):
    assert html_text(html, URL, 10_000)[0] == title


CHARSETS = [
    (b"caf\xc3\xa9", "", "café"),
    (b"caf\xe9", "", "café"),  # no UTF-8, so windows-1252
    (b"caf\xe9", "iso-8859-1", "café"),
    (b"\x80 9", "iso-8859-1", "€ 9"),  # as browsers read it
    (b"\xef\xbb\xbfx\xc3\xa9", "iso-8859-1", "xé"),  # the byte order mark wins
    ("ü".encode("utf-16"), "", "ü"),
    ("привет".encode("koi8-r"), "koi8-r", "привет"),
    ("привет".encode("cp1251"), "windows-1251", "привет"),
    ("日本語".encode("shift_jis"), "shift_jis", "日本語"),
    ("日本語".encode("euc-jp"), "euc-jp", "日本語"),
    ("中文".encode("gb18030"), "gb2312", "中文"),
    (b'<meta charset="windows-1251">' + "да".encode("cp1251"), "", '<meta charset="windows-1251">да'),
    (
        b'<?xml version="1.0" encoding="koi8-r"?>' + "да".encode("koi8-r"),
        "",
        '<?xml version="1.0" encoding="koi8-r"?>да',
    ),
    (b"caf\xc3\xa9", "utf-99", "café"),
    (b"+AGE-", "utf-7", "+AGE-"),  # not an encoding of pages
    (b"x", "zlib", "x"),
    (b"x", "idna", "x"),
    (b"a\xffb", "utf-8", "a�b"),
]


@rows("body, charset, shown", CHARSETS)
def test_bytes_are_read_in_the_charset_that_is_stated_or_likely(body, charset, shown):
    assert decoded(body, charset) == shown


def test_a_page_that_states_a_charset_in_html_is_not_decoded_twice():
    html = '<meta charset="iso-8859-1"><p>' + "ü"
    assert read_page(html.encode("utf-8"), "text/html", "utf-8", URL, 100)[1] == "ü"


HOSTILE = {
    "deep": "<div>" * 200_000 + "x",
    "deep tables": "<table>" * 100_000 + "x",
    "formatting": "<b><i>" * 50_000 + "<p>" * 5_000,
    "attributes": "<a " + "".join(f"x{n}=1 " for n in range(100_000)) + ">x",
    "one attribute": "<a href='" + "y" * 2_000_000 + "'>x</a>",
    "open tags": "<" * 1_000_000,
    "open comments": "<!--" * 300_000,
    "open quotes": "<a x='" * 200_000,
    "entities": "&amp" * 300_000 + "&" * 300_000,
    "open script": "<script><!--" * 100_000,
    "links": "<a href=/x>" * 100_000,
    "white space": " " * 3_000_000,
    "line breaks": "<br>" * 500_000,
    "empty lines": "<pre>" + "\n" * 2_000_000,
    "words": "<b>x</b> " * 200_000,
    "styles": ("<p style='" + "display:" * 1000 + "'>") * 100,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_is_read_in_time_that_grows_with_its_size(name):
    """Quadratic work on any of these takes minutes, so a generous limit tells it from a slow machine."""
    done: list[tuple[str, str]] = []
    worker = threading.Thread(target=lambda: done.append(html_text(HOSTILE[name], URL, 100_000)), daemon=True)
    worker.start()
    worker.join(60)
    assert done, "still at work after a minute"
    assert len(done[0][1].encode()) <= 100_001 + 100


def test_a_page_that_takes_too_long_to_read_is_cut_with_a_mark():
    seconds = iter(range(0, 1000, 2))  # two for each piece
    shown = html_text("<p>word</p>" * 100_000, URL, 10_000_000, clock=lambda: float(next(seconds)))[1]
    assert shown.startswith("word\n\nword")
    assert shown.endswith("\n\n[Truncated: the page takes too long to read.]")
    assert 10_000 < shown.count("word") < 30_000
