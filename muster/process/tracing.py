"""OpenTelemetry traces of gangs across Muster's processes; disabled by default.

The ids of a trace and of its first span are digests of the workload's UID. Every process computes the same ids, so
neither objects nor calls need to contain the ids. Spans are recorded after they have ended, in the same places as
metrics. A process has one span recorder, `SPANS`.

OpenTelemetry is optional; install it with `pip install 'muster[tracing]'`, or build the image with
requirements-tracing.lock.
"""

import importlib.util
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from random import getrandbits
from typing import TYPE_CHECKING, Final

import structlog

from muster.api.kubernetes.meta import ObjectMeta

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

log = structlog.get_logger()
ENDPOINT_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""OpenTelemetry's own environment variable for the endpoint that receives traces."""
ROOT: Final = "gang"
"""Name of the first span, which lasts from the submission of a gang until the gang runs."""
_MISSING: Final = (
    "traces are enabled, but OpenTelemetry is not installed: `pip install 'muster[tracing]'`, "
    "or build the image with `make image LOCK=requirements-tracing.lock`"
)
_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_PATH: Final = "/v1/traces"
_ANY_TRACE: Final = 1  # ids must not be zero


class Spans:
    """A recorder of this process's spans, which drops the spans until `send` is called."""

    def __init__(self) -> None:
        self._processor: SpanProcessor | None = None
        self._resource: Resource | None = None

    @property
    def on(self) -> bool:
        """True if spans are sent; False if they are dropped."""
        return self._processor is not None

    def send(self, process: str, processor: "SpanProcessor") -> None:
        """Send spans of this process to an OpenTelemetry processor from now on."""
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - installed only where traces are wanted

        self._resource = Resource.create({"service.name": f"muster-{process}", "service.namespace": "muster"})
        self._processor = processor

    def stop(self) -> None:
        """Drop spans from now on."""
        self._processor = None

    def record(self, workload: str, name: str, began_s: float, ended_s: float, **attributes: str | int) -> None:
        """Record a span of the trace of the workload with this UID; times are in seconds since the epoch."""
        if self._processor is None or not workload:
            return
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - as above
        from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415 - as above

        trace, sampled = trace_id(workload), TraceFlags(TraceFlags.SAMPLED)
        root = SpanContext(trace, root_id(workload), is_remote=name != ROOT, trace_flags=sampled)
        own = SpanContext(trace, getrandbits(64) or 1, is_remote=False, trace_flags=sampled)
        span = ReadableSpan(
            name,
            root if name == ROOT else own,
            None if name == ROOT else root,
            self._resource,
            {"muster.workload": workload, **attributes},
            start_time=int(began_s * 1e9),
            end_time=int(ended_s * 1e9),
        )
        self._processor.on_end(span)

    @contextmanager
    def around(self, workload: str, name: str, **attributes: str | int) -> Iterator[None]:
        """Record the duration of the block as a span, even if the block raises an error."""
        began_s = time.time()
        try:
            yield
        finally:
            self.record(workload, name, began_s, time.time(), **attributes)


SPANS: Final = Spans()
"""The span recorder of this process."""


class TracingError(ValueError):
    """Raised if the settings enable traces but a required package is missing; the message explains how to add it."""


def check_endpoint(endpoint: str) -> None:
    """Raise TracingError if the settings name an endpoint but required packages are missing."""
    if endpoint and not _installed():
        raise TracingError(_MISSING)


def configure(process: str, endpoint: str) -> None:
    """Send spans to the OTLP/HTTP endpoint in the settings or the environment, if there is one.

    Call the function after a fork, because threads do not survive a fork. Raises TracingError like `check_endpoint`. If
    only the environment names an endpoint, which many programs may share, a missing package is only logged.
    """
    check_endpoint(endpoint)
    wanted = endpoint or os.environ.get(ENDPOINT_VARIABLE, "")
    if not wanted:
        return
    if not _installed():
        log.warning("no traces", why=_MISSING, variable=ENDPOINT_VARIABLE)
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    # The exporter itself adds the path to an endpoint from the environment.
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/').removesuffix(_PATH)}{_PATH}" if endpoint else None)
    SPANS.send(process, BatchSpanProcessor(exporter))
    log.info("traces are sent", endpoint=wanted)


def _installed() -> bool:
    """Return True if OpenTelemetry's packages are installed; `find_spec` raises an error without a parent package."""
    try:
        return all(importlib.util.find_spec(name) for name in _PACKAGES)
    except ModuleNotFoundError:
        return False


def workload_of(metadata: ObjectMeta) -> str:
    """Return the UID of an object's workload: the UID of the object's controller, otherwise of the object itself."""
    owner = metadata.controller
    return owner.uid if owner else metadata.uid


def trace_id(workload: str) -> int:
    """Return the id of a workload's trace, which has 16 bytes."""
    return int.from_bytes(sha256(f"trace {workload}".encode()).digest()[:16], "big") or _ANY_TRACE


def root_id(workload: str) -> int:
    """Return the id of the first span of a workload's trace, which has 8 bytes."""
    return int.from_bytes(sha256(f"root {workload}".encode()).digest()[:8], "big") or _ANY_TRACE
