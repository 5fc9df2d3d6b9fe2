"""A Python that lacks what Python on Windows lacks, and then a command of ours in it.

    python like_windows.py COMMAND ...

Modules that are Unix's cannot be imported, names that are Unix's are gone, and loops take no signal handlers. What
Windows does otherwise (open files that cannot be removed, its own sockets) is not shown by this.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import socket
import sys
import sysconfig
import types
from typing import Any, NoReturn

ABSENT = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "uvloop")
LOADED_BEFORE = (
    "argparse", "concurrent.futures.process", "ctypes", "email.message", "http.client", "multiprocessing.connection", "pathlib",
    "platform", "selectors", "shutil", "ssl", "subprocess", "tempfile", "threading", "urllib.request", "uuid",
)  # fmt: skip
"""The standard library chooses by the platform while it is loaded: it stays that of this system."""
OF_UNIX = {
    os: "chown fchown fork forkpty geteuid getegid getgid getuid getgroups getloadavg killpg memfd_create mkfifo "
    "pread pwrite posix_fallocate posix_fadvise fdatasync register_at_fork sched_getaffinity setsid statvfs sysconf "
    "uname wait3 wait4 O_CLOEXEC O_DIRECTORY O_NOFOLLOW",
    signal: "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGCONT SIGUSR1 SIGUSR2 pthread_kill "
    "pthread_sigmask setitimer sigwait SIG_BLOCK SIG_UNBLOCK SIG_SETMASK",
    socket: "SO_REUSEPORT",  # AF_UNIX stays: the loop makes its own pair of sockets with it
    asyncio: "open_unix_connection start_unix_server",
}


ONLY_THERE = ("pywintypes", "win32api", "win32con", "win32job")
"""Packages that others need and install on Windows alone (mcp)."""


def become_like_windows() -> None:
    for name in ONLY_THERE:
        sys.modules[name] = types.ModuleType(name)
    for name in LOADED_BEFORE:
        importlib.import_module(name)
    for name in ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]  # None makes its import fail
    for module, names in OF_UNIX.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    sysconfig.get_config_vars()  # made once, and otherwise on Windows
    if sys.version_info >= (3, 13):
        os.process_cpu_count = os.cpu_count  # what `os` makes of it where nothing can be bound to a processor
    vars(shutil)["_winapi"] = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda *_: True)
    locks = types.ModuleType("msvcrt")
    vars(locks).update(LK_LOCK=1, LK_NBLCK=2, locking=lambda *_: None)
    sys.modules["msvcrt"] = locks
    sys.platform = "win32"

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError

    for name in ("add_signal_handler", "remove_signal_handler"):
        setattr(asyncio.SelectorEventLoop, name, refuse)


if __name__ == "__main__":
    become_like_windows()
    from wireglot.cli import main

    sys.exit(main(sys.argv[1:]))
