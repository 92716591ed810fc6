"""The webhook configurations: which objects the API server sends to which route.

The API server only sends objects that opt in to Muster. The webhook fails closed: while it does not respond, the API
server refuses all objects that match an entry. Entries that only cause warnings, as for namespaces, are exceptions. The
tables in this module therefore determine the effect of an outage, and each entry selects as few objects as possible. An
entry selects objects by label selectors where possible, otherwise by CEL conditions (`conditions`). No entry selects
objects in the namespaces that a cluster needs to start. Entries that change pods do not overlap, because an object that
matches two entries is sent twice.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS, WEBHOOK_VALIDATION
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.apps import STATEFUL_SETS
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.api.volcano.topology import HYPER_NODES
from muster.workloads.kind import WorkloadKind
from muster.workloads.table import KINDS
from webhook import conditions
from webhook.conditions import Conditions
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.mutate.workload import LABELLED
from webhook.validate.workload import VALIDATED

NAME = names.WEBHOOKS
TIMEOUT_S = 10
SHORT_TIMEOUT_S = 2
"""Timeout, in seconds, of reviews that cause only warnings, or for which an autoscaler waits. If the webhook does not
respond in time, the request succeeds."""
_CHANGES = ("CREATE", "UPDATE")

Expression = dict[str, Any]
_OUTSIDE: Expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(UNTOUCHED_NAMESPACES)}
_MANAGED: Expression = {"key": names.MANAGED, "operator": "NotIn", "values": ["false"]}
_VALIDATED: Expression = {"key": WEBHOOK_VALIDATION, "operator": "NotIn", "values": ["disabled"]}


def _has(label: str) -> Expression:
    return {"key": label, "operator": "Exists"}


def _lacks(label: str) -> Expression:
    return {"key": label, "operator": "DoesNotExist"}


class _Webhook(NamedTuple):
    """One entry of a webhook configuration.

    An object is sent if all of the entry's expressions and conditions are true.
    """

    name: str
    route: str
    resource: Resource[Any]
    operations: tuple[str, ...] = ("CREATE",)
    object: tuple[Expression, ...] = ()
    namespace: tuple[Expression, ...] = ()
    conditions: Conditions = ()
    refuses: bool = True
    """False if requests succeed while the webhook is down. Such requests succeed if the review causes only warnings, or
    if the entry includes objects unrelated to Muster."""


def _name(resource: Resource[Any]) -> str:
    """Return the name of the webhook for a kind that has a single webhook in a configuration, e.g. `jobs.batch`."""
    return f"{resource.plural}.{resource.group.partition('.')[0] or 'core'}"


def _trainer(verb: str, resource: Resource[Any], *expressions: Expression) -> _Webhook:
    """Return the entry for a Kubeflow Trainer kind; its path is the same as for Trainer's own webhook."""
    route = f"/{verb}-trainer-kubeflow-org-v1alpha1-{resource.kind.lower()}"
    return _Webhook(resource.plural, route, resource, _CHANGES, expressions)


_SCALES = replace(STATEFUL_SETS, plural="statefulsets/scale")
_IN_A_QUEUE = (_has(names.QUEUE), _MANAGED)
# Muster's controller sets this label on pods of a Job that was reviewed, if they have nothing for which pods are
# changed. A condition could exclude these pods, too, but the API server copies the pod for each condition.
_UNSEEN: Expression = {"key": names.REVIEWED, "operator": "NotIn", "values": ["true"]}
_UNLABELLED = (_lacks(names.QUEUE), _lacks(names.FRAMEWORK), _MANAGED, _UNSEEN)


def _labelled(kind: WorkloadKind) -> Iterator[_Webhook]:
    """Yield the entries for a kind whose labels are copied to its pods.

    The first entry selects by the object's own labels. For some kinds, the second entry selects by labels of the
    namespace. For the other kinds, further entries only record the creator of objects.
    """
    name, route, labelled = _name(kind.resource), "/mutate/workload", conditions.workload_labelled(kind)
    yield _Webhook(name, route, kind.resource, conditions=(("asks-for-muster", labelled),))
    silent = (("says-nothing-itself", f"!({labelled})"),)
    if kind.admission.own_queue:
        yield _Webhook(f"namespaced-{name}", route, kind.resource, namespace=_IN_A_QUEUE, conditions=silent)
    else:
        yield from _signed(kind, silent)


def _signed(kind: WorkloadKind, silent: Conditions = ()) -> Iterator[_Webhook]:
    """Yield the entries for a kind of workload whose creator is recorded, without other changes.

    One entry selects objects by labels in their pod templates; another entry selects by labels of their namespace. The
    creator is needed because the pods of such a workload are charged to a queue, which may have a limit per user. Kinds
    with one pod per node (DaemonSets) have no entry by namespace, because their pods do not get the namespace's queue.
    """
    name, templates = _name(kind.resource), conditions.template_labelled(kind)
    by_user = (*silent, conditions.OF_NO_CONTROLLER)
    by_template = (*by_user, ("asks-for-muster", templates))
    yield _Webhook(f"templated-{name}", "/mutate/creator", kind.resource, conditions=by_template)
    if not kind.one_node_each:
        others = (*by_user, ("says-nothing-in-templates", f"!({templates})"))
        yield _Webhook(f"created-{name}", "/mutate/creator", kind.resource, namespace=_IN_A_QUEUE, conditions=others)


# Selectors are preferred to conditions: they cost the API server next to nothing, and every pod is checked.
_MUTATING = (
    _Webhook("jobs.batch-volcano-sh", "/mutate/job", JOBS, _CHANGES),
    _Webhook("podgroups", "/mutate/podgroup", POD_GROUPS, conditions=conditions.OF_NO_JOB),
    _Webhook("changed-podgroups", "/mutate/changed", POD_GROUPS, ("UPDATE",), conditions=conditions.CHANGED),
    _Webhook("cronjobs.batch-volcano-sh", "/mutate/creator", CRON_JOBS),
    _Webhook("jobflows", "/mutate/creator", JOB_FLOWS),
    _Webhook("queues", "/mutate/queue", QUEUES),
    _trainer("mutate", TRAIN_JOBS),
    *(entry for kind in LABELLED for entry in _labelled(kind)),
    *(entry for kind in KINDS if kind.no_ranks and not kind.labelled for entry in _signed(kind)),
    _Webhook("pods", "/mutate/pod", PODS, object=(_has(names.QUEUE), _lacks(names.FRAMEWORK), _MANAGED)),
    _Webhook("shaped-pods", "/mutate/pod", PODS, object=(_has(names.FRAMEWORK), _MANAGED)),
    _Webhook("held-pods", "/mutate/pod", PODS, object=_UNLABELLED, conditions=conditions.REQUESTS_A_GATE),
)  # fmt: skip
_VALIDATING = (
    _Webhook("jobs.batch-volcano-sh", "/validate/job", JOBS, _CHANGES),
    _trainer("validate", TRAIN_JOBS),
    _trainer("validate", TRAINING_RUNTIMES, _VALIDATED),
    _trainer("validate", CLUSTER_TRAINING_RUNTIMES, _VALIDATED),
    *(
        _Webhook(
            _name(kind.resource), "/validate/workload", kind.resource, _CHANGES, conditions=conditions.validated(kind)
        )
        for kind in VALIDATED
    ),
    _Webhook("scales.apps", "/validate/scale", _SCALES, ("UPDATE",), conditions=conditions.SCALED, refuses=False),
    _Webhook("pods", "/validate/pod", PODS, object=(_MANAGED, _UNSEEN), conditions=conditions.NEEDS_A_CHECK),
    _Webhook("commands", "/validate/command", COMMANDS, _CHANGES),
    _Webhook("queues", "/validate/queue", QUEUES, ("CREATE", "UPDATE", "DELETE")),
    _Webhook(
        "namespaces", "/validate/namespace", NAMESPACES, _CHANGES, conditions=conditions.RELABELLED, refuses=False
    ),
    _Webhook("hypernodes", "/validate/hypernode", HYPER_NODES, _CHANGES),
    _Webhook("cronjobs.batch-volcano-sh", "/validate/cronjob", CRON_JOBS, _CHANGES),
    _Webhook("jobflows", "/validate/jobflow", JOB_FLOWS, _CHANGES),
    _Webhook("jobtemplates", "/validate/jobtemplate", JOB_TEMPLATES, _CHANGES),
)


def _validating(namespace: str) -> list[_Webhook]:
    """Return the webhooks that check objects; Muster's own service accounts are in `namespace`."""
    entering = conditions.enters_a_queue(namespace)
    return [*_VALIDATING, _Webhook("podgroups", "/validate/podgroup", POD_GROUPS, _CHANGES, conditions=entering)]


def _mutating(groups: Sequence[ResourceGroup]) -> list[_Webhook]:
    """Return the webhooks that change objects.

    The entry that selects by namespace is last. Its handler adds the label by which another entry selects, so in an
    earlier position it would cause pods to be sent twice.
    """
    grouped, namespaced = conditions.of_grouped(groups), conditions.of_namespaced(groups)
    by_group = _Webhook("grouped-pods", "/mutate/pod", PODS, object=_UNLABELLED, conditions=grouped)
    by_namespace = _Webhook(
        "namespaced-pods", "/mutate/pod", PODS, object=_UNLABELLED, namespace=_IN_A_QUEUE, conditions=namespaced
    )
    native = _Webhook("native-pods", "/mutate/pod", PODS, object=_UNLABELLED, conditions=conditions.of_native(groups))
    return [*_MUTATING, native, *([by_group] if groups else []), by_namespace]


def routes_of(group: str, plural: str) -> list[str]:
    """Return the distinct paths to which the API server sends new objects of a kind; mutating paths come first."""
    entries = [entry for entry in (*_MUTATING, *_validating("")) if "CREATE" in entry.operations]
    matching = [entry.route for entry in entries if (entry.resource.group, entry.resource.plural) == (group, plural)]
    return list(dict.fromkeys(matching))


def configurations(
    *,
    url: str | None = None,
    service: tuple[str, str] | None = None,
    ca_bundle: bytes,
    groups: Sequence[ResourceGroup] = (),
) -> list[dict[str, Any]]:
    """Return both webhook configurations, for a webhook at `url` or behind `service` (namespace, name).

    `ca_bundle` contains the certificate authority (PEM) of the webhook, and `groups` are its resource groups. Muster's
    service accounts are in the Service's namespace.
    """
    if (url is None) == (service is None):
        raise ValueError("give either url or service (namespace, name)")
    bundle = b64encode(ca_bundle).decode()
    namespace, name = service or (names.SYSTEM_NAMESPACE, "")

    def configuration(kind: str, entries: list[_Webhook], **settings: Any) -> dict[str, Any]:
        webhooks = []
        for alike in _alike(entries):
            route = alike[0].route
            to_service = {"service": {"namespace": namespace, "name": name, "path": route}}
            client = {"url": f"{url.rstrip('/')}{route}"} if url else to_service
            webhooks.append({**_webhook(alike, {**client, "caBundle": bundle}), **settings})
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": NAME},
            "webhooks": webhooks,
        }

    return [
        configuration("MutatingWebhookConfiguration", _mutating(groups), reinvocationPolicy="IfNeeded"),
        configuration("ValidatingWebhookConfiguration", _validating(namespace)),
    ]


def _alike(entries: Sequence[_Webhook]) -> list[list[_Webhook]]:
    """Group entries that differ only in name and kind; the API server evaluates each group once."""
    groups: list[list[_Webhook]] = []
    for entry in entries:
        group = next(
            (each for each in groups if each[0]._replace(name=entry.name, resource=entry.resource) == entry), None
        )
        if group:
            group.append(entry)
        else:
            groups.append([entry])
    return groups


def _webhook(alike: Sequence[_Webhook], client: dict[str, Any]) -> dict[str, Any]:
    entry, *others = alike
    # The API server puts this name at the beginning of each refusal, so it is short and names the kind.
    name = f"{entry.name}-and-others" if others else entry.name
    result: dict[str, Any] = {
        "name": f"{name}.{names.DOMAIN}",
        "clientConfig": client,
        "rules": [
            {
                "apiGroups": [each.resource.group],
                "apiVersions": [each.resource.version],
                "resources": [each.resource.plural],
                "operations": list(each.operations),
                "scope": "*",
            }
            for each in alike
        ],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail" if entry.refuses else "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S if entry.refuses else SHORT_TIMEOUT_S,
        "namespaceSelector": {"matchExpressions": [_OUTSIDE, *entry.namespace]},
    }
    if entry.object:
        result["objectSelector"] = {"matchExpressions": list(entry.object)}
    if entry.conditions:
        result["matchConditions"] = [{"name": name, "expression": text} for name, text in entry.conditions]
    return result
