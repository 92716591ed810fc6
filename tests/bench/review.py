"""The webhook as it is served: reviews over TLS against the real app in a process of its own."""

import json
import os
import random
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from certs.authority import Authority
from tests.bench.timing import Result

CONNECTIONS = (1, 16)
REVIEWS_EACH = 3000
PACE_S = 0.1
"""Of each of 16 connections: 160 reviews a second. A client that asks as fast as it can measures how long it queues."""
PACED_EACH = 150
SLOW = 500
"""Clients that send a byte a second."""
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[4])
from webhook_world import OwnerWorld, indexed_job, lookups
from pathlib import Path
from muster.process import logs, prefork
from muster.process.tls import Files
from muster.runtime import registry
from webhook.app import create_app, routes
from webhook.main import THREADS
from webhook.senders import Senders

logs.configure("bench", "warning")
labels = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
world = lookups(owners=OwnerWorld(indexed_job(labels=labels)))
app = create_app(routes(world, registry.framework()), Senders())
prefork.serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=THREADS, name="bench",
              files=Files(Path(sys.argv[2]), Path(sys.argv[3])))
"""


def pod_review() -> bytes:
    """A pod of an Indexed Job with both labels, with the weight of a real one; its patch has about ten operations."""
    labels = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-uid", "controller": True}
    token = {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    container = {
        "name": "node",
        "image": "pytorch/pytorch",
        "command": ["torchrun", "train.py"],
        "env": [{"name": f"SETTING_{number}", "value": "x" * 60} for number in range(20)],
        "resources": {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "train-3-",
            "labels": {**labels, "batch.kubernetes.io/job-completion-index": "3"},
            "annotations": {"note": "x" * 1500},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [container], "volumes": [token], "schedulerName": "default-scheduler"},
    }
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


@dataclass(slots=True)
class Served:
    """The webhook in a process of its own."""

    port: int
    ca_file: Path
    context: ssl.SSLContext
    pid: int
    durations_s: list[float] = field(default_factory=list)

    def connect(self) -> HTTPSConnection:
        """A new connection, kept alive."""
        connection = HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=20)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def cpu_s(self) -> float:
        """CPU time of the worker so far."""
        worker = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="utf-8").split()[0]
        values = Path(f"/proc/{worker}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / _CLOCK_TICKS


@dataclass(frozen=True, slots=True)
class Load:
    """Reviews over so many connections at once."""

    connections: int
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """Of one review."""
    per_s: float


def run() -> Iterator[Result | str]:
    """Latency at 1 and 16 connections, requests per second, CPU of one review."""
    for load in loads():
        what = f"review over TLS, {load.connections} connection{'s' if load.connections > 1 else ''}"
        yield Result(f"{what}: p50", load.p50_ms)
        yield Result(f"{what}: p99", load.p99_ms)
        yield Result(f"{what}: CPU of one", load.cpu_ms, 1.2)
        yield f"{what}: {load.per_s:,.0f} reviews/s"
    yield from paced()


def paced() -> Iterator[Result]:
    """Latency at 16 connections that wait between their reviews, alone and beside slow clients."""
    body = pod_review()
    with served() as server:
        send(server, body, connections=4, each=200)
        for slow in (0, SLOW):
            with slow_clients(server, slow):
                server.durations_s.clear()
                before = server.cpu_s()
                send(server, body, connections=16, each=PACED_EACH, pause_s=PACE_S)
                spent = server.cpu_s() - before
            p50, p99 = percentiles(server.durations_s)
            what = f"review, 16 connections that pause{f', {slow} slow clients' if slow else ''}"
            yield Result(f"{what}: p50", 1000 * p50)
            yield Result(f"{what}: p99", 1000 * p99, 10.0)
            yield Result(f"{what}: CPU of one", 1000 * spent / len(server.durations_s))


@contextmanager
def slow_clients(server: Served, count: int) -> Iterator[None]:
    """So many of them, in a process of their own, all connected."""
    command = [sys.executable, "-m", "tests.bench.slowclients", str(server.port), str(server.ca_file), str(count)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        try:
            if count and process.stdout:
                process.stdout.readline()
            yield
        finally:
            process.kill()


def loads(counts: tuple[int, ...] = CONNECTIONS) -> Iterator[Load]:
    """The same server at each number of connections, after some reviews that do not count."""
    body = pod_review()
    with served() as server:
        send(server, body, connections=4, each=200)
        for connections in counts:
            server.durations_s.clear()
            before, started = server.cpu_s(), time.perf_counter()
            send(server, body, connections=connections, each=REVIEWS_EACH // connections)
            spent, elapsed = server.cpu_s() - before, time.perf_counter() - started
            count = len(server.durations_s)
            p50, p99 = percentiles(server.durations_s)
            yield Load(connections, 1000 * p50, 1000 * p99, 1000 * spent / count, count / elapsed)


def send(server: Served, body: bytes, *, connections: int, each: int, pause_s: float = 0.0) -> None:
    """So many reviews on each of so many connections; the client's threads share the machine with the server."""
    lock = threading.Lock()

    def client() -> None:
        connection, durations = server.connect(), []
        for _ in range(each):
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            started = time.perf_counter()
            connection.request("POST", "/mutate/pod?timeout=10s", body, {"Content-Type": "application/json"})
            answer = connection.getresponse().read()
            durations.append(time.perf_counter() - started)
            if b'"patch":"' not in answer:
                raise RuntimeError(f"the review was not answered with a patch: {answer[:300]!r}")
        connection.close()
        with lock:
            server.durations_s += durations

    threads = [threading.Thread(target=client) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def percentiles(durations_s: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    cuts = statistics.quantiles(durations_s, n=100)
    return cuts[49], cuts[98]


@contextmanager
def served() -> Iterator[Served]:
    """Starts the webhook's app with look-ups that answer from memory, as its caches do."""
    authority = Authority.create("bench")
    pair = authority.issue("webhook", ips=["127.0.0.1"], server=True)
    with tempfile.TemporaryDirectory() as folder:
        cert, key, ca_file = Path(folder) / "tls.crt", Path(folder) / "tls.key", Path(folder) / "ca.crt"
        pair.save(Path(folder))
        authority.save(Path(folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        builders = str(Path(__file__).parents[1] / "unit" / "worlds")
        command = [sys.executable, "-c", PROGRAM, str(port), str(cert), str(key), builders]
        process: subprocess.Popen[Any] = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        context = ssl.create_default_context(cadata=authority.cert_pem.decode())
        try:
            server = Served(port, ca_file, context, process.pid)
            _await(server)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=20)


def _await(server: Served) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            server.connect().close()
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
