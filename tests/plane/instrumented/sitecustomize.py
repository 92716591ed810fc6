"""Measure the CPU time of every turn of a process's event loops; Python imports this before the process's own code.

A turn is one callback, from which the loop cannot go on to another. Its CPU time, not its wall time: beside a planner
that computes, and on a machine with other work, a callback waits for the interpreter and for a core, too. uvloop has no
place to measure at, so the loops are asyncio's own here. The loop of probes and /metrics, which is another one, is left
out, and so is the start of a process, which ends with a collection of all garbage. Each process writes what it found
to a file of its own in the folder MUSTER_TURNS, once a second, see `loop_turns`.
"""

import asyncio
import bisect
import gc
import json
import os
import threading
import time
from pathlib import Path

import uvloop

FOLDER = Path(os.environ["MUSTER_TURNS"])
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100)
LONGEST = 20
"""Turns that are named."""
WRITE_NS = 1_000_000_000
START_S = 10.0
OTHER_LOOPS = {"status"}
"""By the names of their threads."""

_counts = [0] * (len(BOUNDS_MS) + 1)
_longest: list[tuple[float, str]] = []
_written_ns = 0
_lock = threading.Lock()
_collecting = threading.local()
_run = asyncio.Handle._run
_START_S = time.monotonic()


def _measured(handle: asyncio.Handle) -> object:
    if threading.current_thread().name in OTHER_LOOPS or time.monotonic() - _START_S < START_S:
        return _run(handle)
    callback = handle._callback
    name = _name(callback)
    _collecting.ms = 0.0
    start_ns = time.thread_time_ns()
    result = _run(handle)
    took_ms = (time.thread_time_ns() - start_ns) / 1e6
    with _lock:
        _counts[bisect.bisect_left(BOUNDS_MS, took_ms)] += 1
        if took_ms > BOUNDS_MS[0] and (len(_longest) < LONGEST or took_ms > _longest[-1][0]):
            _longest.append((took_ms, _told(name, callback)))
            _longest.sort(reverse=True)
            del _longest[LONGEST:]
        _write()
    return result


def _told(name: str, callback: object) -> str:
    collected = f", {_collecting.ms:.1f} ms of it garbage collection" if _collecting.ms else ""
    return f"{name} → {_name(callback)}, after {time.monotonic() - _START_S:.0f} s{collected}"


def _collected(phase: str, _: dict[str, int]) -> None:
    now_ms = time.thread_time_ns() / 1e6
    if phase == "start":
        _collecting.since_ms = now_ms
    else:
        _collecting.ms = getattr(_collecting, "ms", 0.0) + now_ms - _collecting.since_ms


def _name(callback: object) -> str:
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return f"{threading.current_thread().name}: {getattr(callback, '__qualname__', callback)}"
    lines, coroutine = [], task.get_coro()
    while frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None):
        lines.append(f"{coroutine.__qualname__}:{frame.f_lineno}")
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return f"{threading.current_thread().name}: {task.get_name()} {' '.join(lines[-2:]) or 'end'}"


def _write() -> None:
    global _written_ns  # noqa: PLW0603 - one process, one file
    now_ns = time.monotonic_ns()
    if now_ns - _written_ns > WRITE_NS:
        _written_ns = now_ns
        told = {"command": Path("/proc/self/cmdline").read_text(encoding="utf-8").split("\0"), "counts": _counts}
        partial = FOLDER / f"{os.getpid()}.partial"
        partial.write_text(json.dumps({**told, "longest": _longest}), encoding="utf-8")
        partial.replace(FOLDER / f"{os.getpid()}.json")


gc.callbacks.append(_collected)
asyncio.Handle._run = _measured
uvloop.new_event_loop = asyncio.new_event_loop
