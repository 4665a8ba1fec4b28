"""The number of arenas that glibc has for threads once `bound_malloc` was called."""

import platform
import subprocess
import sys

import pytest

from kit.malloc import ARENAS
from lab import ROOT

COUNT = """
import ctypes, sys, threading
from kit.malloc import bound_malloc

if sys.argv[1:]:
    bound_malloc()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)

def hold():
    together.wait(10)
    libc.malloc(1000)
    together.wait(10)

threads = [threading.Thread(target=hold) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


def count_arenas(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.count("<heap ")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
def test_all_threads_share_two_arenas() -> None:
    assert count_arenas() > ARENAS
    assert count_arenas("bounded") <= ARENAS
