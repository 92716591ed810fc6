"""What the API server is told: which objects it sends to which route. Only what asks for Muster is sent."""

from base64 import b64encode
from typing import Any, NamedTuple

from muster.api import names
from muster.api.core import INDEXED_JOBS

NAME = "muster"
TIMEOUT_S = 10
UNTOUCHED_NAMESPACES = ("kube-system", "kube-node-lease", names.SYSTEM_NAMESPACE)

_VOLCANO_BATCH = ("batch.volcano.sh", "v1alpha1")
_VOLCANO_SCHEDULING = ("scheduling.volcano.sh", "v1beta1")

# Two entries with one label each instead of a condition: a label selector costs the API server next to nothing, and
# every pod of the cluster passes here.
_QUEUED = {"matchExpressions": [{"key": names.QUEUE, "operator": "Exists"}]}
_ONLY_SHAPED = {
    "matchExpressions": [
        {"key": names.FRAMEWORK, "operator": "Exists"},
        {"key": names.QUEUE, "operator": "DoesNotExist"},
    ]
}


class _Entry(NamedTuple):
    """One webhook of a configuration."""

    name: str
    route: str
    api: tuple[str, str]
    plural: str
    operations: tuple[str, ...] = ("CREATE",)
    selector: dict[str, Any] | None = None
    condition: str = ""


def _labelled(metadata: str) -> str:
    """CEL: this metadata has one of our two labels."""
    either = " || ".join(f"'{label}' in {metadata}.labels" for label in (names.QUEUE, names.FRAMEWORK))
    return f"(has({metadata}.labels) && ({either}))"


# A batch/v1 Job may carry the labels itself or on its template only.
_ASKS = (
    f"{_labelled('object.metadata')} || "
    f"(has(object.spec.template.metadata) && {_labelled('object.spec.template.metadata')})"
)
_BATCH_JOBS = (INDEXED_JOBS.group, INDEXED_JOBS.version)

_MUTATING = (
    _Entry("jobs.batch-volcano-sh", "/mutate/job", _VOLCANO_BATCH, "jobs"),
    _Entry("jobs.batch", "/mutate/batch-job", _BATCH_JOBS, "jobs", condition=_ASKS),
    _Entry("pods", "/mutate/pod", ("", "v1"), "pods", selector=_QUEUED),
    _Entry("shaped-pods", "/mutate/pod", ("", "v1"), "pods", selector=_ONLY_SHAPED),
)
_VALIDATING = (
    _Entry("jobs.batch-volcano-sh", "/validate/job", _VOLCANO_BATCH, "jobs", ("CREATE", "UPDATE")),
    _Entry("jobs.batch", "/validate/batch-job", _BATCH_JOBS, "jobs", condition=_ASKS),
    _Entry("podgroups", "/validate/podgroup", _VOLCANO_SCHEDULING, "podgroups"),
    _Entry("queues", "/validate/queue", _VOLCANO_SCHEDULING, "queues", ("CREATE", "UPDATE", "DELETE")),
)


def configurations(
    *, url: str | None = None, service: tuple[str, str] | None = None, ca_bundle: bytes
) -> list[dict[str, Any]]:
    """The two webhook configurations, ready to apply; the webhook is at `url` or behind `service` (namespace, name).

    `ca_bundle` is the PEM of the authority that signed its certificate.
    """
    if (url is None) == (service is None):
        raise ValueError("give either url or service (namespace, name)")
    bundle = b64encode(ca_bundle).decode()

    def webhook(entry: _Entry, *, mutating: bool) -> dict[str, Any]:
        client = {"url": f"{url.rstrip('/')}{entry.route}"} if url else _service(service, entry.route)
        return _webhook(entry, {**client, "caBundle": bundle}, mutating=mutating)

    return [
        _configuration("MutatingWebhookConfiguration", [webhook(entry, mutating=True) for entry in _MUTATING]),
        _configuration("ValidatingWebhookConfiguration", [webhook(entry, mutating=False) for entry in _VALIDATING]),
    ]


def _configuration(kind: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": NAME},
        "webhooks": webhooks,
    }


def _service(service: tuple[str, str] | None, route: str) -> dict[str, Any]:
    namespace, name = service or ("", "")
    return {"service": {"namespace": namespace, "name": name, "path": route}}


def _webhook(entry: _Entry, client: dict[str, Any], *, mutating: bool) -> dict[str, Any]:
    group, version = entry.api
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [entry.plural],
        "operations": list(entry.operations),
        "scope": "*",
    }
    outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(UNTOUCHED_NAMESPACES)}
    result: dict[str, Any] = {
        "name": f"{entry.name}.{names.DOMAIN}",
        "clientConfig": client,
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "namespaceSelector": {"matchExpressions": [outside]},
    }
    if mutating:
        result["reinvocationPolicy"] = "IfNeeded"
    if entry.selector:
        result["objectSelector"] = entry.selector
    if entry.condition:
        result["matchConditions"] = [{"name": "asks-for-muster", "expression": entry.condition}]
    return result
