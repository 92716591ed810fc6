"""Every answer that is no success becomes the error that says what it is."""

import json
import socket

import pytest

from muster.api.kubernetes.core import PODS
from muster.kube import errors
from muster.kube.client import Client
from muster.kube.config import Config, load_config
from muster.kube.errors import error_of


def status(code: int, reason: str, message: str = "because") -> bytes:
    """The body of a refusal."""
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.APIError),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (504, "Timeout", errors.ServerError),
    ],
)
def test_status_and_reason_choose_the_class(code: int, reason: str, kind: type[errors.APIError]) -> None:
    """And the words stay readable."""
    error = error_of(code, status(code, reason), where="GET /x")
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "because")
    assert str(error) == f"GET /x: {code} {reason}: because"


def test_a_patch_of_another_object_is_a_conflict() -> None:
    """The API server calls a UID that differs an invalid change."""
    causes = [{"field": "metadata.uid", "message": "field is immutable"}]
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "because", "details": {"causes": causes}}
    assert isinstance(error_of(422, json.dumps(body).encode()), errors.Conflict)
    causes[0]["field"] = "spec.nodeName"
    assert isinstance(error_of(422, json.dumps(body).encode()), errors.Invalid)


def test_a_namespace_that_ends_is_told_from_a_right_that_is_missing() -> None:
    """By the cause, as client-go's HasStatusCause does; the sentence may change."""
    causes = [
        {"reason": "NamespaceTerminating", "message": "namespace n is being terminated", "field": "metadata.namespace"}
    ]
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "because", "details": {"causes": causes}}
    assert type(error_of(403, json.dumps(body).encode())) is errors.NamespaceEnds
    causes[0]["reason"] = "FieldValueForbidden"
    assert type(error_of(403, json.dumps(body).encode())) is errors.Forbidden


def test_an_error_event_of_a_watch_brings_its_own_code() -> None:
    """There is no HTTP status in the middle of a stream."""
    error = error_of(0, status(410, "Expired", "too old resource version"))
    assert isinstance(error, errors.Gone)
    assert error.status == 410


def test_an_answer_that_is_no_status_is_shown() -> None:
    """A proxy's page says more than nothing, but not more than fits."""
    error = error_of(502, b"<html>Bad gateway</html>" + b"x" * 10_000)
    assert isinstance(error, errors.ServerError)
    assert error.message.startswith("<html>Bad gateway</html>")
    assert len(error.message) <= 500


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_retry_after_is_kept(header: str | None, seconds: float | None) -> None:
    """Callers can leave the server alone for as long as it wishes."""
    assert error_of(429, b"", retry_after=header).retry_after_s == seconds


def test_all_errors_of_requests_are_api_errors() -> None:
    """One except clause is enough."""
    own = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    kinds = [kind for kind in own if issubclass(kind, Exception)]
    assert [kind for kind in kinds if not issubclass(kind, errors.APIError)] == [errors.ConfigurationError]


def test_nobody_listening_is_unreachable() -> None:
    """A refused connection is no answer, and the message says where nobody answered."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        port = taken.getsockname()[1]
        client = Client(Config(server=f"http://127.0.0.1:{port}"))
        with pytest.raises(errors.Unreachable, match=r"GET /api/v1/namespaces/ns/pods/a: .*no answer") as caught:
            client.get(PODS, "a", "ns")
        assert caught.value.status == 0


def test_a_silent_server_is_unreachable_after_the_time_limit() -> None:
    """No call waits for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(Config(server=f"http://127.0.0.1:{silent.getsockname()[1]}"), timeout_s=0.05)
        with pytest.raises(errors.Unreachable, match="no answer within"):
            client.list(PODS)
        with pytest.raises(errors.Unreachable, match="no answer within"):
            client.watch(PODS, resource_version="1", timeout_s=0.05)


def test_a_kubeconfig_that_is_not_there() -> None:
    """The message says which file and what to do."""
    with pytest.raises(errors.ConfigurationError, match=r"kubeconfig /nowhere/config: .*--kubeconfig"):
        load_config("/nowhere/config")


def test_in_cluster_outside_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that the service account was meant."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(errors.ConfigurationError, match="the pod's service account"):
        load_config("")
