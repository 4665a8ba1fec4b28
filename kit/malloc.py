"""Settings of glibc's malloc that bound how much freed memory a process keeps (docs/reference/memory.md)."""

import ctypes

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of mallopt(3)
ARENAS = 2
MMAP_FROM_BYTES = 131_072


def bound_malloc() -> None:
    """Limit malloc to two arenas, and put large blocks into mappings of their own, which are returned to the
    system when freed.

    Call it before threads start. The function does nothing where the C library has no `mallopt`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
        mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES)
