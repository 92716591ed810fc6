"""A gang's trace has one id in all processes, though they tell each other nothing of it."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.process import tracing
from muster.process.tracing import ROOT, SPANS, Spans, TracingError, root_id, trace_id, workload_of

UID = "3f1b1a60-0000-4000-8000-000000000001"


def told(spans: Spans, exporter: InMemorySpanExporter, process: str) -> Spans:
    """Spans that an exporter keeps."""
    spans.send(process, SimpleSpanProcessor(exporter))
    return spans


def parent_of(span: ReadableSpan) -> int:
    """The id of the parent; 0 without one."""
    return span.parent.span_id if span.parent else 0


def test_processes_meet_in_one_trace() -> None:
    """Each works the ids out by itself; all spans hang on the first, which the extender records at the end."""
    exporter = InMemorySpanExporter()
    webhook, controller, extender = (told(Spans(), exporter, each) for each in ("webhook", "controller", "extender"))
    webhook.record(UID, "review", 9.5, 9.75, outcome="allowed")
    controller.record(UID, "create pods", 11.0, 11.5, slots=3)
    extender.record(UID, "planned", 10.0, 10.5)
    extender.record(UID, ROOT, 10.0, 12.0)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {span.context.trace_id for span in spans.values()} == {trace_id(UID)}
    assert spans[ROOT].context.span_id == root_id(UID)
    assert {name: parent_of(span) for name, span in spans.items()} == {
        "review": root_id(UID),
        "create pods": root_id(UID),
        "planned": root_id(UID),
        ROOT: 0,
    }
    assert len({span.context.span_id for span in spans.values()}) == 4
    services = {name: span.resource.attributes["service.name"] for name, span in spans.items()}
    assert (services["review"], services[ROOT]) == ("muster-webhook", "muster-extender")
    assert (spans["planned"].start_time, spans["planned"].end_time) == (10_000_000_000, 10_500_000_000)
    assert dict(spans["create pods"].attributes or {}) == {"muster.workload": UID, "slots": 3}


def test_workloads_have_traces_of_their_own() -> None:
    """And spans that follow a first span have ids that nobody chose."""
    exporter = InMemorySpanExporter()
    spans = told(Spans(), exporter, "extender")
    for uid in ("a", "b"):
        spans.record(uid, ROOT, 0, 1)
        spans.record(uid, "bound", 0, 1)
    found = exporter.get_finished_spans()
    assert [span.context.trace_id for span in found] == [trace_id("a")] * 2 + [trace_id("b")] * 2
    assert len({span.context.span_id for span in found}) == 4
    assert trace_id("a") != trace_id("b")


def test_what_fails_inside_is_recorded_and_raised() -> None:
    """A span of something that did not work is the one that is looked for."""
    exporter = InMemorySpanExporter()
    spans = told(Spans(), exporter, "controller")
    with pytest.raises(RuntimeError), spans.around(UID, "create the PodGroup"):
        raise RuntimeError
    (span,) = exporter.get_finished_spans()
    assert span.name == "create the PodGroup"
    assert (span.end_time or 0) >= (span.start_time or 0)


def test_nothing_is_recorded_unless_asked_for() -> None:
    """Nor for what belongs to no workload."""
    exporter = InMemorySpanExporter()
    spans = Spans()
    spans.record(UID, ROOT, 0, 1)
    assert not spans.on
    told(spans, exporter, "webhook").record("", "review", 0, 1)
    assert exporter.get_finished_spans() == ()


def test_a_part_belongs_to_its_controller() -> None:
    """What has none is a workload itself."""
    owners = [
        OwnerReference(api_version="v1", kind="Thing", name=uid, uid=uid, controller=uid == "mine")
        for uid in ("other", "mine")
    ]
    assert workload_of(ObjectMeta(uid="pod", owner_references=owners)) == "mine"
    assert workload_of(ObjectMeta(uid="pod")) == "pod"


@pytest.fixture
def _missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without OpenTelemetry."""
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(name)
        return real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.fixture
def _off() -> Iterator[None]:
    """The spans of this process go nowhere before and after the test."""
    SPANS.stop()
    yield
    SPANS.stop()


@pytest.mark.usefixtures("_missing", "_off")
def test_a_setting_needs_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install; the environment, which is not for Muster alone, is no reason not to start."""
    monkeypatch.delenv(tracing.ENDPOINT_VARIABLE, raising=False)
    with pytest.raises(TracingError, match=r"pip install 'muster\[tracing\]'"):
        tracing.configure("webhook", "http://collector:4318")
    with pytest.raises(TracingError, match=r"make image LOCK=requirements-tracing\.lock"):
        tracing.check_endpoint("http://collector:4318")
    monkeypatch.setenv(tracing.ENDPOINT_VARIABLE, "http://collector:4318")
    tracing.configure("webhook", "")
    assert not SPANS.on


@pytest.mark.parametrize("missing", ["opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"])
def test_a_part_of_the_packages_is_not_enough(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """All of them are."""
    tracing.check_endpoint("http://collector:4318")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(TracingError):
        tracing.check_endpoint("http://collector:4318")


@pytest.mark.usefixtures("_off")
def test_off_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither setting nor environment: nothing is loaded, nothing is sent."""
    monkeypatch.delenv(tracing.ENDPOINT_VARIABLE, raising=False)
    tracing.configure("webhook", "")
    tracing.check_endpoint("")
    assert not SPANS.on
