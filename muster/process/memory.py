"""Limits on the C library's unused memory (glibc only), and on the length of garbage collections.

During decoding, a list of 50,000 pods is in memory twice: as bytes and as objects. By default, each thread that
allocates memory gets its own pool, which never shrinks.
"""

import ctypes
import gc

_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Make all threads allocate memory from two shared pools. Call the function before any threads exist."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return the process's unused memory to the kernel."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def freeze() -> int:
    """Exclude all existing objects from later garbage collections, which stop every thread; return their number.

    Call the function once the caches are filled. A full garbage collection takes 0.16 s with 20,000 cached pods, and
    0.06 s with only the imported modules.
    """
    gc.collect()
    gc.freeze()
    give_back()
    return gc.get_freeze_count()
