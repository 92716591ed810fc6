"""Over HTTP every input gets a clean answer: reviews a verdict, everything else a status and a sentence."""

import json
from base64 import b64decode
from http import HTTPStatus
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY
from webhook_world import FRAMEWORK, DownWorld, indexed_job, lookups, pod_of, task, vcjob

from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.kube.errors import TooManyRequests, Unreachable
from muster.process.tracing import SPANS, trace_id
from webhook.app import create_app, routes
from webhook.review import MAX_BODY_BYTES, MalformedError, ReviewVerdict, answer
from webhook.senders import Senders


def client(queues: Any = None, owners: Any = None) -> FlaskClient:
    """The app without a server."""
    return create_app(routes(lookups(queues, owners), FRAMEWORK), Senders(certified=True)).test_client()


def review(obj: Any, operation: str = "CREATE", **fields: Any) -> dict[str, Any]:
    """An AdmissionReview."""
    request = {"uid": "u-1", "operation": operation, "namespace": "team", "object": obj, **fields}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_patch_is_base64_json() -> None:
    """A mutation is answered with the request's uid and a JSON patch in base64."""
    response = client().post("/mutate/job", json=review(vcjob())).get_json()
    assert (response["apiVersion"], response["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert response["response"]["uid"] == "u-1"
    assert response["response"]["allowed"] is True
    assert response["response"]["patchType"] == "JSONPatch"
    operations = json.loads(b64decode(response["response"]["patch"]))
    assert {"op": "add", "path": "/spec/minAvailable", "value": 2} in operations


def test_nothing_to_say() -> None:
    """An object that is fine is allowed, without patch and without warnings."""
    job = vcjob(task(minAvailable=2), minAvailable=2, schedulerName="volcano")
    response = client().post("/validate/job", json=review(job)).get_json()["response"]
    assert response["allowed"] is True
    assert response["patch"] is response["status"] is response["warnings"] is None


def test_refusal_lists_all_errors() -> None:
    """All errors come at once: joined in the message, and one by one as causes with field paths."""
    job = vcjob(task(minAvailable=3), task(), plugins={"sv": []}, queue="nowhere", minAvailable=9)
    review_ = review(job, kind={"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"}, name="train")
    response = client().post("/validate/job", json=review_).get_json()["response"]
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    details = status["details"]
    assert (details["kind"], details["group"], details["name"]) == ("Job", "batch.volcano.sh", "train")
    causes = {cause["field"]: cause for cause in status["details"]["causes"]}
    assert list(causes) == [
        "spec.tasks[0].minAvailable",
        "spec.minAvailable",
        "spec.tasks[1].name",
        "spec.plugins[sv]",
        "spec.queue",
    ]
    assert causes["spec.tasks[1].name"]["reason"] == "FieldValueDuplicate"
    assert all(f"{field}: {cause['message']}" in status["message"] for field, cause in causes.items())


def refusal(*errors: FieldError, **more: Any) -> dict[str, Any]:
    """What the API server is answered."""
    request = AdmissionRequest(uid="1", operation="CREATE")
    response = json.loads(answer(request, ReviewVerdict(errors=errors, **more)))["response"]
    assert isinstance(response, dict)
    return response


def test_of_thousands_of_errors_the_first_are_told_and_the_others_counted() -> None:
    """An answer of megabytes helps nobody, and takes the time of others to be sent."""
    many = [
        FieldError(f"spec.plugins[{number}]", "must be one of those that there are", number) for number in range(9999)
    ]
    status = refusal(*many)["status"]
    told = len(status["details"]["causes"])
    assert 100 < told < 1000
    assert status["message"].startswith(str(many[0]))
    assert status["message"].endswith(f"; and {9999 - told} more errors")


@pytest.mark.parametrize(("more", "told"), [(0, 2), (1, 1)])
def test_errors_are_told_up_to_a_length(more: int, told: int) -> None:
    """It is allowed."""
    short = FieldError("a", "b")
    long = FieldError("c", "d" * (32_768 - len(str(short)) - len(str(FieldError("c", "d"))) + 1 + more))
    assert len(refusal(short, long)["status"]["details"]["causes"]) == told


def test_a_refusal_that_clients_of_kubeflow_know() -> None:
    """It is Forbidden, and not Invalid as that of a schema."""
    status = refusal(FieldError("spec", "no"), refusal=HTTPStatus.FORBIDDEN)["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")


def test_an_error_that_is_too_long_is_cut() -> None:
    """A path may have a key of the user's, and a message names that others have written."""
    response = refusal(FieldError("x" * 10**6, "y" * 10**6), warnings=["z" * 10**6] * 10**3)
    assert response["warnings"] == ["z" * 1000] * 100
    [cause] = response["status"]["details"]["causes"]
    assert (len(cause["field"]), cause["message"].count("y")) == (16_384, 16_384)
    assert response["status"]["message"].startswith("xxx")


@pytest.mark.parametrize(("body", "content_type", "code", "words"), [
    (b"{}", "text/plain", 415, "application/json"),
    (b"{}", "", 415, "application/json"),
    (b"", "application/json", 400, "not an AdmissionReview"),
    (b"{", "application/json", 400, "not an AdmissionReview"),
    (b"[]", "application/json", 400, "not an AdmissionReview"),
    (b'{"request": {"uid": 7}}', "application/json", 400, "request.uid"),
    (b"[" * 200_000, "application/json", 400, "not an AdmissionReview"),
    (b'{"request":{"uid":"\xff"}}', "application/json", 400, "not an AdmissionReview"),
    (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}', "application/json",
        400, "v1beta1"),
    (b'{"apiVersion":"v1","kind":"Pod"}', "application/json", 400, "expected admission.k8s.io/v1"),
    (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "application/json", 400, "no request"),
])  # fmt: skip
def test_what_is_no_review(body: bytes, content_type: str, code: int, words: str) -> None:
    """Wrong types and malformed bodies are refused with a status and a sentence, never a stack trace."""
    before = counted("reviews_total", route="/mutate/pod", outcome="malformed")
    response = client().post("/mutate/pod", data=body, content_type=content_type)
    assert response.status_code == code
    assert counted("reviews_total", route="/mutate/pod", outcome="malformed") == before + 1
    assert words in response.text
    assert "Traceback" not in response.text


def test_the_long_way_says_the_same() -> None:
    """A client that adds a parameter to the type gets the answer that the API server gets."""
    body = json.dumps(review(vcjob(task(minAvailable=3))))
    types = ("application/json", "application/json; charset=utf-8")
    usual, other = (client().post("/validate/job", data=body, content_type=each) for each in types)
    assert usual.status_code == other.status_code == 200
    assert usual.get_json() == other.get_json()
    assert client().get("/validate/job").status_code == 405
    assert client().post("/nowhere", json={}).status_code == 404


def test_too_large() -> None:
    """A body over the limit is refused unread."""
    response = client().post("/mutate/pod", data=b" " * (MAX_BODY_BYTES + 1), content_type="application/json")
    assert response.status_code == 413


@pytest.mark.parametrize("route", list(routes(lookups(), FRAMEWORK)))
@pytest.mark.parametrize(
    "obj",
    [None, 7, "x", [], {}, {"metadata": None, "spec": None}, {"metadata": 3}, {"metadata": {"labels": [1]}, "spec": 2}],
)
def test_any_object_gets_a_verdict(route: str, obj: Any) -> None:
    """An object of any shape gets an answer with HTTP 200 that a client can read."""
    response = client().post(route, json=review(obj))
    assert response.status_code == 200
    assert response.get_json()["response"]["uid"] == "u-1"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "muster.dev/queue", "Job"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["metadata", "spec", "labels", "template", "containers", "env", "name", "tasks"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_odd_objects_get_a_verdict(obj: Any) -> None:
    """No object makes a handler fail without an answer."""
    app = client()
    for route in ("/mutate/job", "/validate/job", "/mutate/workload", "/validate/workload", "/mutate/pod"):
        assert app.post(route, json=review(obj)).status_code == 200


def counted(name: str, **labels: str) -> float:
    """The value of a metric, 0 if there is none."""
    return REGISTRY.get_sample_value(f"muster_webhook_{name}", labels) or 0.0


LIMITED = TooManyRequests("wait", status=429, reason="TooManyRequests", where="review")


@pytest.mark.parametrize(("failure", "code", "reason", "outcome", "words"), [
    (RuntimeError("secret"), 500, "InternalError", "error", "Muster's webhook failed on this request; see its log"),
    (MalformedError("at spec"), 400, "BadRequest", "denied", "the object cannot be read: at spec"),
    (ValueError("'x' is not"), 400, "BadRequest", "denied", "the object cannot be read: 'x' is not"),
    (LIMITED, 429, "TooManyRequests", "limited", "cannot make the look-ups for this review now (review u-1): wait"),
    (Unreachable("secret"), 503, "ServiceUnavailable", "error", "could not make the look-ups for this review"),
])  # fmt: skip
def test_failing_handler_refuses(failure: Exception, code: int, reason: str, outcome: str, words: str) -> None:
    """When a handler fails, the object is refused with a message, which has no secret; it is counted and timed."""

    def handler(_request: AdmissionRequest) -> ReviewVerdict:
        raise failure

    app = create_app({"/x": handler}, Senders()).test_client()
    assert REGISTRY.get_sample_value("muster_webhook_reviews_total", {"route": "/x", "outcome": "patched"}) == 0
    count, timed = counted("reviews_total", route="/x", outcome=outcome), counted("review_seconds_count", route="/x")
    response = app.post("/x", json=review({}))
    assert response.status_code == 200
    answer = response.get_json()["response"]
    assert (answer["allowed"], answer["uid"]) == (False, "u-1")
    assert (answer["status"]["code"], answer["status"]["reason"]) == (code, reason)
    assert words in answer["status"]["message"]
    assert "secret" not in response.text
    assert counted("reviews_total", route="/x", outcome=outcome) == count + 1
    assert counted("review_seconds_count", route="/x") == timed + 1


@pytest.mark.parametrize(("route", "obj"), [("/validate/job", vcjob()), ("/mutate/pod", pod_of(indexed_job()))])
def test_look_up_without_answer_refuses(route: str, obj: dict[str, Any]) -> None:
    """While the API server does not answer a look-up, objects are refused as unavailable, so clients try again."""
    answer = client(DownWorld(), DownWorld()).post(route, json=review(obj)).get_json()["response"]
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 503
    assert "try again" in answer["status"]["message"]


def test_reviews_are_spans_of_the_workload() -> None:
    """A pod's belongs to what controls it; an object that is only about to be made has no UID, and no trace yet."""
    exporter = InMemorySpanExporter()
    SPANS.send("webhook", SimpleSpanProcessor(exporter))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "of-the-job", "controller": True}
    pod = {"metadata": {"name": "p", "uid": "of-the-pod", "ownerReferences": [owner]}, "spec": {"containers": []}}
    job = vcjob()
    try:
        asked = client()
        asked.post("/mutate/pod", json=review(pod, kind={"kind": "Pod"}))
        asked.post("/validate/job", json=review({**job, "metadata": {**job["metadata"], "uid": "of-the-job"}}))
        asked.post("/validate/job", json=review({**job, "metadata": {"name": "new"}}))
        asked.post("/validate/job", json=review({"metadata": []}))
    finally:
        SPANS.stop()
    spans = exporter.get_finished_spans()
    assert {span.context.trace_id for span in spans} == {trace_id("of-the-job")}
    told = [(span.name, (span.attributes or {})["outcome"]) for span in spans]
    assert told == [("review /mutate/pod", "allowed"), ("review /validate/job", "allowed")]
    assert all(span.start_time < span.end_time for span in spans)
    kinds = [((span.attributes or {})["operation"], (span.attributes or {})["kind"]) for span in spans]
    assert kinds == [("CREATE", "Pod"), ("CREATE", "")]
