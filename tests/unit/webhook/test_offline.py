"""Admission without a server: what the routes say, where each reason stands, what follows, and how it is written."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from webhook_world import FRAMEWORK, JSON, indexed_job, pod_of, task, vcjob

from muster.workloads.batch_job import job_pods
from muster.workloads.sample import SamplePod
from webhook.config import ResourceGroup
from webhook.offline.admission import OfflineAdmission, admit_all
from webhook.offline.lookups import Documents
from webhook.offline.manifests import yaml_lines

QUEUED = {"muster.dev/queue": "default"}
BOTH = {**QUEUED, "muster.dev/framework": "torch"}


def admission(*documents: JSON, **options: Any) -> OfflineAdmission:
    """The admission of objects into namespace `team`, where these are known."""
    return OfflineAdmission(Documents(documents, "team"), FRAMEWORK, **options)


def pod(**spec: object) -> JSON:
    """A pod in a queue."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": dict(QUEUED)},
        "spec": {"containers": [{"name": "main"}], **spec},
    }


def test_before_and_after() -> None:
    """The object stays as it came; each value that was added has a reason under its own path."""
    before = pod()
    kept = copy.deepcopy(before)
    admitted = admission().admit(before)
    assert before == admitted.before == kept
    assert admitted.after["spec"]["schedulerName"] == "muster"
    assert admitted.reasons["spec", "schedulerName"].reason == "Muster finds its node"
    assert not admitted.errors


def test_a_copy_of_a_moved_workload_loses_the_note_of_the_move() -> None:
    """It is about the object that was exported; the copy belongs to its sender."""
    job = {"apiVersion": "batch/v1", "kind": "Job", **indexed_job(labels=BOTH)}
    job["metadata"] = {**job["metadata"], "annotations": {"muster.dev/moved-to": "other", "kept": "yes"}}
    admitted = admission(user="eve").admit(job)
    assert admitted.after["metadata"]["annotations"] == {"kept": "yes", "muster.dev/created-by": "eve"}
    assert not admitted.errors


def test_each_element_of_a_list_has_its_reason() -> None:
    """The first one makes the list, the others are appended: their paths count on."""
    job = indexed_job(labels=BOTH)
    admitted = admission(job).admit({"apiVersion": "v1", "kind": "Pod", **pod_of(job)})
    env = admitted.after["spec"]["containers"][0]["env"]
    places = [path[-1] for path in admitted.reasons if path[:-1] == ("spec", "containers", 0, "env")]
    assert places == list(range(len(env)))


def test_the_configuration_stays_as_it_is() -> None:
    """Values in an object are copies: another route may write into them again."""
    group = ResourceGroup(
        name="gpu", namespaces=("team",), affinity={"nodeAffinity": {}}, scheduler_name="muster", labels={"a": "b"}
    )
    after = admission(groups=(group,)).admit(pod()).after
    after["spec"]["affinity"]["nodeAffinity"]["x"] = 1
    after["spec"]["nodeSelector"]["x"] = "y"
    assert (group.affinity, group.labels) == ({"nodeAffinity": {}}, {"a": "b"})


@pytest.mark.parametrize(("obj", "words"), [
    ({**pod(), "metadata": {"name": "a", "labels": [1]}}, "the object cannot be read"),
    (vcjob(task(topologyPolicy="best-effort", policies=7)), "the object cannot be read"),
    ({**vcjob(task(minAvailable=9)), "metadata": {"name": "train"}}, "'minAvailable' is greater than 'replicas'"),
])  # fmt: skip
def test_what_would_be_refused(obj: JSON, words: str) -> None:
    """It is an error of the object and never an exception."""
    assert words in " ".join(map(str, admission().admit(obj).errors))


def test_namespaces_that_are_never_sent() -> None:
    """Their objects pass as they are, as in the API server."""
    system = {**pod(), "metadata": {"name": "a", "namespace": "kube-system", "labels": BOTH}}
    assert admission().admit(system).after == system


def test_pods_of_a_job() -> None:
    """Those of an indexed Job are told apart, by label and host name; the Job is their controller."""
    first, second = job_pods(indexed_job(), range(2))
    assert [each["metadata"]["name"] for each in (first, second)] == ["train-0", "train-1"]
    assert second["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["spec"]["hostname"] == "train-1"
    assert second["metadata"]["ownerReferences"][0]["uid"] == "job-uid"
    [plain] = job_pods(indexed_job(completionMode="NonIndexed"), [0])
    assert "hostname" not in plain["spec"]
    assert "batch.kubernetes.io/job-completion-index" not in plain["metadata"]["labels"]


def test_what_follows() -> None:
    """An admitted workload is followed by its first pod; a refused one by nothing."""
    job = indexed_job(labels=BOTH)
    after, first = admit_all(admission(job), [job])
    assert (after.about, first.about) == ("", "the first pod of Job train")
    assert first.after["spec"]["schedulerName"] == "muster"
    wrong = indexed_job(labels=BOTH, completionMode="NonIndexed")
    [refused] = admit_all(admission(wrong), [wrong])
    assert refused.errors


def test_a_wrong_quantity_has_its_path() -> None:
    """Also where it is only found when the gang's native PodGroup is made."""
    container = {"name": "main", "resources": {"requests": {"cpu": "2x"}}}
    *_, refused = admit_all(admission(native=True), [vcjob(task(template={"spec": {"containers": [container]}}))])
    [error] = refused.errors
    assert error.path == "spec.tasks[0].template.spec.containers[0].resources"
    assert "cpu: '2x' is not a quantity" in error.message


def test_pods_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error stands behind the workload, which itself is fine."""

    def broken(_: JSON) -> Iterator[SamplePod]:
        raise ValueError("no such plugin")

    monkeypatch.setattr("webhook.offline.admission.sample_pods", broken)
    job = indexed_job(labels=BOTH)
    fine, refused = admit_all(admission(job), [job])
    assert not fine.errors
    assert "its pods cannot be created: no such plugin" in str(refused.errors[0])


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS
    | st.sampled_from(["a\nb\n", " a\nb\n", "a\n\nb\n", "a\n\n", "#!/bin/sh\necho: 'x'\n", "yes", "0x1", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def yaml_text(value: Any) -> str:
    """The lines of a value as one text."""
    return "".join(f"{line.text}\n" for line in yaml_lines(value))


@given(VALUES)
@example({"key": " a\nb\n"})
def test_what_is_written_is_read_back(value: Any) -> None:
    """Any JSON value comes back from an independent reader."""
    assert yaml.safe_load(yaml_text(value)) == value


def test_each_line_knows_what_it_shows() -> None:
    """A line has the path of what begins on it; the first line of an element stands for the element."""
    value = {"spec": {"containers": [{"name": "a", "args": ["x"]}], "script": "a\nb\n"}}
    shown = [(line.text, line.path) for line in yaml_lines(value)]
    assert shown == [
        ("spec:", ("spec",)),
        ("  containers:", ("spec", "containers")),
        ("  - name: a", ("spec", "containers", 0)),
        ("    args:", ("spec", "containers", 0, "args")),
        ("    - x", ("spec", "containers", 0, "args", 0)),
        ("  script: |", ("spec", "script")),
        ("    a", ("spec", "script")),
        ("    b", ("spec", "script")),
    ]


def test_a_manifest_replaces_what_the_cluster_has() -> None:
    """It is added later, and look-ups find it."""
    known = Documents([{"kind": "JobTemplate", "metadata": {"name": "a"}, "spec": {"queue": "old"}}], "team")
    known.add({"kind": "JobTemplate", "metadata": {"name": "a"}, "spec": {"queue": "new"}})
    found = known.find_document("JobTemplate", "a", "team")
    assert found
    assert found["spec"] == {"queue": "new"}
