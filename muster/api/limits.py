"""Upper bounds for every user-supplied number, in one table.

Admission rejects values above their limit. If admission was bypassed, Muster ignores only such a value or its object.
docs/admission.md lists the fields to which each limit applies. The docstring of each limit explains the limit's value.
"""

from typing import Final, NamedTuple

from muster.api.fields import FieldError


class Limit(NamedTuple):
    """The upper bound of one kind of user-supplied value. Error messages contain the name of the limit."""

    name: str
    value: int
    unit: str

    def exceeded(self, path: str, value: int) -> list[FieldError]:
        """Return an error if the value of the field at `path` exceeds the limit."""
        if value <= self.value:
            return []
        return [FieldError(path, f"must be at most {self.value} ({self.unit}; limit {self.name!r})", value)]

    def exceeded_by(self, path: str, count: int) -> list[FieldError]:
        """Return an error if the list or map at `path` has more entries than the limit."""
        if count <= self.value:
            return []
        return [FieldError(path, f"must have at most {self.value} {self.unit} (limit {self.name!r})", count)]


PODS: Final = Limit("pods per gang", 20_000, "pods")
"""A Placement for the maximum number of pods is far smaller than etcd's limit of 1.5 MB, and few clusters run larger
gangs."""
SPARES: Final = Limit("spares of a gang", 64, "nodes")
"""Large runs hold about one spare node per hundred nodes. More spare nodes would not help a gang, and would be charged
to its queue."""
RANK: Final = Limit("rank", PODS.value - 1, "highest rank")
"""Ranks count from 0, and there are no more ranks than pods."""
GPU_DEVICES: Final = Limit("GPUs per node that pods share", 64, "devices")
"""The limit of shared GPUs is four times the number of GPUs in a large server."""
GPU_MEMORY: Final = Limit("GPU memory", 2**30, "MiB")
"""One pebibyte is thousands of times the memory of a GPU, and a thousand pebibytes still fit into 64 bits."""
EPOCH: Final = Limit("epoch", 2**31 - 1, "placements")
"""The field `epoch` has 32 bits, like Kubernetes' counters. The epoch's limit suffices for one placement per second for
68 years."""
DIGITS: Final = Limit("digits", 18, "digits")
"""Numbers with at most 18 digits always fit into 64 bits. Python's time to parse a number grows with the square of its
digits."""
TASKS: Final = Limit("tasks per Job", 128, "tasks")
"""The planner searches nodes for each task separately in every cycle. A task is a kind of pods, not a single pod, so
Jobs have few tasks."""
STEPS: Final = Limit("steps per JobFlow", 128, "steps")
"""Each step of a JobFlow becomes a Job, and each Job has an entry in the status of the JobFlow."""
STEP_NEEDS: Final = Limit("dependencies per JobFlow", 4_096, "targets and task phases")
"""The controller checks each dependency of a JobFlow in every pass. The limit allows each of 128 steps to wait for 32
others."""
TEMPLATE_JOBS: Final = Limit("Jobs listed by a JobTemplate", 1_000, "Jobs")
"""No program reads a JobTemplate's list of Jobs, and the controller writes the whole list again for each additional
Job."""
RESOURCES: Final = Limit("resource names per pod", 64, "resource names")
"""Nodes offer about ten resources. The planner checks every node for each resource name that a pod requests."""
TOPOLOGY_CONSTRAINTS: Final = Limit("topology constraints per pod set", 64, "different constraints")
"""The planner searches domains separately for each different topology constraint. All ReplicatedJobs of a JobSet are in
one pod set, and each may have its own constraint."""
SUB_GROUPS: Final = Limit("sub-groups by labels", 1_024, "sub-groups")
"""The planner searches a domain for each sub-group. Partitions of a Job's task do not count as sub-groups here, because
all of them have the same size."""
TEMPLATE_BYTES: Final = Limit("bytes of a template for planning", 65_536, "bytes")
"""The labels, annotations, selectors, affinity and requests of a usual pod have one or two thousand bytes."""
SUB_GROUP_CHECKS: Final = Limit("checks of pods for sub-groups", 200_000, "checks")
"""To find its sub-group, a pod is checked against each condition and label key of every policy that may apply to it."""
TERMS: Final = Limit("affinity terms per pod", 64, "terms")
"""Each affinity term is compared with pods of all other shapes. A usual pod has one to three affinity terms."""
CONDITIONS: Final = Limit("conditions of affinity terms", 256, "conditions")
"""Each condition in an affinity term may be checked for every pod with which the term is compared."""
NODE_CONDITIONS: Final = Limit("conditions about nodes per pod", 256, "conditions on labels or fields of nodes")
"""Each condition of a pod about nodes is evaluated on all nodes, for each shape of waiting pods. A usual pod has one to
five conditions about nodes."""
TOLERATIONS: Final = Limit("tolerations per pod", 64, "tolerations")
"""Tolerations are compared with the taints of all nodes for each shape of waiting pods. A usual pod has two to ten
tolerations."""
OWN_QUERIES: Final = Limit("terms of a namespace about its own pods", 1_024, "different terms")
"""Each pod is compared with the affinity terms of its namespace, and the record of the pod lists the matching terms."""
WIDE_QUERIES: Final = Limit("terms of a namespace about pods of others", 256, "different terms")
"""Each pod of the cluster is compared with the affinity terms that apply to other namespaces."""
TOPOLOGY_KEYS: Final = Limit("topology keys of an anti-affinity", 8, "different keys")
"""Maximum total number of topology keys in anti-affinity terms of a namespace that are otherwise equal. Networks have
four or five levels, each with a topology key, and pods are counted per key on every node."""
POLICIES: Final = Limit("policies", 128, "policies")
"""Policies can react to far fewer kinds of events, and programs use only a few meaningful exit codes."""
VOLUMES: Final = Limit("volumes per Job", 128, "volumes")
"""Every pod of a Job mounts all volumes of the Job."""
PROCESSES: Final = Limit("processes per node", 4_096, "processes")
"""No machine has more than 4,096 hardware threads."""
RETRIES: Final = Limit("retries", 1_000_000, "restarts")
"""One million restarts are one restart per minute for two years."""
SECONDS: Final = Limit("seconds", 315_360_000, "seconds")
"""The limit of durations is ten years, so that a date plus such a duration stays within the calendar."""
NOTICE: Final = Limit("eviction notice", 3_600, "seconds")
"""Other gangs may have to wait for the capacity of a notified gang until the eviction notice ends. Saving a checkpoint
of a large run takes only minutes."""
CHECKPOINT_CHARS: Final = Limit("characters of a checkpoint", 128, "characters")
"""The annotation with a checkpoint contains a step number and a time, about forty characters together."""
RESTARTS: Final = Limit("restart budget", 100, "restarts")
"""Each restart that uses the restart budget is recorded in the status of the Job."""
MEMBERS: Final = Limit("members per HyperNode", 10_000, "members")
"""A HyperNode that lists 10,000 node names just fits into etcd. One pattern or label selector can replace many node
names."""
PATTERNS: Final = Limit("patterns per HyperNode", 64, "patterns")
"""Every pattern of a HyperNode is compared with the name of every node. Several patterns can be joined into one."""
ALL_PATTERNS: Final = Limit("patterns of all HyperNodes", 4_096, "different patterns")
"""Comparing 100,000 node names with 4,096 patterns takes a few seconds."""
PATTERN_CHARS: Final = Limit("characters of a pattern", 512, "characters")
"""A pattern must match names of nodes, which have at most 253 characters."""
PATTERN_STEPS: Final = Limit("steps of a pattern", 1_000, "steps of its program in RE2")
"""The time to match a name is at most proportional to the length of the name times the number of the pattern's steps.
Usual patterns have 10 to 100 steps."""
SELECTOR_TERMS: Final = Limit("conditions of a label selector", 64, "conditions")
"""Each condition of a HyperNode's label selector is compared with the labels of every node that may match."""
TIERS: Final = Limit("tiers", 16, "tiers")
"""No network has more than 16 levels, and Kueue's topologies have the same maximum. The planner stores one number per
node for each level."""
PLACES: Final = Limit("HyperNodes of a node", 64, "HyperNodes")
"""A node is usually in one HyperNode per tier. The limit of HyperNodes per node saves memory if patterns match too many
nodes."""
LIMIT_WINDOWS: Final = Limit("time windows of a queue", 32, "windows")
"""Each time window is checked in every cycle. A separate window for each day and each night of a week makes fourteen
windows."""
DEVICE_KINDS: Final = Limit("kinds of devices", 256, "kinds")
"""Each kind of device is a row of the planner's matrices, which have a column per node. Clusters have a few dozen kinds
of devices."""
OBJECT_BYTES: Final = Limit("bytes of an object in memory", 2 * 2**20, "bytes")
"""The API server accepts objects of up to 1.5 MiB, which use less than 2 MiB of memory if they are stored as text. An
object that is not stored as text usually needs a hundredth of this memory."""
NAMESPACE_BYTES: Final = Limit("bytes of a kind in a namespace", 64 * 2**20, "bytes")
"""64 MiB suffice for ten thousand usual Jobs, and are an eighth of a process's memory."""
METADATA_BYTES: Final = Limit("bytes of labels of an object", 65_536, "bytes")
"""64 KiB suffice for a thousand labels; real objects have a few dozen. The limit also applies to owner references, to
finalizers, and to annotations of pods."""
DEMAND_BYTES: Final = Limit("bytes of one demand of a pod", 32_768, "bytes")
"""32 KiB suffice for hundreds of volumes or tolerations; real pods have a few dozen."""
GANG_BYTES: Final = Limit("bytes of a PodGroup's spec", 65_536, "bytes")
"""64 KiB suffice for hundreds of tasks or sub-groups, which an event loop processes in about 2 ms. The limit also
applies to a PodGroup's status."""
CONTAINERS: Final = Limit("containers per pod", 256, "containers")
"""Real pods have far fewer than 256 containers. Each container is read when the pod's requests are computed."""
CONTAINER_AMOUNTS: Final = Limit("amounts and ports of a pod's containers", 2_048, "amounts and ports")
"""Each quantity and port of a container is read when the pod's requests are computed. A usual container has three or
four quantities and ports."""
LIMITS: Final = tuple(each for each in list(globals().values()) if isinstance(each, Limit))
"""All limits of this module, in the order of their definition."""


class LimitError(ValueError):
    """Raised if an object cannot be evaluated because a value exceeds a limit.

    The error's message is for the object's owner.
    """


def whole_number(text: str | None, most: int | None = None) -> int | None:
    """Return the whole number in a label or annotation: at most `most`, with at most as many digits as `DIGITS` allows.

    Returns None for a text that is no such number. Python itself refuses to parse numbers with very many digits.
    """
    if not text or len(text) > DIGITS.value or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number
