"""The running process: one gateway in one event loop, its signals, reloads and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from wireglot import __version__
from wireglot.gateway.composition import compose
from wireglot.gateway.config import ConfigError, Watcher
from wireglot.gateway.config.edit import ConfigSource, later_file
from wireglot.gateway.config.problems import NotApproved
from wireglot.gateway.config.watch import SETTLE_SECONDS, HandedDown, check_reload
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.running import Announcement, RunningGateway, announced
from wireglot.gateway.observe.workers import Siblings
from wireglot.gateway.request.problems import note_bug
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.state import State
from wireglot.gateway.state.tasks import Pace, stop
from wireglot.gateway.watchdog import Pulses, Watchdog
from wireglot.http.client.client import HttpTransport
from wireglot.http.server.server import HttpServer
from wireglot.http.transport import Transport
from wireglot.stores import described
from wireglot.stores.open import sqlite_path

_LAST_WORDS = 2.0
"""Seconds that answers still being written to the store may take."""
_FOUND_SECONDS = 2.0
CLOSE_SECONDS = 20.0
"""Seconds for everything to close after the requests have ended: more than the sum of the limits of all
parts."""
GRACE_SECONDS = 5.0
"""Seconds for the rest of the process to end after that."""


class Transports(dict[str, Transport]):
    """Transports by URL scheme. The demo model is loaded with its first request."""

    def __missing__(self, scheme: str) -> Transport:
        if scheme != "demo":
            raise KeyError(scheme)
        from wireglot.demo.service import DemoTransport

        return self.setdefault(scheme, DemoTransport())


class WorkerPlace(msgspec.Struct, frozen=True):
    """A worker's place among its siblings. `directory` is where they find each other."""

    index: int = 0
    directory: str = ""
    lifeline: int = -1
    """A descriptor that ends with the process that started the worker."""
    again: bool = False
    """It replaces a worker that died, perhaps long after the configuration that it is given was read."""
    handed_down: HandedDown | None = None
    """The settings that its siblings have loaded since."""
    pulses: Pulses | None = None
    """Where it shows its supervisor that it responds."""

    def inherited(self) -> Settings | None:
        return self.handed_down.read() if self.again and self.handed_down is not None else None


class Process:
    """A gateway that listens. `address` is known once `start` has returned."""

    def __init__(
        self,
        settings: Settings,
        *,
        path: Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] = os.environ,
        place: WorkerPlace | None = None,
        log_fd: int = 2,
        pace: Pace | None = None,
        settle: float = SETTLE_SECONDS,
        watches: bool = True,
        why_not: Callable[[bytes], str] | None = None,
        approve: Callable[[Path, bytes], None] | None = None,
        record_until: float = 0.0,
        operator_key: str = "",
        guarded: bool = False,
    ) -> None:
        """`settle`: seconds without a change before a configuration is loaded after a signal. `watches`:
        whether it reloads its files when they change. `why_not`: the reason why new content of the
        configuration must not be loaded, or ""; `approve` allows that content. `record_until`: the time (unix
        seconds) until which all bodies are recorded. `operator_key`: for commands of the user who runs it;
        the same for all workers. `guarded`: whether the process is ended if its event loop stops
        responding."""
        self._path = path
        self._overrides = overrides
        self._environ = environ
        self._place = place
        self._log_fd = log_fd
        self._pace = pace
        self._settle = settle
        self._watches = watches
        self._why_not = why_not
        self._approve = approve
        self._record_until = record_until
        self._operator_key = operator_key
        self._guarded = guarded
        self._settings = (place is not None and place.inherited()) or settings
        self._stopping = asyncio.Event()
        self._drains: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._signals = 0
        self._closing = False
        self._orphaned = False
        self._say_again: Announcement | None = None
        """Publishes the gateway's details for other commands."""
        self.address = ("", 0)

    async def start(self) -> None:
        settings = self._settings
        self.observer = Observer(settings, fd=self._log_fd)
        if settings.server.telemetry:
            from wireglot.gateway.observe.telemetry import (
                opentelemetry,  # an extra, loaded only if it is needed
            )

            self.observer.attach(opentelemetry(self.observer.metrics.models, self.observer.note))
        self.state = await State.open(settings, self.observer, self._pace)
        self._http = HttpTransport(settings.limits)
        self.state.keys.operator_key = self._operator_key
        self.gateway = compose(
            settings,
            Transports(http=self._http, https=self._http),
            self.observer,
            self.state,
            self._source(),
        )
        await self.state.start(self.gateway.health)
        self.gateway.sign_ins.begin(settings)
        self.server = HttpServer(
            self.gateway,
            settings.limits,
            self.gateway.account,
            lambda code, message: self.observer.note("warn", "refused", code=code, detail=message),
        )
        self._publish()
        if self._place is not None:
            self.gateway.siblings = Siblings(
                self._place.directory, self._place.index, self.observer.metrics.render
            )
            await self.gateway.siblings.start()
        place = self._place or WorkerPlace()
        await self.gateway.traces.start(place.directory, place.index, self._record_until)
        server = settings.server
        self.address = await self.server.listen(server.host, server.port, reuse_port=self._place is not None)
        self._watcher = Watcher(
            self._path,
            self._changed,
            self._refused,
            environ=self._environ,
            overrides=self._overrides,
            settle=self._settle,
            why_not=self._why_not,
            later=later_file(self._environ),
        )
        if self._watches:
            self._tasks.append(asyncio.create_task(self._watcher.run()))

    def _source(self) -> ConfigSource:
        return ConfigSource(
            self._path,
            self._environ,
            self._overrides or {},
            "" if self._watches else "this gateway belongs to one client, and reads its files once",
            why_not=self._why_not,
            approve=self._approve,
            reload=self.reload,
            bound=lambda: self.server.bound,
        )

    async def serve(self) -> None:
        """Start, serve until asked to stop, and shut down in order."""
        await self.start()
        if self._place is not None and self._place.again:
            self.reload()
        loop = asyncio.get_running_loop()
        if loop.get_exception_handler() is None:
            loop.set_exception_handler(self._unexpected)
        terminate = self._listen_to_signals(loop)
        if self._place is not None and self._place.lifeline >= 0:
            loop.add_reader(self._place.lifeline, self._left_alone)
        with self._watched(terminate):
            with self._found_by_others() as self._say_again:
                # Printed last: the reader may send a signal at once.
                if self._is_first:
                    self._announce()
                if self._guarded:
                    self._tasks.append(asyncio.create_task(self._stay_found()))
                await self._stopping.wait()
            for drain in self._drains:  # a second signal changes them meanwhile
                await drain
            ignore_reloads()
            _exit_after(0.0, self._log_fd)
            await self.close()

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that belongs to no request."""
        problem = context.get("exception")
        if isinstance(problem, Exception):
            note_bug(problem, "", self.observer.note)
        loop.default_exception_handler(context)

    @contextlib.contextmanager
    def _watched(self, terminate: Callable[[], None]) -> Iterator[None]:
        if not self._guarded:
            yield
            return
        place = self._place or WorkerPlace()
        watchdog = Watchdog(
            lambda: self.gateway.settings.limits.hang,
            self._log_fd,
            terminate,
            pulses=place.pulses,
            index=place.index,
        )
        watchdog.start()
        try:
            yield
        finally:
            watchdog.stop()

    def _listen_to_signals(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Returns the handler of SIGTERM."""

        def end(*_: object) -> None:
            self._signals += 1
            limits = self.gateway.settings.limits
            if self._signals <= 2 and not self._closing:  # others would only extend the deadline
                _exit_after(limits.drain_again + (limits.drain if self._signals == 1 else 0.0), self._log_fd)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the process is about to end
                loop.call_soon_threadsafe(self.stop)

        def reload(*_: object) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.reload)

        # Not `add_signal_handler`: a second signal must be handled while something blocks the loop, and a
        # closing loop would restore the default of SIGHUP, which kills the process. A worker leaves SIGINT to
        # its supervisor.
        interrupt = signal.SIGINT if self._place is None else signal.SIGTERM
        for name in (signal.SIGTERM, interrupt, getattr(signal, "SIGBREAK", signal.SIGTERM)):
            signal.signal(name, end)
        if hasattr(signal, "SIGHUP"):  # Windows has none
            signal.signal(signal.SIGHUP, reload)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        return end

    def reload(self) -> None:
        """Read the configuration again now."""
        self._watcher.now()

    def stop(self) -> None:
        """The first call lets requests finish. The second one cancels them, reports that to their clients and
        ends."""
        if self._closing:
            return  # all have ended
        guard = self.gateway.settings.limits
        again = self.gateway.draining
        self.gateway.draining = True
        seconds = guard.drain_again if again else guard.drain
        self.observer.note(
            "info",
            "draining",
            seconds=seconds,
            requests=self.server.requests,
            detail=f"requests may finish within {seconds:g} s"
            + ("" if again else f"; interrupted again: within {guard.drain_again:g} s"),
        )
        self._drains.append(asyncio.create_task(self.server.drain(seconds)))
        self._drains.append(asyncio.create_task(self.state.drain(seconds)))
        self._stopping.set()

    def _left_alone(self) -> None:
        """Stop when the parent process is gone: nothing would stop or replace this worker, and the next
        gateway needs its port."""
        assert self._place is not None
        asyncio.get_running_loop().remove_reader(self._place.lifeline)
        self.observer.note("warn", "orphaned", detail="the supervisor process has exited")
        self._orphaned = True
        if not self.gateway.draining:
            self.stop()

    async def close(self) -> None:
        """Close within a bounded time: a part that hangs must not keep the process, its store and its locks
        alive."""
        self._closing = True
        closing = asyncio.create_task(self._close())
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if closing.done():
            closing.result()
            self.observer.note("info", "stopped")
        else:
            self.observer.note("error", "not closed", detail=f"still closing after {CLOSE_SECONDS:g} s")
        self.observer.close()

    async def _close(self) -> None:
        await stop(*self._tasks)
        if not self.gateway.draining:
            self.gateway.draining = True
            await self.server.drain(0)
        await self.state.drain(0)  # before the connections to providers close
        if self.gateway.siblings is not None:
            await self.gateway.siblings.close()
        await self.gateway.traces.close()  # which has a socket in that directory, too
        if self._orphaned and self._place is not None:
            with contextlib.suppress(OSError):  # only the last of the orphaned workers finds it empty
                os.rmdir(self._place.directory)
        await self.gateway.web.close()
        await self._http.close()
        await self.gateway.relay.delivery.drain(_LAST_WORDS)
        await self.state.close()

    def _changed(self, settings: Settings) -> None:
        """Apply new settings. Raises ConfigError where they would allow access that is denied now."""
        check_reload(self.gateway.settings, settings, self.server.bound)
        server = self.gateway.settings.server
        if (settings.server.host, settings.server.port) != (server.host, server.port):
            self.observer.note("warn", "reload", detail="server.host and server.port need a restart")
        # The secret that seals reasoning state must not change under running conversations.
        kept = msgspec.structs.replace(
            settings.server,
            host=server.host,
            port=server.port,
            secret=server.secret,
            old_secrets=server.old_secrets,
        )
        store = self.gateway.settings.store
        if (settings.store.url, settings.store.shared) != (store.url, store.shared):
            self.observer.note("warn", "reload", detail="store.url and store.shared need a restart")
        stays = msgspec.structs.replace(
            settings.store, url=store.url, shared=store.shared, folder=store.folder, journal=store.journal
        )
        adopted = msgspec.structs.replace(settings, server=kept, store=stays)
        if self._place is not None and self._place.handed_down is not None:
            self._place.handed_down.write(adopted)
        self.gateway.adopt(adopted)
        self.server.adopt(adopted.limits)
        self._http.adopt(adopted.limits)
        self.gateway.sign_ins.begin(adopted)
        self.gateway.config_refused = False
        if self._path is None and self._say_again is not None:
            self._say_again(self._about())
        self.observer.note("info", "reloaded", providers=list(settings.providers))

    def _refused(self, error: ConfigError) -> None:
        self.gateway.config_refused = True
        self.observer.metrics.reload_failures.add()
        if isinstance(error, NotApproved):
            if self._is_first:  # every worker watches the same file
                self.observer.note("warn", "reload refused", path=error.source, detail=error.reason)
            return
        for problem in error.problems:
            self.observer.note(
                "error", "reload refused", path=problem.path, expected=problem.expected, found=problem.found
            )

    @property
    def _is_first(self) -> bool:
        """Whether this worker reports on behalf of all workers."""
        return self._place is None or self._place.index == 0

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _found_by_others(
        self,
    ) -> contextlib.AbstractContextManager[Announcement | None]:
        """Publish the gateway so that other commands of this user can find it, unless it is about to end."""
        return announced(self._about(), self._environ) if self._is_first else contextlib.nullcontext()

    async def _stay_found(self) -> None:
        """If the data folder is removed, other commands must still ask this gateway: a store that they would
        create would contradict it."""
        while True:
            await asyncio.sleep(_FOUND_SECONDS)
            if self._say_again is not None and self._say_again.is_lost:
                self.observer.note("error", "data folder", detail="it was removed while in use: restart")
                self._say_again(self._about())

    def _about(self) -> RunningGateway:
        path = self._watcher.path  # also of a file that was loaded later
        return RunningGateway(
            self.url,
            os.getpid(),
            __version__,
            config=str(path.absolute()) if path is not None else "",
            store=described(self.gateway.settings.store.url.value),
            key=self._operator_key,
        )

    def _announce(self) -> None:
        settings = self.gateway.settings
        self.observer.note(
            "info",
            "listening",
            url=self.url,
            version=__version__,
            providers=list(settings.providers),
            config=settings.source or "none",
            keys=len(settings.keys),
            asks_for_keys=self.gateway.asks_for_keys,
        )
        for reported in self._how_to_begin():
            self.observer.note("info", "note", text=reported)
        for note in settings.notes:
            self.observer.note("info", "note", text=note)
        if folder := writable_by_others(settings):
            self.observer.note(
                "warn",
                "data folder",
                path=str(folder),
                detail=f"other users can replace files in it: chmod go-w {folder}",
            )

    def _how_to_begin(self) -> Iterator[str]:
        """Hints for the user who started it: what to do next."""
        yield f"point your client at {self.url}: `wireglot run CLIENT` does, see docs/clients.md"
        if self.gateway.settings.server.inspector != "off":
            yield f"see the traffic at {self.url}/inspector"
        if recorded := self.gateway.traces.policy.announcement():
            yield recorded
        if self.gateway.asks_for_keys:
            yield "every request needs a client key: make one with `wireglot keys create NAME`"
        else:
            yield "no client key required: any local process can use this gateway"

    def _publish(self) -> None:
        read = self.observer.metrics.read
        read("connections", "Open connections of clients.", lambda: {(): self.server.connections})
        read("tasks", "asyncio tasks of the process.", lambda: {(): len(asyncio.all_tasks())})
        read(
            "requests_waiting",
            "Requests that wait in the queue, for a provider's concurrency limit, or for a connection.",
            lambda: {(): self.gateway.waiting},
        )
        read(
            "permits",
            "Concurrency permits held by requests: of the process, of their key, at a provider.",
            lambda: {(): self.gateway.permits},
        )
        read(
            "buffered_bytes",
            "Bytes of memory used for bodies, translations and answers.",
            lambda: {(): self.server.buffered},
        )
        read(
            "remembered_bytes",
            "Bytes of cached tools and turns; freed before requests are rejected.",
            lambda: {(): self.gateway.account.remembered},
        )
        read(
            "buffered_waiting",
            "Answers that wait for memory; their providers are not read meanwhile.",
            lambda: {(): self.gateway.account.waiting},
        )
        read(
            "buffered_shed_total",
            "Requests rejected because the memory limit was reached.",
            lambda: {(): self.gateway.account.shed},
            (),
            "counter",
        )
        read(
            "http_refused_total",
            "Requests and connections rejected before the dialect was known: bad HTTP, too many, too slow.",
            lambda: {(code,): count for code, count in self.server.refused.items()},
            ("code",),
            "counter",
        )
        read(
            "upstream_connections",
            "Connections to providers.",
            lambda: {
                ("open",): self._http.open_connections,
                ("idle",): self._http.idle_connections,
            },
            ("state",),
        )
        read(
            "config_refused",
            "1 while the current configuration file is invalid and the previous configuration is used.",
            lambda: {(): int(self.gateway.config_refused)},
        )
        started = time.time()
        read("start_time_seconds", "When the process started.", lambda: {(): started})


def writable_by_others(settings: Settings) -> Path | None:
    """The folder of the store, if other users of the machine can replace its files."""
    scheme, _, rest = settings.store.url.value.partition(":")
    if os.name != "posix" or scheme != "sqlite":
        return None
    folder = Path(sqlite_path(rest)).absolute().parent
    try:
        mode = folder.stat().st_mode
    except OSError:
        return None
    return folder if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX else None


def ignore_reloads() -> None:
    """For a process that is about to end: Python removes the handlers that were set from Python before that,
    but not SIG_IGN."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _exit_after(drain_seconds: float, log_fd: int) -> None:
    """End the process if it has not ended by then, and log where it hangs. A thread that does not need
    Python's lock does it, so no Python code can block it."""
    faulthandler.dump_traceback_later(drain_seconds + CLOSE_SECONDS + GRACE_SECONDS, file=log_fd, exit=True)
