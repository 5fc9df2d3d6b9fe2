"""Requests that would have the gateway call somewhere else: an address of nobody's business listens, and the
provider tells what it was really asked, at which path and under which headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from proofs.lab.doors.knocking import Book, asked, at_once
from proofs.lab.doors.stage import ANN, KEYS, Stage, staged
from proofs.lab.marking_upstream import PROVIDER_KEY, SPEAKERS, Seen, mark
from proofs.lab.questions import CLIENTS, question, whole
from proofs.served import keys_table
from wireglot_core.dialects.registry import DialectName

_KEY: Final = KEYS[ANN]
_PROXIES: Final = {
    name: "http://127.0.0.1:{canary}"
    for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY")
    for name in (upper, upper.lower())
} | {"NO_PROXY": "", "no_proxy": ""}
"""The environment's: not used unless a provider's `proxy` says so."""
_URLS: Final = (
    "http://127.0.0.1:{port}/{own}.png", "http://localhost:{port}/{own}.png", "http://[::1]:{port}/{own}.png",
    "http://[::ffff:127.0.0.1]:{port}/{own}.png", "http://0.0.0.0:{port}/{own}.png", "http://127.1:{port}/{own}.png",
    "http://2130706433:{port}/{own}.png", "http://0x7f000001:{port}/{own}.png", "http://0177.0.0.1:{port}/{own}.png",
    "http://127.0.0.1:{port}@127.0.0.1:{port}/{own}.png", "http://example.org@127.0.0.1:{port}/{own}.png",
    "http://127.0.0.1:{port}#@example.org/{own}.png", "http://127.0.0.1:{port}\\@example.org/{own}.png",
    "https://127.0.0.1:{port}/{own}.png", "HTTP://127.0.0.1:{port}/{own}.png", "//127.0.0.1:{port}/{own}.png",
    "ftp://127.0.0.1:{port}/{own}", "gopher://127.0.0.1:{port}/_{own}", "dict://127.0.0.1:{port}/{own}",
    "ws://127.0.0.1:{port}/{own}", "jar:http://127.0.0.1:{port}!/{own}", "file:///etc/passwd?{own}", "file://127.0.0.1/{own}",
    "gs://127.0.0.1:{port}/{own}", "s3://127.0.0.1:{port}/{own}", "http://127.0.0.1:{port}/{own}.pdf",
    "http://127.0.0.1:{port}/%0d%0aHost:%20evil.test/{own}", "http://127。0。0。1:{port}/{own}.png",
    "unix:/tmp/{own}",
)  # fmt: skip
_FIELDS: Final = (
    "base_url", "api_base", "api_url", "url", "endpoint", "host", "proxy", "http_proxy", "webhook",
    "webhook_url",
    "callback_url", "callback", "redirect", "target", "upstream", "server", "azure_endpoint",
    "custom_llm_provider",
    "previous_response_id", "conversation", "session", "prompt_cache_key", "cachedContent", "container",
    "service_tier",
)  # fmt: skip
_HEADERS: Final = (
    "x-forwarded-host", "x-forwarded-server", "x-original-host", "x-host", "x-base-url", "x-api-base",
    "x-upstream-url",
    "x-portkey-custom-host", "helicone-target-url", "x-litellm-api-base", "x-target-url", "x-original-url",
    "x-rewrite-url",
    "x-proxy-url", "via", "referer", "x-wap-profile", "x-wireglot-provider", "x-wireglot-base-url",
    "openai-base-url",
    "anthropic-base-url", "x-forwarded-proto", "cf-connecting-ip", "true-client-ip", "x-callback-url",
    "location",
    "content-location", "destination", "x-stainless-base-url", "openai-organization", "openai-project",
    "x-goog-user-project",
)  # fmt: skip
_NOT_PASSED: Final = (
    "cookie", "x-forwarded-for", "x-forwarded-host", "forwarded", "via", "proxy-authorization", "te",
    "trailer",
    "upgrade", "x-real-ip", "referer", "origin", "connection-named", "x-wireglot-admin", "x-api-base",
    "keep-alive",
)  # fmt: skip
_NAMES: Final = (
    "http://127.0.0.1:{port}/{own}", "@127.0.0.1:{port}/{own}", "x@127.0.0.1:{port}/{own}",
    "//127.0.0.1:{port}/{own}",
    "../../{own}", "../{own}", "..%2f..%2f{own}", "./{own}", "x/../../{own}", "%2e%2e/{own}",
    "x?alt=json&k={own}", "x#{own}",
    "x:countTokens?{own}", "x%00{own}", "x\r\nx-evil: {own}", "x\nx-evil: {own}", "x {own}", "x\t{own}",
    "x\\..\\{own}", "x;{own}",
    "{own}:generateContent#", "é{own}", "x/{own}/../..", "..;/{own}", "{{{own}}}", "%0d%0ax-evil:{own}",
    ".../{own}", "..",
)  # fmt: skip
_ELSEWHERE: Final = (301, 302, 303, 307, 308, 300, 305, 201)
"""Of answers that name another place."""
_PATHS: Final = {
    "anthropic": r"/v1/messages",
    "openai-chat": r"/v1/chat/completions",
    "openai-responses": r"/v1/responses",
    "gemini": r"/v1beta/models/(?:[A-Za-z0-9\-_~!$&'()*+,=:@./]|%[0-9A-F]{2})+"
    r":(?:g|streamG)enerateContent(?:\?alt=sse)?",
}


class _Knock(NamedTuple):
    name: str
    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = MappingProxyType({})
    way: str = "well"


def _media(client: DialectName, url: str) -> Iterator[dict[str, Any]]:
    """Parts of a message that name a URL."""
    match client:
        case "anthropic":
            for kind in ("image", "document"):
                yield {"type": kind, "source": {"type": "url", "url": url}}
        case "openai-chat":
            yield {"type": "image_url", "image_url": {"url": url}}
            yield {"type": "file", "file": {"file_data": url, "filename": "x.pdf"}}
            yield {"type": "file", "file": {"file_id": url}}
            yield {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}}
        case "openai-responses":
            yield {"type": "input_image", "image_url": url}
            yield {"type": "input_file", "file_url": url}
            yield {"type": "input_file", "file_data": url, "filename": "x.pdf"}
        case _:
            for kind in ("image/png", "application/pdf", "video/mp4"):
                yield {"fileData": {"fileUri": url, "mimeType": kind}}


def _with(client: DialectName, model: str, said: str, part: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    path, body = whole(*question(client, model, said))
    text = {"type": "input_text" if client == "openai-responses" else "text", "text": said}
    match client:
        case "openai-responses":
            body["input"] = [{"role": "user", "content": [text, part]}]
        case "gemini":
            body["contents"][0]["parts"].append(part)
        case _:
            body["messages"][0]["content"] = [text, part]
    return path, body


def _tools(client: DialectName, url: str) -> dict[str, Any]:
    """Servers that the model would call."""
    match client:
        case "anthropic":
            return {"mcp_servers": [{"type": "url", "url": url, "name": "x"}]}
        case "openai-responses":
            return {
                "tools": [
                    {"type": "mcp", "server_label": "x", "server_url": url, "require_approval": "never"}
                ]
            }
        case "openai-chat":
            return {"web_search_options": {"search_url": url}}
        case _:
            return {"tools": [{"urlContext": {}, "googleSearch": {}}], "cachedContent": url}


def _vectors(port: int) -> Iterator[_Knock]:
    for client in CLIENTS:
        for speaker in SPEAKERS:
            model = f"{speaker}/any"
            pair = f"{client} to {speaker}"
            for raw in _URLS:
                url = raw.replace("{port}", str(port)).replace("{own}", "OWN")
                for number, part in enumerate(_media(client, url)):
                    yield _Knock(f"{pair}, part {number}: {raw}", *_with(client, model, "Say MARK", part))
                path, body = whole(*question(client, model, f"Say MARK and look at {url}"))
                yield _Knock(f"{pair}, tools: {raw}", path, {**body, **_tools(client, url)})
            path, body = whole(*question(client, model, "Say MARK"))
            url = f"http://127.0.0.1:{port}/OWN"
            for field in _FIELDS:
                yield _Knock(f"{pair}, field {field}", path, {**body, field: url})
                yield _Knock(f"{pair}, query {field}", f"{path}?{field}={url}", body)
            for table in (
                "extra_headers",
                "extra_query",
                "extra_body",
                "metadata",
                "headers",
                "provider",
                "client_options",
            ):
                named = {
                    "host": f"127.0.0.1:{port}",
                    "url": url,
                    "base_url": url,
                    "authorization": "Bearer OWN",
                }
                yield _Knock(f"{pair}, field {table}", path, {**body, table: named})
            for header in _HEADERS:
                for value in (url, f"127.0.0.1:{port}"):
                    yield _Knock(f"{pair}, header {header}: {value[:4]}", path, body, {header: value})
            passed = dict.fromkeys(_NOT_PASSED, "OWN-carried") | {"connection": "close, connection-named"}
            yield _Knock(f"{pair}, headers of the way", path, body, passed)
            for status in _ELSEWHERE:
                for streamed in (False, True):
                    asking = question(client, model, "Say MARK")
                    path, body = asking if streamed else whole(*asking)
                    yield _Knock(f"{pair}, redirect {status} {streamed}", path, body, way=_way(status))
            for name in _NAMES:
                spelled = name.replace("{port}", str(port)).format(own="OWN")
                for full in (f"{speaker}/{spelled}", spelled):
                    path, body = whole(*question(client, full, "Say MARK"))
                    if client == "gemini":
                        path, body = path.replace(full, _escaped(full)), body
                    yield _Knock(f"{pair}, model {full!r}", path, body)


def _escaped(name: str) -> str:
    kept = re.compile(rb"[A-Za-z0-9\-_~!$&'()*+,=:@./]")
    return "".join(chr(each) if kept.match(bytes([each])) else f"%{each:02X}" for each in name.encode())


def _way(status: int) -> str:
    return "to" + "".join("abcdefghij"[int(digit)] for digit in str(status))


async def trial(book: Book, folder: Path) -> None:
    async with staged(folder, tables=keys_table(KEYS), environ=_PROXIES) as stage:
        for status in _ELSEWHERE:
            stage.upstream.ways[_way(status)] = _redirecting(status, stage.canary_port)
        numbers = count(1)

        async def one(vector: _Knock) -> None:
            own = mark(1, next(numbers), vector.way)
            text = (
                msgspec.json.encode(vector.body).replace(b"MARK", own.encode()).replace(b"OWN", own.encode())
            )
            path = vector.path.replace("OWN", own).replace(" ", "%20").replace("#", "%23")
            headers = {name: value.replace("OWN", own) for name, value in vector.headers.items()}
            calls, before = stage.canary.calls, len(stage.seen)
            said = await asked(stage.port, "POST", path, text, {**headers, "x-api-key": _KEY})
            book.counts[f"status {said.status}"] += 1
            problem = "the gateway called there" if stage.canary.calls > calls else ""
            for each in stage.saw(own, before):
                problem = problem or _moved(each, stage, own)
            book.knocked(vector.name, problem)

        await at_once(book.some(_vectors(stage.canary_port)), one)
        book.counts["calls at the other address"] = stage.canary.calls
        book.counts["provider requests"] = stage.upstream.asked
        book.right("the provider was asked", stage.upstream.asked > book.attempts // 2, stage.upstream.asked)
        await asked(stage.canary_port, "GET", "/")
        book.right("the other address hears", stage.canary.calls > 0)


def _redirecting(status: int, port: int) -> Any:
    def answer(said: bytes, data: bytes) -> bytes:
        place = b"location: http://127.0.0.1:%d/%b\r\ncontent-location: http://127.0.0.1:%d/\r\n" % (
            port,
            said,
            port,
        )
        return b"HTTP/1.1 %d Elsewhere\r\n%bcontent-length: 0\r\n\r\n" % (status, place)

    return answer


def _moved(seen: Seen, stage: Stage, own: str) -> str:
    """Whether a request went another way than the configuration says."""
    line, *fields = seen.head.decode("latin-1").split("\r\n")
    method, path, _ = line.split(" ", 2)
    named = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if len(named) != len(fields):
        return f"two headers of one name: {fields}"
    if named.get("host") != f"127.0.0.1:{stage.upstream_port}":
        return f"Host {named.get('host')}"
    fits = any(re.fullmatch(pattern, path) for pattern in _PATHS.values())
    if method != "POST" or not fits or any(not part.strip(".") for part in path.split("/")[1:]):
        return f"asked {line!r}"
    if _KEY in seen.head.decode("latin-1"):
        return "the client's key was passed on"
    if "x-evil" in named or any(name in named for name in _NOT_PASSED):
        return f"passed on: {sorted(named)}"
    if not any(PROVIDER_KEY in value for value in named.values()):
        return "asked with another key than the provider's"
    return ""
