"""Every place where the program reaches around the event loop, put on the simulated machine.

Nothing in the program knows of it. A real thread or socket that is made all the same is an error.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from functools import partial
from typing import Any, Final

from proofs.simulation.disk import SimDisk, SimVfs
from proofs.simulation.fleet import FleetServer
from proofs.simulation.loop import OWNER
from proofs.simulation.network import Network, SimSocket
from proofs.simulation.threads import Threads
from wireglot.gateway import run
from wireglot.gateway.observe import log, observer
from wireglot.gateway.state import state
from wireglot.gateway.state.responses import orphans
from wireglot.gateway.trace import recording, shelf
from wireglot.http.client import dial
from wireglot.http.client.connection import ClientConnection
from wireglot.http.server.connection import ServerConnection
from wireglot.stores.deferred import DeferredEngine, DeferredShared
from wireglot.stores.journal import disk as journal_disk
from wireglot.stores.journal import files, sync
from wireglot.stores.sqlite import worker_threads
from wireglot_core.cache import caches

_VFS: list[SimVfs] = []
_SERVE: Final = {
    kind: kind.__dict__["_serve"] for kind in (worker_threads.WorkerThread, worker_threads.WriterThread)
}


def replace(thing: Any, **names: Any) -> None:
    """Other values for some names of a module or a class."""
    for name, value in names.items():
        setattr(thing, name, value)


class _Instead:
    """A module with some of its names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def install(network: Network, threads: Threads, disk: SimDisk, *, kernel_syncs: bool) -> None:
    """For one run. `kernel_syncs`: whether the kernel syncs the journal by itself."""
    for module in (log, recording, sync, files, journal_disk, worker_threads):
        replace(module, threading=threads)
    for module in (observer, caches, shelf):
        replace(module, Lock=threads.Lock, RLock=threads.RLock)
    replace(worker_threads, SimpleQueue=threads.SimpleQueue)
    replace(dial, socket=_Instead(socket, socket=SimSocket))
    _install_disk(disk, kernel_syncs)
    _install_process()
    for kind in (ServerConnection, ClientConnection):
        replace(kind, __hash__=_numbered)
    replace(threading.Thread, start=_real_thread)


def install_fleet(server: FleetServer) -> None:
    """The store and the counters are elsewhere, for everybody."""
    replace(
        state,
        open_engine=server.open_engine,
        open_counters=server.open_counters,
        DeferredEngine=partial(DeferredEngine, open=server.open_engine),
        DeferredShared=partial(DeferredShared, open=server.open_counters),
    )


def _install_disk(disk: SimDisk, kernel_syncs: bool) -> None:
    if not _VFS:
        _VFS.append(SimVfs())
    _VFS[0].disk = disk
    replace(
        journal_disk,
        _pwrite=disk.pwrite,
        _pread=disk.pread,
        _fdatasync=disk.fdatasync,
        _fallocate=disk.reserve,
    )
    kernel: Any = (lambda self: disk.kernel_sync()) if kernel_syncs else (lambda self: None)
    replace(journal_disk.LocalDisk, kernel_sync=kernel)

    def slowly(serve: Any) -> Any:
        def timed(self: Any, batch: Any) -> None:
            if disk.in_job:  # one of a batch, by itself
                serve(self, batch)
                return
            disk.begin_job()
            serve(self, batch)
            disk.end_job()

        return timed

    for kind, serve in _SERVE.items():
        replace(kind, _serve=slowly(serve))


def _install_process() -> None:
    def owner() -> Any:
        found = OWNER.get()
        assert found is not None, "nobody's code"
        return found

    def listen(number: int, handler: Any) -> None:
        owner().handlers[number] = handler

    def no_mask(*_: Any) -> None:
        """Masks are the supervisor's."""

    def deadline(seconds: float, **_: Any) -> None:
        owner().must_end(seconds)

    def kill(pid: int, number: int) -> None:
        if pid not in owner().living_pids():
            raise ProcessLookupError(3, "No such process")

    def opened(*args: Any) -> int:
        fd = os.open(*args)
        owner().descriptors.add(fd)
        return fd

    def closed(fd: int) -> None:
        owner().descriptors.discard(fd)
        os.close(fd)

    replace(files, os=_Instead(os, open=opened, close=closed))
    replace(run, signal=_Instead(signal, signal=listen, pthread_sigmask=no_mask))
    replace(run, faulthandler=_Instead(None, dump_traceback_later=deadline))
    replace(
        orphans,
        os=_Instead(os, getpid=lambda: owner().pid, kill=kill),
        pid_space=lambda: owner().boot,
        _living=_Living(),
    )
    replace(os, getpid=lambda: getattr(OWNER.get(), "pid", 1))
    replace(socket, gethostname=lambda: "sim")


class _Living:
    """Instances of the process that asks: here several processes share what is one module."""

    def __contains__(self, instance: object) -> bool:
        return instance in self._of_owner()

    def add(self, instance: str) -> None:
        self._of_owner().add(instance)

    def discard(self, instance: str) -> None:
        self._of_owner().discard(instance)

    def _of_owner(self) -> set[str]:
        owner: Any = OWNER.get()
        found: set[str] = owner.instances
        return found


_NUMBERS: dict[int, int] = {}
_HELD: list[object] = []


def _numbered(thing: object) -> int:
    """A hash that is the same in every run, unlike an address."""
    number = _NUMBERS.get(id(thing))
    if number is None:
        number = _NUMBERS[id(thing)] = len(_NUMBERS) + 1
        _HELD.append(thing)  # so that nothing else ever has its address
    return number


def _real_thread(thread: threading.Thread) -> None:
    raise AssertionError(f"a real thread was started: {thread.name}")
