"""Every answer that is no success becomes the error that says what it is."""

import json
import socket

import pytest

from muster.api.kubernetes.core import PODS
from muster.kube import errors
from muster.kube.client import Client
from muster.kube.config import ClientConfig, load_config
from muster.kube.errors import error_of


def status(code: int, reason: str, message: str = "because") -> bytes:
    """The body of a refusal."""
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(("code", "reason", "kind"), [
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
])  # fmt: skip
def test_status_and_reason_choose_the_class(code: int, reason: str, kind: type[errors.APIError]) -> None:
    """And the words stay readable."""
    error = error_of(code, status(code, reason), where="GET /x")
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "because")
    assert str(error) == f"GET /x: {code} {reason}: because"


@pytest.mark.parametrize(("code", "cause", "kind"), [
    (422, {"field": "metadata.uid", "message": "field is immutable"}, errors.Conflict),
    (422, {"field": "spec.nodeName", "message": "field is immutable"}, errors.Invalid),
    (403, {"field": "metadata.namespace", "reason": "NamespaceTerminating"}, errors.NamespaceEnds),
    (403, {"field": "metadata.namespace", "reason": "FieldValueForbidden"}, errors.Forbidden),
], ids=["a patch of another object", "a fixed field", "a namespace that ends", "a right that is missing"])  # fmt: skip
def test_a_cause_chooses_a_narrower_class(code: int, cause: dict[str, str], kind: type[errors.APIError]) -> None:
    """As client-go's HasStatusCause does; the sentence may change."""
    reason = {403: "Forbidden", 422: "Invalid"}[code]
    body = {"kind": "Status", "code": code, "reason": reason, "message": "because", "details": {"causes": [cause]}}
    assert type(error_of(code, json.dumps(body).encode())) is kind


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


def test_a_silent_server_is_unreachable_after_the_time_limit() -> None:
    """No call waits for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(ClientConfig(server=f"http://127.0.0.1:{silent.getsockname()[1]}"), timeout_s=0.05)
        with pytest.raises(errors.Unreachable, match="no response within"):
            client.list(PODS)
        with pytest.raises(errors.Unreachable, match="no response within"):
            client.watch(PODS, resource_version="1", timeout_s=0.05)


@pytest.mark.parametrize(
    ("kubeconfig", "shown"),
    [("/nowhere/config", r"kubeconfig /nowhere/config: .*--kubeconfig"), ("", "the pod's service account")],
)
def test_a_configuration_that_is_not_there(monkeypatch: pytest.MonkeyPatch, kubeconfig: str, shown: str) -> None:
    """The message says which one was meant, and what to do."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(errors.ConfigurationError, match=shown):
        load_config(kubeconfig)


def test_delays_double_to_a_limit_vary_and_start_over() -> None:
    """Without luck they are exactly the doubling ones; jitter takes up to half, so that clients do not come in step."""
    backoff = errors.Backoff(0.2, 1.0, lambda: 0.0)
    assert [backoff.next() for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next() == 0.2
    assert errors.Backoff(0.2, 1.0, lambda: 1.0).next() == 0.1
