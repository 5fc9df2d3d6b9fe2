"""A browser without scripts: the cookies, redirects, links and forms of a verification page."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

_MAX_REDIRECTS: Final = 10


class Button(NamedTuple):
    name: str
    value: str
    action: str
    """Where it sends the form instead of the form's own `action`."""


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[Button] = field(default_factory=list)


class Page(NamedTuple):
    url: str
    status: int
    text: str

    def forms(self) -> list[Form]:
        return self._read().forms

    def links(self) -> list[str]:
        return [urljoin(self.url, link) for link in self._read().links]

    def _read(self) -> _PageReader:
        reader = _PageReader()
        reader.feed(self.text)
        return reader


class Browser:
    def __init__(self) -> None:
        self._cookies: dict[str, SimpleCookie] = {}

    def open(self, url: str) -> Page:
        return self._follow("GET", url, None)

    def submit(self, page: Page, form: Form, button: Button | None = None, **filled: str) -> Page:
        fields = {**form.fields, **filled}
        if button is not None and button.name:
            fields[button.name] = button.value
        target = urljoin(page.url, (button.action if button is not None else "") or form.action or page.url)
        if form.method == "get":
            return self._follow("GET", f"{target.partition('?')[0]}?{urlencode(fields)}", None)
        return self._follow("POST", target, urlencode(fields), _origin(page.url))

    def _follow(self, method: str, url: str, body: str | None, origin: str | None = None) -> Page:
        for _ in range(_MAX_REDIRECTS):
            status, location, text = self._send(method, url, body, origin)
            if status not in {301, 302, 303, 307, 308} or not location:
                return Page(url, status, text)
            if status not in {307, 308}:
                method, body = "GET", None
            url, origin = urljoin(url, location), None
        raise RuntimeError(f"more than {_MAX_REDIRECTS} redirects at {url}")

    def _send(self, method: str, url: str, body: str | None, origin: str | None) -> tuple[int, str, str]:
        parts = urlsplit(url)
        jar = self._cookies.setdefault(parts.netloc, SimpleCookie())
        headers = {"accept": "text/html"}
        if jar:
            headers["cookie"] = "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items())
        if body is not None:
            headers |= {"content-type": "application/x-www-form-urlencoded"}
        if origin is not None:
            headers |= {"origin": origin, "sec-fetch-site": "same-origin"}
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        try:
            connection.request(
                method, parts._replace(scheme="", netloc="", fragment="").geturl(), body, headers
            )
            answer = connection.getresponse()
            for value in answer.headers.get_all("set-cookie") or ():
                jar.load(value)
            for name in [name for name, morsel in jar.items() if morsel["max-age"] == "0"]:
                del jar[name]
            return answer.status, answer.headers.get("location", ""), answer.read().decode(errors="replace")
        finally:
            connection.close()


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag == "form":
            self.forms.append(Form(has.get("action", ""), has.get("method", "get").lower()))
            self._open = True
        elif self._open and tag in {"input", "button"}:
            kind = has.get("type", "text" if tag == "input" else "submit")
            if kind == "submit":
                self.forms[-1].buttons.append(
                    Button(has.get("name", ""), has.get("value", ""), has.get("formaction", ""))
                )
            elif has.get("name") and (kind not in {"checkbox", "radio"} or "checked" in has):
                self.forms[-1].fields[has["name"]] = has.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
