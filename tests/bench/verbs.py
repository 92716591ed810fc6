"""What a filter call costs, from the request's bytes to the answer's."""

import asyncio
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import uvloop

from extender.app import ExtenderVerbs, create_app
from extender.verbs.filter import DECODE_ARGS, Filter
from muster.api.muster.gang import pinned_affinity
from muster.process.serve import listen, serving
from tests.bench.planner import NODES, world_of
from tests.bench.timing import Result, cpu_ms


def run() -> Iterator[Result]:
    """A pinned member with one name, and a plain pod with every name."""
    world = world_of(NODES)
    key = world.gang("a", {"worker": (8, {"cpu": 4, "nvidia.com/gpu": 8})})
    world.plan()
    cluster = cast("Any", SimpleNamespace(state=world.state, lock=threading.RLock(), synced=True))
    verb = Filter(cluster, active=lambda: True)
    meta = {
        "name": "a-worker-0", "namespace": "ns", "uid": "u",
        "annotations": {"scheduling.k8s.io/group-name": key.partition("/")[2], "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": "0", "muster.dev/node": "node-0", "muster.dev/epoch": "1"},
    }  # fmt: skip
    spec: dict[str, Any] = world.pod_spec({"cpu": 4}) | {"affinity": pinned_affinity(None, "node-0")}
    pinned = msgspec.json.encode({"Pod": {"metadata": meta, "spec": spec}, "NodeNames": ["node-0"]})
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": "p"}, "spec": world.pod_spec({"cpu": 4})}
    plain = msgspec.json.encode({"Pod": pod, "NodeNames": [f"node-{number}" for number in range(NODES)]})

    def call(body: bytes) -> bytes:
        return msgspec.json.encode(verb(DECODE_ARGS.decode(body)))

    assert b"node-0" in call(pinned)
    yield Result("filter, pinned pod, one name (without HTTP)", cpu_ms(lambda: call(pinned), calls=100), 0.3)
    yield Result("filter, pinned pod, one name (over HTTP, client included)", _over_http(verb, pinned))
    yield Result(f"filter, plain pod, {NODES} names (without HTTP)", cpu_ms(lambda: call(plain)), 1.0)


def _over_http(verb: Filter, body: bytes) -> float:
    """CPU of a call in milliseconds, on the extender's own server; http.client takes some of it."""

    async def serve() -> float:
        listening = listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        async with serving(create_app(ExtenderVerbs(verb, _unused, _unused, _unused), dict), listening):
            return await asyncio.to_thread(measure, port)

    def measure(port: int) -> float:
        client = HTTPConnection("127.0.0.1", port)

        def call() -> None:
            client.request("POST", "/filter", body, {"content-type": "application/json"})
            client.getresponse().read()

        try:
            return cpu_ms(call, calls=100)
        finally:
            client.close()

    return uvloop.run(serve())


def _unused(_: object) -> Any:
    raise AssertionError("only filter is called")
