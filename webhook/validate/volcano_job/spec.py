"""Validation of a Volcano Job's fields except tasks and plugins: name, counts, limits, volumes and policies.

A pod's name is its host name, so `<job>-<task>-<index>` must be a DNS label for every index. A volume either names an
existing claim or describes a new claim.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from muster.api.fields import FieldError
from muster.api.limits import PODS, POLICIES, RETRIES, SECONDS, TASKS, VOLUMES
from muster.api.volcano.batch import Job, JobSpec, LifecyclePolicy, VolumeSpec
from muster.resources.runtime import parse_duration_s
from muster.volcano.tasks import pod_name, total_replicas
from webhook.objects.names import MAX_LABEL, is_label, is_subdomain

EVENTS = (
    "*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated",
)  # fmt: skip
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
)  # fmt: skip


def check_names(job: Job) -> Iterator[FieldError]:
    """Check the Job's name, then the name of the last pod of each task."""
    name = job.metadata.name
    if not name:
        return
    if not is_label(name):
        message = (
            f"create job with name {name} validate failed: "
            f"must be a DNS label, as the names of its pods begin with it; at most {MAX_LABEL} characters "
            f"(it has {len(name)}) of a-z, 0-9 and '-', beginning and ending with a letter or digit"
        )
        yield FieldError("metadata.name", message, name)
        return
    for index, task in enumerate(job.spec.tasks):
        pod = pod_name(name, task.name, max(0, task.replicas - 1))
        if len(pod) > MAX_LABEL:
            message = (
                f"create pod with name {pod} validate failed: it would have {len(pod)} characters, and {MAX_LABEL} are "
                f"allowed; shorten the name of the job or of the task by {len(pod) - MAX_LABEL}"
            )
            yield FieldError(f"spec.tasks[{index}].name", message, task.name)


def check_counts(job: Job) -> Iterator[FieldError]:
    """Check the mutable numbers of pods: the size of a gang is limited, and its minimums must be reachable."""
    tasks, total = job.spec.tasks, total_replicas(job.spec)
    replicas = [PODS.exceeded(f"spec.tasks[{index}].replicas", task.replicas) for index, task in enumerate(tasks)]
    yield from chain(*replicas) if any(replicas) else PODS.exceeded_by("spec.tasks", total)
    for index, task in enumerate(tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            message = (
                f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job.metadata.name}; "
                f"at most {task.replicas}"
            )
            yield FieldError(f"spec.tasks[{index}].minAvailable", message, task.min_available)
    if job.spec.min_available > total:
        message = f"job 'minAvailable' should not be greater than total replicas in tasks; at most {total}"
        yield FieldError("spec.minAvailable", message, job.spec.min_available)


def check_limits(spec: JobSpec) -> Iterator[FieldError]:
    """Check that the immutable numeric fields are within their limits."""
    yield from TASKS.exceeded_by("spec.tasks", len(spec.tasks))
    yield from VOLUMES.exceeded_by("spec.volumes", len(spec.volumes))
    yield from RETRIES.exceeded("spec.maxRetry", spec.max_retry)
    yield from SECONDS.exceeded("spec.ttlSecondsAfterFinished", spec.ttl_seconds_after_finished or 0)


def check_volumes(volumes: Sequence[VolumeSpec]) -> Iterator[FieldError]:
    """Check that each volume has a unique mount path and exactly one source."""
    first: dict[str, int] = {}
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        if not volume.mount_path:
            yield FieldError(f"{path}.mountPath", "mountPath is required", reason="Required")
        elif first.setdefault(volume.mount_path, index) != index:
            message = f"duplicated mountPath: spec.volumes[{first[volume.mount_path]}] is already mounted there"
            yield FieldError(f"{path}.mountPath", message, volume.mount_path, "Duplicate")
        if not volume.volume_claim_name and volume.volume_claim is None:
            message = "either VolumeClaim or VolumeClaimName must be specified"
            yield FieldError(path, message, reason="Required")
        elif volume.volume_claim_name and volume.volume_claim is not None:
            message = (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName; "
                "if you want a new one, leave the name out"
            )
            yield FieldError(f"{path}.volumeClaimName", message, volume.volume_claim_name)
        elif volume.volume_claim_name and not is_subdomain(volume.volume_claim_name):
            message = "invalid VolumeClaimName: must be the name of a PersistentVolumeClaim (a-z, 0-9, '-' and '.')"
            yield FieldError(f"{path}.volumeClaimName", message, volume.volume_claim_name)


def check_policies(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[FieldError]:
    """Check each policy, and that no event and no exit code has two policies."""
    yield from POLICIES.exceeded_by(path, len(policies))
    for index, policy in enumerate(policies):
        yield from _check_one(policy, f"{path}[{index}]")
    yield from _check_duplicates(policies, path)


def _check_one(policy: LifecyclePolicy, path: str) -> Iterator[FieldError]:
    events = policy.all_events
    field = f"{path}.event" if policy.event else f"{path}.events"
    if events and policy.exit_code is not None:
        message = "must not specify event and exitCode simultaneously; use two policies"
        yield FieldError(f"{path}.exitCode", message, policy.exit_code)
    elif not events and policy.exit_code is None:
        yield FieldError(path, "either event and exitCode should be specified", reason="Required")
    for event in events:
        if event not in EVENTS:
            yield FieldError(field, f"invalid policy event; must be one of: {', '.join(EVENTS)}", event, "NotSupported")
    if policy.exit_code == 0:
        message = "0 is not a valid error code: a container that ends with 0 has not failed"
        yield FieldError(f"{path}.exitCode", message, 0)
    if policy.action not in ACTIONS:
        message = f"invalid policy action; must be one of: {', '.join(ACTIONS)}"
        yield FieldError(f"{path}.action", message, policy.action, "NotSupported")
    try:
        timeout_s = parse_duration_s("0" if policy.timeout is None else policy.timeout)
    except ValueError as error:
        yield FieldError(f"{path}.timeout", str(error), policy.timeout)
    else:
        yield from SECONDS.exceeded(f"{path}.timeout", int(timeout_s))


def _check_duplicates(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[FieldError]:
    events: dict[str, int] = {}
    codes: dict[int, int] = {}
    for index, policy in enumerate(policies):
        for event in policy.all_events:
            if events.setdefault(event, index) != index:
                message = f"duplicate event {event} across different policy; {path}[{events[event]}] has it already"
                yield FieldError(f"{path}[{index}]", message, event, "Duplicate")
        code = policy.exit_code
        if code is not None and codes.setdefault(code, index) != index:
            message = f"duplicate exitCode {code}; {path}[{codes[code]}] has it already"
            yield FieldError(f"{path}[{index}].exitCode", message, code, "Duplicate")
    if "*" in events and len(events) > 1:
        others = ", ".join(sorted(set(events) - {"*"}))
        message = f"if there's * here, no other policy should be here; * covers {others} too"
        yield FieldError(f"{path}[{events['*']}]", message, "*")
