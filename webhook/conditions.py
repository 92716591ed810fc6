"""Which objects the API server sends, as far as that takes more than a selector: conditions in CEL. Pure.

They are put together from names. Each has a name of its own, which the API server shows in its errors, and an
expression over the object.
"""

import json
from collections.abc import Sequence
from typing import Final

from muster.api import names
from muster.api.limits import RESOURCES
from muster.api.volcano.batch import JOBS
from muster.workloads.kind import WorkloadKind
from muster.workloads.templates import Path
from webhook.config import ResourceGroup
from webhook.mutate.optin import TIED_OWNERS
from webhook.validate.disruption import MAX_UNAVAILABLE, MIN_AVAILABLE

Conditions = tuple[tuple[str, str], ...]
"""All of them must hold."""
_ANNOTATIONS: Final = "object.metadata.annotations"
_OWNERS: Final = "object.metadata.ownerReferences"
_OF_A_JOB: Final = (
    f"has({_OWNERS}) && {_OWNERS}.exists(owner, has(owner.controller) && owner.controller && "
    f"owner.kind == '{JOBS.kind}' && owner.apiVersion.startsWith('{JOBS.group}/'))"
)
"""A Volcano Job is the object's controller; other owners say nothing about it."""


def quoted(text: str) -> str:
    """A string literal. JSON's escapes are CEL's too, but for those beyond Unicode's first plane, which need none."""
    return json.dumps(text, ensure_ascii=False)


def annotated(key: str, value: str) -> str:
    """An expression that holds where the object has this annotation with this very value."""
    name = quoted(key)
    return f"(has({_ANNOTATIONS}) && {name} in {_ANNOTATIONS} && {_ANNOTATIONS}[{name}] == {quoted(value)})"


def in_a_group(groups: Sequence[ResourceGroup]) -> str:
    """An expression: one of the groups takes the pod, and it has no template that was given its group already."""
    namespaces = sorted({namespace for group in groups for namespace in group.namespaces})
    taken = [f"request.namespace in [{', '.join(map(quoted, namespaces))}]"] if namespaces else []
    pairs = dict.fromkeys(pair for group in groups for pair in group.annotations)
    taken += [annotated(key, value) for key, value in pairs]
    return f"({' || '.join(taken)}) && !({_OF_A_JOB})"


def of_grouped(groups: Sequence[ResourceGroup]) -> Conditions:
    """Pods that are sent because a resource group takes them; those with a gate are sent anyway."""
    return (("is-in-a-resource-group", in_a_group(groups)), _NO_GATE)


def of_namespaced(groups: Sequence[ResourceGroup]) -> Conditions:
    """Pods that are sent because of their namespace, and for no other reason.

    Those that need no place must not wait for us, whatever their namespace says.
    """
    elsewhere = (("is-in-no-resource-group", f"!({in_a_group(groups)})"),) if groups else ()
    return (*_NEEDS_A_PLACE, _NO_GATE, *elsewhere)


def _labelled(metadata: str) -> str:
    """This metadata has one of our labels."""
    labels = (names.QUEUE, names.FRAMEWORK, names.MANAGED)
    either = " || ".join(f"'{label}' in {metadata}.labels" for label in labels)
    return f"(has({metadata}.labels) && ({either}))"


_LABELLED: Final = _labelled("object.metadata")
# A workload may carry the labels itself or, as far as Jobs are concerned, on its template only.
_JOB_LABELLED: Final = (
    f"{_LABELLED} || (has(object.spec.template.metadata) && {_labelled('object.spec.template.metadata')})"
)
_SHARES: Final = " || ".join(f"'{key}' in {_ANNOTATIONS}" for key in names.GPU_SHARE_KEYS)
_SHARES_GPUS: Final = f"(has({_ANNOTATIONS}) && ({_SHARES}))"
ASKS_ITSELF: Final = f"{annotated(names.QUEUE_ALLOCATION_GATE, 'true')} || {_SHARES_GPUS}"
"""The pod has the annotation for a gate, or for a part of a GPU."""
_NO_GATE: Final = ("asks-for-nothing-itself", f"!({ASKS_ITSELF})")
_TIED: Final = f"owner, owner.kind in {list(TIED_OWNERS)}"
_SCHEDULERS: Final = ["", names.CLUSTER_SCHEDULER, *sorted(names.SCHEDULERS)]
# Where the namespace says nothing, no pod is sent at all: that is a selector.
_NEEDS_A_PLACE: Final = (
    ("has-no-node", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
    (
        "is-for-any-node",
        f"!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists({_TIED})",
    ),
    (
        "scheduler-is-open",
        f"!has(object.spec.schedulerName) || object.spec.schedulerName in {_SCHEDULERS}",
    ),
)
_BUDGETS: Final = " || ".join(f"'{key}' in {_ANNOTATIONS}" for key in (MIN_AVAILABLE, MAX_UNAVAILABLE))

OPTS_IN: Final = (("asks-for-muster", _LABELLED),)
"""A workload that opts in itself."""
JOB_OPTS_IN: Final = (("asks-for-muster", _JOB_LABELLED),)
"""A batch/v1 Job that opts in itself, or its template."""
JOB_SAYS_NOTHING: Final = (("says-nothing-itself", f"!({_JOB_LABELLED})"),)
"""A batch/v1 Job for which its namespace may opt in."""


def _asks(metadata: str) -> str:
    """This metadata has any label under our name, known or not: one that is not is warned of."""
    return f"(has({metadata}.labels) && {metadata}.labels.exists(key, key.startsWith('{names.DOMAIN}/')))"


def _template_asks(path: Path, node: str = "object") -> str:
    """A pod template at this path in the object has such a label."""
    if not path:
        return f"(has({node}.metadata) && {_asks(f'{node}.metadata')})"
    if path[0] == "*":
        return f"{node}.exists(each, {_template_asks(path[1:], 'each')})"
    return f"(has({node}.{path[0]}) && {_template_asks(path[1:], f'{node}.{path[0]}')})"


def _or_empty(member: str) -> str:
    return f"(has({member}) ? {member} : {{}})"


_NEW_ANNOTATIONS: Final = _or_empty(_ANNOTATIONS)
_OLD_ANNOTATIONS: Final = _or_empty("oldObject.metadata.annotations")
_CHANGED: Final = (
    "request.operation == 'CREATE' || object.spec != oldObject.spec || "
    f"{_or_empty('object.metadata.labels')} != {_or_empty('oldObject.metadata.labels')} || "
    f"{_NEW_ANNOTATIONS}.exists(key, key.startsWith('{names.DOMAIN}/') && "
    f"(!(key in {_OLD_ANNOTATIONS}) || {_OLD_ANNOTATIONS}[key] != {_NEW_ANNOTATIONS}[key]))"
)


def validated(kind: WorkloadKind) -> Conditions:
    """A workload of this kind that is checked: it or a template has a label of ours, and what we read has changed.

    Controllers write to objects all the time; what they write there is none of ours.
    """
    asks = " || ".join([_asks("object.metadata"), *(_template_asks(path) for path in kind.templates)])
    return (("asks-for-muster", asks), ("changes-what-muster-reads", _CHANGED))


REQUESTS_A_GATE: Final = (("asks-for-muster", ASKS_ITSELF),)
"""A pod with the annotation for a gate, or for a part of a GPU."""
_HAS_A_BUDGET: Final = f"(has({_ANNOTATIONS}) && ({_BUDGETS}))"


_TOPOLOGY: Final = " || ".join(
    f"key.startsWith('{prefix}')" for prefix in (names.TOPOLOGY, names.KUEUE_REQUIRED.removesuffix("required-topology"))
)
_HAS_TOPOLOGY: Final = f"(has({_ANNOTATIONS}) && {_ANNOTATIONS}.exists(key, {_TOPOLOGY}))"


def _many(container: str) -> str:
    """The container names so many resources that its pod may name too many."""
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
NEEDS_A_CHECK: Final = (
    ("asks-for-muster", f"has(object.spec.schedulerName) && object.spec.schedulerName in {sorted(names.SCHEDULERS)}"),
    (
        "has-a-budget-a-topology-shares-gpus-or-many-resources",
        f"{_HAS_A_BUDGET} || {_HAS_TOPOLOGY} || {_SHARES_GPUS} || {_VOLCANO_GPUS} || {_NAMES_MANY}",
    ),
)
"""A pod of our schedulers with a disruption budget, a topology, a part of a GPU, or more resource names than usual."""
_QUEUE: Final = "(has({0}.spec) && has({0}.spec.queue) ? {0}.spec.queue : '')"
_ENTERS_A_QUEUE: Final = (
    "enters-a-queue",
    f"request.operation == 'CREATE' || {_QUEUE.format('object')} != {_QUEUE.format('oldObject')}",
)


def enters_a_queue(namespace: str) -> Conditions:
    """A new PodGroup, or one that moves; not each write of a status, which is no subresource.

    Nor a new one that Muster's controller, whose account is in this namespace, makes for a Volcano Job: it is computed
    from what was checked when the Job was admitted.
    """
    controller = f"system:serviceaccount:{namespace}:{names.CONTROLLER_ACCOUNT}"
    made_by_us = f"request.operation == 'CREATE' && request.userInfo.username == {quoted(controller)} && ({_OF_A_JOB})"
    return (_ENTERS_A_QUEUE, ("is-not-computed-from-a-job", f"!({made_by_us})"))


OF_NO_JOB: Final = (("is-no-volcano-jobs", f"!({_OF_A_JOB})"),)
"""A PodGroup that is in no queue yet: a Volcano Job's is created in the queue where the Job was admitted."""
