"""`muster hold` and similar verbs against an API server: the chosen workload, the requests, and the output."""

import json
from typing import Any

import pytest
from answering_server import FORBIDDEN, Server

from muster.api import names
from musterctl import steps

BATCH = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
TRAIN = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def workload(name: str = "w", owner: str = "", spec: Any = None, **status: Any) -> Any:
    """An object as the API server has it."""
    metadata: Any = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {names.FRAMEWORK: "torch"}}
    if owner:
        kind = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": owner, "uid": "t"}
        metadata["ownerReferences"] = [{**kind, "controller": True}]
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def listed(*items: Any) -> Any:
    """An answer to a list."""
    return (200, {"metadata": {"resourceVersion": "1"}, "items": list(items)}, [])


def group(phase: str = "Pending", *reasons: str) -> Any:
    """The PodGroup of the workload, with these reasons to wait."""
    conditions = [
        {"type": "Unschedulable", "status": "True", "reason": each, "message": each, "lastTransitionTime": ""}
        for each in reasons
    ]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "uid-w", "controller": True}
    metadata = {"name": "g", "uid": "uid-g", "ownerReferences": [owner], "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"minMember": 2}, "status": {"phase": phase, "conditions": conditions}}


def test_a_name_selects_one_workload(asked: Any, server: Server) -> None:
    """Of several the first is named; a part of another one is not meant; kinds that may not be read are named."""
    server.other = (404, {"kind": "Status", "reason": "NotFound", "message": "no", "details": {"name": "w"}}, [])
    server.answers = {f"GET {each}/w": (200, workload(), []) for each in (BATCH, VOLCANO)}
    assert "job.batch/w, job.batch.volcano.sh/w; for the first, run: muster hold" in asked("hold", "w").stderr
    server.answers = {f"GET {VOLCANO}/w": (200, workload(owner="w"), []), f"GET {TRAIN}/w": (200, workload(), [])}
    assert asked("hold", "w", "--dry-run").exit_code == 1  # the PATCH has no answer: the TrainJob was meant
    assert f"PATCH {TRAIN}/w?dryRun=All" in server.requests
    result = asked("hold", "job.batch.volcano.sh/w").stderr
    assert (
        "belongs to trainjob.trainer.kubeflow.org/w, whose controller would revert the change: muster hold trainjob"
        in result
    )
    server.answers = {f"GET {BATCH}/w": FORBIDDEN}
    assert "there is no workload w in namespace default; you cannot read jobs" in asked("hold", "w").stderr
    assert (
        "'pot' is not a kind that this command can change; it can change job.batch, " in asked("hold", "pot/w").stderr
    )
    assert "give one or more names, or -l" in asked("hold").stderr
    assert "'' cannot be the name of a Queue" in asked("move", "job/w", "--queue=").stderr
    pod = workload(owner="w")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    server.answers = {f"GET {PODS}/w": (200, pod, [])}
    assert (
        asked("cancel", "po/w").stderr
        == "Error: pod/w belongs to replicaset.apps/w, whose controller would revert the change\n"
    )


def test_labels_select_only_top_level_workloads(asked: Any, server: Server) -> None:
    """Each of every kind that the user may list; the others are named, and PodGroups are listed once."""
    server.answers = {
        f"GET {PODS}": FORBIDDEN,
        f"GET {BATCH}": listed(workload("a"), workload("b", owner="t"), workload("c")),
        f"PATCH {BATCH}/a": (200, workload("a"), []),
    }
    result = asked("hold", "-l", "sweep=7")
    assert result.stdout.startswith("job.batch/a is held")
    assert "These kinds are omitted, because you cannot list them: pods.\n" in result.stderr
    assert server.bodies[0] == {"metadata": {"uid": "uid-a"}, "spec": {"suspend": True}}
    server.requests.clear()
    asked("move", "-l", "sweep=7", "--queue=q")
    assert sum(each.startswith(f"GET {GROUPS}") and "labelSelector" not in each for each in server.requests) == 1
    server.answers = {}
    assert "No workloads found in default namespace" in asked("hold", "-l", "sweep=7").stderr


def test_a_world_is_resized_by_three_requests(asked: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are dry runs first; the last one is sent when no pod is left, or the output names the next command."""
    monkeypatch.setattr(steps, "_POLL_S", 0.0)
    server.answers = {
        f"GET {SETS}/w": (200, workload(spec={"replicas": 2}, replicas=0), []),
        f"PATCH {SETS}/w": (200, workload(), []),
        f"GET {GROUPS}": listed(group("Running")),
    }
    result = asked("resize", "statefulset/w", "--size=3")
    assert result.stdout == (
        "statefulset.apps/w has the size 3: all of its pods stop and start again, because each pod contains the "
        "number of pods; it waits behind gangs of its class\n"
    )
    tried = ["?dryRun=All"] * 2
    assert [each.partition("/w")[2] for each in server.requests if each.startswith("PATCH")] == [*tried, "", ""]
    assert [each["spec"]["replicas"] for each in server.bodies] == [0, 3, 0, 3]
    server.answers[f"GET {SETS}/w"] = (200, workload(spec={"replicas": 2}, replicas=2), [])
    monkeypatch.setattr(steps, "STOP_S", 0.0)
    shown = asked("resize", "statefulset/w", "--size=3", "--dry-run", "--output=json").stdout
    assert json.loads(shown)["spec"] == {}, "as the API server would have it, and not as it is"
    result = asked("resize", "statefulset/w", "--size=3").stderr
    assert "its pods are still terminating after 0 s: repeat this command" in result
    assert "muster release statefulset.apps/w returns it to its queue" in result


@pytest.mark.parametrize(("size", "warns"), [(3, False), (5, True)])
def test_only_a_larger_size_may_have_no_place(asked: Any, server: Server, size: int, *, warns: bool) -> None:
    """A smaller one frees nodes, even where nothing is free."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"replicas": 4, "template": {"spec": {"containers": [container]}}}
    waiting = group()
    waiting["spec"]["queue"] = "root"
    queue = {"metadata": {"name": "root"}, "spec": {}, "status": {"fairShare": {"cpu": "8"}, "allocated": {"cpu": "8"}}}
    server.answers = {
        f"GET {SETS}/w": (200, workload(spec=spec), []),
        f"PATCH {SETS}/w": (200, workload(spec=spec), []),
        f"GET {GROUPS}": listed(waiting),
        "GET /apis/scheduling.volcano.sh/v1beta1/queues": listed(queue),
    }
    result = asked("resize", "statefulset/w", f"--size={size}", "--dry-run").stderr
    assert ("and only 0 cpu is free at present" in result) == warns


COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
TASKS = [{"name": "master", "replicas": 1}, {"name": "worker", "replicas": 2}]


@pytest.mark.parametrize(("reasons", "generation", "sent", "says"), [
    (("Forbidden", "Invalid"), 1, 0, "the request has these mistakes"),
    (("Forbidden",), 1, 1, "cannot change job.batch.volcano.sh/w: no"),
    (("Forbidden",), 2, 1, "job.batch.volcano.sh/w was changed by another client in the meantime: repeat this command"),
])  # fmt: skip
def test_a_volcano_job_is_not_stopped_for_nothing(
    asked: Any, server: Server, monkeypatch: pytest.MonkeyPatch, reasons: Any, generation: int, sent: int, says: str
) -> None:
    """Errors are found before it is held, except in its size, which is fixed until then; later ones have advice."""
    monkeypatch.setattr(steps, "_POLL_S", 0.0)
    job, held = (
        workload(spec={"minAvailable": 3, "plugins": {"pytorch": []}, "tasks": TASKS}, state={"phase": phase})
        for phase in ("Running", "Aborted")
    )
    job["metadata"]["generation"], held["metadata"]["generation"] = 1, generation
    causes = [{"reason": f"FieldValue{each}", "message": each, "field": "spec"} for each in reasons]
    refusal = {"kind": "Status", "reason": "Invalid", "message": "no", "details": {"name": "w", "causes": causes}}
    server.answers = {
        f"GET {VOLCANO}/w": (200, job, []),
        f"GET {GROUPS}": listed(group("Running")),
        f"POST {COMMANDS}": (201, {"metadata": {"name": "c"}}, []),
        f"PATCH {VOLCANO}/w": (422, refusal, []),
    }
    answer = server.answer

    def aborts(method: str, path: str, query: str) -> Any:
        if method == "POST" and "dryRun" not in query:
            server.answers[f"GET {VOLCANO}/w"] = (200, held, [])
        return answer(method, path, query)

    monkeypatch.setattr(server, "answer", aborts)
    told = asked("resize", "vcjob/w", "--size=2000000", "--task=worker").stderr
    assert says in told
    assert sum(each.startswith("POST") and "dryRun" not in each for each in server.requests) == sent
    assert ("muster release job.batch.volcano.sh/w returns it" in told) == bool(sent)


@pytest.mark.parametrize(("groups", "says"), [
    (listed(group("Running")), "it is running, and a new priority class would restart its pods"),
    (listed(group("Pending", "NotEnoughResources")), "has the class high"),
    (listed(group("Pending", "Evicted")), "has the class high"),
    (FORBIDDEN, "it is running, and a new priority class would restart its pods"),
    (listed(), "it is running, and a new priority class would restart its pods"),
])  # fmt: skip
def test_the_state_is_the_state_of_the_gangs(asked: Any, server: Server, groups: Any, says: str) -> None:
    """What may not be listed counts as running, and so do pods that have no gang."""
    server.answers = {
        f"GET {SETS}/w": (200, workload(spec={"replicas": 2, "template": {}}), []),
        f"PATCH {SETS}/w": (200, workload(), []),
        f"GET {GROUPS}": groups,
    }
    assert says in asked("priority", "statefulset/w", "--class=high", "--dry-run").output


def test_a_refusal_contains_the_waiting_time(asked: Any, server: Server) -> None:
    """As that is what its user would lose."""
    server.answers = {f"GET {BATCH}/w": (200, workload(), []), f"GET {GROUPS}": listed(group("Pending", "x"))}
    told = asked("priority", "job.batch/w", "--class=high").stderr
    assert "create it again with the other value; it loses its place in its queue (it has waited for " in told
    server.answers[f"GET {GROUPS}"] = listed()
    assert "it has no PodGroup of scheduling.volcano.sh" in asked("move", "job.batch/w", "--queue=q").stderr


@pytest.mark.parametrize(("field", "shown"), [
    ("metadata.annotations[muster.dev/num-nodes]", "Error: trainjob.trainer.kubeflow.org/w: its number is fixed\n"),
    ("spec.trainer", "Error: cannot change trainjob.trainer.kubeflow.org/w: the hook denied it\n"),
])  # fmt: skip
def test_a_refused_annotation_of_a_verb_is_not_shown(asked: Any, server: Server, field: str, shown: str) -> None:
    """The user has not written it; the reason is about the TrainJob."""
    cause = {"field": field, "message": "Forbidden: its number is fixed"}
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "the hook denied it", "details": {"causes": [cause]}}
    server.answers = {f"GET {TRAIN}/w": (200, workload(), []), f"GET {GROUPS}": listed()}
    server.answers[f"PATCH {TRAIN}/w"] = (403, refusal, [])
    assert asked("resize", "tj/w", "--size=4").stderr == shown
