"""The way of a gang through the processes as a trace, for those who collect traces (OpenTelemetry); off by default.

A trace's id follows from the UID of the workload, and so does the id of its first span. Every process can work them
out, hence nothing has to be passed on: not in objects, nor in the calls of others. Spans are recorded after the fact,
with their times, where metrics are observed. As with those there is one place for a whole process, `SPANS`.

OpenTelemetry is not among what Muster needs: `pip install 'muster[tracing]'`, or an image with
requirements-tracing.lock, brings it.
"""

import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import structlog

from muster.api.kubernetes.meta import ObjectMeta

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

log = structlog.get_logger()
ENDPOINT_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""OpenTelemetry's own way to say where traces go."""
ROOT: Final = "gang"
"""The name of the first span: from the submission of a gang until it runs."""
_MISSING: Final = (
    "traces are asked for, but OpenTelemetry is not installed: `pip install 'muster[tracing]'`, "
    "or build the image with `make image LOCK=requirements-tracing.lock`"
)
_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_PATH: Final = "/v1/traces"
_ANY_TRACE: Final = 1  # ids must not be zero


class Spans:
    """Where the spans of this process go: nowhere until `send`."""

    def __init__(self) -> None:
        self._tracer: Tracer | None = None
        self._ids = threading.local()

    @property
    def on(self) -> bool:
        """Whether anybody wants them."""
        return self._tracer is not None

    def send(self, process: str, processor: "SpanProcessor") -> None:
        """From now on spans of this process go to a processor of OpenTelemetry's."""
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - only who wants traces has it
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above

        resource = Resource.create({"service.name": f"muster-{process}", "service.namespace": "muster"})
        provider = TracerProvider(resource=resource, id_generator=_ids(self._ids))
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("muster")

    def stop(self) -> None:
        """Nobody wants them any more."""
        self._tracer = None

    def record(self, workload: str, name: str, began_s: float, ended_s: float, **attributes: str | int) -> None:
        """A span of a workload's trace, by its UID; times are in seconds since the epoch."""
        if self._tracer is None or not workload:
            return
        from opentelemetry.context import Context  # noqa: PLC0415 - only who wants traces has it
        from opentelemetry.trace import (  # noqa: PLC0415 - as above
            NonRecordingSpan,
            SpanContext,
            TraceFlags,
            set_span_in_context,
        )

        trace, root = trace_id(workload), root_id(workload)
        context = Context()
        if name != ROOT:
            parent = SpanContext(trace, root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            context = set_span_in_context(NonRecordingSpan(parent), context)
        self._ids.trace, self._ids.span = trace, root if name == ROOT else None
        attributes = {"muster.workload": workload, **attributes}
        span = self._tracer.start_span(name, context, attributes=attributes, start_time=_nanoseconds(began_s))
        span.end(_nanoseconds(ended_s))

    @contextmanager
    def around(self, workload: str, name: str, **attributes: str | int) -> Iterator[None]:
        """Records what happens inside, whether it succeeds or not."""
        began_s = time.time()
        try:
            yield
        finally:
            self.record(workload, name, began_s, time.time(), **attributes)


SPANS: Final = Spans()
"""Those of this process."""


class TracingError(ValueError):
    """The settings ask for traces, and what they need is not installed; the message says what to do."""


def check(endpoint: str) -> None:
    """TracingError if the settings name an endpoint and nothing could be sent there."""
    if endpoint and not _installed():
        raise TracingError(_MISSING)


def configure(process: str, endpoint: str) -> None:
    """Sends spans to an OTLP/HTTP endpoint: that of the settings, else that of the environment, else none.

    Call it where threads live, after a fork. TracingError as with `check`; where only the environment asks, which may
    be the same for many programs, what is missing is told in the log.
    """
    check(endpoint)
    wanted = endpoint or os.environ.get(ENDPOINT_VARIABLE, "")
    if not wanted:
        return
    if not _installed():
        log.warning("no traces", why=_MISSING, variable=ENDPOINT_VARIABLE)
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    # The exporter itself adds the path to an endpoint of the environment.
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/').removesuffix(_PATH)}{_PATH}" if endpoint else None)
    SPANS.send(process, BatchSpanProcessor(exporter))
    log.info("traces are sent", endpoint=wanted)


def _installed() -> bool:
    """Whether the packages are there; to ask for one whose parent is missing would be an error."""
    try:
        return all(importlib.util.find_spec(name) for name in _PACKAGES)
    except ModuleNotFoundError:
        return False


def workload_of(metadata: ObjectMeta) -> str:
    """The UID of the workload that an object belongs to: its controller's, else its own."""
    owner = metadata.controller
    return owner.uid if owner else metadata.uid


def trace_id(workload: str) -> int:
    """The id of a workload's trace: 16 bytes."""
    return int.from_bytes(sha256(f"trace {workload}".encode()).digest()[:16], "big") or _ANY_TRACE


def root_id(workload: str) -> int:
    """The id of the first span of that: 8 bytes."""
    return int.from_bytes(sha256(f"root {workload}".encode()).digest()[:8], "big") or _ANY_TRACE


def _ids(chosen: threading.local) -> Any:
    """A generator of ids that takes those which `record` has chosen on its thread; other spans have random ones."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415 - only who wants traces has it

    class Chosen(RandomIdGenerator):
        """Ids of the span that is recorded now."""

        def generate_trace_id(self) -> int:
            return getattr(chosen, "trace", None) or super().generate_trace_id()

        def generate_span_id(self) -> int:
            return getattr(chosen, "span", None) or super().generate_span_id()

    return Chosen()


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
