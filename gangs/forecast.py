"""Expected starts of waiting gangs, for `muster ps --start`.

A start is taken from a reservation, or simulated from declared and past run times. Pure. If the user is not allowed to
list the objects of the whole cluster, only reservations give expected starts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from msgspec import structs

from gangs.nodes import held, offered
from gangs.row import GangRow
from gangs.rows import RowSources, pods_by_gang
from gangs.runs import LEAST, Interval, past_runs
from gangs.starts import Life, Runs, Scene, Waits, starts
from muster.api.grammar import listed, verb
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.limits import PODS
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import current
from muster.api.muster.states import WAITING
from muster.api.names import EXPECTED_RUNTIME
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.resources.pods import pod_requests, template_usage
from muster.resources.runtime import declared_s, runtime_of
from muster.resources.vector import Vector, add, subtract
from muster.workloads.owners import workload_of

Key = tuple[str, str]
"""Namespace and name of a PodGroup."""


class ForecastCluster(NamedTuple):
    """The objects of the cluster that the simulation needs."""

    objects: RowSources
    nodes: Sequence[Node]


def with_starts(rows: Sequence[GangRow], cluster: ForecastCluster | None, now: float) -> list[GangRow]:
    """Return the rows of the waiting gangs, each with the interval of the gang's expected start, if known."""
    waiting = [row for row in rows if row.state in WAITING]
    asked = [row for row in waiting if not row.expected_start]
    played = starts(scene_of(cluster, waiting, now)) if cluster and asked else {}
    return [_with_forecast(row, played.get("/".join(_key(row))), now) for row in waiting]


def unknown_text(waiting: Sequence[GangRow], cluster: ForecastCluster) -> str:
    """Return a text that explains why no expected start is known, and what would help.

    Return "" if no gang waits, or if the expected start of at least one waiting gang is known.
    """
    if not waiting or any(row.earliest_start for row in waiting):
        return ""
    if not any(row.needs_room for row in waiting):
        return "no start is known, because none of these gangs waits for capacity that others use: see REASON"
    objects = cluster.objects
    there = pods_by_gang(pod for pod in objects.pods or () if pod.spec.node_name and not pod.finished)
    silent = []
    for group in objects.groups:
        pods = there.get((group.metadata.namespace, group.metadata.name))
        if pods and _life(group, pods).declared_s is None:
            owner = workload_of(group)
            silent.append(f"{owner.kind} {owner.name}")
    if not silent:
        return "no start is known, because the ends of the gangs that run now free too little: see muster explain"
    return (
        f"no start is known: {listed(silent)} {verb(len(silent), 'run')} without an expected run time; "
        f"{EXPECTED_RUNTIME} on a workload, or activeDeadlineSeconds of its pods, gives one, "
        f"and so do {LEAST} ended gangs of the queue that ran longer"
    )


def _with_forecast(row: GangRow, interval: Interval | None, now: float) -> GangRow:
    """Return the row with the interval of the gang's start, from its reservation or else from the simulation."""
    if row.expected_start:
        at = row.expected_start
        return structs.replace(row, earliest_start=at, latest_start=at, start_known_by="reservation")
    if interval is None:
        return row
    sure = interval.early_s == interval.late_s
    return structs.replace(
        row,
        earliest_start=format_time(now + interval.early_s),
        latest_start="" if interval.late_s == inf else format_time(now + interval.late_s),
        start_known_by="declared run times" if sure else "past run times",
    )


def scene_of(cluster: ForecastCluster, rows: Iterable[GangRow], now: float) -> Scene:
    """Return the simulation's input, in which the waiting gangs are ordered by priority and age.

    Pods without a gang, and pods whose requests cannot be read, never end in the simulation.
    """
    objects = cluster.objects
    groups = {(group.metadata.namespace, group.metadata.name): group for group in objects.groups}
    alive = [pod for pod in objects.pods or () if not pod.finished]
    pods = pods_by_gang(alive)
    free = {node.metadata.name: offered(node) for node in cluster.nodes if _takes_pods(node)}
    for pod in alive:
        if (node := pod.spec.node_name) in free:
            free[node] = subtract(free[node], held(pod))
    jobs = {job.metadata.uid: job for job in objects.jobs or ()}
    ordered = sorted(rows, key=lambda row: (-(row.priority or 0), row.created))
    waits = [_waits(row, groups.get(_key(row)), pods[_key(row)], jobs) for row in ordered]
    placed = {(each.metadata.namespace, each.metadata.name): each for each in objects.placements or ()}
    running = [
        _runs(group, pods[key], _begun(current(group, placed.get(key)), pods[key]), now)
        for key, group in groups.items()
    ]
    return Scene(free, [each for each in running if each], [each for each in waits if each], past_runs(objects))


def _key(row: GangRow) -> Key:
    return row.namespace, row.gang


def _waits(row: GangRow, group: PodGroup | None, pods: Sequence[Pod], jobs: Mapping[str, Job]) -> Waits | None:
    """Return the simulation's input for a gang that waits for free capacity.

    Returns None if the gang does not wait for free capacity, or if its requests are unknown.
    """
    if group is None or (row.state == "Waiting" and not row.needs_room):
        return None
    owner = group.metadata.controller
    needs = _needs(pods, jobs.get(owner.uid) if owner else None, group.spec.min_member)
    return Waits("/".join(_key(row)), _life(group, pods), needs) if needs else None


def _needs(pods: Sequence[Pod], job: Job | None, minimum: int) -> list[tuple[int, Vector]]:
    """Return number and requests of the pods that start together, from existing pods or from a Job's templates.

    Returns an empty list if the gang has too many pods, or if a quantity is unreadable. The planner itself reports both
    errors.
    """
    if minimum > PODS.value:
        return []
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    left = minimum
    try:
        if len(pods) >= minimum:
            first = sorted(pods, key=lambda pod: pod.metadata.name)[:minimum]
            counts.update(_shape(pod_requests(pod.spec)) for pod in first)
        else:
            for task in job.spec.tasks if job else ():
                counts[_shape(template_usage(task.template).requests)] += min(left, task.replicas)
                left -= min(left, task.replicas)
    except ValueError:
        return []
    return [(count, dict(amounts)) for amounts, count in counts.items() if count]


def _shape(amounts: Vector) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(amounts.items()))


def _runs(group: PodGroup, pods: Sequence[Pod], begun: float | None, now: float) -> Runs | None:
    holds: dict[str, Vector] = {}
    for pod in pods:
        if pod.spec.node_name:
            holds[pod.spec.node_name] = add(holds.get(pod.spec.node_name, {}), held(pod))
    return Runs(_life(group, pods), max(0.0, now - (now if begun is None else begun)), holds) if holds else None


def _begun(placement: Placement | None, pods: Sequence[Pod]) -> float | None:
    """Return the time when all members had started, or else when the first pod started."""
    started = readable_time(placement.status.started_at) if placement else None
    times = [readable_time(pod.status.start_time) for pod in pods]
    return started or min((each for each in times if each is not None), default=None)


def _life(group: PodGroup, pods: Sequence[Pod]) -> Life:
    """Return the longest declared run time of the gang's pods; None if a pod declares none."""
    default = declared_s(group.metadata.annotations)
    times = [
        runtime_of(pod.metadata.annotations, pod.spec.active_deadline_seconds).expected_s(default) for pod in pods
    ] or [default]
    known = [each for each in times if each is not None]
    return Life(group.spec.queue, max(known) if len(known) == len(times) else None)


def _takes_pods(node: Node) -> bool:
    ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    return ready and not node.spec.unschedulable
