"""A load generator: a closed loop over keep-alive connections, on one thread and raw sockets.

    python -m proofs.bench.load URL -f BODY [-c connections] [-d seconds] [-w warm-up seconds] [-s]
                               [-H 'name: value'] [-p PID] [-m PID] [-v TEXT] [-r connections a second]

One JSON object on standard output, times in microseconds. `-p` is the server, whose processor time with its
descendants' is divided by what was finished in the measured span; `-m` the mock upstream; `-s`: it streams;
`-v`: wherever the text stands in the body, each request has a number of its own, as long as the text; `-r`:
the connections do not all begin at once.
"""

from __future__ import annotations

import argparse
import select
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec

from proofs.bench import processes
from proofs.bench.answers import MARK

_READ = 256 * 1024
_MARK_TAIL = 20


class Tally:
    """What was finished while it counted."""

    def __init__(self) -> None:
        self.counting = False
        self.done = self.errors = self.reconnects = 0
        self.error = ""
        self.latencies: list[int] = []
        self.first_events: list[int] = []
        self.delays: list[int] = []

    def fail(self, why: str) -> None:
        self.error = self.error or why
        self.errors += self.counting


class Client:
    """One connection, which asks again as soon as it is answered."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.writable = False
        self._tally = load.tally
        self._dial()

    def _dial(self) -> None:
        self.sock = socket.create_connection(self._load.address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._load.enter(self)
        self._parser = httptools.HttpResponseParser(self)
        self._ask()

    def _redial(self, why: str) -> None:
        if why:
            self._tally.fail(why)
        self._tally.reconnects += self._tally.counting
        self._load.leave(self)
        self.sock.close()
        self._dial()

    def _ask(self) -> None:
        self._tail = b""
        self._events = 0
        self._complete = False
        self._unsent = self._load.next_request()
        self._began = time.monotonic_ns()
        self.write()

    def write(self) -> None:
        """Send on. A request longer than the socket takes waits for it to be writable."""
        try:
            sent = self.sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as fault:
            return self._redial(str(fault))
        self._unsent = self._unsent[sent:]
        return self._load.watch(self, writable=bool(self._unsent))

    def read(self) -> None:
        try:
            data = self.sock.recv(_READ)
        except BlockingIOError:
            return None
        except OSError as fault:
            return self._redial(str(fault))
        self._now = time.monotonic_ns()
        if not data:
            return self._redial("connection closed")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as fault:
            return self._redial(f"answer: {fault}")
        return self._finish() if self._complete else None

    def on_body(self, data: bytes) -> None:
        if not self._load.stream:
            self._tail = self._tail or data[:200]
            return
        text = self._tail + data
        end = 0
        for mark in MARK.finditer(text):
            end = mark.end()
            self._hear(int(mark[1]))
        self._tail = text[max(end, len(text) - _MARK_TAIL) :]

    def _hear(self, sent: int) -> None:
        self._events += 1
        if self._tally.counting:
            self._tally.delays.append(self._now - sent)
            if self._events == 1:
                self._tally.first_events.append(self._now - self._began)

    def on_message_complete(self) -> None:
        self._complete = True
        # The parser knows this only now.
        self._kept = self._parser.should_keep_alive()

    def _finish(self) -> None:
        status = self._parser.get_status_code()
        if status != 200 or (self._load.stream and not self._events):
            self._tally.fail(f"status {status}: {self._tail[:150].decode(errors='replace')}")
        elif self._tally.counting:
            self._tally.done += 1
            self._tally.latencies.append(self._now - self._began)
        if self._kept:
            self._ask()
        else:
            self._redial("")


class Load:
    def __init__(
        self, address: tuple[str, int], request: bytes, *, stream: bool, varied: bytes = b"", rate: float = 0
    ) -> None:
        """`rate`: connections that begin in a second; 0: all at once."""
        self.address = address
        self._request = request
        self._varied = varied
        self._asked = time.monotonic_ns() % 10 ** len(varied)  # not where the last run began
        self.stream = stream
        self._interval = 1 / rate if rate else 0.0
        self.tally = Tally()
        self._poll = select.epoll()
        self._clients: dict[int, Client] = {}

    def next_request(self) -> bytes:
        if not self._varied:
            return self._request
        self._asked = (self._asked + 1) % 10 ** len(self._varied)
        return self._request.replace(self._varied, b"%0*d" % (len(self._varied), self._asked))

    def enter(self, client: Client) -> None:
        self._clients[client.sock.fileno()] = client
        self._poll.register(client.sock.fileno(), select.EPOLLIN)
        client.writable = False

    def leave(self, client: Client) -> None:
        self._poll.unregister(client.sock.fileno())
        del self._clients[client.sock.fileno()]

    def watch(self, client: Client, *, writable: bool) -> None:
        if writable != client.writable:
            client.writable = writable
            self._poll.modify(client.sock.fileno(), select.EPOLLIN | (select.EPOLLOUT if writable else 0))

    def run(self, connections: int, seconds: float) -> float:
        """Open what is missing of the connections, drive all of them, and tell how long it took."""
        began = due = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            while len(self._clients) < connections and due <= now:
                Client(self)
                due += self._interval
            patience = min(0.1, began + seconds - now)
            if len(self._clients) < connections:
                patience = min(patience, max(0.0, due - now))
            for fd, event in self._poll.poll(patience):
                client = self._clients[fd]
                if event & select.EPOLLOUT:
                    client.write()
                if event & ~select.EPOLLOUT:
                    client.read()
        return time.monotonic() - began


def measure(
    load: Load, connections: int, seconds: float, warm: float, server: int, mock: int
) -> dict[str, Any]:
    load.run(connections, warm)
    load.tally.counting = True
    meter, mock_before, own_before = processes.Meter(server), _one(mock), time.process_time()
    span = load.run(connections, seconds)
    spent, mock_spent = meter.spent() if server else 0.0, _one(mock) - mock_before
    own = time.process_time() - own_before
    tally = load.tally
    tally.counting = False
    done, events = max(tally.done, 1), max(len(tally.delays), 1)
    rss, pss = processes.memory(processes.family(server) if server else [])
    figures = {
        "rps": tally.done / span,
        "ok": tally.done,
        "err": tally.errors,
        "error": tally.error,
        "reconnects": tally.reconnects,
        "p50": _percentile(tally.latencies, 0.5),
        "p99": _percentile(tally.latencies, 0.99),
        "cpu_s": spent,
        "cpu_us_req": spent * 1e6 / done,
        "cpu_cores": spent / span,
        "mock_us_req": mock_spent * 1e6 / done,
        "load_us_req": own * 1e6 / done,
        "rss_mb": rss,
        "pss_mb": pss,
    }
    if load.stream:
        figures |= {
            "events": len(tally.delays),
            "events_s": len(tally.delays) / span,
            "cpu_us_ev": spent * 1e6 / events,
            "ttfe_p50": _percentile(tally.first_events, 0.5),
            "ttfe_p99": _percentile(tally.first_events, 0.99),
            "delay_p50": _percentile(tally.delays, 0.5),
            "delay_p99": _percentile(tally.delays, 0.99),
            "delay_max": _percentile(tally.delays, 1.0),
        }
    return figures


def _one(pid: int) -> float:
    return (processes.cpu_seconds(pid) or 0.0) if pid else 0.0


def _percentile(nanoseconds: list[int], part: float) -> float:
    if not nanoseconds:
        return -1.0
    ordered = sorted(nanoseconds)
    return ordered[round(part * (len(ordered) - 1))] / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Drive one URL and measure it.")
    parser.add_argument("url")
    parser.add_argument("-f", dest="body", type=Path, required=True)
    parser.add_argument("-c", dest="connections", type=int, default=1)
    parser.add_argument("-d", dest="seconds", type=float, default=3.0)
    parser.add_argument("-w", dest="warm", type=float, default=1.0)
    parser.add_argument("-s", dest="stream", action="store_true")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-p", dest="server", type=int, default=0)
    parser.add_argument("-m", dest="mock", type=int, default=0)
    parser.add_argument("-v", dest="varied", default="")
    parser.add_argument("-r", dest="rate", type=float, default=0.0)
    arguments = parser.parse_args()
    url = urlsplit(arguments.url)
    body = arguments.body.read_bytes()
    path = url.path + (f"?{url.query}" if url.query else "")
    lines = [f"POST {path} HTTP/1.1", f"host: {url.netloc}", "content-type: application/json", "accept: */*"]
    lines += [*arguments.headers, f"content-length: {len(body)}", "", ""]
    request = "\r\n".join(lines).encode() + body
    load = Load(
        (url.hostname or "", url.port or 80),
        request,
        stream=arguments.stream,
        varied=arguments.varied.encode(),
        rate=arguments.rate,
    )
    figures = measure(
        load, arguments.connections, arguments.seconds, arguments.warm, arguments.server, arguments.mock
    )
    print(msgspec.json.encode(figures).decode())


if __name__ == "__main__":
    main()
