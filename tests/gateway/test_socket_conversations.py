"""Requests over a WebSocket without a socket: what a connection keeps, limits and reports."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, TextMessage

from tests.gateway.kit import head
from tests.gateway.offline import Offline, Said
from tests.tiers import rows
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.websockets import _as_post, _EventReply
from wireglot.http.application import Headers, Upgrade
from wireglot_core.dialects.capabilities import SocketEnd, SocketRequest
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode, encode

SPOKEN: Any = surface("openai-responses").websockets
MINE = {"mine": {"dialect": "openai-chat", "base_url": "https://h.example/v1", "api_key": "key-one"}}
UPGRADE = {
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec_websocket_version": "13",
    "sec_websocket_key": base64.b64encode(b"0123456789abcdef").decode(),
}


class Line(CollectedReply):
    """Implements `UpgradableReply`: the client's end of a WebSocket."""

    def __init__(self, room: int = 1 << 30) -> None:
        super().__init__()
        self._client = Connection(ConnectionType.CLIENT)
        self.upgraded: Upgrade | None = None
        self.messages: list[Any] = []
        self.closed = 0
        self.held = 0
        self.room = room
        self.pressed: list[Any] = []

    def upgrade(self, headers: Headers, upgrade: Upgrade) -> None:
        self.upgraded = upgrade

    def write_raw(self, data: bytes) -> None:
        self._client.receive_data(data)
        for event in self._client.events():
            if isinstance(event, TextMessage):
                self.messages.append(decode(event.data.encode()))
            elif isinstance(event, CloseConnection):
                self.closed = event.code

    def linger(self) -> None: ...

    def hold(self, size: int) -> bool:
        self.held += size
        return self.held <= self.room

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self.pressed.append((pause, resume))

    def send_message(self, message: Any) -> None:
        assert self.upgraded is not None
        text = message if isinstance(message, str) else encode(message).decode()
        self.upgraded.receive(self._client.send(TextMessage(text)))

    def leave(self) -> None:
        assert self.upgraded is not None
        self.upgraded.receive(self._client.send(CloseConnection(1000)))


def chunks(text: str, number: int = 1) -> tuple[bytes, ...]:
    head_ = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {
        **head_,
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}],
    }
    ended = {**head_, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return (*(b"data: " + encode(each) + b"\n\n" for each in (said, ended)), b"data: [DONE]\n\n")


def talk(gateway: Offline, line: Line, *messages: Any, **headers: str) -> list[list[Any]]:
    """Send messages in turn, each once the one before is answered; what came for each."""

    async def run() -> list[list[Any]]:
        made = head("GET", "/v1/responses", **{**UPGRADE, **headers})
        refused = gateway.gateway.admit(made)
        assert refused is None, refused
        task = asyncio.create_task(gateway.gateway.handle(made, b"", line))
        await asyncio.sleep(0)
        answers = []
        for message in messages:
            before = len(line.messages)
            line.send_message(message() if callable(message) else message)
            await asyncio.sleep(0.01)
            answers.append(line.messages[before:])
        line.leave()
        await task
        return answers

    return gateway.call(run())


def create(text: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"type": "response.create", "model": "mine/m", "input": text, "store": False, **more}


def stage(**tables: Any) -> Offline:
    made = Offline(**{"providers": MINE, **tables})
    made.upstream.say(*(Said(pieces=chunks("Hello.", number)) for number in range(50)))
    return made


def ended(answer: list[Any]) -> dict[str, Any]:
    assert answer[-1]["type"] == "response.completed", answer
    response: dict[str, Any] = answer[-1]["response"]
    return response


def sent_texts(gateway: Offline) -> list[str]:
    return [message["content"] for message in gateway.upstream.json["messages"]]


def test_a_connection_goes_on_from_its_own_answers_and_lets_go_of_them_at_its_end() -> None:
    with stage() as gateway:
        line = Line()
        ids: list[str] = []

        def next_one() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create("more", previous_response_id=ids[-1])

        first, second = talk(gateway, line, create(), next_one)
        assert sent_texts(gateway) == ["Hi", "Hello.", "more"]
        assert ended(second)["previous_response_id"] == ids[0] != ended(second)["id"]
        sockets = gateway.gateway._parts.pages.sockets
        assert (line.held, sockets.kept_bytes, sockets.open) == (0, 0, {})
        assert ended(first)["id"] == ids[0]


def test_what_is_kept_is_counted_as_memory() -> None:
    with stage() as gateway:
        line = Line()
        held: list[tuple[int, int]] = []
        sockets = gateway.gateway._parts.pages.sockets

        def look() -> dict[str, Any]:
            held.append((line.held, sockets.kept_bytes))
            return create()

        talk(gateway, line, create(), look, look)
        kept = held[0][1]
        assert kept > 0
        assert held == [(kept, kept), (2 * kept, 2 * kept)]


def test_the_last_32_answers_are_kept() -> None:
    with stage(limits={"websocket_time": 99999.0}) as gateway:
        line = Line()
        ids: list[str] = []

        def remember() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create()

        def of(number: int) -> Callable[[], dict[str, Any]]:
            return lambda: create(previous_response_id=ids[number], generate=False)

        answers = talk(gateway, line, create(), *[remember] * 32, of(0), of(1))
        assert len(set(ids)) == 32
        assert answers[-2][0]["error"]["code"] == "previous_response_not_found"
        assert answers[-1][-1]["type"] == "response.completed"


def test_the_last_answer_of_a_stream_is_kept_however_many_others_give() -> None:
    """OpenAI keeps the most recent response of each stream of a connection."""
    with stage() as gateway:
        line = Line()
        ids: list[str] = []

        def remember() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create(stream_id="other")

        others = [create(stream_id="other") for _ in range(40)]
        *_, last = talk(
            gateway,
            line,
            create("One", stream_id="one"),
            remember,
            *others,
            lambda: create("Two", stream_id="one", previous_response_id=ids[0]),
        )
        assert ended(last)["previous_response_id"] == ids[0]
        assert sent_texts(gateway) == ["One", "Hello.", "Two"]


def test_answers_that_are_larger_together_than_a_body_are_not_kept() -> None:
    with stage(limits={"body": 3000}) as gateway:
        line = Line()
        ids: list[str] = []

        def remember() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create("y" * 1500)

        *_, missing = talk(
            gateway,
            line,
            create("x" * 1500),
            remember,
            lambda: create(previous_response_id=ids[0], generate=False),
        )
        assert missing[0]["error"]["code"] == "previous_response_not_found"


def test_a_request_that_grows_beyond_a_body_is_refused_and_what_it_rests_on_forgotten() -> None:
    with stage(limits={"body": 2000}) as gateway:
        line = Line()
        ids: list[str] = []

        def next_one() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create("y" * 1000, previous_response_id=ids[0])

        *_, refused, missing = talk(
            gateway,
            line,
            create("x" * 1000),
            next_one,
            lambda: create(previous_response_id=ids[0], generate=False),
        )
        assert (refused[0]["status"], refused[0]["error"]["code"]) == (413, "request_too_large")
        assert "larger than 2000 bytes" in refused[0]["error"]["message"]
        assert missing[0]["error"]["code"] == "previous_response_not_found"
        assert len(gateway.upstream.sent) == 1


def test_a_process_without_room_refuses_a_message_and_keeps_no_answer() -> None:
    with stage() as gateway:
        line = Line(room=100)
        refused, again = talk(gateway, line, create(), create())
        for answer in (refused, again):
            assert (answer[0]["type"], answer[0]["status"]) == ("error", 503)
        assert (line.held, gateway.upstream.sent) == (0, [])


def test_a_connection_has_at_most_32_streams() -> None:
    with stage() as gateway:
        line = Line()
        messages = [create(stream_id=f"s{number}") for number in range(33)]
        *good, refused, again = talk(gateway, line, *messages, create(stream_id="s0"))
        assert {answer[-1]["stream_id"] for answer in good} == {f"s{number}" for number in range(32)}
        assert refused[0]["error"]["code"] == "websocket_stream_limit_reached"
        assert (refused[0]["status"], refused[0]["error"]["param"]) == (400, "stream_id")
        assert refused[0]["stream_id"] == "s32"
        assert again[-1]["type"] == "response.completed"


@rows(
    ("message", "code", "param"),
    [
        ("nonsense", "invalid_json", ""),
        ("[]", None, ""),
        ({"type": "response.cancel"}, "invalid_value", "type"),
        ({"type": "response.create", "generate": 1}, None, "generate"),
        ({"type": "response.create", "stream_id": "a b"}, "invalid_stream_id", "stream_id"),
        ({"type": "response.create", "background": True}, "unsupported_parameter", "background"),
    ],
)
def test_a_bad_message_is_refused_by_name(message: Any, code: str | None, param: str) -> None:
    with stage() as gateway:
        line = Line()
        refused, good = talk(gateway, line, message, create())
        (error,) = refused
        assert (error["type"], error["status"]) == ("error", 400)
        assert code is None or error["error"]["code"] == code
        assert (error["error"]["param"] or "").removeprefix("$") == param
        assert good[-1]["type"] == "response.completed"


def test_an_error_of_the_provider_has_its_status_and_the_headers_that_clients_act_on() -> None:
    with stage(providers={"mine": {**MINE["mine"], "retry": {"retries": 0}}}) as gateway:
        gateway.upstream.say(
            Said(429, {"error": {"message": "slow"}}, headers={"retry-after": "30", "server": "x"})
        )
        line = Line()
        ((error,),) = talk(gateway, line, create(stream_id="a"))
        assert (error["status"], error["stream_id"]) == (429, "a")
        assert set(error["headers"]) == {"retry-after", "x-request-id"}
        assert (error["headers"]["retry-after"], error["error"]["headers"]) == ("30", error["headers"])


def test_a_request_that_is_only_read_calls_no_one_and_can_be_continued() -> None:
    with stage() as gateway:
        line = Line()
        read, answered = talk(
            gateway,
            line,
            create("first", generate=False),
            lambda: create("second", previous_response_id=ended(line.messages)["id"]),
        )
        assert len(gateway.upstream.sent) == 1
        assert "".join(sent_texts(gateway)).split() == ["first", "second"]
        assert (ended(read)["output"], answered[-1]["type"]) == ([], "response.completed")


def test_the_headers_of_the_upgrade_hold_for_messages_but_for_those_of_the_connection() -> None:
    made = head("GET", "/v1/responses", **UPGRADE, accept="*/*", expect="x", idempotency_key="k",
                content_length="0", transfer_encoding="chunked", authorization="Bearer x", x_mine="1")  # fmt: skip
    made.admission = made
    post = _as_post(made)
    assert (post.method, post.path, post.admission, post.familiar) == ("POST", "/v1/responses", None, None)
    assert post.headers == {
        "host": "localhost:8484",
        "authorization": "Bearer x",
        "x-mine": "1",
        "content-type": "application/json",
        "accept": "text/event-stream",
    }


def test_a_session_is_not_added_to_what_the_connection_knows() -> None:
    with stage() as gateway:
        line = Line()
        talk(
            gateway,
            line,
            create("one"),
            lambda: create("two", previous_response_id=ended(line.messages)["id"]),
            x_wireglot_conversation="c1",
        )
        assert sent_texts(gateway) == ["one", "Hello.", "two"]


@rows(("limit", "status", "code"), [(0, 426, "upgrade_required"), (1, 429, "rate_limit_exceeded")])
def test_how_many_connections_a_key_may_have(limit: int, status: int, code: str) -> None:
    with stage(limits={"websockets": limit}) as gateway:
        sockets = gateway.gateway._parts.pages.sockets
        sockets.open["local"] = limit
        refused = gateway.gateway.admit(head("GET", "/v1/responses", **UPGRADE))
        assert refused is not None
        assert (refused.status, decode(refused.body)["error"]["code"]) == (status, code)
        if limit:
            assert dict(refused.headers)["retry-after"] == "1"
            sockets.open["local"] = 0
            assert gateway.gateway.admit(head("GET", "/v1/responses", **UPGRADE)) is None


def test_half_a_handshake_is_refused() -> None:
    with stage() as gateway:
        refused = gateway.gateway.admit(
            head("GET", "/v1/responses", **{**UPGRADE, "sec_websocket_version": "12"})
        )
        assert refused is not None
        assert (refused.status, decode(refused.body)["error"]["code"]) == (400, "invalid_handshake")


def test_a_connection_that_has_lasted_long_enough_says_so_and_closes() -> None:
    with stage(limits={"websocket_time": 50.0, "ping": 100.0}) as gateway:
        line = Line()

        async def run() -> None:
            made = head("GET", "/v1/responses", **UPGRADE)
            assert gateway.gateway.admit(made) is None
            await gateway.gateway.handle(made, b"", line)

        gateway.call(run())
        (message,) = line.messages
        assert (message["status"], message["error"]["code"]) == (400, "websocket_connection_limit_reached")
        assert (line.closed, gateway.seconds) == (1001, 50.0)


def test_a_key_that_was_taken_away_is_refused_at_the_next_message() -> None:
    with stage() as gateway, stage(server={"require_key": True, "log": "off"}) as other:
        line = Line()

        def change() -> dict[str, Any]:
            gateway.gateway.adopt(other.settings)
            return create()

        good, refused = talk(gateway, line, create(), change)
        assert good[-1]["type"] == "response.completed"
        assert (refused[0]["status"], refused[0]["error"]["code"]) == (401, "invalid_api_key")
        assert refused[0]["headers"]["x-should-retry"] == "false"
        assert refused[0]["headers"].keys() == {"x-should-retry", "x-request-id"}


# The events of one answer.


class Socket:
    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.pressure: Any = None

    def send(self, message: str) -> None:
        self.sent.append(decode(message))

    def on_pressure(self, *hooks: Any) -> None:
        self.pressure = hooks


def replying() -> tuple[_EventReply, Socket]:
    socket: Any = Socket()
    asked = SocketRequest(body={}, lane="a", generates=True, previous="")
    return _EventReply(socket, SPOKEN, asked, 1 << 20), socket


def frame(**fields: Any) -> bytes:
    return b"data: " + encode(fields) + b"\n\n"


def test_events_pass_until_the_end_and_nothing_after_it() -> None:
    reply, socket = replying()
    reply.start(200, [])
    item = {"id": "i1", "type": "message"}
    reply.write(
        frame(type="response.created", response={"id": "r1"})
        + b": ping\n\n"
        + b"data: [DONE]\n\n"
        + frame(type="response.output_item.done", item=item)
        + frame(type="response.completed", response={"id": "r1", "store": True})
        + frame(type="response.created", response={"id": "r2"})
    )
    reply.end()
    assert reply.started
    assert [message["type"] for message in socket.sent] == [
        "response.created",
        "response.output_item.done",
        "response.completed",
    ]
    assert {message["stream_id"] for message in socket.sent} == {"a"}
    assert reply.items == [item]
    assert reply.finished == SocketEnd(id="r1", is_whole=True, is_stored=True, is_error=False)


def test_a_keep_alive_repeats_the_beginning() -> None:
    reply, socket = replying()
    reply.write(b": ping\n\n")
    assert socket.sent == []
    reply.write(frame(type="response.in_progress", response={"id": "r1"}))
    reply.write(b": ping\n\n")
    assert [message["type"] for message in socket.sent] == ["response.in_progress"] * 2
    reply.write(b"da")
    assert len(socket.sent) == 2


def test_an_error_event_becomes_an_error_message_at_the_end() -> None:
    reply, socket = replying()
    reply.write(frame(type="error", code="c", message="it broke", param=None))
    assert socket.sent == []
    reply.write(frame(type="response.created", response={"id": "r2"}))
    reply.end()
    message = socket.sent[-1]
    assert (message["type"], message["status"], message["stream_id"]) == ("error", 502, "a")
    assert (message["error"]["code"], message["error"]["message"]) == ("c", "it broke")
    assert [message["type"] for message in socket.sent] == ["response.created", "error"]


@rows(
    ("status", "body", "told", "message"),
    [
        (400, b'{"error": {"message": "bad"}}', 400, "bad"),
        (500, b"<html>\xff", 500, "<html>\ufffd"),
        (200, b"{}", 502, "expected a stream"),
        (399, b"{}", 502, "expected a stream"),
    ],
)
def test_an_answer_that_is_no_stream_is_an_error(status: int, body: bytes, told: int, message: str) -> None:
    reply, socket = replying()
    headers = [
        ("retry-after", "3"),
        ("x-should-retry", "false"),
        ("x-request-id", "req_1"),
        ("content-type", "x"),
    ]
    reply.send(status, headers, body)
    (sent,) = socket.sent
    assert (sent["status"], sent["error"]["message"], sent["stream_id"]) == (told, message, "a")
    assert sent["headers"] == dict(headers[:3])
    assert reply.started


def test_an_answer_that_is_cut_off_is_an_error() -> None:
    reply, socket = replying()
    reply.abort()
    (sent,) = socket.sent
    assert (sent["status"], sent["error"]["type"], sent["error"]["message"], sent["stream_id"]) == (
        502,
        "server_error",
        "the answer was cut off",
        "a",
    )


def test_pressure_of_the_client_reaches_the_provider() -> None:
    reply, socket = replying()
    hooks = (lambda: None, lambda: None)
    reply.on_pressure(*hooks)
    assert socket.pressure == (reply, *hooks)


def test_all_connections_keep_a_quarter_of_the_memory() -> None:
    with stage(limits={"buffered": 4 * 4000, "body": 100_000}) as gateway:
        line, ids = Line(), []

        def remember() -> dict[str, Any]:
            ids.append(ended(line.messages)["id"])
            return create("y" * 2500)

        *_, missing, there = talk(
            gateway,
            line,
            create("x" * 2500),
            remember,
            lambda: create(previous_response_id=ids[0], generate=False),
            lambda: create(generate=False),
        )
        assert missing[0]["error"]["code"] == "previous_response_not_found"
        assert there[-1]["type"] == "response.completed"
