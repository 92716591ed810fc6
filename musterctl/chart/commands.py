"""Which rights each command of users needs: docs/rights.md shows the table, and tests hold it.

`needs` are asked for whenever the command does its work; without those of `more` it says less. Rights on kinds with
a namespace are for one namespace: a RoleBinding of `role` gives them. Those of kinds without one take a
ClusterRoleBinding of `muster-view-queues`. Commands that are not here need `muster-admin`, or are for local planes.
"""

from typing import Final, NamedTuple

VIEW: Final = "muster-view"
EDIT: Final = "muster-edit"
QUEUES: Final = "muster-view-queues"
CLUSTER: Final = "muster-view-cluster"
WHOLE: Final = "whole"
"""In place of rights: all that the planner reads, in the whole cluster, which is what `muster-view-cluster` allows."""

_JOBS: Final = "jobs.batch.volcano.sh"
UPDATE_JOBS: Final = f"update {_JOBS}"
"""Admission asks for it: who commands a Job may change it."""
_GROUPS: Final = "podgroups.scheduling.volcano.sh"
_QUEUES: Final = "queues.scheduling.volcano.sh"
_TRAIN_JOBS: Final = "trainjobs.trainer.kubeflow.org"
_RUNTIMES: Final = "trainingruntimes.trainer.kubeflow.org"
_SHARED_RUNTIMES: Final = "clustertrainingruntimes.trainer.kubeflow.org"
_COMMANDS: Final = "commands.bus.volcano.sh"
_GANG: Final = (f"list {_GROUPS}",)
_NATIVE_GROUPS: Final = "podgroups.scheduling.k8s.io"
_NATIVE: Final = (
    f"list {_NATIVE_GROUPS}",
    *("list compositepodgroups.scheduling.k8s.io", "list workloads.scheduling.k8s.io"),
)
_ABOUT_GANG: Final = (f"list {_JOBS}", "list pods", "get namespaces", f"list {_QUEUES}", *_NATIVE, WHOLE)
"""Besides, explain reads nodes and the Placements of the namespace, where that is allowed."""


class CommandRights(NamedTuple):
    """A command, the role that has its rights, and the rights as `verb resource`."""

    command: str
    role: str
    needs: tuple[str, ...]
    more: tuple[str, ...] = ()


_OWNERS: Final = (f"list {_JOBS}", f"list {_TRAIN_JOBS}", f"list {_NATIVE_GROUPS}")
"""Beside its PodGroup: they say what a gang is called, and that one has ended; and gangs that are native PodGroups."""
COMMANDS: Final = (
    CommandRights("muster ps", VIEW, _GANG, ("list pods", *_OWNERS)),
    CommandRights("muster logs", VIEW, (*_GANG, "list pods", "get pods/log"), _OWNERS),
    CommandRights("muster job run", EDIT, (f"create {_JOBS}",)),
    CommandRights("muster job list", VIEW, (f"list {_JOBS}",)),
    CommandRights("muster job view", VIEW, (f"get {_JOBS}", f"get {_GROUPS}", "list pods", "list events")),
    CommandRights("muster job suspend", EDIT, (f"get {_JOBS}", f"create {_COMMANDS}", UPDATE_JOBS)),
    CommandRights("muster job resume", EDIT, (f"get {_JOBS}", f"create {_COMMANDS}", UPDATE_JOBS)),
    CommandRights("muster job delete", EDIT, (f"delete {_JOBS}",)),
    CommandRights(
        "muster train",
        EDIT,
        (f"create {_TRAIN_JOBS}", f"get {_TRAIN_JOBS}", f"get {_JOBS}", f"get {_GROUPS}", "list pods", "get pods/log"),
        (f"list {_RUNTIMES}", f"list {_SHARED_RUNTIMES}"),
    ),
    CommandRights("muster explain", VIEW, _GANG, _ABOUT_GANG),
    CommandRights("muster topo", VIEW, _GANG, _ABOUT_GANG),
    CommandRights("muster simulate", VIEW, _GANG, _ABOUT_GANG),
    CommandRights("muster queue top", QUEUES, (f"list {_QUEUES}",), (WHOLE,)),
    CommandRights("muster queue top, for own gangs", VIEW, _GANG),
    CommandRights("muster queue list", QUEUES, (f"list {_QUEUES}",)),
    CommandRights("muster queue view", QUEUES, (f"get {_QUEUES}", f"list {_QUEUES}"), (WHOLE,)),
    CommandRights("muster queue explain", QUEUES, (f"list {_QUEUES}",), (WHOLE,)),
    CommandRights("muster snapshot", CLUSTER, (WHOLE,)),
    CommandRights("muster record", CLUSTER, (WHOLE,)),
)
