"""Upper bounds for every user-supplied number, in one table.

Admission refuses amounts over the limit. If it was bypassed, such amounts are ignored, or only the object is excluded:
docs/admission.md describes this and the fields of each limit. The reason for each number is below it.
"""

from typing import Final, NamedTuple

from muster.api.fields import FieldError


class Limit(NamedTuple):
    """The upper bound of one amount; errors contain its name."""

    name: str
    value: int
    unit: str

    def exceeded(self, path: str, value: int) -> list[FieldError]:
        """Return an error if the field at `path` holds more than the limit."""
        if value <= self.value:
            return []
        return [FieldError(path, f"must be at most {self.value} ({self.unit}; limit {self.name!r})", value)]

    def exceeded_by(self, path: str, count: int) -> list[FieldError]:
        """Return an error if the list or map at `path` has more entries than the limit."""
        if count <= self.value:
            return []
        return [FieldError(path, f"must have at most {self.value} {self.unit} (limit {self.name!r})", count)]


PODS: Final = Limit("pods per gang", 20_000, "pods")
"""A Placement of this size is far below etcd's limit of 1.5 MB, and clusters run few gangs of this size."""
SPARES: Final = Limit("spares of a gang", 64, "nodes")
"""Large runs keep one node in a hundred; more of them help no gang, and cost their queue resources."""
RANK: Final = Limit("rank", PODS.value - 1, "highest rank")
"""Ranks count from 0 and there are no more of them than pods."""
GPU_DEVICES: Final = Limit("GPUs per node that pods share", 64, "devices")
"""Four times as many as servers have."""
GPU_MEMORY: Final = Limit("GPU memory", 2**30, "MiB")
"""A pebibyte is thousands of times a GPU's memory, and thousandths of it still fit into 64 bits."""
EPOCH: Final = Limit("epoch", 2**31 - 1, "placements")
"""The field has 32 bits, as Kubernetes' counters have: one placement each second for 68 years."""
DIGITS: Final = Limit("digits", 18, "digits")
"""The longest that always fits into 64 bits; Python takes time in the square of the digits."""
TASKS: Final = Limit("tasks per Job", 128, "tasks")
"""Each task is searched separately in every cycle; tasks are kinds of pods, not pods."""
STEPS: Final = Limit("steps per JobFlow", 128, "steps")
"""Each is a Job, with an entry in the status of the JobFlow."""
STEP_NEEDS: Final = Limit("dependencies per JobFlow", 4_096, "targets and task phases")
"""Each is checked in every pass; every step may wait for 32 others."""
TEMPLATE_JOBS: Final = Limit("Jobs listed by a JobTemplate", 1_000, "Jobs")
"""The list is for people, and is written whole for each Job more."""
RESOURCES: Final = Limit("resource names per pod", 64, "resource names")
"""Nodes offer about ten; each name costs a check of every node."""
TOPOLOGY_CONSTRAINTS: Final = Limit("topology constraints per pod set", 64, "different constraints")
"""Each different constraint is searched separately; the ReplicatedJobs of a JobSet are pods of one pod set."""
SUB_GROUPS: Final = Limit("sub-groups by labels", 1_024, "sub-groups")
"""A domain is searched for each; partitions of a Job's task are not counted, because they are equally large."""
TEMPLATE_BYTES: Final = Limit("bytes of a template for planning", 65_536, "bytes")
"""Labels, annotations, selectors, affinity and requests of usual pods are one or two thousand."""
SUB_GROUP_CHECKS: Final = Limit("checks of pods for sub-groups", 200_000, "checks")
"""A pod is checked once for each condition and label key of each policy that may concern it."""
TERMS: Final = Limit("affinity terms per pod", 64, "terms")
"""Each is compared with pods of other shapes; usual pods have one to three."""
CONDITIONS: Final = Limit("conditions of affinity terms", 256, "conditions")
"""Each may be checked for every pod that is compared."""
NODE_CONDITIONS: Final = Limit("conditions about nodes per pod", 256, "conditions about nodes")
"""Each is evaluated for all nodes, of every shape of pods that waits; usual pods have one to five."""
TOLERATIONS: Final = Limit("tolerations per pod", 64, "tolerations")
"""They are compared with the taints of all nodes, of every shape of pods that waits; usual pods have two to ten."""
OWN_QUERIES: Final = Limit("terms of a namespace about its own pods", 1_024, "different terms")
"""Each pod of the namespace is compared with them, and its record lists the matching ones."""
WIDE_QUERIES: Final = Limit("terms of a namespace about pods of others", 256, "different terms")
"""Each pod of the cluster is compared with them, of each namespace."""
TOPOLOGY_KEYS: Final = Limit("topology keys of an anti-affinity", 8, "different keys")
"""Of equal terms in one namespace; networks have four or five levels, and pods are counted for each on every node."""
POLICIES: Final = Limit("policies", 128, "policies")
"""There are fewer events, and programs have few exit codes with a meaning."""
VOLUMES: Final = Limit("volumes per Job", 128, "volumes")
"""Every pod of the Job mounts all of them."""
PROCESSES: Final = Limit("processes per node", 4_096, "processes")
"""More than any machine has hardware threads."""
RETRIES: Final = Limit("retries", 1_000_000, "restarts")
"""One restart a minute for two years."""
SECONDS: Final = Limit("seconds", 315_360_000, "seconds")
"""Ten years; dates that it is added to stay within the calendar."""
NOTICE: Final = Limit("eviction notice", 3_600, "seconds")
"""Capacity for other gangs is delayed as long; a checkpoint of a large run takes minutes."""
CHECKPOINT_CHARS: Final = Limit("characters of a checkpoint", 128, "characters")
"""A step and a time have some forty."""
RESTARTS: Final = Limit("restart budget", 100, "restarts")
"""Each is noted in the status of the Job."""
MEMBERS: Final = Limit("members per HyperNode", 10_000, "members")
"""An object with this number of names just fits into etcd; one pattern or label selector can replace many."""
PATTERNS: Final = Limit("patterns per HyperNode", 64, "patterns")
"""Every pattern is compared with the name of every node; several can be joined into one."""
ALL_PATTERNS: Final = Limit("patterns of all HyperNodes", 4_096, "different patterns")
"""Comparing 100,000 names with this number of patterns takes a few seconds, once."""
PATTERN_CHARS: Final = Limit("characters of a pattern", 512, "characters")
"""Names of nodes have 253 at most."""
PATTERN_STEPS: Final = Limit("steps of a pattern", 1_000, "steps of its program in RE2")
"""The time for one name is at most its length times these; usual patterns have 10 to 100."""
SELECTOR_TERMS: Final = Limit("conditions of a label selector", 64, "conditions")
"""Each is compared with the labels of every node that may match."""
TIERS: Final = Limit("tiers", 16, "tiers")
"""No network has more levels, and Kueue's topologies have as many; each costs a number per node."""
PLACES: Final = Limit("HyperNodes of a node", 64, "HyperNodes")
"""A node needs one per tier; the limit protects memory against patterns that match too many nodes."""
LIMIT_WINDOWS: Final = Limit("time windows of a queue", 32, "windows")
"""Each is checked in every cycle; a week has fourteen days and nights."""
DEVICE_KINDS: Final = Limit("kinds of devices", 256, "kinds")
"""Each is a row of the planner's arrays over all nodes; clusters have some tens."""
OBJECT_BYTES: Final = Limit("bytes of an object in memory", 2 * 2**20, "bytes")
"""The API server takes objects of 1.5 MiB, which are texts in memory; of others it is a hundred times the usual."""
NAMESPACE_BYTES: Final = Limit("bytes of a kind in a namespace", 64 * 2**20, "bytes")
"""Ten thousand usual Jobs, and an eighth of the memory of a process."""
METADATA_BYTES: Final = Limit("bytes of labels of an object", 65_536, "bytes")
"""A thousand labels; real objects have some dozens. The same counts for owners and for finalizers."""
DEMAND_BYTES: Final = Limit("bytes of one demand of a pod", 32_768, "bytes")
"""Hundreds of volumes or tolerations; real pods have some dozens."""
GANG_BYTES: Final = Limit("bytes of a PodGroup's spec", 65_536, "bytes")
"""Hundreds of tasks or sub-groups; some 2 ms of an event loop. The same counts for its status."""
CONTAINERS: Final = Limit("containers per pod", 256, "containers")
"""Several times as many as any pod has; each is checked when the pod's requests are computed."""
CONTAINER_AMOUNTS: Final = Limit("amounts and ports of a pod's containers", 2_048, "amounts and ports")
"""Each is read when the pod's requests are computed; a container has three or four."""
LIMITS: Final = tuple(each for each in list(globals().values()) if isinstance(each, Limit))
"""The table: all limits of this module, in their order."""


class LimitError(ValueError):
    """An object cannot be evaluated because an amount exceeds its limit; the message is for the owner."""


def whole_number(text: str | None, most: int | None = None) -> int | None:
    """Return the number in a label or annotation: decimal digits within the limit, and at most `most`.

    None for anything else. Python itself refuses to parse numbers with very many digits.
    """
    if not text or len(text) > DIGITS.value or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number
