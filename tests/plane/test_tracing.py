"""A gang's way through the three processes is one trace, as a collector gets it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from gang_jobs import job
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from muster.api.volcano.batch import JOBS
from muster.process.tracing import ROOT, root_id, trace_id
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, EXTENDER, WEBHOOK

pytestmark = [pytest.mark.plane, pytest.mark.slow]
WaitFor = Callable[..., Any]
WANTED = {
    ("muster-controller", "create the PodGroup"),
    ("muster-controller", "create pods"),
    ("muster-extender", "planned"),
    ("muster-extender", "bound"),
    ("muster-extender", "running"),
    ("muster-extender", ROOT),
}


@dataclass
class Collector:
    """What takes traces by OTLP over HTTP, and keeps their spans: (service, name) → (trace, parent)."""

    url: str
    spans: list[tuple[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body: bytes) -> None:
        """One request of an exporter."""
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in one.resource.attributes}
            with self.lock:
                self.spans += [(attributes["service.name"], span) for scope in one.scope_spans for span in scope.spans]

    def of(self, workload: str) -> dict[tuple[str, str], Any]:
        """The spans of a workload's trace."""
        wanted = trace_id(workload).to_bytes(16, "big")
        with self.lock:
            return {(service, span.name): span for service, span in self.spans if span.trace_id == wanted}


@pytest.fixture
def collector() -> Iterator[Collector]:
    """On a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            one.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_gang_is_one_trace(fresh_plane: Callable[..., Plane], collector: Collector, wait_for: WaitFor) -> None:
    """Review, PodGroup, pods, planned, bound, running: all under the first span, whoever recorded them."""
    settings = {"tracesEndpoint": collector.url}
    client = fresh_plane(settings=dict.fromkeys((WEBHOOK, EXTENDER, CONTROLLER), settings), nodes=2).client()
    uid = client.create(JOBS, job("gang", "default", replicas=2)).metadata.uid

    def told() -> dict[tuple[str, str], Any]:
        found = collector.of(uid)
        reviewed = any(service == "muster-webhook" for service, _ in found)
        return found if reviewed and found.keys() >= WANTED else {}

    spans = wait_for(told, 60, "a span of each step")
    first = root_id(uid).to_bytes(8, "big")
    assert spans["muster-extender", ROOT].span_id == first
    assert {span.parent_span_id for (_, name), span in spans.items() if name != ROOT} == {first}
    begun = {name: span.start_time_unix_nano for (_, name), span in spans.items()}
    ended = {name: span.end_time_unix_nano for (_, name), span in spans.items()}
    assert begun["create the PodGroup"] <= ended["planned"] <= ended["bound"] <= ended["running"]
