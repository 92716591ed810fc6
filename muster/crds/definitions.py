"""The kinds that Muster installs: their names and columns, and the schema rules that their Structs cannot have."""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.meta import LabelSelector
from muster.api.muster.placement import PLACEMENTS, Placement, PlacementSpec, PlacementStatus
from muster.api.volcano.batch import COMMANDS, JOBS, Command, JobSpec, PartitionPolicy, VolumeSpec
from muster.api.volcano.cron import CRON_JOBS, CronJobSpec
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, Flow
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, NetworkTopology, SubGroupPolicy
from muster.api.volcano.topology import (
    HYPER_NODES,
    ExactMatch,
    HyperNodeSpec,
    HyperNodeStatus,
    MemberSelector,
    RegexMatch,
)
from muster.crds.schema import Schema, rules
from muster.crds.training import TRAINING_OVERLAYS

_LABELS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN = {"maxLength": 253, "pattern": rf"^({_LABELS})?$"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; those with a priority above 0 are shown with `-o wide` only."""

    name: str
    type: str
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One kind, without its schema. `about` opens its section in docs/api.md."""

    resource: Resource[Any]
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status_subresource: bool = False
    about: str


AGE = Column("AGE", "date", ".metadata.creationTimestamp")
_TRAIN_JOB = """A training job in a few lines: its runtime, and the differences from it.

After creation only `suspend` and `runtimePatches` may change, and those of the patches that decide where pods go only
while the job is suspended. `status` carries no condition while the job waits or runs: clients read one as "not
running". docs/trainjobs.md describes its life."""

_RUNTIME = """The template of TrainJobs of its namespace: a JobSet's, and the framework that sets the pods up.

Job templates tell their step of the TrainJob by the label `trainer.kubeflow.org/trainjob-ancestor-step`: `trainer`,
with a container `node`, or `dataset-initializer` or `model-initializer`, with a container of the same name. Label
`trainer.kubeflow.org/framework` tells clients what it is for; `trainer.kubeflow.org/support: deprecated` makes its
users read a warning."""

_CLUSTER_RUNTIME = """The template of TrainJobs of all namespaces. Muster brings `torch-distributed`, `mpi-distributed`,
`jax-distributed`, `plain` and the `torchtune-…` runtimes."""

DEFINITIONS = (
    Definition(
        resource=JOBS,
        short_names=("vcjob", "vj"),
        status_subresource=True,
        columns=(
            Column("STATUS", "string", ".status.state.phase"),
            Column("minAvailable", "integer", ".status.minAvailable"),
            Column("RUNNINGS", "integer", ".status.running"),
            AGE,
            Column("QUEUE", "string", ".spec.queue", priority=1),
        ),
        about="""A Volcano Job: tasks whose pods start together, with policies for the failures of some of them.

The webhook fills in what is left out and refuses what cannot run; the controller makes the PodGroup and the pods and
writes `status`. After creation only `minAvailable`, `priorityClassName`, and `replicas` and `minAvailable` of tasks may
change. `tasks[].maxRetry` takes -1 for "no limit", which Volcano intends but its CRD refuses.""",
    ),
    Definition(
        resource=POD_GROUPS,
        short_names=("pg", "podgroup-v1beta1"),
        # Clients write the status through the main resource; a subresource would silently drop their writes.
        columns=(
            Column("STATUS", "string", ".status.phase"),
            Column("minMember", "integer", ".spec.minMember"),
            Column("RUNNINGS", "integer", ".status.running"),
            AGE,
            Column("QUEUE", "string", ".spec.queue", priority=1),
            Column("PLACE", "integer", ".status.place", priority=1),
            Column("EXPECTED START", "string", ".status.expectedStart", priority=1),
        ),
        about="""A gang: pods that start together or not at all.

Muster makes one for each Job and for each labelled workload; you may also make one yourself and name it in the
annotation `scheduling.k8s.io/group-name` of your pods. It has no status subresource: the status is written with the
object.""",
    ),
    Definition(
        resource=QUEUES,
        short_names=("q", "queue-v1beta1"),
        status_subresource=True,
        columns=(
            Column("STATE", "string", ".status.state"),
            Column("WEIGHT", "integer", ".spec.weight"),
            Column("PARENT", "string", ".spec.parent"),
            AGE,
        ),
        about="""A queue: a node in the tree of fair shares. Muster makes the queues `root` and `default`.

docs/queues.md says what `weight`, `capability`, `deserved`, `guarantee`, `reclaimable` and `priority` do.
`dequeueStrategy` and `affinity` are stored and shown. Gangs enter leaves that are open.

`capability`, `deserved` and `guarantee` may name any resource. To close a queue, create a Command `CloseQueue`, or
write `status.state: Closed` through the status subresource.""",
    ),
    Definition(
        resource=COMMANDS,
        columns=(Column("ACTION", "string", ".action"), Column("TARGET", "string", ".target.name"), AGE),
        about="""Asks the controller to act on a Job or a Queue, once. It has no `spec`.""",
    ),
    Definition(
        resource=JOB_FLOWS,
        short_names=("jf",),
        status_subresource=True,
        columns=(Column("Status", "string", ".status.state.phase"), Column("Age", AGE.type, AGE.path)),
        about="""Jobs that follow each other: each step is a Job that is made of a JobTemplate when the Jobs of the
steps before it are completed. docs/jobflows.md describes its life.""",
    ),
    Definition(
        resource=JOB_TEMPLATES,
        short_names=("jt",),
        status_subresource=True,
        about="""The spec of a Job, for the steps of JobFlows in its namespace.

It is read when a Job is made; a later change of it changes no Job that exists.""",
    ),
    Definition(
        resource=CRON_JOBS,
        short_names=("cronvcjob", "cronvj"),
        status_subresource=True,
        columns=(
            Column("SCHEDULE", "string", ".spec.schedule"),
            Column("SUSPEND", "boolean", ".spec.suspend"),
            Column("LAST SCHEDULE", "date", ".status.lastScheduleTime"),
            AGE,
        ),
        about="""Volcano Jobs that are made at times of a schedule; `kubectl get cronjobs` shows Kubernetes' own
CronJobs, so use the short name. docs/jobflows.md describes its life.""",
    ),
    Definition(
        resource=PLACEMENTS,
        short_names=("pl",),
        columns=(
            Column("PHASE", "string", ".status.phase"),
            Column("EPOCH", "integer", ".spec.epoch"),
            Column("BOUND", "integer", ".status.bound"),
            Column("PLANNED", "integer", ".status.planned"),
            Column("EXPECTED", "string", ".status.expectedAt", priority=1),
            AGE,
        ),
        about="""The node of each member of a gang: one for each placed PodGroup, of the same name and owned by it.

The planner writes it before anything acts on it; `kubectl get placements -w` tells the story. To find the node of rank
*n* of a pod set, walk its `runs`: each stands for `count` consecutive ranks.""",
    ),
    Definition(
        resource=HYPER_NODES,
        short_names=("hn",),
        status_subresource=True,
        columns=(
            Column("Tier", "string", ".spec.tier"),
            Column("TierName", "string", ".spec.tierName"),
            Column("NodeCount", "integer", ".status.nodeCount"),
            Column("Age", AGE.type, AGE.path),
        ),
        about="""Nodes that are near to each other, e.g. those of a rack, or HyperNodes that are: one domain of the tree
in which gangs ask to sit together. docs/topology.md says how the tree is made of them; `muster topo` draws it.

The planner writes `status`: `nodeCount`, and a condition `Valid` that says what is wrong, e.g. nodes that are in
another HyperNode of the same tier too.""",
    ),
    Definition(
        resource=TRAIN_JOBS,
        short_names=("tj",),
        status_subresource=True,
        columns=(
            Column("State", "string", ".status.conditions[-1:].type"),
            Column("Runtime", "string", ".spec.runtimeRef.name", priority=1),
            Column("Age", AGE.type, AGE.path),
        ),
        about=_TRAIN_JOB,
    ),
    Definition(resource=TRAINING_RUNTIMES, short_names=("tr",), about=_RUNTIME),
    Definition(resource=CLUSTER_TRAINING_RUNTIMES, short_names=("ctr",), about=_CLUSTER_RUNTIME),
)

OVERLAYS: dict[type[Struct], Schema] = {
    **TRAINING_OVERLAYS,
    JobSpec: {
        "properties": {
            "maxRetry": {"default": 3},
            "priorityClassName": _SUBDOMAIN,
            "queue": {"default": "default", **_SUBDOMAIN},
            "schedulerName": {"maxLength": 63},
            "tasks": {"minItems": 1},
        }
    },
    PartitionPolicy: {
        "required": ["partitionSize", "totalPartitions"],
        "properties": {
            "minPartitions": {"default": 0},
            "partitionSize": {"minimum": 1},
            "totalPartitions": {"minimum": 1},
        },
    },
    VolumeSpec: {"required": ["mountPath"], "properties": {"volumeClaimName": {"maxLength": 253}}},
    NetworkTopology: {
        "properties": {"highestTierAllowed": {"minimum": 0}, "highestTierName": {"maxLength": 253}},
        **rules(
            "!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName == ''",
            "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously",
        ),
    },
    SubGroupPolicy: {"properties": {"minSubGroups": {"default": 0}, "subGroupSize": {"default": 1}}},
    LabelSelector: {"x-kubernetes-map-type": "atomic"},
    # Volcano's rules, word for word, as clients know them; what else makes no sense the webhook refuses.
    HyperNodeSpec: {
        "properties": {"members": {"minItems": 1}, "tier": {"format": "int64"}, "tierName": {"maxLength": 253}}
    },
    HyperNodeStatus: {"properties": {"nodeCount": {"format": "int64"}}},
    MemberSelector: rules(
        "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
        "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
        "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
    ),
    ExactMatch: {"properties": {"name": {"minLength": 1, "maxLength": 253, "pattern": rf"^{_LABELS}$"}}},
    RegexMatch: {"properties": {"pattern": {"minLength": 1}}},
    Command: {"properties": {"target": {"x-kubernetes-map-type": "atomic"}}},
    Flow: {"required": ["name"]},
    CronJobSpec: {
        "required": ["jobTemplate", "schedule"],
        "properties": {
            "failedJobsHistoryLimit": {"default": 1},
            "startingDeadlineSeconds": {"format": "int64"},
            "successfulJobsHistoryLimit": {"default": 3},
        },
    },
    PlacementSpec: {
        "required": ["podGroupUID"],
        "properties": {"podSets": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}},
        **rules(
            "self.epoch >= oldSelf.epoch",
            "the epoch must not decrease: a later placement of this gang has been written",
        ),
    },
    PlacementStatus: {"properties": {"bound": {"default": 0}, "planned": {"default": 0}}},
    Placement: {"required": ["spec"], "properties": {"status": {"default": {}}}},
}
"""Overlays of the schemas of types: server-side defaults, required fields, rules in CEL, list keys."""
