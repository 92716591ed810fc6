"""The state of a gang is the same wherever it is shown, whatever its objects say."""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from builders import job, manifests, placement, pod_group
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.explain.clusterdump import ClusterDump
from extender.explain.gang import GangExplainer
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from extender.planner.state.feed import FEED
from gangs.rows import RowSources, rows
from history.entries import Entries
from history.groups import RecordedJob
from history.observations import Observation, apply
from history.pods import ObservationTime, RecordedPod
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.placement import PLACEMENTS, Placement, PlacementPhase
from muster.api.muster.placementnotes import PlacementContent
from muster.api.muster.states import ENDED, STOPPED, State, facts_of
from muster.api.names import PLACEMENT
from muster.api.volcano.batch import JOBS, Job, Phase
from muster.api.volcano.scheduling import EVICTED, NO_ROOM, PLACED, POD_GROUPS, PodGroup, PodGroupPhase

AT = "2026-11-21T05:38:34Z"
NOW = ObservationTime(1_795_239_514_000, live=True)
FITS: dict[str, set[State]] = {
    "finished": {"Completed"},
    "failed": {"Failed"},
    "running": {"Running", "Starting", "Degraded"},
    "starting": {"Starting"},
    "waits": {"Waiting", "Reserved"},
}
"""Cause of an explanation → states that it may have."""
ENDS = {"finished", "failed"}
CONDITIONS = [("True", NO_ROOM), ("True", EVICTED), ("False", EVICTED), ("False", PLACED), ("False", "Scheduled")]
UIDS, EPOCHS = st.sampled_from(["uid-train", "another"]), st.integers(1, 2)
PLACED_AS = st.tuples(UIDS, st.sampled_from(get_args(PlacementPhase)), EPOCHS)


class World(NamedTuple):
    """The objects of one gang."""

    group: PodGroup
    placement: Placement | None
    pods: list[Pod]
    job: Job | None


def told(status: str, reason: str) -> dict[str, str]:
    """A condition Unschedulable."""
    return {
        "type": "Unschedulable", "status": status, "reason": reason, "message": "as it says", "lastTransitionTime": AT
    }  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A gang in any phase, with any pods, with a placement as an object, as a note, both or none, and maybe a Job."""
    conditions = [told(*each) for each in draw(st.lists(st.sampled_from(CONDITIONS), max_size=1))]
    counts = {key: draw(st.integers(0, 1)) for key in ("running", "succeeded", "failed")}
    more = {"ending": draw(st.sampled_from(["", "it failed"])), "expectedStart": draw(st.sampled_from([None, AT]))}
    noted, written = draw(st.none() | PLACED_AS), draw(st.none() | PLACED_AS)
    of_job = draw(st.none() | st.sampled_from(get_args(Phase)))
    group = pod_group(
        "train", 2, phase=draw(st.sampled_from(get_args(PodGroupPhase))), uid="uid-train", created=AT, version="5",
        status={"conditions": conditions, **counts, **more},
        annotations={PLACEMENT: note(*noted)} if noted else {},
        owner=None if of_job is None else manifests.job_owner("train", "uid-job"),
    )  # fmt: skip
    phases = draw(st.lists(st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]), max_size=3))
    return World(
        group,
        written and placed(*written),
        [member(number, phase) for number, phase in enumerate(phases)],
        None if of_job is None else job("train", uid="uid-job", phase=of_job, created=AT, version="5"),
    )


def placed(uid: str, phase: str, epoch: int) -> Placement:
    """A placement of two members."""
    return placement("train", {"worker": ["node-0", "node-1"]}, phase=phase, gang_uid=uid, epoch=epoch, version="5")


def note(uid: str, phase: str, epoch: int) -> str:
    """The same as a note."""
    return PlacementContent.content_of(placed(uid, phase, epoch)).as_note()


def member(number: int, phase: str) -> Pod:
    """A pod without a node, or on one in this phase."""
    ended = {"terminated": {"exitCode": 0, "startedAt": AT, "finishedAt": AT}}
    state: dict[str, Any] = {"running": {"startedAt": AT}} if phase == "Running" else ended
    status = {"containerStatuses": [{"name": "main", "state": state}] if phase not in {"", "Pending"} else []}
    manifest = manifests.pod(
        f"pod-{number}", node=phase and f"node-{number}", phase=phase, gang="train", task="worker", index=number,
        uid=f"uid-pod-{number}", version="5", created=AT, status=status, limits={"nvidia.com/gpu": 8},
    )  # fmt: skip
    return msgspec.convert(manifest, RecordedPod)


def listed(world: World) -> State:
    """The state in `muster ps`."""
    [row] = rows(
        RowSources(
            groups=[world.group],
            placements=[world.placement] if world.placement else [],
            pods=world.pods,
            jobs=[world.job] if world.job else [],
        )
    )
    return row.state


def explained(world: World, *, whole: bool) -> GangReport:
    """The report of `muster explain`; not `whole`: of one who may list one namespace alone."""
    dump = ClusterDump(NOW.at / 1000)
    dump.add_objects(POD_GROUPS, [world.group])
    dump.add_objects(PLACEMENTS, [world.placement] if world.placement else [])
    dump.add_objects(PODS, world.pods)
    dump.add_objects(JOBS, [world.job] if world.job else [])
    dump.unread = frozenset() if whole else frozenset(fed.resource.full_name for fed in FEED)
    what_if = WhatIf(dump)
    view = what_if.state.gang("ns/train")
    assert view is not None
    return GangExplainer(what_if).explain(view, relief=False)


def looks(world: World) -> Iterator[Observation]:
    """What the recorder sees, in the order in which it happens."""
    yield Observation(POD_GROUPS.plural, "uid-train", world.group, gone=False, moment=NOW)
    if world.placement:
        yield Observation(PLACEMENTS.plural, "uid-placement", world.placement, gone=False, moment=NOW)
    for each in world.pods:
        yield Observation(PODS.plural, each.metadata.uid, each, gone=False, moment=NOW)
    if world.job:
        recorded = msgspec.convert(msgspec.to_builtins(world.job), RecordedJob)
        yield Observation(JOBS.plural, "uid-job", recorded, gone=False, moment=NOW)


def recorded(world: World) -> str:
    """The state in `muster history`."""
    entries = Entries()
    for look in looks(world):
        apply(entries, look)
    [gang] = entries.take_changes().gangs.values()
    return gang.state


@settings(max_examples=3 * settings().max_examples)
@given(worlds())
def test_list_explanation_and_history_agree(world: World) -> None:
    """One function says it, of the same facts."""
    state = listed(world)
    report, own = explained(world, whole=True), explained(world, whole=False)
    assert report.state == state
    if facts_of(world.group).members == facts_of(world.group, world.placement, world.pods).members:
        assert recorded(world) == state  # the recorder waits for the phase
    if world.pods:  # to who may list one namespace, none is as none that may be read
        assert own.state == state
    if not world.job or world.job.status.state.phase not in STOPPED:  # it tells the end, its gang the cause
        cause = "running" if own.cause == "running-extras-wait" else own.cause
        assert own.state in FITS.get(cause, FITS["waits"])
        assert (report.cause in ENDS) == (own.cause in ENDS) == (state in ENDED)


@pytest.mark.parametrize(("phase", "status", "pods", "state"), [
    ("Completed", {"succeeded": 1, "failed": 1}, [], "Completed"),
    ("Completed", {"succeeded": 1, "ending": "it failed"}, [], "Failed"),
    ("Completed", {"failed": 1}, [], "Failed"),
    ("Completed", {"conditions": [told("False", EVICTED)]}, [], "Failed"),
    ("Running", {}, ["Pending", "Pending"], "Starting"),
    ("Running", {}, ["Pending", "Running"], "Running"),
    ("Running", {}, ["", "Running"], "Degraded"),
    ("Running", {}, ["", "Pending"], "Starting"),
    ("Running", {}, ["Failed", "", "Running"], "Degraded"),
    ("Unknown", {}, ["Running", "Running"], "Running"),
    ("Inqueue", {"conditions": [told("True", NO_ROOM)]}, ["Running", "Running"], "Running"),
    ("Pending", {}, ["Pending", "Pending"], "Starting"),
    ("Inqueue", {}, ["Running", ""], "Waiting"),
    ("Running", {}, ["Succeeded", "Failed"], "Running"),
    ("Running", {}, ["Failed", "Failed"], "Running"),
    ("Running", {}, ["Failed", "Pending"], "Starting"),
    ("Running", {}, ["Failed", "Running"], "Running"),
    ("Unknown", {}, ["Running"], "Degraded"),
    ("Inqueue", {"conditions": [told("False", PLACED)]}, [], "Starting"),
    ("Inqueue", {"conditions": [told("True", NO_ROOM)]}, [], "Waiting"),
    ("Inqueue", {"conditions": [told("True", NO_ROOM)], "expectedStart": AT}, [], "Reserved"),
])  # fmt: skip
def test_state_of_what_is_published(
    phase: PodGroupPhase, status: dict[str, Any], pods: list[str], state: State
) -> None:
    """A workload that says that it failed has failed, whatever its pods did; only pods that never ran are starting."""
    group = pod_group("train", 2, phase=phase, uid="uid-train", created=AT, version="5", status=status)
    assert listed(World(group, None, [member(*each) for each in enumerate(pods)], None)) == state
