"""Policies of a gang for faults of its nodes, from annotations of its workload. Pure.

`muster.dev/on-node-fault` determines what happens to a gang with members on a faulty node.
`muster.dev/node-fault-grace` is the time to wait for a node that does not respond. `muster.dev/avoid-failed-node` is
the time for which the gang avoids a node on which one of its members failed.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, get_args

from muster.api.fields import FieldError
from muster.api.limits import SECONDS
from muster.api.names import AVOID_FAILED_NODE, NODE_FAULT_GRACE, ON_NODE_FAULT
from muster.resources.runtime import readable_duration_s

Policy = Literal["wait", "replace", "restart"]
POLICIES: Final = get_args(Policy)
_DURATIONS: Final = (NODE_FAULT_GRACE, AVOID_FAILED_NODE)


def policy_of(annotations: Mapping[str, str]) -> Policy | None:
    """Return the node-fault policy that a gang names; None if the gang names no policy, or an unknown one."""
    named: dict[str, Policy] = {policy: policy for policy in get_args(Policy)}
    return named.get(annotations.get(ON_NODE_FAULT, ""))


def seconds_of(annotations: Mapping[str, str], key: str) -> float | None:
    """Return the duration in an annotation in seconds, possibly 0; None for an invalid or too long duration."""
    seconds = readable_duration_s(annotations.get(key))
    return seconds if seconds is not None and seconds <= SECONDS.value else None


def mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in these annotations; `path` is the path of the annotations."""
    if ON_NODE_FAULT in annotations and policy_of(annotations) is None:
        message = f"must be one of: {', '.join(POLICIES)}"
        yield FieldError(f"{path}[{ON_NODE_FAULT}]", message, annotations[ON_NODE_FAULT], "NotSupported")
    for key in _DURATIONS:
        if key in annotations and seconds_of(annotations, key) is None:
            message = f"must be a duration from 0s to {SECONDS.value} seconds, such as 30s, 5m or 1h30m"
            yield FieldError(f"{path}[{key}]", message, annotations[key])
