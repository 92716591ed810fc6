"""Conversion of native PodGroups (scheduling.k8s.io) to gangs that Muster plans, and of gangs' states to conditions.

Pure.

No objects are mirrored: the planner works on a PodGroup in Volcano's form, which `as_group` derives from the native
PodGroup. Code that writes to the API server uses the native PodGroup (`native_name`, `reference`). The gang's phase and
reasons are stored as conditions of the native PodGroup, so that a restarted planner can read them. `conditions_of`
creates the conditions, and `status_of` reads them.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

from msgspec.structs import replace

from muster.api import names
from muster.api.kubernetes import scheduling
from muster.api.kubernetes.meta import Condition, Object, OwnerReference, format_time
from muster.api.limits import whole_number
from muster.api.muster.gang import native_gang
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.volcano.scheduling import (
    EVICTED,
    POD_GROUPS,
    ConditionType,
    PodGroup,
    PodGroupCondition,
    PodGroupPhase,
    PodGroupSpec,
    PodGroupStatus,
)

PHASE: Final = f"{names.DOMAIN}/Phase"
"""Condition of a native PodGroup, whose reason is the phase of the gang. The condition's message contains the pod
counts, and the queue and node pool unless they are the default ones."""
_PREFIX: Final = f"{names.DOMAIN}/"
_KINDS: Final[tuple[ConditionType, ...]] = get_args(ConditionType)
_OURS: Final = frozenset({PHASE, *(f"{_PREFIX}{kind}" for kind in _KINDS)})
_PHASES: Final[dict[str, PodGroupPhase]] = {phase: phase for phase in get_args(PodGroupPhase) if phase}
MARKS: Final = frozenset(
    {names.PLACEMENT, names.LATER_TASKS, names.INDEPENDENT, names.WORKLOAD, names.NATIVE_GROUP, names.INDIVISIBLE}
)
"""Annotations that Muster writes on the PodGroups of gangs. Muster ignores these annotations on native PodGroups,
because users may write them there."""


def is_native(group: Object) -> bool:
    """Return True for a gang that `as_group` has derived from a native PodGroup."""
    return group.api_version == scheduling.NATIVE_POD_GROUPS.api_version


def native_name(group: PodGroup) -> str:
    """Return the name of a gang's native PodGroup."""
    return group.metadata.annotations[names.NATIVE_GROUP]


def reference(group: PodGroup) -> OwnerReference:
    """Return a reference to the PodGroup of a gang as it exists in the cluster."""
    native = is_native(group)
    kind = scheduling.NATIVE_POD_GROUPS if native else POD_GROUPS
    name = native_name(group) if native else group.metadata.name
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=name, uid=group.metadata.uid)


def subject(group: PodGroup) -> Object:
    """Return the object for Events about a gang."""
    if not is_native(group):
        return group
    metadata = replace(group.metadata, name=native_name(group))
    return Object(api_version=group.api_version, kind=group.kind, metadata=metadata)


def queue_of(native: Object) -> str:
    """Return the queue named by a label or annotation of a native PodGroup or its Workload; empty if none is named."""
    labels, annotations = native.metadata.labels, native.metadata.annotations
    return labels.get(names.QUEUE) or annotations.get(names.QUEUE) or annotations.get(names.VOLCANO_QUEUE, "")


def as_group(native: scheduling.NativePodGroup, queue: str) -> PodGroup:
    """Return the native PodGroup in Volcano's form, as a gang in this queue.

    The pods of a PodGroup with the policy `basic` are no gang: each pod starts on its own. If a PodGroup may only be
    disrupted as a whole, none of its pods is evicted alone, even above the minimum.
    """
    spec, meta = native.spec, native.metadata
    annotations = {key: value for key, value in meta.annotations.items() if key not in MARKS}
    annotations[names.NATIVE_GROUP] = meta.name
    gang = spec.scheduling_policy.gang
    if gang is None:
        annotations[names.INDEPENDENT] = "true"
    if spec.disruption_mode is not None and spec.disruption_mode.all is not None:
        annotations[names.INDIVISIBLE] = "true"
    key = next((each.key for each in spec.scheduling_constraints.topology), "") if spec.scheduling_constraints else ""
    if key:
        annotations.pop(names.TOPOLOGY, None)
        annotations[names.TOPOLOGY_REQUIRED] = key
    return PodGroup(
        api_version=scheduling.NATIVE_POD_GROUPS.api_version,
        kind=scheduling.NATIVE_POD_GROUPS.kind,
        metadata=replace(meta, name=native_gang(meta.name), annotations=annotations),
        spec=PodGroupSpec(
            min_member=max(gang.min_count, 1) if gang else 1, queue=queue, priority_class_name=spec.priority_class_name
        ),
        status=status_of(native),
    )


def binds_parts(composite: scheduling.CompositePodGroupSpec) -> bool:
    """Return True if the groups in a composite group must start together, be disrupted together or be placed together.

    As in kube-scheduler, a composite group that needs only one of its groups is treated like a `basic` one.
    """
    policy, constraints, mode = composite.scheduling_policy, composite.scheduling_constraints, composite.disruption_mode
    alone = policy.gang.min_group_count <= 1 if policy.gang is not None else policy.basic is not None
    near = constraints is not None and bool(constraints.topology)
    return not alone or near or (mode is not None and mode.all is not None)


def status_of(native: scheduling.NativePodGroup) -> PodGroupStatus:
    """Return the gang's status from Muster's conditions; other conditions are ignored."""
    found = {each.type: each for each in native.status.conditions}
    status = PodGroupStatus()
    reason, counts = _phase_of(native)
    if reason in _PHASES:
        status.phase = _PHASES[reason]
        status.running, status.succeeded, status.failed, status.place = (
            whole_number(counts.get(key)) or 0 for key in ("running", "succeeded", "failed", "place")
        )
        status.expected_start = counts.get("expected-start") or None
    for kind in _KINDS:
        own = found.get(f"{_PREFIX}{kind}")
        if own is not None:
            status.conditions.append(
                PodGroupCondition(
                    type=kind,
                    status=own.status,
                    last_transition_time=own.last_transition_time,
                    reason=own.reason,
                    message=own.message,
                )
            )
    return status


def holds(status: PodGroupStatus) -> PodGroupStatus:
    """Return the part of a gang's status that can be stored in, and read back from, a native PodGroup's conditions."""
    by_kind = {each.type: replace(each, transition_id="") for each in status.conditions}
    return replace(status, conditions=[by_kind[kind] for kind in _KINDS if kind in by_kind], ending="")


def pool_of_group(native: scheduling.NativePodGroup) -> str:
    """Return the node pool whose planner has written the phase; "" for the default pool."""
    return _phase_of(native)[1].get("pool", DEFAULT_POOL)


def counted_in(native: scheduling.NativePodGroup) -> str:
    """Return the queue whose status counts this PodGroup; empty as long as Muster has not written its phase.

    A PodGroup with nodes counts in the queue in which it got these nodes. A waiting PodGroup counts in the queue that
    it names, else in the queue that the planner has recorded with its phase.
    """
    reason, data = _phase_of(native)
    return (held_queue(native) or queue_of(native) or data.get("queue") or names.DEFAULT_QUEUE) if reason else ""


def held_queue(native: scheduling.NativePodGroup) -> str:
    """Return the queue in which a gang has its nodes; empty if it has none.

    Admission does not check the labels of native PodGroups. If a label is changed while the gang has nodes, the change
    applies from the gang's next start.
    """
    reason, data = _phase_of(native)
    return data.get("queue", "") if reason in {"Running", "Unknown"} else ""


def conditions_of(
    status: PodGroupStatus, known: Sequence[Condition], now: float, *, pool: str = DEFAULT_POOL, queue: str = ""
) -> list[Condition]:
    """Return a native PodGroup's conditions for this status; `known` are its current conditions, `now` is in seconds.

    Conditions of other components are kept unchanged. PodGroupInitiallyScheduled, once True, stays True, as the API
    requires.
    """
    before = {each.type: each for each in known}
    moment = format_time(now)
    wanted = [_phase(status, pool, queue), *_reasons(status), *_for_everyone(status, before)]
    result = [each for each in known if each.type not in {one.type for one in wanted} | _OURS]
    for each in wanted:
        old = before.get(each.type)
        same = old is not None and (old.status, old.reason) == (each.status, each.reason)
        since = each.last_transition_time or (old.last_transition_time if same and old else moment)
        result.append(replace(each, last_transition_time=since))
    return result


def _phase_of(native: scheduling.NativePodGroup) -> tuple[str, dict[str, str]]:
    """Return the reason and the data of the condition `PHASE`; empty without this condition."""
    for each in native.status.conditions:
        if each.type == PHASE:
            return each.reason, dict(part.partition("=")[::2] for part in each.message.split(" "))
    return "", {}


def _phase(status: PodGroupStatus, pool: str, queue: str) -> Condition:
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    if status.place:
        counts["place"] = status.place
    words = [f"{key}={count}" for key, count in counts.items()]
    if status.expected_start:
        words.append(f"expected-start={status.expected_start}")
    if pool:
        words.append(f"pool={pool}")
    if queue:
        words.append(f"queue={queue}")
    return _condition(PHASE, status.phase or "Pending", " ".join(words))


def _reasons(status: PodGroupStatus) -> Iterable[Condition]:
    for each in status.conditions:
        made = _condition(f"{_PREFIX}{each.type}", each.reason or "Unknown", each.message, held=each.status == "True")
        yield replace(made, last_transition_time=each.last_transition_time or "")


def _for_everyone(status: PodGroupStatus, before: dict[str, Condition]) -> Iterable[Condition]:
    """Yield the standard conditions of a PodGroup, which other Kubernetes tools read."""
    conditions = {each.type: each for each in status.conditions}
    waits, starts = conditions.get("Unschedulable"), conditions.get("Scheduled")
    first = before.get(scheduling.INITIALLY_SCHEDULED)
    if first is not None and first.status == "True":
        yield first
    elif starts is not None and starts.status == "True":
        yield _condition(scheduling.INITIALLY_SCHEDULED, scheduling.SCHEDULED, starts.message)
    elif waits is not None and waits.status == "True":
        yield _condition(scheduling.INITIALLY_SCHEDULED, scheduling.UNSCHEDULABLE, waits.message, held=False)
    if waits is not None and waits.reason == EVICTED and waits.status == "True":
        yield _condition(scheduling.DISRUPTION_TARGET, scheduling.PREEMPTION_BY_SCHEDULER, waits.message)
    elif over := before.get(scheduling.DISRUPTION_TARGET):
        yield _condition(over.type, over.reason, over.message, held=False)


def _condition(kind: str, reason: str, message: str, *, held: bool = True) -> Condition:
    status: Literal["True", "False"] = "True" if held else "False"
    return Condition(type=kind, status=status, last_transition_time="", reason=reason, message=message)
