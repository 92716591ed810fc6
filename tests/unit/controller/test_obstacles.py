"""What is in the way of the controller is told where its user looks, and is tried again."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from builders import manifests
from builders import queue as a_queue
from frameworks_world import replicated_job, runtime
from msgspec import structs
from settled_world import Settled

from controller.flow.controller import FIRST_S
from controller.trainjob.report import Authorities, TrainerReports
from controller.trainjob.watched import Kinds, UnknownKindObject
from controller.worker import Retry
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import parse_time
from muster.api.kubernetes.storage import CLAIMS
from muster.api.limits import PODS as MOST_PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import Forbidden, NotFound
from muster.runtime import registry
from muster.runtime.framework import Framework

JSON = dict[str, Any]
TASKS: JSON = {"tasks": [manifests.task("w", 1)], "minAvailable": 1}


def flow(*steps: JSON) -> Settled:
    """A JobFlow `f` of these steps, whose templates are there."""
    world = Settled()
    for name in "ab":
        world.api.add(JOB_TEMPLATES, {"metadata": {"name": name}, "spec": TASKS})
    world.api.add(JOB_FLOWS, {"metadata": {"name": "f"}, "spec": {"flows": [*steps]}})
    return world


def foreign(world: Settled, res: Resource[Any], name: str, *owners: JSON) -> None:
    """Somebody else has an object of this name."""
    content = {"spec": TASKS} if res is JOBS else {}
    world.api.add(res, {"metadata": {"name": name, "ownerReferences": [*owners]}, **content})


def test_steps_that_no_order_has() -> None:
    """A JobFlow that admission has not seen makes nothing."""
    world = flow({"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b", "dependsOn": {"targets": ["a"]}})
    assert not any("create Job" in each for each in world.acts())
    assert world.told()[0].startswith("Warning InvalidFlow: no Jobs are made: spec.flows")


def test_a_job_of_a_flow_that_is_refused() -> None:
    """Other steps are made; it is tried again after some seconds."""
    world = flow({"name": "a"}, {"name": "b"})
    world.api.fails(Forbidden('admission webhook "a" denied the request: quota'), "create", only="f-a", times=99)
    assert [each for each in world.acts() if each.startswith("create")] == ["create Job f-b"]
    refusal = "Warning CreationFailed: step a: Job f-a is refused: quota"
    assert [each for each in world.told() if "Warning" in each] == [refusal]
    message = refusal.removeprefix("Warning CreationFailed: ")
    world.acts(FIRST_S)
    assert world.one(JOB_FLOWS, "f").status.state.message == message
    world.acts(10.1)
    world.acts(10.1)
    assert world.acts(10.1) == [], "the same is not written again"
    world.api.meddle = lambda _: None
    assert "create Job f-a" in world.acts(10.1)
    assert world.one(JOB_FLOWS, "f").status.state.message == ""


def test_a_job_of_somebody_else_has_the_name_of_a_step() -> None:
    """It is not changed; that of an earlier JobFlow of the name is about to go, and nothing is told of it."""
    world = flow({"name": "a"})
    foreign(world, JOBS, "f-a")
    world.settle()
    why = "step a: Job f-a exists already and has no owner; delete it, or rename the JobFlow"
    assert f"Warning CreationFailed: {why}" in world.told()
    world.api.remove(JOBS, world.api.find(JOBS, "f-a", "n"), at_once=True)
    assert "create Job f-a" in world.acts(10.1)
    world = flow({"name": "a"})
    foreign(world, JOBS, "f-a", manifests.owner("f", "JobFlow", JOB_FLOWS.api_version, "earlier"))
    world.settle(60.0)
    assert not any("CreationFailed" in each for each in world.told())


def test_a_job_of_a_flow_that_no_cache_shows_is_looked_for_again() -> None:
    """It may be over the budget of its namespace, so that nobody tells of its changes."""
    world = flow({"name": "a"})
    world.deliver(everything=True)
    flows = world.controller.job_flows
    [job_flow] = world.api.all(JOB_FLOWS)
    owner = manifests.owner("f", "JobFlow", JOB_FLOWS.api_version, job_flow.metadata.uid)
    foreign(world, JOBS, "f-a", owner)
    world.now_s += FIRST_S
    flows.process("n/f")
    while (key := flows.worker.queue.get(0)) is not None:
        flows.worker.queue.done(key)
    world.now_s += 29.9
    assert flows.worker.queue.get(0) is None
    world.now_s += 0.2
    assert flows.worker.queue.get(0) == "n/f"


def test_a_flow_leaves_its_turn_to_those_of_other_namespaces() -> None:
    """After a Job while they wait; the rest is made in its next turn, not in this one."""
    world = flow({"name": "a"}, {"name": "b"}, {"name": "c"})
    world.api.add(JOB_TEMPLATES, {"metadata": {"name": "c"}, "spec": TASKS})
    world.deliver(everything=True)
    flows, waits = world.controller.job_flows, iter([True])
    flows.worker.queue.others_wait = lambda key: key == "n/f" and next(waits, False)  # type: ignore[method-assign]
    assert flows.worker.queue.get(0) == "n/f"
    flows.process("n/f")
    assert [each.metadata.name for each in world.api.all(JOBS)] == ["f-a"]
    flows.worker.queue.done("n/f")
    world.settle()
    assert [each.metadata.name for each in world.api.all(JOBS)] == ["f-a", "f-b", "f-c"]


def test_a_refused_step_keeps_no_other_from_its_turn() -> None:
    """Its reason is reported though the turn ends."""
    world = flow({"name": "a"}, {"name": "b"}, {"name": "c"})
    world.api.add(JOB_TEMPLATES, {"metadata": {"name": "c"}, "spec": TASKS})
    world.api.fails(Forbidden("quota"), "create", only="f-a", times=99)
    world.deliver(everything=True)
    world.now_s += FIRST_S
    flows = world.controller.job_flows
    flows.worker.queue.others_wait = lambda key: key == "n/f"  # type: ignore[method-assign]
    flows.process("n/f")
    assert [each.metadata.name for each in world.api.all(JOBS)] == ["f-b"]
    assert "step a: " in world.one(JOB_FLOWS, "f").status.state.message


def test_a_job_over_the_limits() -> None:
    """Nothing is made for it where admission was bypassed."""
    world = Settled()
    for name, over in (("j", 1), ("fits", 0)):
        spec = {"tasks": [manifests.task("w", MOST_PODS.value + over)], "minAvailable": 1}
        world.api.add(JOBS, {"metadata": {"name": name}, "spec": spec})
    world.plans = False
    world.settle()
    world.settle(10.0)
    state = world.one(JOBS, "j").status.state
    asks = f"the Job asks for {MOST_PODS.value + 1}; at most {MOST_PODS.value} {MOST_PODS.unit} are allowed"
    assert (state.reason, state.message) == ("OverLimit", f"{asks}, so no objects are created for it")
    assert f"Warning OverLimit: {asks}, so no objects are created for it" in world.told()
    assert len(world.api.all(POD_GROUPS)) == 1


def test_a_claim_of_somebody_else() -> None:
    """The Job says whose it is, and starts when it is gone; its own stays."""
    world = Settled()
    foreign(world, CLAIMS, "data")
    volume = {"mountPath": "/data", "volumeClaimName": "", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    made = world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {**TASKS, "volumes": [volume]}})
    world.settle()
    [_, claim] = world.api.all(CLAIMS)
    assert claim.metadata.controller.uid == made.metadata.uid
    world = Settled()
    foreign(world, CLAIMS, claim.metadata.name)
    world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {**TASKS, "volumes": [volume]}})
    world.settle()
    world.settle(10.0)
    why = f"PersistentVolumeClaim {claim.metadata.name} exists already and has no owner"
    assert world.one(JOBS, "j").status.state.message == f"{why}; delete it, or give the Job another name"
    assert f"Warning PVCError: {why}; delete it, or give the Job another name" in world.told()


@pytest.mark.parametrize("needed", [True, False])
def test_a_job_whose_end_is_not_noted_stays_for_a_minute(*, needed: bool) -> None:
    """What has made it would make it again."""
    world = Settled()
    world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {**TASKS, "ttlSecondsAfterFinished": 10}})
    world.settle()
    world.pods("Succeeded", 0)
    world.settle(1.0)
    world.controller.jobs._context.needed = lambda _: needed
    due_s = (parse_time(world.one(JOBS, "j").status.state.last_transition_time) or 0.0) + 10
    when_s = 60.0 if needed else 0.0
    for late_s in (-0.5, 0.0, 59.5, 60.0):
        world.now_s = due_s + late_s
        world.controller.jobs.worker.queue.add("n/j")
        assert world.acts() == (["delete Job j"] if late_s == when_s else [])


def test_a_command_to_a_queue_that_is_not_known_yet_waits_for_it() -> None:
    """Whether the cache has none of the name, or an earlier one."""
    world = Settled()
    world.settle()
    queues = world.controller.queues
    assert queues.not_ready() is None
    made = world.api.add(QUEUES, {"metadata": {"name": "q"}, "spec": {"parent": "root"}})
    target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": "q", "uid": made.metadata.uid}
    command = world.api.add(COMMANDS, {"metadata": {"name": "c"}, "action": "CloseQueue", "target": target}, "n")
    queues._command_seen(None, command)
    with pytest.raises(Retry, match="queue q is not in the cache yet"):
        queues.process("q")
    earlier = structs.replace(made, metadata=structs.replace(made.metadata, uid="earlier"))
    queues.cache.store.add_object(earlier)
    with pytest.raises(Retry, match="the target queue of Command c is not in the cache yet"):
        queues.process("q")
    world.settle(1.0)
    assert world.api.find(QUEUES, "q").status.state == "Closed"
    assert world.api.all(COMMANDS) == []


@pytest.mark.parametrize(("name", "counted"), [
    ("gone", ["gone"]),
    ("", ["root"]),
    ("low", ["low", "root", "top"]),
    ("a", ["a", "b"]),
    ("lost", ["lost", "none"]),
])  # fmt: skip
def test_queues_above_one_that_changes_are_counted(name: str, counted: list[str]) -> None:
    """As far as they are known; parents may form a circle."""
    world = Settled()
    world.settle()
    queues = world.controller.queues
    for child, parent in (("top", "root"), ("low", "top"), ("a", "b"), ("b", "a"), ("lost", "none")):
        queues.cache.store.add_object(a_queue(child, parent=parent))
    world.settle(1.0)
    queues._requeue_with_parents(name)
    assert queues.worker.queue.get(0) is None
    world.now_s += 0.5
    found = set()
    while (key := queues.worker.queue.get(0)) is not None:
        found.add(key)
        queues.worker.queue.done(key)
    assert sorted(found) == counted


def test_queues_that_are_not_open_yet_are_named() -> None:
    """The process is not ready before."""
    assert Settled().controller.queues.not_ready() == "not open yet: root, default"


class Blocked(NamedTuple):
    """What is in the way of a TrainJob: done before it is submitted, and its condition's message."""

    act: Callable[[Settled], object]
    message: str


def gone(world: Settled) -> None:
    """The runtime of the TrainJob is not there."""
    world.api.remove(CLUSTER_TRAINING_RUNTIMES, world.api.find(CLUSTER_TRAINING_RUNTIMES, "runtime"))


BLOCKED = {
    "it does not fit": Blocked(lambda world: world.api.change(CLUSTER_TRAINING_RUNTIMES, "runtime",
        {"spec": {"mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "x"}}}}),
        "this TrainJob does not match its runtime: spec.runtimeRef: Invalid value: "),
    "no runtime": Blocked(gone, "ClusterTrainingRuntime runtime, to which spec.runtimeRef refers, is gone"),
    "its runtime is not valid": Blocked(lambda world: world.api.change(CLUSTER_TRAINING_RUNTIMES, "runtime",
        {"spec": {"mlPolicy": {"numNodes": -1}}}),
        "ClusterTrainingRuntime runtime is not valid: spec.mlPolicy.numNodes"),
    "a foreign snapshot": Blocked(lambda world: foreign(world, CONFIG_MAPS, "t-runtime-snapshot"),
        "ConfigMap t-runtime-snapshot exists already and has no owner, so it is not changed"),
}  # fmt: skip


@pytest.mark.parametrize("blocked", BLOCKED.values(), ids=BLOCKED)
def test_what_blocks_a_train_job(blocked: Blocked) -> None:
    """Its condition says it."""
    world = Settled()
    world.api.add(CLUSTER_TRAINING_RUNTIMES, runtime({"torch": {}}, replicated_job("node", "trainer")))
    blocked.act(world)
    world.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "runtime"}}})
    world.settle()
    [condition] = world.one(TRAIN_JOBS, "t").status.conditions
    assert condition.type == "Blocked"
    assert blocked.message in condition.message


class Computes:
    """A plugin that computes the status of TrainJobs by the gadgets that it watches."""

    name = "Computes"

    def __init__(self) -> None:
        self.found: JSON = {}
        self.seen: list[list[str]] = []

    def watched(self) -> list[str]:
        """Its kind."""
        return ["gadgets.example.com"]

    def status(self, objects: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
        """What a test says; without that it fails."""
        self.seen.append([each["metadata"]["name"] for each in objects])
        return {"conditions": [self.found["end"]]} if self.found["end"] else {}


def test_a_plugin_that_computes_the_status_of_a_train_job() -> None:
    """It sees the objects of this TrainJob that there are, in order; where it fails, the TrainJob says so."""
    plugin = Computes()
    world = Settled(framework=Framework([*registry.plugins(), plugin]))
    world.api.add(CLUSTER_TRAINING_RUNTIMES, runtime({"torch": {}}, replicated_job("node", "trainer")))
    made = world.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "runtime"}}})
    world.settle()
    assert (
        world.one(TRAIN_JOBS, "t").status.conditions[0].message == "plugin Computes computes no status: KeyError: 'end'"
    )
    plugin.found["end"] = None
    watched = world.controller.train_jobs.watched
    assert not watched.synced

    def gadget(name: str, uid: str) -> UnknownKindObject:
        owner = manifests.owner("t", "TrainJob", TRAIN_JOBS.api_version, uid)
        meta = {"name": name, "namespace": "n", "uid": name, "ownerReferences": [owner]}
        return msgspec.convert({"kind": "Gadget", "metadata": meta, "spec": {"a": 1}}, UnknownKindObject)

    own = [gadget(name, made.metadata.uid) for name in ("b", "a", "gone")]
    for each in (
        *own,
        gadget("foreign", "earlier"),
        msgspec.convert({"metadata": {"name": "free"}}, UnknownKindObject),
    ):
        watched._changed("gadgets.example.com", None, each)
    watched._changed("gadgets.example.com", own[2], None)
    world.settle()
    assert plugin.seen[-1] == ["a", "b"]
    plugin.found["end"] = {"type": "Failed", "status": "True", "reason": "Spent", "message": "nothing is left"}
    watched._changed("gadgets.example.com", own[0], own[0])
    world.settle()
    assert [(each.type, each.reason) for each in world.one(TRAIN_JOBS, "t").status.conditions] == [("Failed", "Spent")]
    assert world.one(JOBS, "t") is None, "it goes with its TrainJob's end"


def test_kinds_are_those_that_the_api_server_serves() -> None:
    """Each is asked for once; subresources are none."""
    paths: list[str] = []

    class Server:
        """Lists kinds."""

        def request(self, verb: str, path: str) -> bytes:
            """The kinds of a group."""
            paths.append(f"{verb} {path}")
            known = [
                {"name": "gadgets/scale", "kind": "Gadget"},
                {"name": "gadgets", "kind": "Gadget", "namespaced": False},
            ]
            return msgspec.json.encode({"resources": known if "example" in path else None})

    kinds = Kinds(cast("Any", Server()))
    for _ in range(2):
        found = kinds.resource_of("example.com/v1", "Gadget")
        assert (found.group, found.version, found.plural, found.namespaced) == ("example.com", "v1", "gadgets", False)
    assert kinds.resource_of("v1", "ConfigMap").plural == "configmaps"
    with pytest.raises(NotFound, match="the API server serves no Gadget of v1"):
        kinds.resource_of("v1", "Gadget")
    assert paths == ["GET /apis/example.com/v1", "GET /api/v1"]


def reporting(folder: Path) -> Settled:
    """A cluster whose trainers report: each TrainJob has a ConfigMap with the authorities in a file."""
    file = folder / "ca.crt"
    file.write_text("first")
    authorities = Authorities(file)
    framework = registry.framework(TrainerReports("https://r", authorities.pem))
    world = Settled(framework=framework, authorities=authorities)
    world.api.add(CLUSTER_TRAINING_RUNTIMES, runtime({"torch": {}}, replicated_job("node", "trainer")))
    return world


def test_authorities_that_change_reach_pods_that_run(tmp_path: Path) -> None:
    """Within some minutes; nothing is written while they stay."""
    world = reporting(tmp_path)
    world.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "runtime"}}})
    world.settle()
    assert world.one(CONFIG_MAPS, "t-tls-config").data == {"ca.crt": "first"}
    world.pods("Running")
    world.settle(1.0)
    world.settle(300.0)
    assert world.acts(300.0) == []
    (tmp_path / "ca.crt").write_text("second")
    assert world.acts(298.0) == []
    assert world.acts(2.1) == ["apply ConfigMap t-tls-config"]
    assert world.one(CONFIG_MAPS, "t-tls-config").data == {"ca.crt": "second"}
    world.set(CONFIG_MAPS, "t-tls-config", data={"ca.crt": "third"})
    assert world.acts() == ["apply ConfigMap t-tls-config"]


def test_a_train_job_makes_no_job_while_something_it_needs_is_somebody_elses(tmp_path: Path) -> None:
    """The first obstacle is told; what is kept of a TrainJob goes with it."""
    world = reporting(tmp_path)
    foreign(world, CONFIG_MAPS, "t-tls-config")
    world.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "runtime"}}})
    world.settle()
    train_job = world.one(TRAIN_JOBS, "t")
    why = "ConfigMap t-tls-config exists already and has no owner, so it is not changed"
    assert train_job.status.conditions[0].message.startswith(why)
    assert world.one(JOBS, "t") is None
    train_jobs = world.controller.train_jobs
    assert [*train_jobs._compiled] == [train_job.metadata.uid]
    world.api.remove(TRAIN_JOBS, train_job, at_once=True)
    world.settle()
    assert (train_jobs._compiled, train_jobs._runtimes._known, train_jobs._steps._ensured) == ({}, {}, {})
