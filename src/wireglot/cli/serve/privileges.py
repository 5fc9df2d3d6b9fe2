"""What the gateway's process gives up before it listens: it holds the keys of others."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Final

DEBUGGABLE: Final = "WIREGLOT_DEBUGGABLE"
"""Set: debuggers and profilers of the same user may look into the process."""

# <linux/prctl.h>
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVS: Final = 38


def give_up(environ: Mapping[str, str] = os.environ) -> None:
    """Files for their owner alone, no programs with more rights than ours, no memory for others to read.

    Not a dump of its memory is written when it dies, and no process of the same user can attach to it. What
    the system does not know is left as it is: a unit or a container can do the same from outside.
    """
    os.umask(0o077)
    debuggable = bool(environ.get(DEBUGGABLE))
    if not debuggable:
        with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            prctl = ctypes.CDLL(None).prctl
            prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            if not debuggable:
                prctl(_SET_DUMPABLE, 0, 0, 0, 0)
