"""The files of the page, and what every answer says to browsers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.gateway.inspector.inspector_kit import ADMIN, Answer, Visitor, configured, notes_of_start
from wireglot.gateway.inspector.access import DATA_CSP, PAGE_CSP, SECURITY_HEADERS, secured
from wireglot.gateway.inspector.inspector import Site, _takes_gzip
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture
def built(tmp_path):
    """Files as a build leaves them."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Wireglot</title>")
    (tmp_path / "page.js").write_text("export const x = 1;\n" * 200)
    (tmp_path / "chunk-Q2X7A9BC.js").write_text("export {};\n")
    (tmp_path / "page.css").write_text("a" * 1024)
    (tmp_path / "icon.svg").write_text("a" * 1023)
    (tmp_path / "LICENSES.txt").write_text("MIT")
    (tmp_path / "secret.py").write_text("nothing to see")
    return tmp_path


@pytest.fixture
def gateway(built):
    with LiveGateway() as gateway:
        site = Site(built)
        gateway.process.gateway._parts.pages.inspector._files.update({"page": site.page, "asset": site.asset})
        yield gateway


def check_headers(answer: Answer, path: str) -> None:
    given = answer.headers
    assert given["x-content-type-options"] == "nosniff"
    assert given["referrer-policy"] == "no-referrer"
    assert given["x-frame-options"] == "DENY"
    assert given["cross-origin-opener-policy"] == given["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in given["permissions-policy"]
    is_api = path.startswith("/inspector/api/")
    assert given["content-security-policy"] == (DATA_CSP if is_api else PAGE_CSP)
    assert "access-control-allow-origin" not in given
    if is_api or answer.status >= 400:
        assert given["cache-control"] == "no-store"


def test_no_script_can_stand_in_the_page_itself():
    assert "unsafe" not in PAGE_CSP
    assert "default-src 'none'" in PAGE_CSP
    assert "frame-ancestors 'none'" in PAGE_CSP
    assert "require-trusted-types-for 'script'" in PAGE_CSP
    assert "http" not in PAGE_CSP.replace("https", "http").replace("'self'", "")


def directives(policy):
    return {name: sources for name, *sources in (each.split() for each in policy.split("; "))}


def test_the_policies_of_the_page_are_those_of_the_standard_and_let_nothing_in_from_elsewhere():
    """A directive that a browser does not know is ignored: https://www.w3.org/TR/CSP3/#csp-directives"""
    page, data = directives(PAGE_CSP), directives(DATA_CSP)
    own = {"script-src", "style-src", "img-src", "connect-src", "worker-src"}
    nothing = {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {name for name, sources in page.items() if sources == ["'self'"]} == own
    assert {name for name, sources in page.items() if sources == ["'none'"]} == nothing | {"font-src"}
    assert page["require-trusted-types-for"] == ["'script'"]
    assert set(page) == own | nothing | {"font-src", "require-trusted-types-for", "trusted-types"}
    assert {name for name, sources in data.items() if sources == ["'none'"]} == nothing
    assert set(data) == nothing | {"sandbox"}


def test_headers_for_browsers_have_values_that_browsers_know():
    """https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers"""
    known = {
        "x-content-type-options": {"nosniff"},
        "x-frame-options": {"DENY", "SAMEORIGIN"},
        "referrer-policy": {"no-referrer", "same-origin", "strict-origin"},
        "cross-origin-opener-policy": {"same-origin"},
        "cross-origin-resource-policy": {"same-origin", "same-site"},
        "origin-agent-cluster": {"?1"},
    }
    given = dict(SECURITY_HEADERS)
    allowed = [each.strip().partition("=") for each in given.pop("permissions-policy").split(",")]
    assert {"camera", "microphone", "geolocation", "clipboard-read", "payment", "usb"} <= {
        name for name, _, _ in allowed
    }
    assert {sources for _, _, sources in allowed} == {"()"}
    assert given.keys() == known.keys()
    assert all(value in known[name] for name, value in given.items())


@pytest.mark.parametrize(
    ("accepted", "is_taken"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip; q=0.001", True),
        ("gzip;q=0", False),
        ("gzip; q = 0.0", False),
        ("gzip;q=0.00", False),
        ("gzip;q=0.000, br", False),
        ("br", False),
        ("", False),
    ],
)
def test_a_weight_of_nothing_means_not_compressed(accepted, is_taken):
    """RFC 9110, 12.4.2"""
    assert _takes_gzip(accepted) is is_taken


def test_every_view_is_the_page(gateway):
    visitor = Visitor(gateway).browse()
    for path in (
        "/inspector",
        "/inspector/",
        "/inspector/x/req_1",
        "/inspector/play",
        "/inspector/compare/a/b",
    ):
        answer = visitor.get(path)
        assert (answer.status, answer.body[:15]) == (200, b"<!doctype html>"), path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
    assert visitor.get("/inspectors").status == 404
    assert visitor.get("/openai/inspector").status == 404
    assert visitor.ask("HEAD", "/inspector").status == 200
    assert visitor.post("/inspector/play", {}).status == 405


def test_files_have_their_types_and_are_known_by_their_hash(gateway):
    visitor = Visitor(gateway).browse()
    script = visitor.get("/inspector/assets/page.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == "no-cache"
    again = visitor.get("/inspector/assets/page.js", if_none_match=f'W/"x", {script.headers["etag"]}')
    assert (again.status, again.body) == (304, b"")
    check_headers(again, "/inspector/assets/page.js")
    chunk = visitor.get("/inspector/assets/chunk-Q2X7A9BC.js")
    assert chunk.headers["cache-control"] == "public, max-age=31536000, immutable"
    types = {
        name: visitor.get(f"/inspector/assets/{name}").headers["content-type"]
        for name in ("page.css", "icon.svg", "LICENSES.txt")
    }
    assert types == {
        "page.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
        "LICENSES.txt": "text/plain; charset=utf-8",
    }
    assert visitor.get("/inspector/assets/page.js", if_none_match="*").status == 304
    assert visitor.get("/inspector/assets/page.js", if_none_match='"other"').status == 200


def test_files_are_compressed_for_anyone_who_can_read_it(gateway, built):
    visitor = Visitor(gateway)
    path = "/inspector/assets/page.js"
    plain = visitor.get(path)
    packed = visitor.get(path, accept_encoding="br, gzip;q=0.5")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body == (built / "page.js").read_bytes()
    assert packed.headers["etag"] != plain.headers["etag"]
    assert packed.headers["vary"] == "accept-encoding"
    again = visitor.get(path, accept_encoding="gzip", if_none_match=packed.headers["etag"])
    assert again.status == 304
    for accepted in ("gzip;q=0, identity", "GZIP; q = 0.000", "br", "gzipped"):
        assert "content-encoding" not in visitor.get(path, accept_encoding=accepted).headers, accepted
    for name, encoding in (("page.css", "gzip"), ("icon.svg", None)):
        small = visitor.get(f"/inspector/assets/{name}", accept_encoding="br, GZIP ;q=1")
        assert small.headers.get("content-encoding") == encoding, "from 1 KiB on"


@pytest.mark.parametrize(
    "name",
    ["../inspector.py", "..%2finspector.py", "%2e%2e/inspector.py", "secret.py", "index.html", "", ".", "..", "nothing.js",
     "page.js/", "page.js/x", "/etc/passwd", "page.js.gz", "page.js%00.css", "a" * 300 + ".js", "__init__.py", "page.JS"],
)  # fmt: skip
def test_nothing_else_is_a_file_of_the_page(gateway, name):
    answer = Visitor(gateway).get(f"/inspector/assets/{name}")
    assert answer.status in (400, 404), answer.body
    if "x-wireglot-request-id" in answer.headers:  # else it is no path at all, and nobody was asked
        check_headers(answer, "/inspector/assets/")


def test_a_checkout_without_the_page_says_so(tmp_path):
    with LiveGateway() as gateway:
        gateway.process.gateway._parts.pages.inspector._files["page"] = Site(tmp_path).page
        answer = Visitor(gateway).get("/inspector")
        assert (answer.status, answer.body.count(b"\n")) == (404, 1)
        assert b"make page" in answer.body
        check_headers(answer, "/inspector")


def test_every_kind_of_answer_says_the_same_to_browsers():
    with configured(f'admin_secret = "{ADMIN}"\ninspector = "secret"') as gateway:
        stranger, admin = Visitor(gateway), Visitor(gateway)
        api = "/inspector/api/"
        answers = [
            (api, stranger.get(f"{api}session"), 200),
            (api, stranger.get(f"{api}setup"), 401),
            (api, stranger.post(f"{api}session", {"secret": "wrong-wrong-wrong"}), 401),
            (api, stranger.get(f"{api}nothing"), 404),
            (api, stranger.ask("PUT", f"{api}session"), 405),
            (api, stranger.get(f"{api}setup", host="evil.example.com"), 403),
            (api, stranger.get(f"{api}setup", sec_fetch_site="cross-site"), 403),
            ("/inspector", stranger.get("/inspector", sec_fetch_site="cross-site"), 403),
            ("/inspector", stranger.get("/inspector", host="evil.example.com"), 403),
            (api, admin.sign_in(ADMIN), 200),
            (api, admin.get(f"{api}setup"), 200),
            (api, admin.get(f"{api}dashboard?format=csv"), 200),
            (api, admin.get(f"{api}dashboard?by=nothing"), 400),
            (api, admin.post(f"{api}translate", b"{"), 400),
            (api, admin.post(f"{api}translate", b"", content_length="5000000"), 413),
            (api, admin.post(f"{api}ask", {}, x_wireglot_csrf="no"), 403),
            (api, admin.post(f"{api}keys", {"name": ""}), 400),
            (api, admin.get(f"{api}keys/nobody"), 404),
            (api, admin.ask("DELETE", f"{api}session"), 200),
        ]
    for path, answer, status in answers:
        assert answer.status == status, (path, answer.status, answer.body)
        check_headers(answer, path)


def test_what_an_answer_says_itself_weakens_nothing():
    headers = secured(
        "/inspector/api/x", [("content-security-policy", "script-src *"), ("x-frame-options", "")]
    )
    assert ("content-security-policy", DATA_CSP) in headers
    assert [value for name, value in headers if name == "x-frame-options"] == ["DENY"]


def test_the_start_tells_where_it_is():
    with LiveGateway() as gateway:
        assert any(f"{gateway.url}/inspector" in note for note in notes_of_start(gateway))
    with configured('inspector = "off"') as gateway:
        assert not any("/inspector" in note for note in notes_of_start(gateway))


def test_the_package_has_the_page_where_it_is_looked_for():
    assert str(Site()._folder) == str(Path("src/wireglot/gateway/inspector/assets").absolute())
