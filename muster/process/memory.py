"""Keeps the unused memory of the C library small. glibc only; elsewhere nothing happens.

A list of 50,000 pods is in memory twice for a moment, as bytes and as objects; and by default each thread that ever
allocated something gets a pool of its own, which it never shrinks.
"""

import ctypes

_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Have all threads allocate from two pools; before there are any threads."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give free memory back to the kernel."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
