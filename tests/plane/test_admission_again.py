"""A Job's manifest can be applied again, by every way that kubectl has; a real change is refused at its field."""

import copy
from typing import Any

import pytest
from jobs import task

pytestmark = pytest.mark.plane

JSON = dict[str, Any]


def manifest(*, replicas: int = 2, image: str = "none", **spec: Any) -> JSON:
    """A Job as a user writes it: without what admission fills in, and in a user's words."""
    worker = task("", replicas)
    worker["template"]["spec"] |= {"hostNetwork": True, "volumes": [{"name": "scratch", "emptyDir": {}}]}
    worker["template"]["spec"]["containers"][0] |= {
        "image": image,
        "resources": {"limits": {"cpu": "1000m", "nvidia.com/gpu": 1}},
    }
    policies = [{"event": "PodEvicted", "action": "RestartJob", "timeout": "1h"}]
    tasks = [worker, {**task("server", 1), "policies": policies}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"plugins": {"pytorch": ["--master=server"]}, "tasks": tasks, **spec},
    }


def stored(kubectl: Any, namespace: str) -> JSON:
    """The spec of the Job as it is."""
    spec: JSON = kubectl.json("get", "vcjob", "train", f"--namespace={namespace}")["spec"]
    return spec


DONE = ("created", "configured", "replaced", "unchanged", "serverside-applied")
TRIES = 10


def send(kubectl: Any, namespace: str, job: JSON, *verb: str, check: bool = True) -> str:
    """What kubectl says to the manifest; it tries again when the controller wrote a status meanwhile."""
    for _ in range(TRIES):
        said: str = kubectl(*verb, f"--namespace={namespace}", "--filename=-", stdin=job, check=False)
        if "(Conflict)" not in said:
            break
    assert not check or said.rstrip().endswith(DONE), said
    return said


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side"), ("replace",)], ids=" ".join)
def test_the_same_manifest_again(kubectl: Any, namespace: str, verb: tuple[str, ...]) -> None:
    """The Job stays as it was, with all that was filled in."""
    send(kubectl, namespace, manifest(), *(("create",) if verb == ("replace",) else verb))
    once = stored(kubectl, namespace)
    send(kubectl, namespace, manifest(), *verb)
    assert stored(kubectl, namespace) == once
    assert [(each["name"], each["minAvailable"], each["maxRetry"]) for each in once["tasks"]] == [
        ("default0", 2, 3),
        ("server", 1, 3),
    ]
    assert once["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert once["plugins"] == {"pytorch": ["--master=server"], "svc": []}


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side"), ("replace",)], ids=" ".join)
def test_other_replicas(kubectl: Any, namespace: str, verb: tuple[str, ...]) -> None:
    """The minimums, which the manifest does not give, follow the replicas: up, down, and through nothing."""
    send(kubectl, namespace, manifest(), *(("create",) if verb == ("replace",) else verb))
    for replicas in (4, 0, 12, 1):
        send(kubectl, namespace, manifest(replicas=replicas), *verb)
        spec = stored(kubectl, namespace)
        assert (spec["tasks"][0]["replicas"], spec["tasks"][0]["minAvailable"]) == (replicas, replicas)
        assert spec["minAvailable"] == replicas + 1


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side")], ids=" ".join)
def test_a_minimum_of_the_users(kubectl: Any, namespace: str, verb: tuple[str, ...]) -> None:
    """The Job's minimum is the user's when the manifest has it: fewer pods than that are refused."""
    send(kubectl, namespace, manifest(minAvailable=3), *verb)
    said = send(kubectl, namespace, manifest(minAvailable=3, replicas=1), *verb, check=False)
    assert "spec.minAvailable: Invalid value: 3" in said
    send(kubectl, namespace, manifest(minAvailable=3, replicas=4), *verb)
    assert stored(kubectl, namespace)["minAvailable"] == 3


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side")], ids=" ".join)
def test_a_minimum_that_is_said_later(kubectl: Any, namespace: str, verb: tuple[str, ...]) -> None:
    """It is the user's from then on, also if admission had written the same."""
    send(kubectl, namespace, manifest(), *verb)
    send(kubectl, namespace, manifest(minAvailable=3), *verb)
    send(kubectl, namespace, manifest(minAvailable=3, replicas=4), *verb)
    assert stored(kubectl, namespace)["minAvailable"] == 3


def test_label_and_scale(kubectl: Any, namespace: str) -> None:
    """What touches one field only changes that."""
    send(kubectl, namespace, manifest(), "apply")
    once = stored(kubectl, namespace)
    kubectl("label", "vcjob", "train", f"--namespace={namespace}", "a=b")
    assert stored(kubectl, namespace) == once
    patch = '--patch=[{"op":"replace","path":"/spec/tasks/0/replicas","value":3}]'
    kubectl("patch", "vcjob", "train", f"--namespace={namespace}", "--type=json", patch)
    once["tasks"][0]["replicas"] = 3
    assert stored(kubectl, namespace) == once


@pytest.mark.parametrize("verb", [("apply",), ("apply", "--server-side"), ("replace",)], ids=" ".join)
def test_another_image_is_refused_at_its_field(kubectl: Any, namespace: str, verb: tuple[str, ...]) -> None:
    """Nothing that the manifest leaves out is named beside it."""
    send(kubectl, namespace, manifest(), *(("create",) if verb == ("replace",) else verb))
    said = send(kubectl, namespace, manifest(image="other"), *verb, check=False)
    assert "spec.tasks[0].template.spec.containers[0].image: Forbidden: job updates may not change fields" in said
    assert said.count("Forbidden") == 1, said


def test_what_a_client_with_types_writes_back(kubectl: Any, namespace: str) -> None:
    """Amounts, durations and empty structures in its words are no change, and a new minimum gets through."""
    send(kubectl, namespace, manifest(), "create")
    job = kubectl.json("get", "vcjob", "train", f"--namespace={namespace}")
    written = copy.deepcopy(job)
    del written["metadata"]["resourceVersion"]  # the controller writes a status meanwhile
    spec = written["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "1", "nvidia.com/gpu": "1"}
    container["securityContext"] = None
    spec["tasks"][1]["policies"][0]["timeout"] = "1h0m0s"
    spec["tasks"][1]["template"]["metadata"]["creationTimestamp"] = None
    spec["tasks"][1]["template"]["spec"]["volumes"] = []
    spec["minAvailable"] = 2
    send(kubectl, namespace, written, "replace", "--validate=false")
    assert stored(kubectl, namespace)["minAvailable"] == 2


def test_from_apply_to_server_side(kubectl: Any, namespace: str) -> None:
    """The list of tasks, which admission fills in, is taken over once by force; then it is the new manager's."""
    send(kubectl, namespace, manifest(), "apply")
    once = stored(kubectl, namespace)
    said = send(kubectl, namespace, manifest(), "apply", "--server-side", check=False)
    assert ".spec.tasks" in said
    send(kubectl, namespace, manifest(), "apply", "--server-side", "--force-conflicts")
    send(kubectl, namespace, manifest(), "apply", "--server-side")
    assert stored(kubectl, namespace) == once
