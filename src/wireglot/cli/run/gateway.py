"""Things that are started with a client and end with it, however that ends: its gateway, a folder of its
files.

The command becomes the client by exec, so that the terminal, signals and the exit status are the client's
alone. Work that must outlast it for a moment is done by a process without a terminal that no other process
waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot import __version__
from wireglot.cli.process_setup import give_large_blocks_back, give_up, raise_limit, run_loop
from wireglot.cli.terminal import Failed
from wireglot.cli.trust import ConfigFile
from wireglot.gateway import config
from wireglot.gateway.observe.running import RunningGateway, announced
from wireglot.gateway.run import Process
from wireglot.stores import StoreDown, StoreUnusable

try:
    import fcntl
except ImportError:  # Windows: no client is started there
    fcntl = None  # type: ignore[assignment]  # Windows has none

_NAME: Final = re.compile(r"wireglot-run-([0-9]{1,10})-.+")


class ClientFolder:
    """Locked as long as a process has `descriptor`: this one, and its forks."""

    def __init__(self) -> None:
        _remove_left_behind(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=f"wireglot-run-{os.getpid()}-"))
        self.descriptor = -1
        with contextlib.suppress(OSError):  # a file system without locks: the process id decides
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_left_behind(below: Path) -> None:
    with contextlib.suppress(OSError):
        for place in below.iterdir():
            named = _NAME.fullmatch(place.name)
            if named is not None and not _is_there(int(named[1])):
                with contextlib.suppress(OSError):
                    _remove_unless_held(place)


def _remove_unless_held(place: Path) -> None:
    """A process of another container is not visible here, but its lock is."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(descriptor)
        if about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) == 0o700:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(descriptor)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    return True


_LOOK_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 30.0
"""The time in which a gateway has ended after its client, even if its store does not answer or its start is
not finished."""


class DidNotStart(Failed):
    """The message is the reason."""


class Own(msgspec.Struct, frozen=True):
    """The gateway to start."""

    file: ConfigFile
    environ: Mapping[str, str]
    overrides: Mapping[str, Any]
    log: str | None = None
    client: str = ""
    """What `wireglot inspect` calls it."""
    operator_key: str = ""


class _Reported(msgspec.Struct):
    url: str = ""
    problem: str = ""


def start_gateway(own: Own, folder: ClientFolder | None) -> str:
    """Returns its URL. It ends with this process, or with the program that this process becomes."""
    client = _Client()
    kept = (client.descriptor, folder.descriptor if folder is not None else -1)
    reported = _in_background(lambda tell: _serve(own, client, folder, tell), kept)
    if not reported.url:
        raise DidNotStart(reported.problem or "its gateway stopped immediately")
    return reported.url


def remove_afterwards(folder: ClientFolder) -> None:
    """The folder is removed when this process ends, or the program that this process becomes."""
    client = _Client()

    def work(tell: Callable[[_Reported], None]) -> None:
        tell(_Reported())
        client.wait_for_end()
        folder.remove()

    _in_background(work, (client.descriptor, folder.descriptor))


def open_browser(link: str) -> None:
    """Without a child that the client would inherit, and without waiting for a browser that stays open."""

    def work(tell: Callable[[_Reported], None]) -> None:
        tell(_Reported())
        webbrowser.open(link)

    _in_background(work, ())


class _Client:
    """This process, and the program that it becomes, for others that wait for its end.

    Created before those others are: later its process id may belong to another process.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self.descriptor = -1
        with contextlib.suppress(AttributeError, OSError):  # another system, or an old one
            self.descriptor = os.pidfd_open(self._pid)  # which programs do not inherit

    def wait_for_end(self) -> None:
        """Works before its exit status has been collected: a descriptor of the process is ready then."""
        if self.descriptor >= 0:
            select.select([self.descriptor], [], [])
            return
        with contextlib.suppress(OSError):
            while True:
                os.kill(self._pid, 0)
                time.sleep(_LOOK_SECONDS)


def _serve(own: Own, client: _Client, folder: ClientFolder | None, tell: Callable[[_Reported], None]) -> None:
    log = -1
    ends = _Ends(client, folder)
    try:
        if own.log is not None:
            log = os.open(own.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        give_up(own.environ)
        give_large_blocks_back()
        raise_limit()
        settings = config.load(
            own.file.path,
            environ=own.environ,
            overrides=own.overrides,
            content=own.file.content,
            keys_needed=False,
        )

        async def work() -> None:
            process = Process(
                settings,
                path=own.file.path,
                environ=own.environ,
                overrides=own.overrides,
                log_fd=log if log >= 0 else 2,
                watches=False,  # the client writes in its project, which may contain the configuration
                operator_key=own.operator_key,
            )
            await process.start()
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, ended.set)
            ends.tell(loop, ended)
            running = RunningGateway(
                process.url, os.getpid(), __version__, key=own.operator_key,
                client=own.client, folder=_work_folder(), since=time.time(),
            )  # fmt: skip
            with announced(running, own.environ):
                tell(_Reported(process.url))
                await ended.wait()
            await process.close()

        run_loop(work())
    except (config.ConfigError, StoreUnusable, StoreDown) as problem:
        tell(_Reported(problem=str(problem)))
    except OSError as fault:
        tell(_Reported(problem=f"{own.log or 'its gateway'}: {fault.strerror or fault}"))
    finally:
        if folder is not None:
            folder.remove()


def _work_folder() -> str:
    with contextlib.suppress(OSError):  # already removed
        return os.getcwd()
    return ""


class _Ends:
    """Ends a gateway after its client, beginning before its start."""

    def __init__(self, client: _Client, folder: ClientFolder | None) -> None:
        self._client = client
        self._folder = folder
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._has_ended = False
        self._lock = threading.Lock()
        threading.Thread(target=self._wait, daemon=True).start()

    def tell(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
        """From now on it is told to end. Called in the loop."""
        with self._lock:
            self._loop, self._ended = loop, ended
            if self._has_ended:
                ended.set()

    def _wait(self) -> None:
        self._client.wait_for_end()
        with self._lock:
            self._has_ended = True
            if self._loop is not None and self._ended is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._ended.set)
        time.sleep(_CLOSE_SECONDS)  # it only lasts that long if something is stuck
        if self._folder is not None:
            self._folder.remove()
        os._exit(1)


def _in_background(work: Callable[[Callable[[_Reported], None]], None], kept: Collection[int]) -> _Reported:
    """Run it in a separate process, and wait for its first report. `kept`: descriptors for it."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.setsid()  # Ctrl-C is for the client
            if os.fork() == 0:  # the client has no child that it does not know of
                _let_go_of_descriptors({writing, *kept})
                work(_StartReport(writing))
            status = 0
        finally:
            os._exit(status)  # this process must not run the command's cleanup
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    return msgspec.json.decode(said, type=_Reported) if said else _Reported()


def _let_go_of_descriptors(kept: Collection[int]) -> None:
    """A reader of the client's output must not wait for this process, nor a waiter for one of its locks."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            if (number := int(name)) > 2 and number not in kept:
                with contextlib.suppress(OSError):  # the one used to read the list is closed already
                    os.close(number)


class _StartReport:
    """Reports once: afterwards the number of the descriptor may belong to another file."""

    def __init__(self, writing: int) -> None:
        self._writing = writing

    def __call__(self, reported: _Reported) -> None:
        writing, self._writing = self._writing, -1
        if writing < 0:
            return
        with contextlib.suppress(OSError):  # no reader
            os.write(writing, msgspec.json.encode(reported))
        os.close(writing)
