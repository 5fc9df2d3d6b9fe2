"""HTML as text, charsets, and HTML that was made to be slow."""

from __future__ import annotations

import threading

import pytest

from tests.tiers import rows
from wireglot.web.page_text import decoded, html_text, read_page, truncated

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
    ("<h2>a</h2><h4>b</h4><h5>c</h5><h6>d</h6>", "## a\n\n#### b\n\n##### c\n\n###### d"),
    ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
    ("<table><tr><td><td>b</table>", "b"),
    ("<pre>a\n<b>  b</b></pre>c  d", "a\n  b\n\nc d"),
    ("<pre>a</pre><p>b  c</p><pre>d  e</pre>", "a\n\nb c\n\nd  e"),
    ("<p>a</p> \n <p>b</p>", "a\n\nb"),
    ("<div><div><p>a</p></div></div><br><br><br>b", "a\n\nb"),
    ("<a href=' /x '>trimmed</a>", "[trimmed](https://example.com/x)"),
    ("<a href='//other.example'>host</a>", "[host](//other.example)".replace("//", "https://")),
    ("<a href='/x y'>space</a>", "space"),
    ("<a href='http://[::1'>no URL</a>", "no URL"),
    (f"<a href='/{'x' * 499}'>long</a>", f"[long](https://example.com/{'x' * 499})"),
    (f"<a href='/{'x' * 500}'>too long</a>", "too long"),
    ("<a href='/x'>[a]</a>", "[[a]](https://example.com/x)"),
    ("<nav>kept</nav>here", "kept\n\nhere"),
    ("<div hidden>no<p hidden>no</p>no</div>yes", "yes"),
]


@rows("html, shown", FORMS)
def test_html_becomes_text_that_can_be_read(html, shown):
    assert text(html) == shown


BLOCKS = (
    "address article aside blockquote details div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header main nav ol p pre section summary table ul"
)


def test_what_is_a_block_stands_alone_and_other_elements_do_not():
    for tag in BLOCKS.split():
        assert text(f"a<{tag}>b</{tag}>c").replace("#", "").split("\n") in (
            ["a", "", "b", "", "c"],
            ["a", "", " b", "", "c"],
        ), tag
    for tag in ("span", "b", "i", "em", "code", "label", "time", "sub"):
        assert text(f"a<{tag}>b</{tag}>c") == "abc", tag
    assert text("<div>a<hr>b</div>") == "a\n\nb"


def test_what_readers_do_not_see_is_left_out():
    for tag in ("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas"):
        assert text(f"a<{tag}>no</{tag}>b") == "ab", tag
    assert text("a<select><option>no</select><button>no</button>b") == "ab"


def test_a_text_is_cut_after_its_tokens_and_never_inside_a_character():
    """Four bytes of UTF-8 are one token."""
    mark = "\n\n[Truncated: the page goes on after about 2 tokens.]"
    for whole, shown in (
        ("12345678", "12345678"),
        ("123456789", f"12345678{mark}"),
        ("1234567 9", f"1234567{mark}"),
        ("ääää", "ääää"),
        ("aäääää", f"aäää{mark}"),
    ):
        assert truncated(whole, 2) == shown
        assert read_page(whole.encode(), "text/plain", "utf-8", URL, 2) == ("", shown)
        assert read_page(f"<p>{whole}".encode(), "text/html", "utf-8", URL, 2) == ("", shown)


def test_a_page_is_read_as_far_as_its_limit_in_bytes():
    assert html_text("<p>one</p><p>two</p><p>three</p>", URL, 8)[1] == "one\n\ntwo"
    assert html_text("<p>one</p><p>two</p><p>three</p>", URL, 7)[1] == "one\n\ntwo"
    assert html_text("<p>one</p><p>two</p><p>three</p>", URL, 3)[1] == "one"
    assert len(html_text("ä" * 10 + "<b>" + "ä" * 10, URL, 20)[1]) == 20


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
    ("<p>before</p><h1>C</h1><h1>D</h1>", "C"),
    ("<h2>smaller</h2>", ""),
    ("<h1>last", "last"),
    ("<head style='display: none'><title>T</title></head>x", "T"),
    ("<svg><title>no</title></svg><title>yes</title>", "yes"),
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
    (b"\xff\xfea\x00", "utf-8", "a"),
    (b"\xfe\xff\x00a", "utf-8", "a"),
    (b"a\x00", "utf-16", "a"),
    (b"a\x00", "utf-16le", "a"),
    (b"\x00a", "utf-16be", "a"),
    (b"\xc3\xa9", "utf8", "é"),
    (b"\x80", "us-ascii", "€"),
    (b"\x80", "ascii", "€"),
    (b"\x80", "latin1", "€"),
    (b"\x80", "windows-1252", "€"),
    (b"\xb1", "iso-8859-2", "ą"),
    (b"\xb1", "iso-8859-5", "Б"),
    (b"\xe1", "iso-8859-7", "α"),
    (b"\x80\xfd", "iso-8859-9", "€ı"),
    (b"\xa4", "iso-8859-15", "€"),
    (b"\x9c", "windows-1250", "ś"),
    (b"\xe1", "windows-1253", "α"),
    (b"\x80\xfd", "windows-1254", "€ı"),
    (b"\xe0", "windows-1255", "א"),
    (b"\xc7", "windows-1256", "ا"),
    (b"\xe0", "windows-1257", "ą"),
    (b"\xfe", "windows-1258", "₫"),
    (b"\xa4", "koi8-u", "є"),
    (b"\xd6\xd0", "gbk", "中"),
    (b"\xd6\xd0\x81\x30\x81\x30", "gb18030", "中\x80"),
    (b"\xa4\xa4", "big5", "中"),
    (b"\x1b$BF|\x1b(B", "iso-2022-jp", "日"),
    (b"\x93\xfa", "shift-jis", "日"),
    (b"\xb0\xa1", "euc-kr", "가"),
    (b"\x8e", "macintosh", "é"),
    (b"\xe1<meta charset = koi8-r>", "windows-1253", "α<meta charset = koi8-r>"),
    (b"<meta CHARSET = 'ISO-8859-7'>\xe1", "", "<meta CHARSET = 'ISO-8859-7'>α"),
    (
        b"<meta http-equiv=x content='text/html; charset=iso-8859-7'>\xe1",
        "",
        "<meta http-equiv=x content='text/html; charset=iso-8859-7'>α",
    ),
    (b" \n<?xml encoding='iso-8859-7'?>\xe1", "", " \n<?xml encoding='iso-8859-7'?>α"),
    (b"x<?xml encoding='iso-8859-7'?>\xe1", "", "x<?xml encoding='iso-8859-7'?>á"),
    (b" " * 2019 + b'<meta charset="iso-8859-7">\xe1', "", " " * 2019 + '<meta charset="iso-8859-7">α'),
    (b" " * 2047 + b'<meta charset="iso-8859-7">\xe1', "", " " * 2047 + '<meta charset="iso-8859-7">á'),
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
