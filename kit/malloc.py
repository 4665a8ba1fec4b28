"""glibc's malloc, bounded in what it keeps of freed memory (docs/adr/0087)."""

import ctypes

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of mallopt(3)
ARENAS = 2
MMAP_FROM_BYTES = 131_072


def bound_malloc() -> None:
    """Give all threads two arenas, and what is large a mapping of its own, which its end gives back to the system.

    Call it before threads start. It does nothing where the C library has no `mallopt`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
        mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES)
