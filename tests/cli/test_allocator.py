"""Memory of large bodies goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

MAPPED = """
import ctypes, sys
from wireglot.cli.process_setup import give_large_blocks_back

class Reported(ctypes.Structure):  # struct mallinfo2
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
    )]

reported = ctypes.CDLL(None).mallinfo2
reported.restype = Reported
if sys.argv[1] == "tuned":
    give_large_blocks_back()
del (large := [b"x" * 20_000_000])[:]  # one that was freed: others are put between small ones from then on
before = reported().hblks
kept = b"x" * 3_000_000
print(reported().hblks - before)
"""


def mapped(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", MAPPED, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="it is glibc that is configured",
)
def test_a_large_block_stands_by_itself_also_after_others_were_freed() -> None:
    assert mapped("as it is") == 0
    assert mapped("tuned") == 1


HOLES = """
import asyncio, ctypes, sys
from wireglot.cli.process_setup import holes_given_back

def held():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024

async def main():
    # Every second piece stays, so that no end of the heap is free.
    pieces = [b"x" * 100_000 for _ in range(1_000)]
    full = held()
    del pieces[::2]
    if sys.argv[1] == "given back":
        async with holes_given_back(0.01):
            for _ in range(1_000):
                if full - held() > 30:
                    break
                await asyncio.sleep(0.01)
    print(full - held())

asyncio.run(main())
"""


def freed(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", HOLES, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="it is glibc that is configured",
)
def test_pages_between_others_go_back_to_the_system() -> None:
    """Of 47 MiB that were freed between pieces that stay."""
    assert freed("kept") < 10
    assert freed("given back") > 30
