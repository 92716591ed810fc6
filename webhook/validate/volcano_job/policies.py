"""Lifecycle policies, of a Volcano Job and of each of its tasks."""

from collections.abc import Iterator, Sequence

from muster.api.fields import FieldError
from muster.api.limits import POLICIES, SECONDS
from muster.api.volcano.batch import LifecyclePolicy
from muster.resources.runtime import parse_duration_s

EVENTS = (
    "*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated",
)  # fmt: skip
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
)  # fmt: skip


def check_policies(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[FieldError]:
    """Check each policy, and that no event or exit code has two of them."""
    yield from POLICIES.exceeded_by(path, len(policies))
    for index, policy in enumerate(policies):
        yield from _check_one(policy, f"{path}[{index}]")
    yield from _check_duplicates(policies, path)


def _check_one(policy: LifecyclePolicy, path: str) -> Iterator[FieldError]:
    events = policy.all_events
    field = f"{path}.event" if policy.event else f"{path}.events"
    if events and policy.exit_code is not None:
        message = "must not specify event and exitCode simultaneously; make two policies of it"
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
