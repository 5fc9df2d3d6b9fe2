"""Converts a page to text for a model: charset, title, HTML as plain text, a visible mark where it is cut."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urljoin

_BYTES_PER_TOKEN: Final = 4
"""Bytes of UTF-8: counting characters would underestimate languages with many characters beyond ASCII."""
# Characters of a link that is shown in a page's text.
_MAX_LINK: Final = 500
_HEAD_BYTES: Final = 2048
_META: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE
)
_XML: Final = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*+=\s*+[\"']([a-zA-Z0-9_:.-]{1,40})")
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_CODECS: Final = {
    "utf-8": "utf-8", "utf8": "utf-8",
    "utf-16": "utf-16-le", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
    # As in browsers (WHATWG Encoding): pages with these labels are in windows-1252.
    "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-1": "cp1252", "latin1": "cp1252",
    "windows-1252": "cp1252",
    "iso-8859-2": "iso-8859-2", "iso-8859-5": "iso-8859-5", "iso-8859-7": "iso-8859-7",
    "iso-8859-9": "cp1254", "iso-8859-15": "iso-8859-15", "windows-1250": "cp1250", "windows-1251": "cp1251",
    "windows-1253": "cp1253", "windows-1254": "cp1254", "windows-1255": "cp1255", "windows-1256": "cp1256",
    "windows-1257": "cp1257", "windows-1258": "cp1258", "koi8-r": "koi8-r", "koi8-u": "koi8-u",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs", "euc-jp": "euc-jp",
    "iso-2022-jp": "iso-2022-jp", "shift_jis": "cp932", "shift-jis": "cp932", "euc-kr": "cp949",
    "macintosh": "mac-roman",
}  # fmt: skip
"""By name: Python's others are rare, slow on hostile input, or not encodings of text."""
_HIDDEN: Final = frozenset(
    {
        "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "select",
        "button",
    }
)  # fmt: skip
_FRAME: Final = frozenset({"nav", "footer"})
"""Elements around the content: left out unless the page has nothing else."""
_BLOCKS: Final = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
        "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tr", "ul",
    }
)  # fmt: skip
_TIGHT: Final = frozenset({"li", "tr", "dd", "dt"})
"""Elements without an empty line between them."""
_STARTS: Final = {"li": "- ", "td": " | ", "th": " | "} | {f"h{n}": "#" * n + " " for n in range(1, 7)}
_HIDING: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACE: Final = re.compile(r"[ \t\r\n\f]+")
_PIECE: Final = 64 * 1024
_READ_SECONDS: Final = 5.0
"""Time limit for one page, after which the rest is left out: it shares the interpreter with all other
requests."""
# Characters of the title of a fetched page.
_MAX_TITLE: Final = 300


def read_page(body: bytes, mime: str, charset: str, url: str, max_tokens: int) -> tuple[str, str]:
    """The title and the text. Slow: call it in a thread."""
    text = decoded(body, charset)
    if mime not in ("text/html", "application/xhtml+xml"):
        return "", truncated(text, max_tokens)
    # More is not shown, so more is not read.
    limit = max_tokens * _BYTES_PER_TOKEN + 1
    title, shown = html_text(text, url, limit, skipped=_HIDDEN | _FRAME)
    if not shown:
        title, shown = html_text(text, url, limit, skipped=_HIDDEN)
    return title, truncated(shown, max_tokens)


def decoded(body: bytes, charset: str) -> str:
    """By the byte order mark, the header, the page's own statement, or a guess from the bytes."""
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if charset not in _CODECS:
        stated = _META.search(body[:_HEAD_BYTES]) or _XML.match(body[:_HEAD_BYTES])
        charset = stated[1].decode("ascii").lower() if stated is not None else ""
    if charset in _CODECS:
        return body.decode(_CODECS[charset], "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def truncated(text: str, max_tokens: int) -> str:
    data = text.encode("utf-8", "replace")
    limit = max_tokens * _BYTES_PER_TOKEN
    if len(data) <= limit:
        return text
    kept = data[:limit].decode("utf-8", "ignore").rstrip()
    return f"{kept}\n\n[Truncated: the page goes on after about {max_tokens} tokens.]"


def html_text(
    html: str,
    url: str,
    limit: int,
    *,
    skipped: frozenset[str] = _HIDDEN,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, str]:
    """The title and the visible text of a page, up to `limit` bytes: headings, lists, cells and links in the
    style of Markdown. `url` is the base of relative links."""
    from lxml import etree  # an extra, loaded on first use

    page, until = _PageText(url, limit, skipped), clock() + _READ_SECONDS
    # Events, not a tree: a tree of hostile HTML takes quadratic time, or any amount of memory.
    parser = etree.HTMLParser(target=page, encoding="utf-8")
    data = html.encode("utf-8", "replace")
    try:
        for start in range(0, len(data), _PIECE):
            parser.feed(data[start : start + _PIECE])
            if clock() > until:
                return page.title(), f"{page.text()}\n\n[Truncated: the page takes too long to read.]"
        parser.close()
    except (_LongEnough, etree.XMLSyntaxError):
        pass  # the parser repairs what it can; a document without any element is an error
    return page.title(), page.text()


class _LongEnough(Exception):
    """There is more text than is wanted."""


class _PageText:
    """Collects the text of a page from the events of a parser, which pairs every start with an end."""

    def __init__(self, url: str, limit: int, skipped: frozenset[str]) -> None:
        self._url = url
        self._room = limit
        self._skipped = skipped
        self._title: list[str] = []
        self._lines: list[str] = []
        self._line: list[str] = []
        """The pieces of the last line: extending a text piece by piece takes quadratic time."""
        self._depth = 0
        self._hidden = 0
        """The depth of the element that hides its content; 0: none does."""
        self._pre = 0
        self._in_title = False
        self._links: list[str] = []
        """The targets of open links."""

    # Called by the parser

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._hidden:
            return
        if tag == "title":
            self._in_title = not self._title
        elif tag == "head":
            return
        elif tag in self._skipped or "hidden" in attributes or _HIDING.search(attributes.get("style", "")):
            self._hidden = self._depth
            return
        if tag in _BLOCKS:
            self._break(tag)
        if tag == "pre":
            self._pre += 1
        elif tag == "a":
            self._links.append(self._target(attributes.get("href", "")))
            if self._links[-1]:
                self._add("[")
        else:
            self._begin(tag)

    def end(self, tag: str) -> None:
        depth, self._depth = self._depth, self._depth - 1
        if self._hidden:
            if self._hidden == depth:
                self._hidden = 0
            return
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._pre -= 1
        elif tag == "a" and self._links:
            self._close_link(self._links.pop())
        if tag in _BLOCKS:
            self._break(tag)

    def data(self, text: str) -> None:
        if self._hidden:
            return
        if self._in_title:
            self._title.append(text)
        elif self._pre:
            first, *others = text.split("\n")
            self._add(first)
            for line in others:
                self._end_line()
                self._add(line)
        else:
            plain = _SPACE.sub(" ", text)
            self._add(plain.lstrip() if not self._line or self._line[-1][-1] == " " else plain)

    def comment(self, text: str) -> None: ...

    def pi(self, target: str, data: str | None = None) -> None: ...

    def close(self) -> None: ...

    # Results

    def title(self) -> str:
        found = " ".join("".join(self._title).split())
        if not found:
            lines = (*self._lines, "".join(self._line))
            heading = next((line for line in lines if line.startswith("# ")), "")
            found = heading.removeprefix("# ").strip()
        return found[:_MAX_TITLE]

    def text(self) -> str:
        """Without lines of white space only, except for one between two others."""
        shown = "\n".join((*self._lines, "".join(self._line).rstrip()))
        return re.sub(r"\n{3,}", "\n\n", shown).strip("\n")

    # Lines

    def _add(self, text: str) -> None:
        if text:
            self._line.append(text)
            self._take(len(text.encode("utf-8", "replace")))

    def _end_line(self) -> None:
        self._lines.append("".join(self._line).rstrip())
        self._line.clear()
        self._take(1)

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise _LongEnough

    def _begin(self, tag: str) -> None:
        mark = _STARTS.get(tag, "")
        if tag == "br":
            self._end_line()
        elif mark != " | " or self._line:
            self._add(mark)

    def _break(self, tag: str) -> None:
        if any(not piece.isspace() for piece in self._line):
            self._end_line()
        self._line.clear()
        if tag not in _TIGHT and self._lines and self._lines[-1]:
            self._end_line()

    # Links

    def _target(self, href: str) -> str:
        """The target of a link; "" if it is not another page."""
        if not href or href.startswith("#") or len(href) > _MAX_LINK:
            return ""
        try:
            found = urljoin(self._url, href.strip()).partition("#")[0]
        except ValueError:
            return ""
        return found if found.startswith(("http://", "https://")) and " " not in found else ""

    def _close_link(self, target: str) -> None:
        if target and self._line and self._line[-1] == "[":  # around an image, or nothing
            self._line.pop()
        elif target:
            self._add(f"]({target})")
