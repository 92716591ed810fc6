"""Every verb has a stated outcome for every kind in every state; a refusal names the way that works."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from merge_patches import applied
from verb_outcomes import CONDITIONS, NOT, OUTCOMES, VERBS

from muster.api import names
from muster.workloads.kind import WorkloadKind
from muster.workloads.verbs import ACTED_ON, Condition, Outcome, Verb, VerbRequest, condition_of, is_world, outcome

JSON = dict[str, Any]
KINDS = {f"{kind.resource.plural}.{kind.resource.group}": kind for kind in ACTED_ON}
TORCH = {"metadata": {"labels": {names.FRAMEWORK: "torch"}}, "spec": {}}


def spec_of(kind: str) -> JSON:
    """A group of four ranks, where the kind has any."""
    tasks = [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 4, "minAvailable": 4, "template": TORCH}]
    specs: dict[str, JSON] = {
        "jobs.batch": {"completionMode": "Indexed", "parallelism": 4, "completions": 4, "template": TORCH},
        "statefulsets.apps": {"replicas": 4, "template": TORCH},
        "deployments.apps": {"replicas": 4, "template": {"spec": {}}},
        "leaderworkersets.leaderworkerset.x-k8s.io": {
            "replicas": 4, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TORCH}
        },
        "jobs.batch.volcano.sh": {"minAvailable": 5, "tasks": tasks},
    }  # fmt: skip
    return deepcopy(specs.get(kind, {}))


def workload(kind: str, condition: Condition) -> JSON:
    """A workload named `w` whose own fields show this state; the state of its gangs does not affect it."""
    made: JSON = {"metadata": {"name": "w", "namespace": "ns", "uid": "u"}, "spec": spec_of(kind), "status": {}}
    row = KINDS[kind].verbs
    assert row
    if condition == "ended":
        ends = [{"type": each, "status": "True"} for each in ("Complete", "Completed")]
        phase = "Succeeded" if kind == "pods." else "Completed"
        state = {"phase": "Succeed" if kind.startswith("jobflows") else "Completed"}
        made["status"] = {"conditions": ends, "phase": phase, "state": state}
    elif condition == "suspended":
        made["status"] = {"state": {"phase": "Aborted"}}
        if row.stop:
            made["spec"]["suspend"] = True
        if row.count:
            made["spec"]["replicas"] = 0
            made["metadata"]["annotations"] = {names.HELD_REPLICAS: "4"}
    return made


def done(kind: str, condition: Condition, asked: VerbRequest) -> Outcome:
    """What comes of a verb."""
    return outcome(KINDS[kind], workload(kind, condition), condition, asked)


def shown(told: Outcome) -> str:
    """`no` if it is refused, `-` if there is nothing to do, else the steps."""
    return "no" if told.refused else " ".join(step.does for step in told.steps) or "-"


CASES = [
    pytest.param(kind, condition, verb, wanted, id=f"{verb} {kind} {condition}")
    for kind, rows in OUTCOMES.items()
    for verb, row in rows.items()
    for condition, wanted in zip(CONDITIONS, row.split(" | "), strict=True)
]


def test_the_table_has_every_kind_and_verb() -> None:
    """A new kind must define the effect of each verb."""
    assert OUTCOMES.keys() == KINDS.keys()
    assert all(rows.keys() == set(VERBS) for rows in OUTCOMES.values())


@pytest.mark.parametrize(("kind", "condition", "verb", "wanted"), CASES)
def test_the_outcome_is_stated(kind: str, condition: Condition, verb: Verb, wanted: str) -> None:
    """The state is read from the workload's own fields, except the state of its gangs."""
    asked = VerbRequest(verb, to="other", size=8, task="worker")
    row = KINDS[kind].verbs
    assert row
    never: dict[Condition, bool] = {"suspended": "hold" in row.instead, "ended": bool(row.count)}
    gangs: Condition = condition if condition in {"waiting", "running", "evicted"} else "waiting"
    if not never.get(condition):
        assert condition_of(KINDS[kind], workload(kind, condition), gangs) == condition
    told = done(kind, condition, asked)
    assert shown(told) == wanted
    assert told.message
    if told.refused:
        assert any(
            way in told.message
            for way in ("create it again", "create", "muster hold", "cannot be held", "there", "its Jobs")
        )


def test_a_job_flow_is_held_by_its_jobs() -> None:
    """A refusal contains the command for them."""
    told = done("jobflows.flow.volcano.sh", "running", VerbRequest("hold"))
    assert "`muster hold -l volcano.sh/createdByJobFlow=ns.w` holds its Jobs" in told.message


def after(kind: str, condition: Condition, asked: VerbRequest) -> list[JSON]:
    """The workload after each patch."""
    states = [workload(kind, condition)]
    for step in done(kind, condition, asked).steps:
        if step.does == "patch":
            states.append(applied(states[-1], step.value))
    return states[1:]


SIZED = VerbRequest("resize", size=8, task="worker")


def test_a_world_is_resized_while_it_is_held() -> None:
    """Its size changes only while no pod runs, and a minimum of all pods stays a minimum of all pods."""
    held, released = after("jobs.batch", "running", SIZED)
    assert held["spec"] == {**released["spec"], "suspend": True}
    assert (released["spec"]["parallelism"], released["spec"]["completions"]) == (8, 8)
    held, released = after("statefulsets.apps", "waiting", SIZED)
    assert (held["spec"]["replicas"], released["spec"]["replicas"]) == (0, 8)
    assert held["metadata"]["annotations"] == {names.HELD_REPLICAS: "8"}
    assert not released["metadata"]["annotations"]
    [changed] = after("jobs.batch.volcano.sh", "waiting", SIZED)
    assert changed["spec"]["minAvailable"] == 9
    assert [(each["replicas"], each.get("minAvailable")) for each in changed["spec"]["tasks"]] == [(1, None), (8, 8)]


@pytest.mark.parametrize(("condition", "size", "text"), [
    ("running", 8, "the size 8; its minimum rises to 8, and it is Degraded until that many run"),
    ("waiting", 8, "the size 8; its minimum rises to 8"),
    ("running", 2, "the size 2; its minimum falls to 2"),
    ("running", 4, "the size 4"),
])  # fmt: skip
def test_a_resize_names_the_minimum_of_a_volcano_job(condition: Condition, size: int, text: str) -> None:
    """Of pods that do not know their number, and so stay."""
    job = {"metadata": {"name": "w"}, "spec": {"minAvailable": 4, "tasks": [{"name": "a", "replicas": 4}]}}
    result = outcome(KINDS["jobs.batch.volcano.sh"], job, condition, VerbRequest("resize", size=size))
    assert (result.message, len(result.steps)) == (f"has {text}", 1)


@pytest.mark.parametrize("place", ["workload", "template"])
@pytest.mark.parametrize(("size", "text"), [
    (8, "; 4 of them still start together, because of annotation muster.dev/min-member"), (4, ""),
])  # fmt: skip
@pytest.mark.parametrize("condition", ["waiting", "running", "suspended"])
def test_a_resize_names_a_minimum_that_stays(condition: Condition, size: int, text: str, place: str) -> None:
    """An annotation with a smaller number counts on."""
    made = workload("jobs.batch", condition)
    metadata = made["metadata"] if place == "workload" else made["spec"]["template"]["metadata"]
    metadata["annotations"] = {names.MIN_MEMBER: "4"}
    result = outcome(KINDS["jobs.batch"], made, condition, VerbRequest("resize", size=size)).message
    assert result == done("jobs.batch", condition, VerbRequest("resize", size=size)).message + text


@pytest.mark.parametrize("kind", ["statefulsets.apps", "jobs.batch.volcano.sh"])
def test_a_higher_class_may_preempt(kind: str) -> None:
    """The message of a waiting workload names the command that shows the victims."""
    assert "muster simulate -f" in done(kind, "waiting", VerbRequest("priority", "urgent")).message


def test_hold_and_release_give_back_what_was() -> None:
    """Also the number of replicas; if it is unknown, the message names the alternative."""
    for kind, rows in OUTCOMES.items():
        if rows["hold"].startswith("patch"):
            [held] = after(kind, "waiting", VerbRequest("hold"))
            assert condition_of(KINDS[kind], held, "running") == "suspended"
            [step] = outcome(KINDS[kind], held, "suspended", VerbRequest("release")).steps
            free = applied(held, step.value)
            assert condition_of(KINDS[kind], free, "running") == "running"
            assert free["spec"].get("replicas") == spec_of(kind).get("replicas")
    for notes in ({}, {names.HELD_REPLICAS: "9" * 5_000}):
        by_hand = {"metadata": {"name": "w", "annotations": notes}, "spec": {"replicas": 0}}
        told = outcome(KINDS["deployments.apps"], by_hand, "suspended", VerbRequest("release"))
        assert (told.refused, "muster resize deployment.apps/w --size" in told.message) == (True, True)


@pytest.mark.parametrize("kind", ["statefulsets.apps", "leaderworkersets.leaderworkerset.x-k8s.io"])
def test_a_class_is_written_to_the_templates(kind: str) -> None:
    """To each that there is."""
    [changed] = after(kind, "suspended", VerbRequest("priority", "urgent"))
    [template] = [
        changed["spec"].get("template") or changed["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    ]  # fmt: skip
    assert template == {**TORCH, "spec": {"priorityClassName": "urgent"}}
    assert "leaderTemplate" not in changed["spec"].get("leaderWorkerTemplate", {})


@pytest.mark.parametrize(
    "asked", [VerbRequest("hold"), VerbRequest("priority", "urgent"), VerbRequest("resize", size=8)]
)
def test_no_verb_deletes_volumes(asked: VerbRequest) -> None:
    """A StatefulSet may delete volumes of removed pods; such a StatefulSet is never scaled to 0."""
    made = workload("statefulsets.apps", "waiting")
    made["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete"}
    told = outcome(KINDS["statefulsets.apps"], made, "waiting", asked)
    assert (told.refused, "whenScaled is Delete: first set it to Retain" in told.message) == (True, True)


def test_several_tasks_need_a_name() -> None:
    """The message has them."""
    told = done("jobs.batch.volcano.sh", "waiting", VerbRequest("resize", size=8))
    assert (told.refused, "ps, worker" in told.message, "--task" in told.message) == (True, True, True)


def world(kind: WorkloadKind, *, annotations: JSON | None = None, **spec: Any) -> bool:
    """Is a workload with this template and spec one world?"""
    return is_world(kind, {"metadata": {"name": "w", "annotations": annotations or {}}, "spec": spec})


def test_worlds() -> None:
    """By a framework, unless it is elastic, and by plugins of Volcano's that write the number into each pod."""
    batch, volcano = KINDS["jobs.batch"], KINDS["jobs.batch.volcano.sh"]
    assert world(batch, template=TORCH)
    assert not world(batch, template=TORCH, annotations={names.ELASTIC: "1:8"})
    assert not world(batch, template={"spec": {}})
    assert world(volcano, tasks=[{"template": TORCH}])
    for labels in ({names.FRAMEWORK: "torch", names.MANAGED: "false"}, {}):
        assert not world(batch, template={"metadata": {"labels": labels}})


@pytest.mark.parametrize(("plugins", "fixed"), [
    ({"pytorch": []}, "master worker"), ({"pytorch": ["--master=head"]}, "worker head"),
    ({"mpi": None}, "master worker"),
    ({"tensorflow": ["--ps=head"]}, "worker head"), ({"pytorch": ["--master=none"]}, ""), ({"svc": [], "ssh": []}, ""),
    ({"ray": []}, ""), ({"of-others": []}, ""),
])  # fmt: skip
def test_resizing_a_task_of_a_plugin_restarts_its_pods(plugins: JSON, fixed: str) -> None:
    """Only tasks whose pods get their number, or the names of all, from the plugin."""
    tasks = [{"name": each, "replicas": 1, "template": {}} for each in ("master", "worker", "head", "watcher")]
    job = {"metadata": {"name": "w"}, "spec": {"plugins": plugins, "tasks": tasks, "minAvailable": 4}}
    steps = {
        task["name"]: outcome(
            KINDS["jobs.batch.volcano.sh"], job, "running", VerbRequest("resize", size=2, task=task["name"])
        )
        for task in tasks
    }
    assert [name for name, told in steps.items() if len(told.steps) > 1] == fixed.split()


COLUMNS: tuple[tuple[Verb, ...], ...] = (("priority",), ("move",), ("resize",), ("hold", "release"), ("cancel",))
"""Columns of the table in docs/why.md, after the kind."""
DOCUMENTED = {
    "Job of Kubernetes": "jobs.batch",
    "Volcano Job": "jobs.batch.volcano.sh",
    "TrainJob": "trainjobs.trainer.kubeflow.org",
    "JobSet": "jobsets.jobset.x-k8s.io",
    "StatefulSet": "statefulsets.apps",
    "Deployment": "deployments.apps",
    "LeaderWorkerSet": "leaderworkersets.leaderworkerset.x-k8s.io",
    "Pod": "pods.",
    "PodGroup whose pods an operator creates": "podgroups.scheduling.volcano.sh",
    "JobFlow": "jobflows.flow.volcano.sh",
}
"""The first cell of a row -> its kind."""


def test_the_documentation_has_the_same_table() -> None:
    """A cell begins with `no` if the kind never has the verb, and only then."""
    page = (Path(__file__).parents[4] / "docs" / "why.md").read_text(encoding="utf-8")
    table = page[page.index("| kind | `priority`") :].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert {row[0] for row in rows} == DOCUMENTED.keys()
    assert {*DOCUMENTED.values()} == KINDS.keys()
    for row in rows:
        for verbs, cell in zip(COLUMNS, row[1:], strict=True):
            refused = {OUTCOMES[DOCUMENTED[row[0]]][verb] == NOT for verb in verbs}
            assert refused == {cell.startswith("no")}, (row[0], verbs, cell)
