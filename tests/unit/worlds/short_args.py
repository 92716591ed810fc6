"""Objects with 200 KB of short arguments, as anybody may create, and the memory that a cache keeps of them."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from muster.kube.codec import ListPage
from muster.kube.reflector import Reflector

JSON = dict[str, Any]
COUNT = 4
_ARGS = [f"{number:x}" for number in range(0x100, 0x1000)] * 10
TEMPLATE: JSON = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "args": _ARGS, "resources": {"requests": {"cpu": "1"}}}]},
}


def metadata(number: int, **more: Any) -> JSON:
    """The metadata of one of several."""
    return {"name": f"j{number}", "namespace": "ns", "uid": f"u{number}", "resourceVersion": "1", **more}


def fill(reflector: Reflector[Any], make: Callable[[int], JSON]) -> int:
    """Show the cache some of them, as a list does; return their size in JSON."""
    size = 0
    for number in range(COUNT):
        body = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [make(number)]})
        size += len(body)
        for _ in reflector.mirror.put_all(ListPage.read(reflector._resource, body), set()):
            pass
    assert len(reflector.store) == COUNT
    return size


class Grown:
    """The memory that was allocated and is still in use."""

    size_bytes = 0


@contextmanager
def growth() -> Iterator[Grown]:
    """Count what is left of all that is allocated meanwhile."""
    grown = Grown()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield grown
        gc.collect()
        grown.size_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
