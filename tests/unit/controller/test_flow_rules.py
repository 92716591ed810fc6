"""Which Jobs of a JobFlow are due, how they are made, and what its status says, decided without a cluster."""

from typing import Any

import msgspec
import pytest
from builders import job as a_job
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from controller.flow.rules import LATEST, MOST_TASKS, due, is_forgotten, phase, status_of
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.names import CREATED_BY
from muster.api.volcano.batch import Job, JobSpec, JobState, JobStatus, Phase, TaskState
from muster.api.volcano.flow import MADE_FOR, MADE_OF, JobFlow, JobPatch, JobTemplate, job_name
from muster.workloads.flow_jobs import job_manifest, merged, patched

JSON = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
PHASES: list[Phase] = ["", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Completed",
                       "Terminating", "Terminated", "Failed"]  # fmt: skip


def job_flow(needs: dict[str, list[str]], **more: Any) -> JobFlow:
    """A JobFlow whose steps need others; `probe`: of each step."""
    probe = more.pop("probe", None)
    depends = {"probe": probe} if probe else {}
    flows = [{"name": name, "dependsOn": {"targets": targets, **depends}} for name, targets in needs.items()]
    metadata = {"name": "flow", "namespace": "team", "uid": "uid-flow", **more}
    return msgspec.convert({"metadata": metadata, "spec": {"flows": flows}}, JobFlow)


def job(step: str, its_phase: Phase, **status: Any) -> Job:
    """The Job of a step, with a task `t` of two pods."""
    state = JobStatus(state=JobState(phase=its_phase), **status)
    return a_job(f"flow-{step}", {"t": 2}, "team", created=NOW, status=state)


def names(of: JobFlow, jobs: dict[str, Job]) -> list[str]:
    """The steps that are due."""
    return [flow.name for flow in due(of, jobs)]


def remembering(of: JobFlow, jobs: dict[str, Job]) -> JobFlow:
    """The JobFlow with its status written."""
    return structs.replace(of, status=status_of(of, jobs, frozenset(jobs), NOW))


DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


def test_a_step_waits_until_all_of_its_targets_are_completed() -> None:
    """The diamond, step by step."""
    of = job_flow(DIAMOND)
    assert names(of, {}) == ["a"]
    assert names(of, {"a": job("a", "Completing")}) == []
    assert names(of, {"a": job("a", "Completed")}) == ["b", "c"]
    half = {"a": job("a", "Completed"), "b": job("b", "Completed"), "c": job("c", "Running")}
    assert names(of, half) == []
    assert names(of, {**half, "c": job("c", "Completed")}) == ["d"]


def test_entries_of_one_name_are_one_step() -> None:
    """Its Job is made once, of the first entry that need not wait."""
    of = job_flow({"a": []})
    entries = [*of.spec.flows, *job_flow({"b": ["a"]}).spec.flows, *job_flow({"b": []}).spec.flows]
    of.spec.flows = [*entries, *entries]
    assert [(flow.name, flow is entries[0] or flow is entries[2]) for flow in due(of, {})] == [("a", True), ("b", True)]
    jobs = {step: job(step, "Completed") for step in ("a", "b")}
    assert (due(of, jobs), phase(of, jobs)) == ([], "Succeed")
    assert status_of(of, jobs, frozenset(jobs), NOW).completed_jobs == ["flow-a", "flow-b"]
    assert phase(job_flow({}), {}) == "Pending"


def test_a_completed_job_that_is_gone_is_not_made_again() -> None:
    """Its time to live is over; one that was deleted before its end is made again."""
    of = remembering(job_flow(DIAMOND), {"a": job("a", "Completed"), "b": job("b", "Running")})
    assert names(of, {}) == ["b", "c"]
    assert status_of(of, {}, frozenset(), NOW).completed_jobs == ["flow-a"]


def test_a_job_stays_until_its_end_is_remembered() -> None:
    """Otherwise a controller that died between its deletion and the write of the status would have it run again."""
    of, done = job_flow({"a": []}), job("a", "Completed")
    owner = OwnerReference(
        api_version="flow.volcano.sh/v1alpha1", kind="JobFlow", name="flow", uid="uid-flow", controller=True
    )
    done.metadata.owner_references.append(owner)
    assert is_forgotten(of, done)
    assert not is_forgotten(remembering(of, {"a": done}), done)
    assert not is_forgotten(job_flow({"a": []}, uid="uid-of-another"), done)
    assert not is_forgotten(job_flow({"b": []}), done)
    assert not is_forgotten(of, structs.replace(done, status=job("a", "Running").status))


@pytest.mark.parametrize("lost", ["Failed", "Terminated"])
def test_nothing_more_is_made_after_a_failure(lost: Phase) -> None:
    """Also not what does not depend on the failed Job; and also when it is gone."""
    of = job_flow({"a": [], "b": [], "c": ["b"]})
    jobs = {"a": job("a", lost), "b": job("b", "Completed")}
    assert (phase(of, jobs), names(of, jobs)) == ("Failed", [])
    after = remembering(of, jobs)
    assert (phase(after, {}), names(after, {})) == ("Failed", [])


@pytest.mark.parametrize(("jobs", "expected"), [
    ({}, "Pending"),
    ({"a": ""}, "Pending"),
    ({"a": "Aborted"}, "Pending"),
    ({"a": "Running"}, "Running"),
    ({"a": "Completed"}, "Running"),
    ({"a": "Completed", "b": "Completed", "c": "Completed", "d": "Completed"}, "Succeed"),
    ({"a": "Completed", "b": "Failed", "c": "Running"}, "Failed"),
])  # fmt: skip
def test_the_phase_follows_from_the_jobs(jobs: dict[str, Phase], expected: str) -> None:
    """As Volcano's documentation says; a JobFlow that is being deleted makes nothing."""
    made = {step: job(step, each) for step, each in jobs.items()}
    assert phase(job_flow(DIAMOND), made) == expected
    going = job_flow(DIAMOND, deletionTimestamp=NOW)
    assert (phase(going, made), names(going, made)) == ("Terminating", [])


@pytest.mark.parametrize(("wanted", "counts", "met"), [
    ([("t", "Running")], {"Running": 2}, True),
    ([("t", "Running")], {"Running": 1}, False),
    ([("t", "Running")], {"Running": 1, "Succeeded": 1}, True),
    ([("t", "Failed")], {"Failed": 1}, True),
    ([("t", "Running"), ("t", "Failed")], {"Running": 2}, False),
    ([("other", "Running")], {"Running": 2}, False),
])  # fmt: skip
def test_a_probe_of_tasks_is_enough(wanted: list[tuple[str, str]], counts: dict[str, int], *, met: bool) -> None:
    """Instead of the end of the target: as many pods as the task needs have the phase."""
    probe = {"taskStatusList": [{"taskName": task, "phase": each} for task, each in wanted]}
    of = job_flow({"a": [], "b": ["a"]}, probe=probe)
    running = job("a", "Running", task_status_count={"t": TaskState(phase=counts)})
    assert names(of, {"a": running}) == (["b"] if met else [])
    assert names(of, {"a": job("a", "Completed")}) == ["b"]
    assert names(of, {"a": job("a", "Failed", task_status_count={"t": TaskState(phase=counts)})}) == []


@given(st.data())
def test_every_job_is_made_once_and_after_its_targets(data: st.DataObject) -> None:
    """Whatever the order in which Jobs end, and go once they have ended, and whatever of them is lost."""
    count = data.draw(st.integers(1, 7))
    needs = {str(each): data.draw(st.lists(st.sampled_from([str(n) for n in range(each)]), unique=True))
             if each else [] for each in range(count)}  # fmt: skip
    of, jobs, made = job_flow(needs), dict[str, Job](), list[str]()
    completed: set[str] = set()
    lost = data.draw(st.sampled_from([None, *needs]))
    while True:
        of = remembering(of, jobs)
        for step in names(of, jobs):
            assert {*needs[step]} <= completed
            made.append(step)
            jobs[step] = job(step, "")
        open_ = [step for step, each in jobs.items() if each.status.state.phase == ""]
        if not open_:
            break
        ends = data.draw(st.sampled_from(open_))
        jobs[ends] = job(ends, "Failed" if ends == lost else "Completed")
        completed |= {ends} - {lost or ""}
        of = remembering(of, jobs)
        if data.draw(st.booleans()):
            del jobs[ends]
    assert len(made) == len(set(made))
    assert phase(of, jobs) == ("Failed" if lost in made else "Succeed")
    assert lost in made or set(made) == set(needs)


@given(st.lists(st.sampled_from(PHASES), max_size=40))
def test_the_status_is_small_and_stands_still(seen: list[Phase]) -> None:
    """Histories are cut, each Job is in one list, and a second look at the same Jobs writes nothing."""
    of = job_flow({"a": []})
    for each in seen:
        of = remembering(of, {"a": job("a", each)})
        assert remembering(of, {"a": job("a", each)}) == of
        status = of.status
        lists = (
            *(*status.pending_jobs, *status.running_jobs, *status.completed_jobs, *status.failed_jobs),
            *(*status.terminated_jobs, *status.un_know_jobs),
        )
        assert lists == ("flow-a",)
        assert len(status.job_status_list[0].running_histories) <= LATEST


def test_counts_of_very_many_tasks_are_left_out() -> None:
    """The status must fit into the API server."""
    counts = {f"t{number}": TaskState(phase={"Running": 1}) for number in range(MOST_TASKS)}
    jobs = {each: job(each, "Running", task_status_count=counts) for each in ("a", "b")}
    found = status_of(job_flow({"a": [], "b": []}), jobs, frozenset(jobs), NOW).conditions
    assert (len(found["flow-a"].task_status_count), len(found["flow-b"].task_status_count)) == (MOST_TASKS, 0)


def test_each_phase_of_a_job_is_told_with_its_begin_and_end() -> None:
    """The end of one is the begin of the next; the last has none."""
    of, times = job_flow({"a": []}), [f"2026-01-01T00:00:0{second}Z" for second in range(4)]
    phases: list[Phase] = ["Pending", "Running", "Completing"]
    for each, now in zip(phases, times, strict=False):
        jobs = {"a": job("a", each)}
        of = structs.replace(of, status=status_of(of, jobs, frozenset(jobs), now))
    told = [
        (each.state, each.start_timestamp, each.end_timestamp)
        for each in of.status.job_status_list[0].running_histories
    ]
    assert told == [("Pending", times[0], times[1]), ("Running", times[1], times[2]), ("Completing", times[2], None)]


@pytest.mark.parametrize(("retries", "told"), [(0, 0), (3, 3), (-1, 0)])
def test_restarts_are_counted(retries: int, told: int) -> None:
    """Never less than none: anybody may have written the Job's status."""
    of = remembering(job_flow({"a": []}), {"a": job("a", "Running", retry_count=retries)})
    assert of.status.job_status_list[0].restart_count == told


def test_a_job_that_was_made_again_has_no_history_of_the_earlier_one() -> None:
    """It is told by the time of its creation."""
    of = remembering(job_flow({"a": []}), {"a": job("a", "Running")})
    again = job("a", "Pending")
    again = structs.replace(again, metadata=structs.replace(again.metadata, creation_timestamp="2026-01-02T00:00:00Z"))
    history = status_of(of, {"a": again}, frozenset("a"), NOW).job_status_list[0].running_histories
    assert [each.state for each in history] == ["Pending"]


CONTAINER = {"name": "main", "image": "old", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
TEMPLATE = {"spec": {"containers": [CONTAINER], "tolerations": [{"key": "a"}], "nodeSelector": {"zone": "1"}}}


def spec() -> JobSpec:
    """The spec of a JobTemplate."""
    tasks = [{"name": "t", "replicas": 2, "template": TEMPLATE}, {"replicas": 1, "template": TEMPLATE}]
    more = {"minAvailable": 3, "queue": "q", "plugins": {"svc": [], "mpi": ["--a=b"]}}
    return msgspec.convert({"tasks": tasks, "maxRetry": 5, **more}, JobSpec)


def change(**patch: Any) -> JSON:
    """The spec after a patch."""
    return patched(spec(), msgspec.convert(patch, JobPatch))


def test_a_job_is_made_of_its_template() -> None:
    """With its owner, and marks as Volcano has them."""
    template = JobTemplate(metadata=ObjectMeta(name="a", namespace="team"), spec=spec())
    made = job_manifest(of := job_flow({"a": []}), of.spec.flows[0], template)
    assert made["metadata"]["name"] == "flow-a"
    assert made["metadata"]["labels"] == {MADE_OF: "team.a", MADE_FOR: "team.flow"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-flow"
    assert msgspec.convert(made["spec"], JobSpec) == spec()
    of.metadata.annotations[CREATED_BY] = "alice"
    assert job_manifest(of, of.spec.flows[0], template)["metadata"]["annotations"][CREATED_BY] == "alice"
    long = job_flow({"a": []}, namespace="n" * 62)
    made = job_manifest(long, long.spec.flows[0], template)
    assert (made["metadata"]["labels"], len(made["metadata"]["annotations"])) == ({}, 2)


def test_a_patch_changes_what_it_names() -> None:
    """Counts that are left out stay, also those for which Volcano's patch has a zero."""
    assert change(queue="other") == {**patched(spec(), None), "queue": "other"}
    assert change(maxRetry=0, minAvailable=1)["minAvailable"] == 1
    assert change(plugins={"mpi": ["--c=d"], "ssh": []})["plugins"] == {"svc": [], "mpi": ["--a=b", "--c=d"], "ssh": []}
    mounts = [{"mountPath": "/a", "volumeClaimName": "c"}]
    assert change(volumes=mounts)["volumes"] == mounts


def test_a_patch_of_a_task_is_merged_by_names() -> None:
    """A task without a name is known by the one that it gets; others are added."""
    env = [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]
    pod = {"containers": [{"name": "main", "image": "new", "env": env}, {"name": "log"}], "nodeSelector": {"disk": "x"}}
    tasks = change(tasks=[{"name": "default1", "template": {"spec": pod}}, {"name": "more", "replicas": 1}])["tasks"]
    assert [(task["name"], task["replicas"]) for task in tasks] == [("t", 2), ("default1", 1), ("more", 1)]
    assert tasks[0]["template"] == TEMPLATE
    merged_spec = tasks[1]["template"]["spec"]
    assert [each["name"] for each in merged_spec["containers"]] == ["main", "log"]
    assert merged_spec["containers"][0]["env"] == [{"name": "A", "value": "1"}, *env]
    assert merged_spec["nodeSelector"] == {"zone": "1", "disk": "x"}
    assert merged_spec["tolerations"] == [{"key": "a"}]


@given(st.recursive(st.integers() | st.text(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner)))
def test_a_part_merged_with_itself_is_itself(part: Any) -> None:
    """And with nothing, too."""
    document = {"spec": part}
    assert merged(document, document) == merged(document, {}) == document


def test_jobs_that_were_seen_to_end_count_without_a_status() -> None:
    """One that went before its end was written: it is in no list of what exists."""
    of = job_flow({"a": [], "b": ["a"]})
    status = status_of(of, {"a": job("a", "Completed")}, frozenset(), NOW)
    assert (status.conditions, status.completed_jobs) == ({}, [job_name(of, "a")])
    assert [each.name for each in status.job_status_list] == ["flow-a"]
