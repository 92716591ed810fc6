"""What the API server is told: which objects it sends to which route. Only what opts in to Muster is sent.

The webhook fails closed: while it does not answer, the API server refuses what it would have sent. So the tables below
decide how far an outage reaches, and each entry asks for as little as it can: labels by selectors where a label is the
reason, conditions in CEL (`conditions`) where it is something else, and never the namespaces that a cluster needs to
start. An object that two entries match is sent twice, which would cost every pod a round trip: no two entries that
change pods overlap.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from muster.api import names
from muster.api.kubeflow.trainer import WEBHOOK_VALIDATION
from muster.api.volcano.bus import COMMANDS
from muster.api.volcano.topology import HYPER_NODES
from muster.workloads.batch_job import BATCH_JOB
from webhook import conditions
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.mutate.workload import LABELLED
from webhook.validate.workload import VALIDATED

NAME = names.WEBHOOKS
TIMEOUT_S = 10
# A webhook's name is all that its user reads of us while it does not answer, so it says what to do.
_HINT = "start-the-muster-webhook"
_POD_HINT = "start-the-muster-webhook-or-label-the-pod-managed-false"

_VOLCANO_BATCH = ("batch.volcano.sh", "v1alpha1")
_VOLCANO_BUS = (COMMANDS.group, COMMANDS.version)
_VOLCANO_SCHEDULING = ("scheduling.volcano.sh", "v1beta1")
_VOLCANO_TOPOLOGY = (HYPER_NODES.group, HYPER_NODES.version)
_TRAINER = ("trainer.kubeflow.org", "v1alpha1")
_PODS = ("", "v1")
_BATCH_JOBS = (BATCH_JOB.resource.group, BATCH_JOB.resource.version)
_CHANGES = ("CREATE", "UPDATE")

Expression = dict[str, Any]
_OUTSIDE: Expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(UNTOUCHED_NAMESPACES)}
_MANAGED: Expression = {"key": names.MANAGED, "operator": "NotIn", "values": ["false"]}
_VALIDATED: Expression = {"key": WEBHOOK_VALIDATION, "operator": "NotIn", "values": ["disabled"]}


def _has(label: str) -> Expression:
    return {"key": label, "operator": "Exists"}


def _lacks(label: str) -> Expression:
    return {"key": label, "operator": "DoesNotExist"}


class _Entry(NamedTuple):
    """One webhook of a configuration; all of its expressions and conditions must hold."""

    name: str
    route: str
    api: tuple[str, str]
    plural: str
    operations: tuple[str, ...] = ("CREATE",)
    object: tuple[Expression, ...] = ()
    namespace: tuple[Expression, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()


def _trainer(verb: str, kind: str, *expressions: Expression) -> _Entry:
    """A kind of Kubeflow Trainer's, at the path where its own webhook has it."""
    return _Entry(
        f"{kind}s", f"/{verb}-trainer-kubeflow-org-v1alpha1-{kind}", _TRAINER, f"{kind}s", _CHANGES, expressions
    )


_IN_A_QUEUE = (_has(names.QUEUE), _MANAGED)
# Muster's controller labels so the pods of a Job that was reviewed, where they have nothing for which we change pods.
# Conditions would say the same, but for each of them the API server makes a copy of the pod.
_UNSEEN: Expression = {"key": names.REVIEWED, "operator": "NotIn", "values": ["true"]}
_UNLABELLED = (_lacks(names.QUEUE), _lacks(names.FRAMEWORK), _MANAGED, _UNSEEN)

# Selectors before conditions: a selector costs the API server next to nothing, and every pod passes here.
_MUTATING = (
    _Entry("jobs.batch-volcano-sh", "/mutate/job", _VOLCANO_BATCH, "jobs", _CHANGES),
    _Entry("podgroups", "/mutate/podgroup", _VOLCANO_SCHEDULING, "podgroups", conditions=conditions.OF_NO_JOB),
    _Entry("queues", "/mutate/queue", _VOLCANO_SCHEDULING, "queues"),
    _trainer("mutate", "trainjob"),
    _Entry("jobs.batch", "/mutate/workload", _BATCH_JOBS, "jobs", conditions=conditions.JOB_OPTS_IN),
    _Entry(
        "namespaced-jobs.batch", "/mutate/workload", _BATCH_JOBS, "jobs", namespace=_IN_A_QUEUE,
        conditions=conditions.JOB_SAYS_NOTHING,
    ),
    *(
        _Entry(f"{each.plural}.{each.group.partition('.')[0]}", "/mutate/workload", (each.group, each.version),
               each.plural, conditions=conditions.OPTS_IN)
        for each in (kind.resource for kind in LABELLED if kind is not BATCH_JOB)
    ),
    _Entry("pods", "/mutate/pod", _PODS, "pods", object=(_has(names.QUEUE), _lacks(names.FRAMEWORK), _MANAGED)),
    _Entry("shaped-pods", "/mutate/pod", _PODS, "pods", object=(_has(names.FRAMEWORK), _MANAGED)),
    _Entry(
        "held-pods", "/mutate/pod", _PODS, "pods", object=_UNLABELLED,
        conditions=conditions.REQUESTS_A_GATE,
    ),
)  # fmt: skip
_VALIDATING = (
    _Entry("jobs.batch-volcano-sh", "/validate/job", _VOLCANO_BATCH, "jobs", _CHANGES),
    _trainer("validate", "trainjob"),
    _trainer("validate", "trainingruntime", _VALIDATED),
    _trainer("validate", "clustertrainingruntime", _VALIDATED),
    _Entry(
        "jobs.batch", "/validate/batch-job", _BATCH_JOBS, "jobs", _CHANGES, conditions=conditions.validated(BATCH_JOB)
    ),
    *(
        _Entry(f"{kind.resource.plural}.{kind.resource.group.partition('.')[0] or 'core'}", "/validate/workload",
               (kind.resource.group, kind.resource.version), kind.resource.plural, _CHANGES,
               conditions=conditions.validated(kind))
        for kind in VALIDATED
    ),
    _Entry("pods", "/validate/pod", _PODS, "pods", object=(_MANAGED, _UNSEEN), conditions=conditions.NEEDS_A_CHECK),
    _Entry("commands", "/validate/command", _VOLCANO_BUS, "commands", _CHANGES),
    _Entry("queues", "/validate/queue", _VOLCANO_SCHEDULING, "queues", ("CREATE", "UPDATE", "DELETE")),
    _Entry("hypernodes", "/validate/hypernode", _VOLCANO_TOPOLOGY, "hypernodes", _CHANGES),
)  # fmt: skip


def _validating(namespace: str) -> list[_Entry]:
    """The webhooks that check objects, with Muster's own accounts in this namespace."""
    groups = _Entry(
        "podgroups", "/validate/podgroup", _VOLCANO_SCHEDULING, "podgroups", _CHANGES,
        conditions=conditions.enters_a_queue(namespace),
    )  # fmt: skip
    return [*_VALIDATING, groups]


def _mutating(groups: Sequence[ResourceGroup]) -> list[_Entry]:
    """The webhooks that change objects. No pod is in two of them.

    The one by namespace comes last: its patch adds the label that the first one of pods selects.
    """
    by_group = _Entry(
        "grouped-pods", "/mutate/pod", _PODS, "pods", object=_UNLABELLED, conditions=conditions.of_grouped(groups)
    )
    by_namespace = _Entry(
        "namespaced-pods", "/mutate/pod", _PODS, "pods", object=_UNLABELLED, namespace=_IN_A_QUEUE,
        conditions=conditions.of_namespaced(groups),
    )  # fmt: skip
    return [*_MUTATING, *([by_group] if groups else []), by_namespace]


def routes_of(group: str, plural: str) -> list[str]:
    """The routes that see new objects of a kind, those that change them first; each once."""
    entries = [entry for entry in (*_MUTATING, *_validating("")) if "CREATE" in entry.operations]
    return list(dict.fromkeys(entry.route for entry in entries if (entry.api[0], entry.plural) == (group, plural)))


def configurations(
    *,
    url: str | None = None,
    service: tuple[str, str] | None = None,
    ca_bundle: bytes,
    groups: Sequence[ResourceGroup] = (),
) -> list[dict[str, Any]]:
    """The two webhook configurations, ready to apply; the webhook is at `url` or behind `service` (namespace, name).

    `ca_bundle` is the PEM of the authority that signed its certificate, `groups` are the resource groups that the
    webhook is configured with. Muster's own accounts are in the namespace of the service.
    """
    if (url is None) == (service is None):
        raise ValueError("give either url or service (namespace, name)")
    bundle = b64encode(ca_bundle).decode()
    namespace = service[0] if service else names.SYSTEM_NAMESPACE

    def webhook(entry: _Entry, *, mutating: bool) -> dict[str, Any]:
        client = {"url": f"{url.rstrip('/')}{entry.route}"} if url else _service(service, entry.route)
        return _webhook(entry, {**client, "caBundle": bundle}, mutating=mutating)

    return [
        _configuration("MutatingWebhookConfiguration", [webhook(entry, mutating=True) for entry in _mutating(groups)]),
        _configuration(
            "ValidatingWebhookConfiguration", [webhook(entry, mutating=False) for entry in _validating(namespace)]
        ),
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
    result: dict[str, Any] = {
        "name": f"{entry.name}.{_POD_HINT if entry.plural == 'pods' else _HINT}.{names.DOMAIN}",
        "clientConfig": client,
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "namespaceSelector": {"matchExpressions": [_OUTSIDE, *entry.namespace]},
    }
    if mutating:
        result["reinvocationPolicy"] = "IfNeeded"
    if entry.object:
        result["objectSelector"] = {"matchExpressions": list(entry.object)}
    if entry.conditions:
        result["matchConditions"] = [{"name": name, "expression": text} for name, text in entry.conditions]
    return result
