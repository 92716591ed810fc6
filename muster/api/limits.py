"""Upper bounds for every user-supplied number, in one table.

Admission refuses values over the limit. If admission was bypassed, such values are ignored, or only the object is
excluded. docs/admission.md describes this and the fields of each limit. The reason for each number is below it.
"""

from typing import Final, NamedTuple

from muster.api.fields import FieldError


class Limit(NamedTuple):
    """The upper bound of one value; errors contain its name."""

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
"""A Placement of this size is far below etcd's limit of 1.5 MB, and clusters have few gangs of this size."""
SPARES: Final = Limit("spares of a gang", 64, "nodes")
"""Large runs keep one spare node in a hundred; more spares help no gang, and cost their queue resources."""
RANK: Final = Limit("rank", PODS.value - 1, "highest rank")
"""Ranks count from 0, and there are no more ranks than pods."""
GPU_DEVICES: Final = Limit("GPUs per node that pods share", 64, "devices")
"""Four times the number of GPUs in usual servers."""
GPU_MEMORY: Final = Limit("GPU memory", 2**30, "MiB")
"""A pebibyte is thousands of times the memory of a GPU, and thousandths of it still fit into 64 bits."""
EPOCH: Final = Limit("epoch", 2**31 - 1, "placements")
"""The field has 32 bits, like Kubernetes' counters; this allows one placement per second for 68 years."""
DIGITS: Final = Limit("digits", 18, "digits")
"""Numbers of this length always fit into 64 bits; Python's parsing time grows with the square of the digits."""
TASKS: Final = Limit("tasks per Job", 128, "tasks")
"""Each task is searched separately in every cycle; tasks are kinds of pods, not single pods."""
STEPS: Final = Limit("steps per JobFlow", 128, "steps")
"""Each step is a Job with an entry in the status of the JobFlow."""
STEP_NEEDS: Final = Limit("dependencies per JobFlow", 4_096, "targets and task phases")
"""Each dependency is checked in every pass; with this limit, every step may wait for 32 others."""
TEMPLATE_JOBS: Final = Limit("Jobs listed by a JobTemplate", 1_000, "Jobs")
"""The list is for people, and is written completely for each additional Job."""
RESOURCES: Final = Limit("resource names per pod", 64, "resource names")
"""Nodes offer about ten resources; each name costs a check of every node."""
TOPOLOGY_CONSTRAINTS: Final = Limit("topology constraints per pod set", 64, "different constraints")
"""Each different constraint is searched separately; the ReplicatedJobs of a JobSet are pods of one pod set."""
SUB_GROUPS: Final = Limit("sub-groups by labels", 1_024, "sub-groups")
"""A domain is searched for each sub-group; partitions of a Job's task are not counted, because they are equally
large."""
TEMPLATE_BYTES: Final = Limit("bytes of a template for planning", 65_536, "bytes")
"""Labels, annotations, selectors, affinity and requests of usual pods have one or two thousand bytes."""
SUB_GROUP_CHECKS: Final = Limit("checks of pods for sub-groups", 200_000, "checks")
"""A pod is checked once for each condition and label key of each policy that may apply to it."""
TERMS: Final = Limit("affinity terms per pod", 64, "terms")
"""Each term is compared with pods of other shapes; usual pods have one to three terms."""
CONDITIONS: Final = Limit("conditions of affinity terms", 256, "conditions")
"""Each condition may be checked for every compared pod."""
NODE_CONDITIONS: Final = Limit("conditions about nodes per pod", 256, "conditions about nodes")
"""Each condition is evaluated for all nodes and each shape of waiting pods; usual pods have one to five."""
TOLERATIONS: Final = Limit("tolerations per pod", 64, "tolerations")
"""Tolerations are compared with the taints of all nodes, for each shape of waiting pods; usual pods have two to ten."""
OWN_QUERIES: Final = Limit("terms of a namespace about its own pods", 1_024, "different terms")
"""Each pod of the namespace is compared with these terms, and its record lists the matching ones."""
WIDE_QUERIES: Final = Limit("terms of a namespace about pods of others", 256, "different terms")
"""Each pod of the cluster is compared with these terms of each namespace."""
TOPOLOGY_KEYS: Final = Limit("topology keys of an anti-affinity", 8, "different keys")
"""Number for equal terms in one namespace; networks have four or five levels, and pods are counted for each level on
every node."""
POLICIES: Final = Limit("policies", 128, "policies")
"""There are fewer events, and programs have few exit codes with a meaning."""
VOLUMES: Final = Limit("volumes per Job", 128, "volumes")
"""Every pod of the Job mounts all of them."""
PROCESSES: Final = Limit("processes per node", 4_096, "processes")
"""More than the hardware threads of any machine."""
RETRIES: Final = Limit("retries", 1_000_000, "restarts")
"""Enough for one restart per minute for two years."""
SECONDS: Final = Limit("seconds", 315_360_000, "seconds")
"""Ten years; dates to which this time is added stay within the calendar."""
NOTICE: Final = Limit("eviction notice", 3_600, "seconds")
"""Capacity for other gangs is delayed by this time; a checkpoint of a large run takes minutes."""
CHECKPOINT_CHARS: Final = Limit("characters of a checkpoint", 128, "characters")
"""A step and a time have about forty characters."""
RESTARTS: Final = Limit("restart budget", 100, "restarts")
"""Each restart is recorded in the status of the Job."""
MEMBERS: Final = Limit("members per HyperNode", 10_000, "members")
"""An object with this number of names just fits into etcd; one pattern or label selector can replace many names."""
PATTERNS: Final = Limit("patterns per HyperNode", 64, "patterns")
"""Every pattern is compared with the name of every node; several can be joined into one."""
ALL_PATTERNS: Final = Limit("patterns of all HyperNodes", 4_096, "different patterns")
"""Comparing 100,000 names with this number of patterns takes a few seconds, once."""
PATTERN_CHARS: Final = Limit("characters of a pattern", 512, "characters")
"""Names of nodes have 253 at most."""
PATTERN_STEPS: Final = Limit("steps of a pattern", 1_000, "steps of its program in RE2")
"""The time for one name is at most its length times this number; usual patterns have 10 to 100 steps."""
SELECTOR_TERMS: Final = Limit("conditions of a label selector", 64, "conditions")
"""Each condition is compared with the labels of every node that may match."""
TIERS: Final = Limit("tiers", 16, "tiers")
"""No network has more levels, and Kueue's topologies have the same maximum; each level costs a number per node."""
PLACES: Final = Limit("HyperNodes of a node", 64, "HyperNodes")
"""A node needs one place per tier; the limit saves memory if patterns match too many nodes."""
LIMIT_WINDOWS: Final = Limit("time windows of a queue", 32, "windows")
"""Each window is checked in every cycle; a week has fourteen days and nights."""
DEVICE_KINDS: Final = Limit("kinds of devices", 256, "kinds")
"""Each kind is a row of the planner's arrays over all nodes; clusters have some tens of kinds."""
OBJECT_BYTES: Final = Limit("bytes of an object in memory", 2 * 2**20, "bytes")
"""The API server accepts objects of 1.5 MiB, which are texts in memory; usual objects of other kinds take a hundredth
of the limit."""
NAMESPACE_BYTES: Final = Limit("bytes of a kind in a namespace", 64 * 2**20, "bytes")
"""Ten thousand usual Jobs, or an eighth of a process's memory."""
METADATA_BYTES: Final = Limit("bytes of labels of an object", 65_536, "bytes")
"""Enough for a thousand labels; real objects have some dozens. The limit also applies to owners and to finalizers."""
DEMAND_BYTES: Final = Limit("bytes of one demand of a pod", 32_768, "bytes")
"""Enough for hundreds of volumes or tolerations; real pods have some dozens."""
GANG_BYTES: Final = Limit("bytes of a PodGroup's spec", 65_536, "bytes")
"""Enough for hundreds of tasks or sub-groups, which take about 2 ms on an event loop. The limit also applies to the
status."""
CONTAINERS: Final = Limit("containers per pod", 256, "containers")
"""Several times the number that any pod has; each container is checked when the pod's requests are computed."""
CONTAINER_AMOUNTS: Final = Limit("amounts and ports of a pod's containers", 2_048, "amounts and ports")
"""Each value is read when the pod's requests are computed; a container has three or four."""
LIMITS: Final = tuple(each for each in list(globals().values()) if isinstance(each, Limit))
"""All limits of this module, in their order."""


class LimitError(ValueError):
    """An object cannot be evaluated because a value exceeds its limit; the message is for the owner."""


def whole_number(text: str | None, most: int | None = None) -> int | None:
    """Return the number in a label or annotation: decimal digits within the limit, and at most `most`.

    Returns None for any other text. Python itself refuses to parse numbers with very many digits.
    """
    if not text or len(text) > DIGITS.value or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number
