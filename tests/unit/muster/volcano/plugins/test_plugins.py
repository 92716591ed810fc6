"""What plugins add to pods and beside them, each alone, and any two and all of them together."""

from itertools import chain, combinations
from typing import Any

import pytest
from plugin_jobs import container, job, objects, shaped, variables

from muster.api.kubernetes.endpoints import NumberedNames
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec
from muster.volcano.plugins import registry
from muster.volcano.plugins.base import PluginError, parse_flags
from muster.volcano.plugins.registry import BUILT_IN, check_plugins, plugins_for
from muster.volcano.plugins.svc import hosts_data

TASKS = {"master": 1, "worker": 2, "log-sink": 1}
CONTAINERS = ("main", "side", "init")


def test_env() -> None:
    """Every container gets the index under both names; what the user wrote stays."""
    manifest = shaped(job(TASKS, env=[]), "worker", 1)
    for name in CONTAINERS:
        assert variables(manifest, name) == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}
    of = job(TASKS, env=[])
    of.spec.tasks[0].template["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "mine"}]
    assert variables(shaped(of, "master", 0))["VC_TASK_INDEX"] == "mine"


def test_svc_hosts() -> None:
    """Per task a list for files, one for environments, and a number."""
    assert hosts_data(job(TASKS)) == {
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
    of = job(TASKS, svc=["--publish-not-ready-addresses=true"])
    made = {owned.resource.kind: owned.manifest for owned in objects(of)}
    selector = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "n"}
    assert made["Service"] == {
        "metadata": {"name": "j"},
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }
    assert made["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": selector}
    assert made["ConfigMap"]["metadata"]["name"] == "j-svc"
    manifest = shaped(of, "worker", 0)
    spec = manifest["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("j-worker-0", "j")
    assert spec["volumes"] == [{"name": "j-svc", "configMap": {"name": "j-svc"}}]
    for name in CONTAINERS:
        assert container(manifest, name)["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]
        assert variables(manifest, name)["VC_WORKER_HOSTS"] == {
            "configMapKeyRef": {"name": "j-svc", "key": "VC_WORKER_HOSTS"}
        }


@pytest.mark.parametrize(("name", "refused"), [("2nd-try", True), ("try-2", False), ("", False)])
def test_svc_needs_a_name_for_its_service(name: str, refused: bool) -> None:  # noqa: FBT001 - a column of the table
    """The names of Services begin with a letter; a Job without the plugin may begin with a digit."""
    wanted = job(TASKS, svc=[])
    wanted.metadata = ObjectMeta(name=name, generate_name="" if name else "try-", namespace="n")
    assert [error.path for error in list(check_plugins(wanted))] == ["metadata.name"] * refused
    assert not list(check_plugins(Job(metadata=wanted.metadata, spec=JobSpec(tasks=wanted.spec.tasks))))


@pytest.mark.parametrize(("count", "refused"), [(1, False), (30_000, False), (90_000, True), (2_000_000_000, True)])
def test_hosts_that_no_config_map_holds(count: int, refused: bool) -> None:  # noqa: FBT001 - a column of the table
    """It is said at admission, before a list of them is made."""
    wanted = job(TASKS, svc=[])
    wanted.spec.tasks[1].replicas = count
    errors = list(check_plugins(wanted))
    assert [error.path for error in errors] == ["spec.plugins[svc]"] * refused
    assert all(f"the names of {count + 2} pods, but the limit is 1048576" in str(error) for error in errors)


@pytest.mark.parametrize(("start", "size"), [(0, 0), (0, 1), (0, 10), (0, 11), (7, 1234), (99, 2), (100, 1)])
def test_the_length_of_names_that_are_not_made(start: int, size: int) -> None:
    """It is that of the names."""
    run = NumberedNames("j-w-", ".j", size, start)
    assert run.characters == sum(map(len, run))


def test_svc_flags() -> None:
    """No NetworkPolicy and no host variables when asked so; an unknown flag does not hide those after it."""
    of = job(TASKS, svc=["--no-such-flag", "value", "--disable-network-policy", "-inject-hosts-env=false"])
    kinds = [owned.resource.kind for owned in objects(of)]
    assert kinds == ["ConfigMap", "Service"]
    assert not variables(shaped(of, "master", 0))


def test_svc_of_a_large_job() -> None:
    """1,200 long names are too much for a variable: they are in the files, and the number still is in the environment.

    Where the ConfigMap itself would be too large, the list for environments is left out.
    """
    of = job(TASKS, svc=[])
    of.metadata.name = "x" * 50
    of.spec.tasks[1].replicas = 1200
    env_names = set(variables(shaped(of, "worker", 0)))
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
    of = job(TASKS, svc=[])
    of.spec.tasks[0].template["spec"]["containers"][0]["volumeMounts"] = [{"name": "own", "mountPath": "/etc/volcano/"}]
    manifest = shaped(of, "master", 0)
    mounted = {name: [one["name"] for one in container(manifest, name)["volumeMounts"]] for name in CONTAINERS}
    assert mounted == {"main": ["own"], "side": ["j-svc"], "init": ["j-svc"]}


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("master", 0, "0"), ("worker", 0, "1"), ("worker", 1, "2"), ("log-sink", 0, None)]
)
def test_pytorch(task: str, index: int, rank: str | None) -> None:
    """The master is rank 0, workers follow, others have none."""
    manifest = shaped(job(TASKS, pytorch=["--port=1234"]), task, index)
    wanted = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "1234", "WORLD_SIZE": "3"}
    assert variables(manifest) == wanted | ({"RANK": rank} if rank else {})
    assert container(manifest)["ports"] == [{"name": "pytorchjob-port", "containerPort": 1234, "protocol": "TCP"}]


def test_pytorch_without_a_master_and_with_waiting_workers() -> None:
    """A Job without that task is left alone; workers can be made to wait."""
    assert not variables(shaped(job(TASKS, pytorch=["--master=chief"]), "worker", 0))
    of = job(TASKS, pytorch=["--wait-master-enabled=true"])
    assert [one["name"] for one in shaped(of, "worker", 0)["spec"]["initContainers"]] == ["init", "wait-for-master"]
    assert [one["name"] for one in shaped(of, "master", 0)["spec"]["initContainers"]] == ["init"]


def test_the_wait_for_the_master_passes_quotas_and_pod_security() -> None:
    """The init container has the securityContext and the basic resources of the first container, without its GPUs."""
    of = job(TASKS, pytorch=["--wait-master-enabled=true"])
    first = of.spec.tasks[1].template["spec"]["containers"][0]
    first["securityContext"] = {"runAsNonRoot": True, "runAsUser": 1000}
    first["resources"] = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": "8"}}
    waiting = shaped(of, "worker", 0)["spec"]["initContainers"][-1]
    assert waiting["securityContext"] == first["securityContext"]
    assert waiting["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}


@pytest.mark.parametrize(("path", "pod", "own", "mode"), [
    ("/root/.ssh", {}, {}, 0o600),
    ("//root//.ssh/", {}, {}, 0o600),
    ("/home/mpi/.ssh", {}, {}, 0o644),
    ("/home/mpi/.ssh", {"runAsUser": 0}, {}, 0o600),
    ("/home/mpi/.ssh", {"runAsUser": 1000}, {"runAsUser": 0}, 0o600),
    ("/root/.ssh", {"runAsUser": 1000}, {}, 0o644),
    ("/home/mpi/.ssh", {"runAsUser": 1000, "fsGroup": 2000}, {}, 0o640),
    ("/home/mpi/.ssh", {"fsGroup": 2000}, {}, 0o640),
])  # fmt: skip
def test_the_mode_of_the_keys(path: str, pod: dict[str, int], own: dict[str, int], mode: int) -> None:
    """Keys of root must be readable by root alone, or ssh refuses them; other users read them by group or as others."""
    of = job(TASKS, ssh=[f"--ssh-key-file-path={path}"])
    spec = of.spec.tasks[1].template["spec"]
    spec["securityContext"] = pod
    for one in spec["containers"]:
        one["securityContext"] = own
    made = shaped(of, "worker", 0)["spec"]
    assert [each["secret"]["defaultMode"] for each in made["volumes"]] == [mode]
    mounts = {each["mountPath"] for one in made["containers"] for each in one["volumeMounts"]}
    assert mounts == {path.replace("//", "/").rstrip("/")}


def test_a_variable_of_the_user_can_refer_to_one_of_a_plugin() -> None:
    """Kubernetes expands $(NAME) only where the variable stands before."""
    of = job(TASKS, env=[])
    of.spec.tasks[1].template["spec"]["containers"][0]["env"] = [{"name": "SHARD", "value": "$(VC_TASK_INDEX)"}]
    names = list(variables(shaped(of, "worker", 1)))
    assert names.index("VC_TASK_INDEX") < names.index("SHARD")


def test_order_is_fixed_and_missing_plugins_are_named() -> None:
    """The order in the Job does not matter; what cannot be had is named, all of it."""
    wanted = ["hcclrank", "ray", "mpi", "tensorflow", "pytorch", "ssh", "svc", "env"]
    assert [plugin.name for plugin in plugins_for({name: [] for name in wanted})] == wanted[::-1]
    with pytest.raises(PluginError, match=r"bar, foo: unknown; the plugins are env, svc, ssh, "):
        plugins_for({"bar": [], "env": [], "foo": []})


@pytest.mark.parametrize(("arguments", "value"), [
    (["--n=5"], 5),
    (["--n=65535"], 65535),
    (["--n=65536"], 1),
    (["--n=0"], 1),
    (["-n", "5"], 5),
    (["--n", "x"], 1),
    (["--other", "-n=5"], 5),
    ([], 1),
    (["n=5"], 1),
])  # fmt: skip
def test_flags(arguments: list[str], value: int) -> None:
    """Both spellings of Go's flags; a value that does not fit leaves the default."""
    assert parse_flags(arguments, {"n": 1}).values == {"n": value}


def test_volumes_and_containers_of_the_user_keep_their_names() -> None:
    """An API server refuses two of one name: the template's own stays, and nothing of ours is mounted."""
    of = job(TASKS, svc=[], pytorch=["--wait-master-enabled=true"])
    spec = of.spec.tasks[1].template["spec"]
    spec["volumes"] = [{"name": "j-svc", "emptyDir": {}}]
    spec["initContainers"] = [{"name": "wait-for-master", "command": ["mine"]}]
    made = shaped(of, "worker", 0)["spec"]
    assert made["volumes"] == [{"name": "j-svc", "emptyDir": {}}]
    assert "volumeMounts" not in made["containers"][0]
    assert [one["command"] for one in made["initContainers"]] == [["mine"]]


def test_names_that_the_template_gives() -> None:
    """Every plugin sends the workers to the name that the master has."""
    of = job(TASKS, svc=[], ssh=[], pytorch=["--wait-master-enabled=true"])
    of.spec.tasks[0].template = {"spec": {"containers": [{"name": "main"}], "hostname": "boss", "subdomain": "net"}}
    worker = shaped(of, "worker", 0)
    assert variables(worker)["MASTER_ADDR"] == "boss.net"
    assert "nc -z -w 1 boss.net 23456" in worker["spec"]["initContainers"][-1]["command"][-1]
    assert hosts_data(of)["master.host"] == "boss.net"
    master = shaped(of, "master", 0)["spec"]
    assert (master["hostname"], master["subdomain"]) == ("boss", "net")


@pytest.mark.parametrize("open_already", [False, True])
def test_a_port_of_the_node_is_opened_once(open_already: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """With hostNetwork two containers with one port are refused."""
    of = job(TASKS, svc=[], ssh=[], mpi=[], pytorch=[])
    opened = {"ports": [{"containerPort": 22}, {"containerPort": 23456}]} if open_already else {}
    containers = [{"name": "main"}, {"name": "side", **opened}]
    of.spec.tasks[0].template = {"spec": {"containers": containers, "initContainers": [{"name": "i"}]}}
    of.spec.tasks[0].template["spec"]["hostNetwork"] = True
    spec = shaped(of, "master", 0)["spec"]
    ports = [[port["containerPort"] for port in one.get("ports", [])] for one in spec["containers"]]
    assert ports == ([[], [22, 23456]] if open_already else [[23456, 22], []])
    assert "ports" not in spec["initContainers"][0]


EACH_TASK = {"master": 1, "worker": 2, "head": 1, "other": 1}
"""Every plugin has the tasks that it looks for, and there is one that none looks for."""
PAIRS = [*combinations(BUILT_IN, 2)]
Named = dict[tuple[str, str], Any]


def parts(manifest: dict[str, Any]) -> Named:
    """Variables, mounts and ports by container and name, and volumes; each stands once."""
    found: Named = {}
    for name in CONTAINERS:
        one = container(manifest, name)
        for field, key in {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}.items():
            for each in one.get(field) or []:
                assert (name, f"{field} {each[key]}") not in found, each
                found[name, f"{field} {each[key]}"] = each
    spec = manifest["spec"]
    named = [("volume", each) for each in spec.get("volumes") or []]
    named += [("container", each) for each in chain(spec["containers"], spec["initContainers"])]
    assert len({(kind, each["name"]) for kind, each in named}) == len(named)
    found |= {(kind, each["name"]): each for kind, each in named if kind == "volume"}
    found |= {("pod", key): spec[key] for key in ("hostname", "subdomain") if key in spec}
    return found


def each_pod(*plugins: str) -> dict[tuple[str, int], Named]:
    """What the plugins add to each pod of a Job."""
    of = job(EACH_TASK, **{plugin: [] for plugin in plugins})
    return {
        (task, index): parts(shaped(of, task, index)) for task, count in EACH_TASK.items() for index in range(count)
    }


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
def test_two_plugins_add_what_each_adds(first: str, second: str) -> None:
    """In each pod and each of its containers, and beside the pods; in whatever order the Job names them."""
    alone = [each_pod(one) for one in (first, second)]
    both = each_pod(first, second)
    assert both == each_pod(second, first)
    for pod, found in both.items():
        assert found == alone[0][pod] | alone[1][pod], pod
    of = [job(EACH_TASK, **{name: [] for name in names}) for names in ((first,), (second,), (first, second))]
    made = [[(owned.resource.kind, owned.manifest["metadata"]["name"]) for owned in objects(one)] for one in of]
    assert sorted(made[2]) == sorted([*made[0], *made[1]])
    assert len(set(made[2])) == len(made[2])
    for task in of[2].spec.tasks:
        ports = [sorted(registry.ports(one, task)) for one in of]
        assert ports[2] == sorted([*ports[0], *ports[1]])
    assert [*registry.check_plugins(of[2])] == []


@pytest.mark.parametrize("plugin", BUILT_IN)
def test_with_all_others_a_plugin_still_adds_its_own(plugin: str) -> None:
    """What the user has written stays, too."""
    alone, together = each_pod(plugin), each_pod(*BUILT_IN)
    for pod, found in alone.items():
        assert {key: together[pod].get(key) for key in found} == found, pod


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mpi"])
def test_what_a_container_has_already_is_the_users(framework: str) -> None:
    """Of two plugins and the template the template wins, in that container alone."""
    of = job(EACH_TASK, **{"env": [], "svc": [], framework: []})
    names = [*variables(shaped(of, "master", 0))]
    main = next(task for task in of.spec.tasks if task.name == "master").template["spec"]["containers"][0]
    main["env"] = [{"name": name, "value": "mine"} for name in names]
    manifest = shaped(of, "master", 0)
    assert variables(manifest) == dict.fromkeys(names, "mine")
    assert "mine" not in variables(manifest, "side").values()
    assert [*variables(manifest, "side")] == names
