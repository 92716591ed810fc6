"""What plugins add to pods and beside them."""

from typing import Any

import pytest

from muster.api.kubernetes.endpoints import Run
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.volcano.plugins.base import PluginError, parse
from muster.volcano.plugins.registry import check, plugins_for
from muster.volcano.plugins.svc import hosts_data
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import slot


def job(**plugins: list[str]) -> Job:
    """Job `n/j` of a master and two workers, and a task with a dash in its name."""
    template: dict[str, Any] = {"spec": {"containers": [{"name": "main"}], "initContainers": [{"name": "init"}]}}
    counts = {"master": 1, "worker": 2, "log-sink": 1}
    tasks = [TaskSpec(name=name, replicas=count, template=template) for name, count in counts.items()]
    return Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"), spec=JobSpec(tasks=tasks, plugins=plugins))


def shaped(of: Job, task: int, index: int) -> dict[str, Any]:
    """The spec of a pod after all plugins."""
    manifest = complete_pod(of, slot(of, of.spec.tasks[task], index), plugins_for(of.spec.plugins))
    spec: dict[str, Any] = manifest["spec"]
    return spec


def env(container: dict[str, Any]) -> dict[str, Any]:
    """The variables of a container by name."""
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container.get("env", [])}


def test_env() -> None:
    """Every container gets the index under both names; what the user wrote stays."""
    spec = shaped(job(env=[]), 1, 1)
    for container in (*spec["containers"], *spec["initContainers"]):
        assert env(container) == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}
    of = job(env=[])
    of.spec.tasks[0].template["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "mine"}]
    assert env(shaped(of, 0, 0)["containers"][0])["VC_TASK_INDEX"] == "mine"


def test_svc_hosts() -> None:
    """Per task a list for files, one for environments, and a number."""
    assert hosts_data(job()) == {
        "master.host": "j-master-0.j",
        "VC_MASTER_HOSTS": "j-master-0.j",
        "VC_MASTER_NUM": "1",
        "worker.host": "j-worker-0.j\nj-worker-1.j",
        "VC_WORKER_HOSTS": "j-worker-0.j,j-worker-1.j",
        "VC_WORKER_NUM": "2",
        "log_sink.host": "j-log-sink-0.j",
        "VC_LOG_SINK_HOSTS": "j-log-sink-0.j",
        "VC_LOG_SINK_NUM": "1",
    }


def test_svc_objects_and_pods() -> None:
    """ConfigMap, headless Service and NetworkPolicy; names, mount and variables in the pod."""
    of = job(svc=["--publish-not-ready-addresses=true"])
    objects = {owned.resource.kind: owned.manifest for owned in plugins_for(of.spec.plugins)[0].objects(of)}
    selector = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "n"}
    assert objects["Service"] == {
        "metadata": {"name": "j"},
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }
    assert objects["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": selector}
    assert objects["ConfigMap"]["metadata"]["name"] == "j-svc"
    spec = shaped(of, 1, 0)
    assert (spec["hostname"], spec["subdomain"]) == ("j-worker-0", "j")
    assert spec["volumes"] == [{"name": "j-svc", "configMap": {"name": "j-svc"}}]
    for container in (*spec["containers"], *spec["initContainers"]):
        assert container["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]
        assert env(container)["VC_WORKER_HOSTS"] == {"configMapKeyRef": {"name": "j-svc", "key": "VC_WORKER_HOSTS"}}


@pytest.mark.parametrize(("name", "refused"), [("2nd-try", True), ("try-2", False), ("", False)])
def test_svc_needs_a_name_for_its_service(name: str, refused: bool) -> None:  # noqa: FBT001 - a column of the table
    """The names of Services begin with a letter; a Job without the plugin may begin with a digit."""
    wanted = job(svc=[])
    wanted.metadata = ObjectMeta(name=name, generate_name="" if name else "try-", namespace="n")
    errors = list(check(wanted))
    assert [error.path for error in errors] == ["metadata.name"] * refused
    assert not list(check(Job(metadata=wanted.metadata, spec=JobSpec(tasks=wanted.spec.tasks))))


@pytest.mark.parametrize(("count", "refused"), [(1, False), (30_000, False), (90_000, True), (2_000_000_000, True)])
def test_hosts_that_no_config_map_holds(count: int, refused: bool) -> None:  # noqa: FBT001 - a column of the table
    """It is said at admission, before a list of them is made."""
    wanted = job(svc=[])
    wanted.spec.tasks[1].replicas = count
    errors = list(check(wanted))
    assert [error.path for error in errors] == ["spec.plugins[svc]"] * refused
    assert all(f"the names of {count + 2} pods, and one holds 1048576" in str(error) for error in errors)


@pytest.mark.parametrize(("start", "size"), [(0, 0), (0, 1), (0, 10), (0, 11), (7, 1234), (99, 2), (100, 1)])
def test_the_length_of_names_that_are_not_made(start: int, size: int) -> None:
    """It is that of the names."""
    run = Run("j-w-", ".j", size, start)
    assert run.characters == sum(map(len, run))


def test_svc_flags() -> None:
    """No NetworkPolicy and no host variables when asked so; an unknown flag does not hide those after it."""
    of = job(svc=["--no-such-flag", "value", "--disable-network-policy", "-inject-hosts-env=false"])
    kinds = [owned.resource.kind for owned in plugins_for(of.spec.plugins)[0].objects(of)]
    assert kinds == ["ConfigMap", "Service"]
    assert not env(shaped(of, 0, 0)["containers"][0])


def test_svc_of_a_large_job() -> None:
    """1,200 long names are too much for a variable: they are in the files, and the number still is in the environment.

    Where the ConfigMap itself would be too large, the list for environments is left out.
    """
    of = job(svc=[])
    of.metadata.name = "x" * 50
    of.spec.tasks[1].replicas = 1200
    env_names = set(env(shaped(of, 1, 0)["containers"][0]))
    assert "VC_WORKER_HOSTS" not in env_names
    assert {"VC_WORKER_NUM", "VC_MASTER_HOSTS"} <= env_names
    data = hosts_data(of)
    assert data["VC_WORKER_HOSTS"] == data["worker.host"].replace("\n", ",")
    of.spec.tasks[1].replicas = 6000
    data = hosts_data(of)
    assert "VC_WORKER_HOSTS" not in data
    assert data["worker.host"].count("\n") == 5999
    assert sum(map(len, (*data, *data.values()))) < 1 << 20


def test_what_the_user_mounts_stays() -> None:
    """A path that is taken is left alone, in this container only; an API server refuses two mounts at one path."""
    of = job(svc=[])
    of.spec.tasks[0].template["spec"]["containers"][0]["volumeMounts"] = [{"name": "own", "mountPath": "/etc/volcano/"}]
    spec = shaped(of, 0, 0)
    assert [one["name"] for one in spec["containers"][0]["volumeMounts"]] == ["own"]
    assert [one["name"] for one in spec["initContainers"][0]["volumeMounts"]] == ["j-svc"]


@pytest.mark.parametrize(("task", "index", "rank"), [(0, 0, "0"), (1, 0, "1"), (1, 1, "2"), (2, 0, None)])
def test_pytorch(task: int, index: int, rank: str | None) -> None:
    """The master is rank 0, workers follow, others have none."""
    container = shaped(job(pytorch=["--port=1234"]), task, index)["containers"][0]
    wanted = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "1234", "WORLD_SIZE": "3"}
    assert env(container) == wanted | ({"RANK": rank} if rank else {})
    assert container["ports"] == [{"name": "pytorchjob-port", "containerPort": 1234, "protocol": "TCP"}]


def test_pytorch_without_a_master_and_with_waiting_workers() -> None:
    """A Job without that task is left alone; workers can be made to wait."""
    assert "env" not in shaped(job(pytorch=["--master=chief"]), 1, 0)["containers"][0]
    of = job(pytorch=["--wait-master-enabled=true"])
    assert [one["name"] for one in shaped(of, 1, 0)["initContainers"]] == ["init", "wait-for-master"]
    assert [one["name"] for one in shaped(of, 0, 0)["initContainers"]] == ["init"]


def test_order_is_fixed_and_missing_plugins_are_named() -> None:
    """The order in the Job does not matter; what cannot be had is named, all of it."""
    wanted = ["hcclrank", "ray", "mpi", "tensorflow", "pytorch", "ssh", "svc", "env"]
    order = [type(plugin).__name__ for plugin in plugins_for({name: [] for name in wanted})]
    assert order == ["Env", "Svc", "SSH", "PyTorch", "TensorFlow", "MPI", "Ray", "HCCLRank"]
    with pytest.raises(PluginError, match=r"bar, foo: unknown; the plugins are env, svc, ssh, "):
        plugins_for({"bar": [], "env": [], "foo": []})


@pytest.mark.parametrize(
    ("arguments", "value"),
    [(["--n=5"], 5), (["-n", "5"], 5), (["--n", "x"], 1), (["--other", "-n=5"], 5), ([], 1), (["n=5"], 1)],
)
def test_flags(arguments: list[str], value: int) -> None:
    """Both spellings of Go's flags; a value that does not fit leaves the default."""
    assert parse(arguments, {"n": 1}).values == {"n": value}


def test_volumes_and_containers_of_the_user_keep_their_names() -> None:
    """An API server refuses two of one name: the template's own stays, and nothing of ours is mounted."""
    of = job(svc=[], pytorch=["--wait-master-enabled=true"])
    spec = of.spec.tasks[1].template["spec"]
    spec["volumes"] = [{"name": "j-svc", "emptyDir": {}}]
    spec["initContainers"] = [{"name": "wait-for-master", "command": ["mine"]}]
    made = shaped(of, 1, 0)
    assert made["volumes"] == [{"name": "j-svc", "emptyDir": {}}]
    assert "volumeMounts" not in made["containers"][0]
    assert [one["command"] for one in made["initContainers"]] == [["mine"]]


def test_names_that_the_template_gives() -> None:
    """Every plugin sends the workers to the name that the master has."""
    of = job(svc=[], ssh=[], pytorch=["--wait-master-enabled=true"])
    of.spec.tasks[0].template = {"spec": {"containers": [{"name": "main"}], "hostname": "boss", "subdomain": "net"}}
    worker = shaped(of, 1, 0)
    assert env(worker["containers"][0])["MASTER_ADDR"] == "boss.net"
    assert "nc -z -w 1 boss.net 23456" in worker["initContainers"][-1]["command"][-1]
    assert hosts_data(of)["master.host"] == "boss.net"
    master = shaped(of, 0, 0)
    assert (master["hostname"], master["subdomain"]) == ("boss", "net")


@pytest.mark.parametrize("open_already", [False, True])
def test_a_port_of_the_node_is_opened_once(open_already: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """With hostNetwork two containers with one port are refused."""
    of = job(svc=[], ssh=[], mpi=[], pytorch=[])
    opened = {"ports": [{"containerPort": 22}, {"containerPort": 23456}]} if open_already else {}
    containers = [{"name": "main"}, {"name": "side", **opened}]
    of.spec.tasks[0].template = {"spec": {"containers": containers, "initContainers": [{"name": "i"}]}}
    of.spec.tasks[0].template["spec"]["hostNetwork"] = True
    spec = shaped(of, 0, 0)
    ports = [[port["containerPort"] for port in one.get("ports", [])] for one in spec["containers"]]
    assert ports == ([[], [22, 23456]] if open_already else [[23456, 22], []])
    assert "ports" not in spec["initContainers"][0]
