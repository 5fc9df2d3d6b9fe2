"""The web tools of a gateway: made from its settings, and a search by another model in a real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from proofs.search_double import KEY, RESULTS, SearchDouble
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.relay.web_tools import SEARCH_AGENT, SEARCH_OPERATION, ModelSearch
from wireglot.gateway.request.job import Incoming, read
from wireglot.gateway.settings import SearchSettings, Settings
from wireglot.http.application import Head
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.web.contract import Hit, Query, WebFailed
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.content import Citation, Message, Text
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import HostedTool, Request
from wireglot_core.wire.json import decode, encode

CLIENTS = [name for name in NAMES if name != "code-assist"]
ASKED = "openai-responses"
"""The dialect of the gateway's own request."""
BY_MODEL = SearchSettings(backend="model", model="demo/demo", timeout=30.0, max_results=2)


def exchange(settings: Settings, client: str = "openai-chat") -> Any:
    """What the tools look at of a client's request."""
    asked = Request("demo/demo", (Message("user", (Text("hi"),)),))
    body = encode({"model": "demo/demo", **dialect(client).render_request(asked, Context()).value})
    head = Head("POST", target="/", path="/", query="", headers={"host": "localhost"}, peer="127.0.0.1")
    job = read(Incoming(settings, head, Asked(client, "generate"), LOCAL), body, id="req_1", now=0)
    return SimpleNamespace(job=job, record=SimpleNamespace(id="req_outer"))


def answer_of(*parts: Text) -> bytes:
    response = Response("r", "demo", parts, Stop("end"), Usage())
    return encode(dialect(ASKED).render_response(response, Context()).value)


CITED = (
    Text(
        "Zurich has 443,037 inhabitants. Bern has fewer.",
        citations=(Citation("https://a.example/zurich", "Zurich", "443,037", start=0, end=31),),
    ),
    Text("Nobody says this."),
    Text(
        "Basel, too.",
        citations=(
            Citation("https://b.example/basel", "Basel", start=0, end=11),
            Citation("https://a.example/zurich", "Zurich", start=0, end=11),
            Citation("https://c.example/", "", start=0, end=11),
        ),
    ),
)


class Scripted:
    """Stands in for the gateway that answers its own request."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.asked: list[Any] = []

    async def __call__(
        self, incoming: Any, body: bytes, reply: Any, within: str, operation: str, round: Any = None
    ) -> str:
        self.asked.append((incoming, decode(body), within, operation))
        reply.send(self.status, [], self.body)
        return "req_inner"


def searched(
    asked: Scripted, client: str, query: Query, settings: SearchSettings = BY_MODEL
) -> Sequence[Hit]:
    made = ModelSearch(asked, exchange(Settings(search=settings), client), settings)
    return asyncio.run(made.search(query))


@rows("client", CLIENTS)
def test_the_pages_that_a_model_cites_are_the_results(client):
    asked = Scripted(200, answer_of(*CITED))
    hits = searched(
        asked, client, Query("how large"), SearchSettings(backend="model", model="demo/demo", max_results=9)
    )
    assert [hit.url for hit in hits] == [
        "https://a.example/zurich",
        "https://b.example/basel",
        "https://c.example/",
    ]
    assert [hit.title for hit in hits][:2] == ["Zurich", "Basel"]
    assert "Zurich has 443,037 inhabitants." in hits[0].text
    assert "Basel, too." in hits[1].text
    assert all("Nobody says this" not in hit.text for hit in hits)
    assert len(searched(asked, client, Query("q"))) == BY_MODEL.max_results


@rows("client", CLIENTS)
def test_the_request_of_the_gateways_own_wants_a_search_and_names_its_purpose(client):
    asked = Scripted(200, answer_of(*CITED))
    searched(asked, client, Query("how large", allowed_domains=("a.example",)))
    ((incoming, document, within, operation),) = asked.asked
    assert (within, operation, incoming.asked.dialect) == ("req_outer", SEARCH_OPERATION, ASKED)
    assert incoming.head.headers["user-agent"] == SEARCH_AGENT
    assert incoming.head.headers["x-wireglot-timeout"] == "30"
    request = dialect(ASKED).parse_request(document, Context())
    (tool,) = request.tools
    assert isinstance(tool, HostedTool)
    assert (tool.kind, tool.options["allowed_domains"]) == ("web_search", ["a.example"])
    assert request.stream is False
    assert (document["model"], document["store"]) == ("demo/demo", False)
    assert "how large" in encode(document).decode()


def test_results_of_other_domains_are_left_out():
    asked = Scripted(200, answer_of(*CITED))
    wide = SearchSettings(backend="model", model="demo/demo", blocked_domains=("c.example",))
    hits = searched(asked, "openai-chat", Query("q", blocked_domains=("a.example",)), wide)
    assert [hit.url for hit in hits] == ["https://b.example/basel"]
    only = SearchSettings(backend="model", model="demo/demo", allowed_domains=("a.example",))
    assert searched(asked, "openai-chat", Query("q", allowed_domains=("b.example",)), only) == ()


def test_an_answer_without_sources_finds_nothing():
    asked = Scripted(200, answer_of(Text("I know it all.")))
    assert list(searched(asked, "openai-chat", Query("q"))) == []


FAILED = [
    (429, "rate_limit", "too_many_requests"),
    (529, "overloaded", "too_many_requests"),
    (500, "server", "unavailable"),
    (401, "auth", "unavailable"),
    (400, "invalid_request", "unavailable"),
]


@rows("status, kind, code", FAILED)
def test_a_model_that_fails_is_a_search_that_fails(status, kind, code):
    error = ApiError(kind, "no, sk-secret-key", status=status)
    body = encode(dialect(ASKED).render_error(error, Context()))
    with pytest.raises(WebFailed) as caught:
        searched(Scripted(status, body), "anthropic", Query("q"))
    assert (caught.value.code, str(caught.value)) == (
        code,
        f"demo/demo could not search the web (status {status})",
    )


@rows("body", [b"", b"nonsense", b"[]", b'{"output": 7}'])
def test_an_answer_that_cannot_be_read_is_a_search_that_fails(body):
    with pytest.raises(WebFailed) as caught:
        searched(Scripted(200, body), "openai-chat", Query("q"))
    assert caught.value.code == "unavailable"


def test_an_empty_query_is_not_sent():
    asked = Scripted(200, b"")
    with pytest.raises(WebFailed, match="the query is empty"):
        searched(asked, "openai-chat", Query(" \n"))
    assert asked.asked == []


SOURCED = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m1",
    "output": [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q"},
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "It rains.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url": "https://w.example/",
                            "title": "Weather",
                            "start_index": 0,
                            "end_index": 9,
                        }
                    ],
                }
            ],
        },
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
}


def test_a_real_gateway_asks_a_model_that_searches_and_writes_it_down():
    behaviour = Behaviour(body=encode(SOURCED))
    with (
        ScriptedUpstream(decide=lambda request: behaviour) as upstream,
        LiveGateway.before(
            upstream, "openai-responses", '[search]\nbackend = "model"\nmodel = "mine/m1"\n'
        ) as gateway,
    ):
        process = gateway.process.gateway
        client = exchange(process.settings, "anthropic")
        search = process.web.search(client)
        assert search is not None
        hits = gateway.call(_search(search, Query("weather")))
        assert [(hit.url, hit.title, hit.text) for hit in hits] == [
            ("https://w.example/", "Weather", "It rains.")
        ]
        (line,) = gateway.wait_log()
        assert (line["operation"], line["tokens"]["input"]) == ("search", 7)
        assert decode(upstream.requests[0].body)["tools"][0]["type"] == "web_search"


async def _search(search: Any, query: Query) -> Sequence[Hit]:
    found: Sequence[Hit] = await search.search(query)
    return found


def test_backends_are_shared_until_the_configuration_changes():
    with SearchDouble() as double:
        toml = f'[providers.demo]\n[search]\nbackend = "brave"\nkey = "{KEY}"\nurl = "{double.url}"\nfetch = true\n'
        with LiveGateway(toml) as gateway:
            web, process = gateway.process.gateway.web, gateway.process.gateway
            client = exchange(process.settings)
            first, fetch = web.search(client), web.fetch(client)
            assert first is not None
            assert fetch is not None
            assert web.search(exchange(process.settings)) is first
            assert web.fetch(exchange(process.settings)) is fetch
            assert gateway.call(_search(first, Query("x")))[0].url == RESULTS[0][0]
            gateway.reconfigure(toml.replace("fetch = true", "max_results = 1"))
            gateway.wait_log(1, "reloaded")
            changed = exchange(process.settings)
            second = web.search(changed)
            assert second is not None
            assert second is not first
            assert web.fetch(changed) is None
            assert len(gateway.call(_search(second, Query("x")))) == 1
            assert web.search(client) is first, "a request keeps the settings that it began with"
            log = (gateway.folder / "log").read_text()
            assert KEY not in log


def test_without_tables_there_are_no_tools():
    with LiveGateway("[providers.demo]\n") as gateway:
        client = exchange(gateway.process.gateway.settings)
        assert gateway.process.gateway.web.search(client) is None
        assert gateway.process.gateway.web.fetch(client) is None


def test_a_model_that_cannot_search_is_a_search_that_fails_and_is_not_asked():
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(
            upstream, "openai-chat", '[search]\nbackend = "model"\nmodel = "mine/m1"\n'
        ) as gateway,
    ):
        process = gateway.process.gateway
        search = process.web.search(exchange(process.settings, "anthropic"))
        with pytest.raises(WebFailed) as caught:
            gateway.call(_search(search, Query("weather")))
        assert (caught.value.code, str(caught.value)) == (
            "unavailable",
            "mine/m1 could not search the web (status 400)",
        )
        assert upstream.requests == []
