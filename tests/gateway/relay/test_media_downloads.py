"""Pictures and files by address, downloaded for upstreams that take none."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from tests.gateway.faults.faults_kit import (
    BY_NAME,
    Answered,
    Client,
    every_dialect,
    model_at,
    provider,
    start,
)
from tests.gateway.hosted.hosted_kit import chat_answer, chat_calls
from tests.gateway.sdk.sdk_kit import PIXEL
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

PNG = base64.b64decode(PIXEL)
PDF = b"%PDF-1.4 a page"
A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))
NO_URLS = "retry = { retries = 0 }\nlimits = { media_urls = false }\n"


class Files(ThreadingHTTPServer):
    """A web server with a picture, a document and what is neither."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Files
    FILES: dict[str, tuple[str, bytes]] = {
        "/pixel.png": ("image/png", PNG),
        "/unlabelled": ("application/octet-stream", PNG),
        "/mislabelled": ("text/html", PNG),
        "/page.html": ("text/html", b"<p>no picture"),
        "/a.pdf": ("application/pdf", PDF),
        "/large": ("image/png", b"\x89PNG\r\n\x1a\n" + b"0" * 300_000),
    }

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("location", "/pixel.png")
            self.end_headers()
            return
        if self.path not in self.FILES:
            self.send_error(404)
            return
        mime, data = self.FILES[self.path]
        self.send_response(200)
        self.send_header("content-type", mime)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def files() -> Iterator[Files]:
    with Files() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as made:
        yield made


def toml(upstream: ScriptedUpstream, fetch: str) -> str:
    own = provider("kimi-like", upstream, "openai-chat", NO_URLS)
    return every_dialect(upstream) + own + fetch


@pytest.fixture(scope="module")
def running(files: Files, upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    host = f"127.0.0.1:{files.server_address[1]}"
    with LiveGateway(toml(upstream, f'[fetch]\nprivate_hosts = ["{host}"]\nmax_bytes = 200000\n')) as gateway:
        yield gateway


@pytest.fixture
def gateway(running: LiveGateway, upstream: ScriptedUpstream, files: Files) -> LiveGateway:
    upstream.reset()
    files.asked.clear()
    return running


def turn(client: Client, url: str) -> dict[str, Any]:
    """A turn with a picture by its address, in the place of the client's own."""
    match client.family:
        case "A":
            image: Any = {"type": "image", "source": {"type": "url", "url": url}}
            return {"messages": [{"role": "user", "content": [image, {"type": "text", "text": "hi"}]}]}
        case "C":
            image = {"type": "image_url", "image_url": {"url": url}}
            return {"messages": [{"role": "user", "content": [image, {"type": "text", "text": "hi"}]}]}
        case "R":
            image = {"type": "input_image", "image_url": url, "detail": "auto"}
            return {"input": [{"role": "user", "content": [image, {"type": "input_text", "text": "hi"}]}]}
    return {
        "contents": [
            {
                "role": "user",
                "parts": [{"fileData": {"fileUri": url, "mimeType": "image/png"}}, {"text": "hi"}],
            }
        ]
    }


PLACES = {"A": "messages[0].content[0]", "C": "messages[0].content[0]", "R": "input[0].content[0]"}


def ask(gateway: LiveGateway, client: Client, model: str, url: str, **headers: str) -> Answered:
    named = {
        "x-wireglot-loss-details": "1",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return start(gateway, client, model, headers=named, **turn(client, url)).rest()


def losses(answered: Answered) -> list[tuple[str, str, str]]:
    found = msgspec.json.decode(answered.headers.get("x-wireglot-loss-details") or "[]")
    return [
        (loss["path"], loss["feature"], loss["action"])
        for loss in found
        if loss["feature"] == "image" and loss["action"] != "invented"
    ]


@pytest.mark.parametrize("client", [A, C, R], ids=lambda client: client.name)
@pytest.mark.parametrize("source", ["gemini", "code-assist"])
def test_a_picture_is_sent_as_its_bytes(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files, client: Client, source: str
) -> None:
    answered = ask(gateway, client, model_at(source), files.url("pixel.png"))
    assert answered.status == 200
    body = upstream.requests[-1].json
    contents = body["request"]["contents"] if source == "code-assist" else body["contents"]
    assert contents[0]["parts"][0]["inlineData"] == {"mimeType": "image/png", "data": PIXEL}
    assert losses(answered) == [(f"$.{PLACES[client.family]}", "image", "emulated")]
    assert files.asked == ["/pixel.png"]


def test_a_scheme_may_have_capital_letters(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files
) -> None:
    answered = ask(gateway, A, model_at("gemini"), files.url("pixel.png").replace("http:", "HTTP:"))
    assert answered.status == 200
    assert upstream.requests[-1].json["contents"][0]["parts"][0]["inlineData"]["data"] == PIXEL


@pytest.mark.parametrize("client", [A, C, R, G], ids=lambda client: client.name)
def test_a_provider_that_refuses_addresses_of_its_own_dialect_is_sent_bytes(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files, client: Client
) -> None:
    answered = ask(gateway, client, "kimi-like/m1", files.url("pixel.png"))
    assert answered.status == 200
    (message,) = upstream.requests[-1].json["messages"]
    assert message["content"][0]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
    assert [action for _, _, action in losses(answered)] == ["emulated"]


@pytest.mark.parametrize("path", ["unlabelled", "mislabelled", "moved"])
def test_the_type_is_found_in_the_bytes_and_redirects_are_followed(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files, path: str
) -> None:
    assert ask(gateway, C, model_at("gemini"), files.url(path)).status == 200
    part = upstream.requests[-1].json["contents"][0]["parts"][0]
    assert part["inlineData"]["mimeType"] == "image/png"


def test_documents_and_pictures_in_results_are_downloaded(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files
) -> None:
    document = {"type": "document", "source": {"type": "url", "url": files.url("a.pdf")}}
    image = {"type": "image", "source": {"type": "url", "url": files.url("pixel.png")}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
    messages = [
        {"role": "user", "content": [document, {"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    answered = start(gateway, A, model_at("gemini"), messages=messages, tools=tools).rest()
    assert answered.status == 200, answered.body
    sent = upstream.requests[-1].body.decode()
    assert base64.b64encode(PDF).decode() in sent
    assert PIXEL in sent
    assert files.url("") not in sent


@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "openai-responses"])
def test_an_upstream_that_takes_addresses_is_sent_the_address(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files, source: str
) -> None:
    client = C if source != "openai-chat" else A
    assert ask(gateway, client, model_at(source), files.url("pixel.png")).status == 200
    assert files.url("pixel.png") in upstream.requests[-1].body.decode()
    assert not files.asked


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "the host answered with status 404"),
        ("page.html", "expected the URL of image data, found text/html"),
        ("large", "the page is too large"),
    ],
)
def test_what_cannot_be_downloaded_is_refused_at_its_place(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files, path: str, said: str
) -> None:
    for client in (A, C, R):
        answered = ask(gateway, client, model_at("gemini"), files.url(path))
        assert answered.status == 400
        assert answered.json["error"]["message"] == f"{PLACES[client.family]}: {said}"
    assert not upstream.requests


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x.png", "http://169.254.169.254/latest", "http://[::1]/x.png"]
)
def test_addresses_inside_the_network_are_not_asked(
    gateway: LiveGateway, upstream: ScriptedUpstream, url: str
) -> None:
    answered = ask(gateway, C, model_at("gemini"), url)
    assert answered.status == 400
    assert not upstream.requests


@pytest.mark.parametrize(
    ("path", "order", "wrong"),
    [
        (
            "pixel.png",
            ("document", "image"),
            "content[0]: expected the URL of document data, found image/png",
        ),
        (
            "pixel.png",
            ("image", "document"),
            "content[1]: expected the URL of document data, found image/png",
        ),
        (
            "a.pdf",
            ("document", "image"),
            "content[1]: expected the URL of image data, found application/pdf",
        ),
    ],
)
def test_one_address_of_two_kinds_is_refused_where_it_is_wrong(
    gateway: LiveGateway,
    upstream: ScriptedUpstream,
    files: Files,
    path: str,
    order: tuple[str, str],
    wrong: str,
) -> None:
    content = [{"type": kind, "source": {"type": "url", "url": files.url(path)}} for kind in order]
    messages = [{"role": "user", "content": content}]
    answered = start(gateway, A, model_at("gemini"), messages=messages).rest()
    assert answered.status == 400
    assert answered.json["error"]["message"] == f"messages[0].{wrong}"
    assert files.asked == [f"/{path}"]
    assert not upstream.requests


def test_more_than_the_maximum_of_files_are_refused(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files
) -> None:
    images = [{"type": "image_url", "image_url": {"url": files.url(f"{number}")}} for number in range(33)]
    answered = start(gateway, C, model_at("gemini"), messages=[{"role": "user", "content": images}]).rest()
    assert answered.status == 400
    assert "more than 32 URLs" in answered.json["error"]["message"]
    assert not files.asked


def test_all_rounds_of_an_answer_share_one_download(
    gateway: LiveGateway, upstream: ScriptedUpstream, files: Files
) -> None:
    """A search for tools that the gateway runs, between two rounds."""
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    deferred = {"name": "mine", "input_schema": {"type": "object"}, "defer_loading": True}
    upstream.next(
        chat_calls(("tool_search_tool_regex", {"pattern": "mine"})), chat_answer({"content": "A pixel."})
    )
    asked = {**turn(A, files.url("pixel.png")), "tools": [search, deferred]}
    assert start(gateway, A, "kimi-like/m1", **asked).rest().status == 200
    first, second = [request.json["messages"][0]["content"][0] for request in upstream.requests]
    assert first == second
    assert files.asked == ["/pixel.png"]


def test_a_client_may_refuse_it(gateway: LiveGateway, upstream: ScriptedUpstream, files: Files) -> None:
    answered = ask(gateway, C, model_at("gemini"), files.url("pixel.png"), x_wireglot_emulate="off")
    assert answered.status == 200
    assert [action for _, _, action in losses(answered)] == ["approximated"]
    assert not files.asked


def test_nothing_is_downloaded_without_a_table_of_settings(upstream: ScriptedUpstream, files: Files) -> None:
    files.asked.clear()
    with LiveGateway(toml(upstream, "")) as gateway:
        answered = ask(gateway, C, model_at("gemini"), files.url("pixel.png"))
        assert answered.status == 200
        assert [action for _, _, action in losses(answered)] == ["approximated"]
    assert not files.asked
