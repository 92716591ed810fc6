"""CEL match conditions of the webhook configurations, which select objects in addition to label selectors. Pure.

Expressions are built from names of labels and annotations. Each condition consists of a name, which the API server
shows in errors, and an expression over the object.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from muster.api import names
from muster.api.limits import RESOURCES
from muster.api.muster.pools import PREFIX
from muster.api.volcano.batch import JOBS
from muster.workloads.kind import Path, WorkloadKind
from muster.workloads.table import TIED_OWNERS
from webhook.config import ResourceGroup
from webhook.senders import ACCOUNT, CONTROLLER_MANAGER

Conditions = tuple[tuple[str, str], ...]
"""Named CEL expressions; the API server sends an object if all of them are true."""
_ANNOTATIONS: Final = "object.metadata.annotations"
_OWNERS: Final = "object.metadata.ownerReferences"
_OF_A_JOB: Final = (
    f"has({_OWNERS}) && {_OWNERS}.exists(owner, has(owner.controller) && owner.controller && "
    f"owner.kind == '{JOBS.kind}' && owner.apiVersion.startsWith('{JOBS.group}/'))"
)
"""CEL expression that is true if a Volcano Job is the controller of the object, and not just another owner."""


def quoted(text: str) -> str:
    """Return a CEL string literal. A CEL literal has the escapes of JSON, but no surrogate pairs."""
    return json.dumps(text, ensure_ascii=False)


def annotated(key: str, value: str) -> str:
    """Return an expression that is true if the object has this annotation with this value."""
    name = quoted(key)
    return f"(has({_ANNOTATIONS}) && {name} in {_ANNOTATIONS} && {_ANNOTATIONS}[{name}] == {quoted(value)})"


def _any_annotation(keys: Iterable[str]) -> str:
    found = " || ".join(f"'{key}' in {_ANNOTATIONS}" for key in keys)
    return f"(has({_ANNOTATIONS}) && ({found}))"


def in_a_group(groups: Sequence[ResourceGroup]) -> str:
    """Return an expression that is true for pods of a resource group, except pods of Volcano Jobs.

    Pods of a Volcano Job are excluded, because the Job has recorded the group's settings for its pods at admission.
    """
    namespaces = sorted({namespace for group in groups for namespace in group.namespaces})
    taken = [f"request.namespace in [{', '.join(map(quoted, namespaces))}]"] if namespaces else []
    pairs = dict.fromkeys(pair for group in groups for pair in group.annotations)
    taken += [annotated(key, value) for key, value in pairs]
    return f"({' || '.join(taken)}) && !({_OF_A_JOB})"


def of_grouped(groups: Sequence[ResourceGroup]) -> Conditions:
    """Return the conditions for pods that are sent only because of their resource group.

    Pods whose annotation requests a gate or a part of a GPU are excluded, because they are sent in any case.
    """
    return (("is-in-a-resource-group", in_a_group(groups)), _NO_GATE)


def of_native(groups: Sequence[ResourceGroup]) -> Conditions:
    """Return the conditions for pods in native PodGroups with Muster's scheduler that no other entry selects."""
    return (("asks-for-muster", IN_A_NATIVE_GROUP), _NO_GATE, *_of_no(groups))


def of_namespaced(groups: Sequence[ResourceGroup]) -> Conditions:
    """Return the conditions for pods that are sent only because of their namespace.

    Pods that are placed without Muster are excluded.
    """
    return (*_NEEDS_A_PLACE, _NO_GATE, ("is-in-no-native-group", f"!({IN_A_NATIVE_GROUP})"), *_of_no(groups))


def _of_no(groups: Sequence[ResourceGroup]) -> Conditions:
    return (("is-in-no-resource-group", f"!({in_a_group(groups)})"),) if groups else ()


def _labelled(metadata: str) -> str:
    """Return an expression that is true if an object with this metadata opts in or out by a label."""
    labels = (names.QUEUE, names.FRAMEWORK, names.MANAGED)
    either = " || ".join(f"'{label}' in {metadata}.labels" for label in labels)
    return f"(has({metadata}.labels) && ({either}))"


_LABELLED: Final = _labelled("object.metadata")
_SHARES_GPUS: Final = _any_annotation(names.GPU_SHARE_KEYS)
ANNOTATED_REQUEST: Final = f"{annotated(names.QUEUE_ALLOCATION_GATE, 'true')} || {_SHARES_GPUS}"
"""CEL expression that is true if an annotation of the pod requests a gate or a part of a GPU."""
_NO_GATE: Final = ("asks-for-nothing-itself", f"!({ANNOTATED_REQUEST})")
_TIED: Final = f"owner, owner.kind in {list(TIED_OWNERS)}"
_SCHEDULER: Final = "object.spec.schedulerName"
_OPEN_SCHEDULERS: Final = ["", names.CLUSTER_SCHEDULER, *sorted(names.SCHEDULERS)]
_OF_A_POOL: Final = f"{_SCHEDULER}.startsWith('{PREFIX}')"
IN_A_NATIVE_GROUP: Final = (
    "has(object.spec.schedulingGroup) && has(object.spec.schedulerName) && "
    f"({_SCHEDULER} in {sorted(names.SCHEDULERS)} || {_OF_A_POOL})"
)
"""CEL expression that is true if the pod is in a native PodGroup and names a Muster scheduler. In API servers before
Kubernetes 1.36, pods have no field for a native PodGroup."""
# A selector leaves out pods of namespaces without a queue.
_NEEDS_A_PLACE: Final = (
    ("has-no-node", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
    ("is-for-any-node", f"!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists({_TIED})"),
    ("scheduler-is-open", f"!has({_SCHEDULER}) || {_SCHEDULER} in {_OPEN_SCHEDULERS} || {_OF_A_POOL}"),
)


def workload_labelled(kind: WorkloadKind) -> str:
    """Return an expression that is true if a workload opts in or out by its own label.

    For kinds of workloads that can get their namespace's queue, labels in the pod templates count too.
    """
    templates = [f"object.{'.'.join(path)}.metadata" for path in kind.templates if kind.admission.own_queue]
    return " || ".join([_LABELLED, *(f"(has({each}) && {_labelled(each)})" for each in templates)])


_MUSTERS: Final = "key.startsWith('muster.') || key.startsWith('muster/')"


def _has_muster_label(metadata: str) -> str:
    """Return an expression that is true if this metadata has any label of Muster's domain or of a similar domain.

    Labels of similar domains, and labels that were written as annotations, are included, because they cause warnings.
    """
    labels = f"(has({metadata}.labels) && {metadata}.labels.exists(key, {_MUSTERS}))"
    misplaced = " || ".join(f"'{key}' in {metadata}.annotations" for key in (names.QUEUE, names.FRAMEWORK))
    return f"({labels} || (has({metadata}.annotations) && ({misplaced})))"


def _template_has_muster_label(path: Path, node: str = "object") -> str:
    """Return an expression that is true if `_has_muster_label` is true for the pod template at this path."""
    if not path:
        return f"(has({node}.metadata) && {_has_muster_label(f'{node}.metadata')})"
    if path[0] == "*":
        return f"{node}.exists(each, {_template_has_muster_label(path[1:], 'each')})"
    return f"(has({node}.{path[0]}) && {_template_has_muster_label(path[1:], f'{node}.{path[0]}')})"


def _or_empty(member: str) -> str:
    return f"(has({member}) ? {member} : {{}})"


_NEW_ANNOTATIONS: Final = _or_empty(_ANNOTATIONS)
_OLD_ANNOTATIONS: Final = _or_empty("oldObject.metadata.annotations")
_OTHER_LABELS: Final = f"{_or_empty('object.metadata.labels')} != {_or_empty('oldObject.metadata.labels')}"
_CHANGED: Final = (
    f"request.operation == 'CREATE' || object.spec != oldObject.spec || {_OTHER_LABELS} || "
    f"{_NEW_ANNOTATIONS}.exists(key, key.startsWith('{names.DOMAIN}/') && "
    f"(!(key in {_OLD_ANNOTATIONS}) || {_OLD_ANNOTATIONS}[key] != {_NEW_ANNOTATIONS}[key]))"
)
RELABELLED: Final = (
    ("asks-for-muster", _has_muster_label("object.metadata")),
    ("labels-change", f"request.operation == 'CREATE' || {_OTHER_LABELS}"),
)
"""Conditions for namespaces with a Muster label that are new or have changed labels."""


def template_labelled(kind: WorkloadKind) -> str:
    """Return an expression that is true if a pod template of the workload has any label of Muster's domain."""
    return " || ".join(map(_template_has_muster_label, kind.templates))


_USER: Final = "request.userInfo.username"
OF_NO_CONTROLLER: Final = (
    "is-not-sent-by-a-controller",
    (
        f"!({_USER} == '{CONTROLLER_MANAGER}' || (has({_OWNERS}) && "
        f"{_OWNERS}.exists(o, has(o.controller) && o.controller) && {_USER}.startsWith('{ACCOUNT}') && "
        f"!{_USER}.startsWith('{ACCOUNT}' + request.namespace + ':')))"
    ),
)
"""Condition for objects that were created by the sender of the request, by the rule of `senders.is_controller`. Objects
from controllers are excluded, because a controller creates objects for another user."""


def validated(kind: WorkloadKind) -> Conditions:
    """Return the conditions for validated workloads: a Muster label, possibly in a template, and a relevant change."""
    labelled = " || ".join([_has_muster_label("object.metadata"), *map(_template_has_muster_label, kind.templates)])
    return (("asks-for-muster", labelled), ("changes-what-muster-reads", _CHANGED))


REQUESTS_A_GATE: Final = (("asks-for-muster", ANNOTATED_REQUEST),)
"""Condition for pods with an annotation that requests a gate or a part of a GPU."""
_TOPOLOGY: Final = " || ".join(
    f"key.startsWith('{prefix}')"
    for prefix in (names.TOPOLOGY, names.KUEUE_REQUIRED.removesuffix("required-topology"), names.KAI_TOPOLOGY)
)
_HAS_TOPOLOGY: Final = f"(has({_ANNOTATIONS}) && {_ANNOTATIONS}.exists(key, {_TOPOLOGY}))"


def _many(container: str) -> str:
    """Return an expression that is true if this container names so many resources that its pod may exceed the limit."""
    some = RESOURCES.value // 4
    amounts = (f"{container}.resources.{kind}" for kind in ("limits", "requests"))
    return (
        f"has({container}.resources) && ({' || '.join(f'(has({each}) && size({each}) > {some})' for each in amounts)})"
    )


_NAMES_MANY: Final = (
    f"size(object.spec.containers) > 4 || object.spec.containers.exists(each, {_many('each')}) || "
    f"(has(object.spec.initContainers) && object.spec.initContainers.exists(each, {_many('each')}))"
)
_VOLCANO_GPUS: Final = (
    "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && "
    f"'{names.VOLCANO_GPU_MEMORY}' in c.resources.limits)"
)
_OF_FAULTS: Final = _any_annotation(names.FAULT_KEYS)
_HAS_A_BUDGET: Final = _any_annotation((names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE))
NEEDS_A_CHECK: Final = (
    ("asks-for-muster", f"has({_SCHEDULER}) && ({_SCHEDULER} in {sorted(names.SCHEDULERS)} || {_OF_A_POOL})"),
    (
        "has-a-budget-a-topology-faults-shares-gpus-or-many-resources",
        f"{_HAS_A_BUDGET} || {_HAS_TOPOLOGY} || {_OF_FAULTS} || {_SHARES_GPUS} || {_VOLCANO_GPUS} || {_NAMES_MANY}",
    ),
)
"""Conditions for pods of Muster's schedulers that need a check. The check concerns disruption budgets, topologies,
rules for node faults, parts of GPUs, and unusually many resources."""
_QUEUE: Final = "(has({0}.spec) && has({0}.spec.queue) ? {0}.spec.queue : '')"
_POOL: Final = (
    f"(has({{0}}.metadata.labels) && '{names.NODE_POOL}' in {{0}}.metadata.labels ? "
    f"{{0}}.metadata.labels['{names.NODE_POOL}'] : '')"
)
_LEAST: Final = "(has({0}.spec) && has({0}.spec.minResources) ? {0}.spec.minResources : {{}})"
_CLASS: Final = "(has({0}.spec) && has({0}.spec.priorityClassName) ? {0}.spec.priorityClassName : '')"
_ENTERS_A_QUEUE: Final = (
    "enters-a-queue-or-gets-a-class",
    " || ".join(
        (
            "request.operation == 'CREATE'",
            *(f"{each.format('object')} != {each.format('oldObject')}" for each in (_QUEUE, _POOL, _LEAST, _CLASS)),
        )
    ),
)


CHANGED: Final = (
    (
        "gets-another-queue-or-class",
        " || ".join(f"{each.format('object')} != {each.format('oldObject')}" for each in (_QUEUE, _CLASS)),
    ),
)
"""Condition for updates of a PodGroup's queue or PriorityClass, for which admission records the user."""

_REPLICAS: Final = ("object.spec.replicas", "oldObject.spec.replicas")
_SOME: Final = " && ".join(f"has({each}) && {each} > 0" for each in _REPLICAS)
SCALED: Final = (("keeps-pods-and-not-as-many", f"{_SOME} && {' != '.join(_REPLICAS)}"),)
"""Condition for Scales that may change the size of a workload with a framework; a selector is not possible, because a
Scale has no labels."""


def enters_a_queue(namespace: str) -> Conditions:
    """Return the conditions for PodGroups that are new, or get another queue, node pool, class or minResources.

    PodGroups that Muster's controller (with an account in this namespace) computes from a checked workload are
    excluded.
    """
    controller = f"system:serviceaccount:{namespace}:{names.CONTROLLER_ACCOUNT}"
    stays = " && ".join(f"{each.format('object')} == {each.format('oldObject')}" for each in (_QUEUE, _POOL))
    computed = f"request.operation == 'CREATE' ? ({_OF_A_JOB}) : {stays}"
    made_by_us = f"request.userInfo.username == {quoted(controller)} && ({computed})"
    return (_ENTERS_A_QUEUE, ("is-not-computed-from-a-workload", f"!({made_by_us})"))


OF_NO_JOB: Final = (("is-no-volcano-jobs", f"!({_OF_A_JOB})"),)
"""Condition for PodGroups that no Volcano Job controls; admission may set the queue of these PodGroups. The PodGroup of
a Volcano Job is created in the queue that admitted the Job."""
