"""The folder with a client's files, which hold a key: for its owner alone, and gone with the client.

Whatever lives beside the client removes it. Where that was killed too, the next start does: it finds that
nobody holds the lock on the folder, and that the process which it was made for is not there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows: no client is started there
    fcntl = None  # type: ignore[assignment]

_NAME: Final = re.compile(r"wireglot-run-([0-9]{1,10})-.+")


class ClientFolder:
    """Locked for as long as a process has `descriptor`: this one, and those that it is forked into."""

    def __init__(self) -> None:
        _remove_left_behind(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=f"wireglot-run-{os.getpid()}-"))
        self.descriptor = -1
        with contextlib.suppress(OSError):  # a file system without locks: the process alone tells
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
    """A process of another container is not seen here, its lock is."""
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
