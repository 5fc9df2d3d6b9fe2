"""Hypothesis profiles: quick and the same each time by default, long and random with WIREGLOT_DEEP=1; what runs only
in `make full`; the garbage collector; signals; temporary folders in memory; authorities."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.tiers import MARKERS, WHOLE, left_out
from tests.workers import pytest_addoption as pytest_addoption
from tests.workers import pytest_collection_finish as collection_finished
from tests.workers import pytest_runtestloop as pytest_runtestloop
from tests.workers import pytest_sessionstart as pytest_sessionstart

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=60 if WHOLE else 10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("deep", settings.get_profile("ci"), derandomize=False, max_examples=2000)
if os.environ.get("WIREGLOT_PURE"):
    sys.modules["wireglot_core.wire._scan"] = None  # type: ignore[assignment]  # None makes its import fail

CORE_ALONE = bool(os.environ.get("WIREGLOT_CORE_ALONE"))
"""`make test-core`: the tests of the core have no gateway beside it."""
if CORE_ALONE:
    sys.modules["wireglot"] = None  # type: ignore[assignment]  # None makes its import fail

settings.load_profile("deep" if os.environ.get("WIREGLOT_DEEP") else "ci")

# A shell starts what runs in its background with interrupts ignored, and that is inherited: tests that
# interrupt a command of ours would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MEMORY = Path("/dev/shm")


def _temporary_folders_in_memory() -> None:
    """A gateway flushes its store to the disk twenty times from its start to its end, and there are thousands."""
    if (
        "TMPDIR" not in os.environ
        and sys.platform != "win32"
        and _MEMORY.is_dir()
        and os.access(_MEMORY, os.W_OK | os.X_OK)
    ):
        runs_programs = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        if runs_programs and shutil.disk_usage(_MEMORY).free > 4 << 30:
            os.environ["TMPDIR"] = str(_MEMORY)
            tempfile.tempdir = None
            if CORE_ALONE:
                return
            from wireglot.stores.journal import disk

            # Reserving there fills 64 MB with zeros for each gateway, which takes longer than its start.
            disk._fallocate = lambda fd, start, size: os.ftruncate(fd, start + size)


_temporary_folders_in_memory()

# Nothing here meets a server that a public authority vouches for; to load them all takes an SDK 30 ms for each client.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "fixtures/authority.pem")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    gc.disable()  # until all tests are collected: hardly anything of that goes


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not WHOLE and (without := left_out(items)):
        config.hook.pytest_deselected(items=[item for item in items if item in without])
        items[:] = [item for item in items if item not in without]


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.enable()
    collection_finished(session)


# Commands of ours that run in this process call it at their end, and each look after that would go through all.
gc.unfreeze = lambda: None


@pytest.fixture(autouse=True, scope="session")
def the_collector_spares_what_was_there_before() -> None:
    """Half a gigabyte of tests and SDKs: looking through it takes half a second."""
    gc.collect()
    gc.freeze()
