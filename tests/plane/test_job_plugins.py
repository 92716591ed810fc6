"""Job plugins on the plane: their objects live as long as they must, and hold what pods need."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from jobs import VOLUMES, Story, command, job, make_claim, policy, task

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


def raw(kind: str, plural: str) -> Resource[dict[str, Any]]:
    """A kind of the core group, read as plain JSON."""
    return Resource("", "v1", plural, kind, dict[str, Any])


SECRETS, SERVICES, RAW_PODS = raw("Secret", "secrets"), raw("Service", "services"), raw("Pod", "pods")


def secret(story: Story) -> dict[str, Any]:
    """The Secret of Job `j`."""
    return story.client.get(SECRETS, "j-ssh", story.namespace)


def variables(story: Story, pod: str) -> dict[str, Any]:
    """The environment of a pod's first container, as the API server has it."""
    containers = story.client.get(RAW_PODS, pod, story.namespace)["spec"]["containers"]
    return {one["name"]: one.get("value") for one in containers[0]["env"]}


@pytest.mark.slow
@pytest.mark.alone
def test_keys_never_change_under_running_pods(plane: Plane, story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Restarts of a pod, a task and the Job, a scale-up, and a new controller: the Secret and its keys stay."""
    restart = task("w", 2, policies=[policy("RestartPod", "PodEvicted")])
    made = story.create(job("j", namespace, restart, task("v", 1), plugins={"ssh": [], "svc": []}, maxRetry=9))
    wait_for(lambda: story.phase("j") == "Running")
    before = secret(story)
    story.client.delete(PODS, "j-w-0", namespace, grace_period_s=0)
    wait_for(lambda: len(story.pods["j-w-0"]) == 2 and story.phase("j") == "Running")
    plane.part("controller").restart()
    story.client.create(COMMANDS, command("RestartJob", made), namespace)
    wait_for(lambda: len(story.pods["j-v-0"]) >= 2 and story.phase("j") == "Running")
    story.client.json_patch(JOBS, "j", [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}], namespace)
    wait_for(lambda: story.pods.get("j-w-2"), what="the third pod, whose name the pattern of its task covers already")
    after = secret(story)
    assert "Host j-w-*" in b64decode(after["data"]["config"]).decode()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    for name in ("id_rsa", "id_rsa.pub", "authorized_keys"):
        assert after["data"][name] == before["data"][name]
    story.client.create(COMMANDS, command("TerminateJob", made), namespace)
    wait_for(lambda: story.phase("j") == "Terminated")
    wait_for(lambda: story.gone(SECRETS, "j-ssh"), what="the Secret goes with the last pod")


def test_mpi_brings_what_it_needs(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Admission adds svc and ssh; the master knows its workers, by names that the Service gives them."""
    made = story.create(job("j", namespace, task("master", 1), task("worker", 2), plugins={"mpi": []}))
    assert set(made.spec.plugins) == {"mpi", "svc", "ssh"}
    wait_for(lambda: story.phase("j") == "Running")
    assert variables(story, "j-master-0")["MPI_HOST"] == "j-worker-0.j,j-worker-1.j"
    assert "MPI_HOST" not in variables(story, "j-worker-0")
    pod = story.client.get(RAW_PODS, "j-worker-1", namespace)["spec"]
    assert (pod["hostname"], pod["subdomain"]) == ("j-worker-1", "j")
    assert {"j-svc", "j-ssh"} <= {volume["name"] for volume in pod["volumes"]}
    assert story.client.get(SERVICES, "j", namespace)["spec"]["clusterIP"] == "None"
    assert {"plugin-mpi", "plugin-svc", "plugin-ssh"} <= set(story.job("j").status.controlled_resources)


def test_ray_has_a_service_for_its_head(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Beside the headless one; gone when the Job is over."""
    head, worker = task("head", 1, containers=["head"]), task("worker", 1, containers=["worker"])
    made = story.create(job("j", namespace, head, worker, plugins={"ray": []}))
    wait_for(lambda: story.phase("j") == "Running")
    service = story.client.get(SERVICES, "j-head-svc", namespace)["spec"]
    assert {port["name"]: port["port"] for port in service["ports"]} == {
        "gcs": 6379,
        "dashboard": 8265,
        "client-server": 10001,
    }
    assert service["selector"]["volcano.sh/task-spec"] == "head"
    container = story.client.get(RAW_PODS, "j-worker-0", namespace)["spec"]["containers"][0]
    assert container["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:6379"]
    story.client.create(COMMANDS, command("CompleteJob", made), namespace)
    wait_for(lambda: story.phase("j") == "Completed")
    wait_for(lambda: story.gone(SERVICES, "j-head-svc"))


def test_all_plugins_together(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """In fixed order, so hcclrank finds pytorch's RANK; the API server takes the pods."""
    plugins: dict[str, list[str]] = {name: [] for name in ("hcclrank", "tensorflow", "mpi", "pytorch", "env")}
    story.create(job("j", namespace, task("master", 1), task("worker", 2), plugins=plugins))
    wait_for(lambda: story.phase("j") == "Running")
    found = variables(story, "j-worker-1")
    assert (found["VC_TASK_INDEX"], found["RANK"], found["WORLD_SIZE"]) == ("1", "2", "3")
    assert '"task":{"type":"worker","index":1}' in found["TF_CONFIG"]
    assert story.client.get(RAW_PODS, "j-worker-1", namespace)["metadata"]["annotations"]["hccl/rankIndex"] == "2"


def test_pods_on_the_network_of_the_node_with_two_containers(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """The API server takes them: each port is opened once; and each pod has a node of its own."""
    tasks = [task("master", 1, containers=["main", "side"]), task("worker", 2, containers=["main", "side"])]
    for one in tasks:
        one["template"]["spec"] |= {"hostNetwork": True, "initContainers": [{"name": "init", "image": "none"}]}
    plugins: dict[str, list[str]] = {"mpi": [], "pytorch": ["--wait-master-enabled=true"], "env": []}
    story.create(job("j", namespace, *tasks, plugins=plugins))
    wait_for(lambda: story.phase("j") == "Running")
    pods = story.client.list(RAW_PODS, namespace)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    assert {pod["spec"]["dnsPolicy"] for pod in pods} == {"ClusterFirstWithHostNet"}


def test_what_the_template_has_already_stays(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Mounts, volumes and init containers that a plugin or a volume of the Job would add a second time."""
    worker = task("worker", 1)
    spec = worker["template"]["spec"]
    spec["volumes"] = [{"name": "j-svc", "emptyDir": {}}, {"name": "scratch", "emptyDir": {}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/data"}]
    spec["initContainers"] = [{"name": "wait-for-master", "image": "none"}]
    make_claim(story, "data")
    volumes = [{"mountPath": "/data", "volumeClaimName": "data"}]
    plugins = {"pytorch": ["--wait-master-enabled=true"]}
    story.create(job("j", namespace, task("master", 1), worker, plugins=plugins, volumes=volumes))
    wait_for(lambda: story.phase("j") == "Running")
    pod = story.client.get(RAW_PODS, "j-worker-0", namespace)["spec"]
    mounts = {each["mountPath"]: each["name"] for each in pod["containers"][0]["volumeMounts"]}
    assert mounts["/data"] == "scratch"
    story.client.delete(VOLUMES, namespace)
