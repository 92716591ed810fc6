"""Builders: a small cluster in memory, for tests of the planner that read as scenarios."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Self, TypeVar

import msgspec
from builders import job_owner
from msgspec import structs
from state_oracle import RememberingState

from extender.cluster import Live
from extender.placementcontent import closed, placed, reserved, unreserved, with_room
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.progress import TrackPlacements
from extender.planner.ask import Asks
from extender.planner.cycle import run_cycle
from extender.planner.framework import decisions
from extender.planner.framework.answers import Causes
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.nodelabels import LabelCache
from extender.planner.framework.registry import Action, PlannerPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.plugins.order import GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.state.gangs import GangView
from extender.planner.timing import Timing
from muster.api import names
from muster.api.kubernetes.autoscaling import ProvisioningRequest, ProvisioningRequestSpec, ProvisioningRequestStatus
from muster.api.kubernetes.core import (
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodStatus,
)
from muster.api.kubernetes.devices import PodResourceClaimStatus
from muster.api.kubernetes.meta import Object, ObjectMeta, ReportedCondition, format_time
from muster.api.muster.gang import Slot, pinned_affinity
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import PlacementContent
from muster.api.muster.usage import PublishedUsage
from muster.api.volcano.batch import Job, JobSpec, LifecyclePolicy, TaskSpec
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus, Queue, QueueSpec, QueueStatus
from muster.volcano.done import SUCCEEDED, note_of

NOW = 1_800_000_000.0
GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
GPU1 = {"cpu": 1, "nvidia.com/gpu": 1}
CPU = {"cpu": 1}
T = TypeVar("T", bound=Object)


class World:
    """State with objects put in by hand; `plan` runs one cycle and carries its placements out on the state.

    Before every cycle the state is compared with one made from the objects, unless the world is not `checked`.
    """

    may_fail = True
    """An action may fail for a gang, which is set aside then."""

    def __init__(self, *, checked: bool = True, looks: int | None = None) -> None:
        self.state = RememberingState(looks)
        self.checked = checked
        self.causes = Causes()
        self.kept_asks = Asks()
        self.kept_labels = LabelCache()
        self.allocate = Allocate
        """Makes the action of each cycle."""
        self.now = NOW
        self.timing = Timing(growth_delay_s=0.0)
        self.progress = TrackPlacements()
        self.gone_nodes: frozenset[str] = frozenset()
        self.refusals: dict[str, dict[str, float]] = {}
        self.usage: PublishedUsage | None = None
        self.arrived: dict[str, frozenset[Slot]] = {}
        self.plugins: list[PlannerPlugin] = [GangPlugin({}), Predicates({}), Priority({})]
        self._versions = count(1)
        self.queue("default")

    def meta(self, name: str, **more: Any) -> ObjectMeta:
        """Metadata of a new object in namespace `ns`."""
        version = str(next(self._versions))
        defaults = {"uid": f"uid-{name}-{version}", "namespace": "ns", "creation_timestamp": format_time(self.now)}
        return ObjectMeta(name=name, resource_version=version, **(defaults | more))

    def queue(self, name: str, state: str = "Open", **more: Any) -> Self:
        """A queue, or a newer version of it: fields of its spec, and annotations by their names without the domain.

        Returns the world.
        """
        spec = {key: value for key, value in more.items() if key in QueueSpec.__struct_fields__}
        said = {f"muster.dev/{key}": text for key, text in more.items() if key not in spec}
        meta = self.meta(name, namespace="", annotations=said)
        status = QueueStatus(state=state)  # type: ignore[arg-type]
        self.state.on_queue(None, Queue(metadata=meta, spec=QueueSpec(**spec), status=status))
        return self

    def node(
        self, name: str, *, gpus: int = 8, cpu: int = 32, labels: Mapping[str, str] | None = None,
        conditions: Mapping[str, str] | None = None, since: float | None = None, **spec: Any
    ) -> Node:  # fmt: skip
        """A node; its conditions are type → status, and have that status `since` then."""
        allocatable = {"cpu": cpu, "memory": "256Gi", "pods": 110, "nvidia.com/gpu": gpus}
        at = None if since is None else format_time(since)
        told = [NodeCondition(kind, status, at) for kind, status in (conditions or {}).items()]
        meta = self.meta(name, namespace="", uid=f"uid-{name}", labels=dict(labels or {}))
        node = Node(metadata=meta, spec=NodeSpec(**spec), status=NodeStatus(allocatable, told))
        self.state.on_node(None, node)
        return node

    def nodes(self, number: int, **more: Any) -> Self:
        """node-0 … node-(number-1); returns the world."""
        for index in range(number):
            self.node(f"node-{index}", **more)
        return self

    def gang(
        self, name: str, tasks: Mapping[str, tuple[int, Mapping[str, Any]]], *, min_member: int | None = None,
        min_task_member: Mapping[str, int] | None = None, phase: str = "Inqueue", queue: str = "default",
        priority_class: str = "", spec: Mapping[str, Any] | None = None, runtime: str = "", user: str = "",
        notes: Mapping[str, str] | None = None,
    ) -> str:  # fmt: skip
        """A Job and its PodGroup; tasks are name → (replicas, requests), `notes` annotations of their templates.

        Returns the gang's key.
        """
        own = {"metadata": {"annotations": dict(notes)}} if notes else {}
        made = [
            TaskSpec(name=task, replicas=replicas, template={**own, "spec": self.pod_spec(requests, **(spec or {}))})
            for task, (replicas, requests) in tasks.items()
        ]
        job = Job(metadata=self.meta(name), spec=JobSpec(priority_class_name=priority_class, tasks=made))
        total = sum(replicas for replicas, _ in tasks.values())
        minimums = {task: replicas for task, (replicas, _) in tasks.items()}
        annotations = {"muster.dev/expected-runtime": runtime} if runtime else {}
        annotations |= {names.CREATED_BY: user} if user else {}
        group = PodGroup(
            metadata=self.meta(name, owner_references=[job_owner(name, job.metadata.uid)], annotations=annotations),
            spec=PodGroupSpec(
                min_member=total if min_member is None else min_member, queue=queue, priority_class_name=priority_class,
                min_task_member=dict(minimums if min_task_member is None else min_task_member),
            ),
            status=PodGroupStatus(phase=phase),  # type: ignore[arg-type]
        )  # fmt: skip
        self.state.on_pod_group(None, group)
        self.state.on_job(None, job)
        return group.metadata.key

    def pod_group(
        self, name: str, min_member: int = 1, *, phase: str = "Inqueue", queue: str = "default", **metadata: Any
    ) -> str:
        """A PodGroup of no Job of Volcano's; returns its key."""
        spec, status = PodGroupSpec(min_member=min_member, queue=queue), PodGroupStatus(phase=phase)  # type: ignore[arg-type]
        group = PodGroup(metadata=self.meta(name, **metadata), spec=spec, status=status)
        self.state.on_pod_group(None, group)
        return group.metadata.key

    def scale(self, key: str, task: str, replicas: int) -> None:
        """Another number of replicas for one task of a gang's Job; its minimums become as high."""
        group, job = self.state.groups[key], self.job_of(key)
        tasks = [structs.replace(one, replicas=replicas) if one.name == task else one for one in job.spec.tasks]
        minimums = {one.name: one.replicas for one in tasks}
        self.change(group, spec={"min_member": sum(minimums.values()), "min_task_member": minimums})
        self.change(job, spec={"tasks": tasks})

    def _newer(self, meta: ObjectMeta) -> ObjectMeta:
        return structs.replace(meta, resource_version=str(next(self._versions)))

    def change(
        self, known: T, *, spec: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None,
        **metadata: Any,
    ) -> T:  # fmt: skip
        """A newer version of an object, with these fields of its spec, of its status and of its metadata."""
        fields: dict[str, Any] = {"metadata": self._newer(structs.replace(known.metadata, **metadata))}
        fields |= {"spec": structs.replace(known.spec, **spec)} if spec else {}  # type: ignore[attr-defined]
        fields |= {"status": structs.replace(known.status, **status)} if status else {}  # type: ignore[attr-defined]
        new = structs.replace(known, **fields)
        self.notify(known, new)
        return new

    def notify(self, known: Object | None, new: Object | None) -> None:
        """An object comes, changes or goes."""
        kinds = {Pod: "pod", PodGroup: "pod_group", Job: "job", Node: "node", Queue: "queue", Placement: "placement"}
        getattr(self.state, f"on_{kinds[type(new or known)]}")(known, new)

    def job_of(self, key: str) -> Job:
        """The Job of a gang."""
        owner = self.state.groups[key].metadata.controller
        return self.state.jobs[owner.uid if owner else ""]

    def done(self, key: str, *done: Slot) -> None:
        """The Job of a gang remembers these members as done."""
        self.change(self.job_of(key), status={"controlled_resources": {SUCCEEDED: note_of(done, 0)}})

    def restarts_whole(self, key: str) -> None:
        """From now on the Job of a gang restarts as a whole when a pod is evicted."""
        self.change(self.job_of(key), spec={"policies": [LifecyclePolicy(action="RestartJob", event="PodEvicted")]})
        assert self.view(key).restarts_whole

    @staticmethod
    def pod_spec(requests: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The spec of a one-container pod, as JSON."""
        return {"containers": [{"name": "main", "resources": {"requests": dict(requests)}}], **more}

    def pod(
        self, gang: str, task: str, index: int, requests: Mapping[str, Any], *, node: str = "", phase: str = "Pending",
        gated: bool = False, pin: str = "", epoch: int | None = None, refused: bool = False,
        other_gates: tuple[str, ...] = (), since: float | None = None, bound: float | None = None,
        priority_class: str = "", own: Mapping[str, Any] | None = None, notes: Mapping[str, str] | None = None,
        claims: Sequence[PodResourceClaimStatus] = (), told: Sequence[ReportedCondition] = (), **more: Any,
    ) -> Pod:  # fmt: skip
        """A pod of a gang; the same arguments again give a newer version of the same pod.

        `own` are further fields of its spec, `notes` further annotations.
        """
        owner = gang.partition("/")[2]
        annotations = {"scheduling.k8s.io/group-name": owner, "volcano.sh/task-spec": task, **(notes or {})}
        annotations["volcano.sh/task-index"] = str(index)
        spec = self.pod_spec(requests, schedulerName="muster", **(own or {}))
        if pin:
            annotations |= {"muster.dev/node": pin, "muster.dev/epoch": str(epoch)}
            spec["affinity"] = pinned_affinity(spec.get("affinity"), pin)
        gates = (*["muster.dev/gang"] * gated, *other_gates)
        if gates:
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
        if node:
            spec["nodeName"] = node
        if gang in self.state.groups:
            spec["priorityClassName"] = priority_class or self.state.groups[gang].spec.priority_class_name
        conditions = (
            [ReportedCondition(type="PodScheduled", status="False", reason="Unschedulable")] if refused else [*told]
        )
        if bound is not None:
            at = format_time(bound)
            conditions.append(ReportedCondition(type="PodScheduled", status="True", last_transition_time=at))
        name = f"{owner}-{task}-{index}"
        metadata = msgspec.to_builtins(self.meta(name, uid=f"uid-{name}", annotations=annotations))
        pod = msgspec.convert({"metadata": metadata, "spec": spec}, Pod)
        started = None if since is None else format_time(since)
        pod.status = PodStatus(
            phase=phase, conditions=conditions, start_time=started, resource_claim_statuses=list(claims)
        )
        for key, value in more.items():
            setattr(pod.metadata, key, value)
        self.state.on_pod(None, pod)
        return pod

    def members(
        self, gang: str, ranks: int | Iterable[int], requests: Mapping[str, Any], *, task: str = "worker",
        node: str | Sequence[str] = "", pinned: bool = False, **more: Any,
    ) -> None:  # fmt: skip
        """Pods of these ranks, on the node of a pattern such as `node-{}` or on one node each, perhaps pinned there."""
        for place, rank in enumerate(range(ranks) if isinstance(ranks, int) else ranks):
            there = node.format(rank) if isinstance(node, str) else node[place]
            self.pod(gang, task, rank, requests, node=there, pin=there if pinned else "", **more)

    def start(self, key: str, requests: Mapping[str, Any]) -> list[str]:
        """Plan, and let the members of a gang run where they were placed; return the nodes by rank."""
        self.plan()
        nodes = slots(self.state.placements[key])["worker"]
        self.members(key, len(nodes), requests, node=nodes, pinned=True, epoch=1, phase="Running")
        self.close(self.plan())
        return nodes

    def view(self, key: str) -> GangView:
        """A gang as the planner sees it now."""
        self.state.refresh()
        view = self.state.gang(key)
        assert view is not None, f"there is no gang {key}"
        return view

    def causes_of(self, key: str, nodes: int) -> list[str]:
        """Why the first nodes do not take pods of a gang."""
        session, cls = self.session(), self.view(key).pod_sets[0].cls
        assert cls is not None
        return [str(session.causes.of[code]) for code in session.codes(cls)[:nodes]]

    def session(self, *actions: Action) -> Session:
        """Run these actions in one cycle."""
        if self.checked:
            assert self.state.differences() == []
        inputs = CycleInputs(snapshot=take_snapshot(self.state), now=self.now, causes=self.causes, asks=self.kept_asks,
                             labels=self.kept_labels, arrived=self.arrived, avoided=self.refusals, gone=self.gone_nodes,
                             usage=self.usage, timing=self.timing)  # fmt: skip
        session = run_cycle(inputs, actions, self.plugins)
        assert self.may_fail or not session.failures
        return session

    def plan(self) -> Session:
        """One whole cycle: progress, enqueue, allocate; placements are put into the state as if written."""
        session = self.session(self.progress, Enqueue(), self.allocate())
        for decision in session.decisions:
            if isinstance(decision, decisions.Place):
                self.place(decision)
        self.keep_spares(session)
        self.write_reservations(session)
        return session

    def keep_spares(self, session: Session) -> None:
        """Write the spares of running gangs that a session decided into the state."""
        for keep in of(session, decisions.KeepSpares):
            self.change(self.state.placements[keep.gang.key], spec={"spares": keep.spares})

    def write_reservations(self, session: Session) -> None:
        """Write what a session reserved, and reserves no more, into the state."""
        for decision in [*of(session, decisions.Unreserve), *of(session, decisions.Reserve)]:
            keeps = isinstance(decision, decisions.Reserve)
            known = self.state.placement_of(decision.gang.key)
            wanted = reserved(decision, PlacementContent.content_of(known)) if keeps else unreserved(decision, known)
            self.write(decision.gang, known, wanted)

    def write(self, gang: GangView, known: Placement | None, wanted: PlacementContent) -> Placement:
        """Write a gang's placement into the state."""
        meta = gang.group.metadata
        uid = known.metadata.uid if known else f"uid-placement-{meta.uid}"
        metadata = self.meta(meta.name, uid=uid, namespace=meta.namespace)
        written = Placement(metadata=metadata, spec=wanted.spec, status=wanted.status)
        self.state.on_placement(known, written)
        return written

    def avoid(self, session: Session) -> None:
        """Write into the state which nodes gangs leave out."""
        for avoid in of(session, decisions.Avoid):
            known = self.state.placement_of(avoid.gang.key)
            if known is not None and avoid.avoided is not None:
                self.change(known, status={"avoided": list(avoid.avoided)})
            self.state.failures.remember(avoid.gang.key, avoid.avoided or ())
            self.state.failures.forget(avoid.gang.key, [pod.uid for pod in avoid.counted])

    def close(self, session: Session) -> None:
        """Write the ends of placements that a session decided into the state."""
        for close in of(session, decisions.ClosePlacement):
            known = self.state.placements[close.gang.key]
            avoided = session.avoided.get(close.gang.key, ())
            self.write(close.gang, known, closed(close, now=self.now, avoided=avoided))

    def place(self, place: decisions.Place) -> Placement:
        """Write the placement of a decision into the state."""
        known = self.state.placement_of(place.gang.key)
        remembered = self.state.failures.remembered.get(place.gang.key, ())
        deadline_s = max(self.now, place.waits_until) + 60
        wanted = placed(place, PlacementContent.content_of(known), deadline_s=deadline_s, remembered=remembered)
        return self.write(place.gang, known, wanted)

    def room_is_there(self, session: Session) -> None:
        """Write into the state that placements have their room now."""
        for there in of(session, decisions.RoomIsThere):
            known = self.state.placements[there.gang.key]
            self.write(there.gang, known, with_room(there, known, deadline_s=self.now + there.remade_s + 60))


class StillCluster(Live):
    """A cluster without watches, as the verbs see it."""

    def __init__(self, world: World, *, synced: bool) -> None:
        super().__init__(world.state, wake=lambda _: None)
        self._synced = synced

    @property
    def synced(self) -> bool:
        """As the test has it."""
        return self._synced


def cluster_of(world: World, *, synced: bool = True) -> Live:
    """The cluster as the verbs see it."""
    return StillCluster(world, synced=synced)


def request_of(
    meta: ObjectMeta, provisioning_class: str, conditions: Sequence[ReportedCondition] = ()
) -> ProvisioningRequest:
    """A request for nodes of which an autoscaler says this."""
    spec = ProvisioningRequestSpec(provisioning_class_name=provisioning_class)
    return ProvisioningRequest(metadata=meta, spec=spec, status=ProvisioningRequestStatus(conditions=[*conditions]))


def of(session: Session, kind: type[Any] | tuple[type[Any], ...]) -> list[Any]:
    """The decisions of one kind, or of several."""
    return [decision for decision in session.decisions if isinstance(decision, kind)]


def only(session: Session, kind: type[Any]) -> Any:
    """The one decision of its kind."""
    [decision] = of(session, kind)
    return decision


def slots(placement: Placement | decisions.Place) -> dict[str, list[str]]:
    """Pod set → node of each rank."""
    pod_sets = placement.pod_sets if isinstance(placement, decisions.Place) else placement.spec.pod_sets
    return {pod_set.name: [run.node for run in pod_set.runs for _ in range(run.count)] for pod_set in pod_sets}


def where(session: Session, task: str = "worker") -> dict[str, list[str]]:
    """Name of each gang that got nodes → the nodes of its pods of one task."""
    return {place.gang.group.metadata.name: slots(place)[task] for place in of(session, decisions.Place)}


def waiting(session: Session) -> dict[str, tuple[str, str]]:
    """Name of each gang that waits → the reason in one word, and its message."""
    waits = of(session, decisions.Unschedulable)
    return {each.gang.group.metadata.name: (each.reason, str(each.message)) for each in waits}
