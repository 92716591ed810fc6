"""TrainJobs: merged with their runtime, checked against it unmerged, compiled to the objects that run them."""

from typing import Any

import pytest
from frameworks_world import (
    FRAMEWORK,
    compiled,
    component,
    env_of,
    errors_of,
    mpi_runtime,
    pods_of,
    replicated_job,
    runtime,
    train_job,
)

from muster.runtime.plan import Plan
from muster.runtime.train_job import describe, merged, pod_template

JSON = dict[str, Any]
GPU = "nvidia.com/gpu"


def patch(job: JSON, manager: str = "acme.io/me", **template: Any) -> JSON:
    """A runtime patch of one replicated job."""
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job], **template}}}}


def pod_patch(name: str = "node", metadata: JSON | None = None, **spec: Any) -> JSON:
    """A change to the pods of a replicated job."""
    return {"name": name, "template": {"spec": {"template": {"metadata": metadata or {}, "spec": spec}}}}


def container_of(result: Any, pod_set: str = "node") -> JSON:
    """Container `node` of a pod set."""
    found: JSON = pods_of(result, pod_set)["spec"]["containers"][0]
    return found


def plan_of(result: Any) -> Plan:
    """The plan; there must be one."""
    assert not errors_of(result)
    plan: Plan = result.plan
    return plan


def test_trainer_is_merged_over_the_runtime() -> None:
    """Image, command and arguments replace, variables and resources are merged one by one."""
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]
    resources = {"limits": {GPU: 4, "memory": "1Gi"}}
    node = {"name": "node", "image": "old", "command": ["old"], "env": env, "resources": resources}
    trainer = {"image": "new", "args": ["--fast"], "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
               "resourcesPerNode": {"limits": {"memory": "2Gi"}}}  # fmt: skip
    base = runtime({"torch": {}}, replicated_job("node", "trainer", {"containers": [node]}))
    found = container_of(compiled(train_job(trainer=trainer), base))
    assert (found["image"], found["command"], found["args"]) == ("new", ["old"], ["--fast"])
    assert [each["name"] for each in found["env"]][-3:] == ["A", "B", "C"]
    assert env_of(found) | {"A": "1", "B": "2", "C": "3"} == env_of(found)
    assert found["resources"] == {"limits": {GPU: 4, "memory": "2Gi"}}
    assert env_of(found)["PET_NPROC_PER_NODE"] == "auto"  # the runtime's GPUs still count


@pytest.mark.parametrize(
    ("default", "trainer", "count"),
    [(None, None, 1), (None, {}, 1), (3, {}, 3), (3, {"numNodes": 5}, 5), (None, {"numNodes": 2}, 2), (0, {}, 1)],
)
def test_number_of_nodes(default: int | None, trainer: JSON | None, count: int) -> None:
    """The TrainJob's, else the runtime's, else one; it is in the pods' environment and in the JobSet."""
    job = train_job() if trainer is None else train_job(trainer=trainer)
    result = compiled(job, runtime({"numNodes": default, "torch": {}}))
    [job_of_set] = component(result, "JobSet")["spec"]["replicatedJobs"]
    spec = job_of_set["template"]["spec"]
    assert (spec["parallelism"], spec["completions"], job_of_set["replicas"]) == (count, count, 1)
    assert env_of(container_of(result))["PET_NNODES"] == str(count)


def test_any_subdomain_and_any_name() -> None:
    """The master's address follows from where the pods are."""
    base = runtime({"torch": {}}, replicated_job("workers", "trainer"), jobset={"network": {"subdomain": "net"}})
    assert env_of(container_of(compiled(train_job(), base), "workers"))["PET_MASTER_ADDR"] == "train-workers-0-0.net"


def test_initializers_run_before_the_gang() -> None:
    """As a Job: batch Jobs in earlier stages. As a JobSet: by its dependencies. They are no members of the gang."""
    fetch = {"containers": [{"name": "dataset-initializer", "image": "fetch"}]}
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    base = runtime({"torch": {}}, replicated_job("dataset-initializer", "dataset-initializer", fetch),
                   replicated_job("node", "trainer", dependsOn=waits), podGroupPolicy={"volcano": {}})  # fmt: skip
    dataset = {"storageUri": "hf://data", "env": [{"name": "X", "value": "1"}], "secretRef": {"name": "token"}}
    job = train_job(trainer={"numNodes": 4}, initializer={"dataset": dataset})
    as_job = compiled(job, base, "Job")
    assert [(each.kind, each.name, each.stage) for each in as_job.components] == [
        ("Job", "train-dataset-initializer-0", 1),
        ("Job", "train", 2),
    ]
    [container] = as_job.components[0].manifest["spec"]["template"]["spec"]["containers"]
    assert env_of(container) == {"STORAGE_URI": "hf://data", "X": "1"}
    assert container["envFrom"] == [{"secretRef": {"name": "token"}}]
    assert as_job.components[1].manifest["spec"]["minAvailable"] == 4
    as_set = compiled(job, base)
    assert component(as_set, "PodGroup")["spec"]["minMember"] == 4
    assert "scheduling.k8s.io/group-name" in pods_of(as_set)["metadata"]["annotations"]
    assert pods_of(as_set, "dataset-initializer")["metadata"] == {"labels": {"muster.dev/queue": "default"}}


def test_patches_are_merged_in_order() -> None:
    """Maps are merged, named lists by name, tolerations replaced; a later patch wins."""
    base = runtime({"torch": {}}, replicated_job("node", "trainer", {**_two(), "nodeSelector": {"a": "1"}}))
    first = pod_patch(
        metadata={"labels": {"l": "1"}},
        nodeSelector={"b": "2"},
        tolerations=[{"key": "x"}],
        volumes=[{"name": "v", "emptyDir": {}}],
        containers=[{"name": "side", "env": [{"name": "E", "value": "1"}], "volumeMounts": [_mount("/v")]}],
    )
    second = pod_patch(nodeSelector={"b": "3"}, tolerations=[{"key": "y"}], schedulingGates=[{"name": "g"}])
    pods = pods_of(compiled(train_job(runtimePatches=[patch(first), patch(second, "kueue.x-k8s.io/manager")]), base))
    assert pods["metadata"]["labels"] == {"l": "1", "muster.dev/queue": "default"}
    assert pods["spec"]["nodeSelector"] == {"a": "1", "b": "3"}
    assert pods["spec"]["tolerations"] == [{"key": "y"}]
    assert pods["spec"]["schedulingGates"] == [{"name": "g"}]
    assert pods["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    side = pods["spec"]["containers"][1]
    assert (env_of(side), side["volumeMounts"]) == ({"E": "1"}, [_mount("/v")])


def _two() -> JSON:
    return {"containers": [{"name": "node", "image": "i"}, {"name": "side", "image": "i"}]}


def _mount(path: str) -> JSON:
    return {"name": "v", "mountPath": path}


def torch(**trainer: Any) -> JSON:
    """Arguments for a TrainJob with this trainer."""
    return {"job": train_job(trainer=trainer)}


INJECTION = {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["gone"]}]}}
RUNTIME, PATCHES = 'spec.runtimeRef: Invalid value: "runtime": ', "spec.runtimePatches: Invalid value: "
ENV, ENVS = "spec.trainer.env: Invalid value: ", ": must not have reserved envs, invalid envs configured: "
STRANGERS = [
    patch(pod_patch("nodes"), "me"),
    patch(pod_patch(containers=[{"name": "gone"}], initContainers=[{"name": "node"}])),
]
TWO = {"dataset": {"storageUri": "hf://x"}, "model": {"storageUri": "hf://y"}}
BAD: dict[str, tuple[JSON, list[str]]] = {
    "reserved": (torch(env=[{"name": "PET_NNODES", "value": "1"}, {"name": "PET_MASTER_ADDR", "value": "1"},
        {"name": "A"}]), [f'{ENV}["PET_NNODES","PET_MASTER_ADDR","A"]{ENVS}[PET_MASTER_ADDR PET_NNODES]']),
    "mpi reserved": (torch(env=[{"name": "OMPI_MCA_plm_rsh_args", "value": "1"}]) | {"on": mpi_runtime()},
                     [f'{ENV}["OMPI_MCA_plm_rsh_args"]{ENVS}[OMPI_MCA_plm_rsh_args]']),
    "xgboost reserved": (torch(env=[{"name": "A"},
        {"name": "DMLC_TASK_ID", "value": "1"}]) | {"on": runtime({"xgboost": {}})},
        ["spec.trainer.env[1]: Forbidden: DMLC_TASK_ID is reserved for the XGBoost runtime"]),
    "processes": (
        torch(numProcPerNode="many"),
        [('spec.trainer.numProcPerNode: Invalid value: "many": must be auto, cpu, gpu or a number of processes '
          "from 1 to 4096")],
    ),
    "injection": ({"on": runtime({"torch": INJECTION})},
                  [f'{RUNTIME}envInjection target podSet "node" container "gone" not found in runtime template']),
    "unknown job, container and manager": ({"job": train_job(runtimePatches=STRANGERS)},
        ['spec.runtimePatches[0].manager: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
        f'{PATCHES}"nodes": must not have replicated job that doesn\'t exist in the runtime job template',
        f'{PATCHES}"node": must not have initContainer that doesn\'t exist in the runtime job node',
        f'{PATCHES}"gone": must not have container that doesn\'t exist in the runtime job node']),
    "env of the trainer in a patch": ({"job": train_job(runtimePatches=[patch(pod_patch(containers=[{"name": "node",
        "env": [{"name": "A"}]}]))])},
        [f'{PATCHES}"node": must not have envs for the dataset-initializer, model-initializer, node containers']),
    "initializer that the runtime lacks": (
        {"job": train_job(initializer=TWO)},
        [f"{RUNTIME}must have {each}-initializer job when trainJob is configured with input {each} config"
         for each in ("dataset", "model")],
    ),
    "two gangs": ({"on": runtime({"torch": {}}, podGroupPolicy={"volcano": {}, "coscheduling": {}})},
        [f"{RUNTIME}must refer to a runtime with one podGroupPolicy, either volcano or coscheduling"]),
    "flux": ({"on": runtime({"flux": {}})},
             [f"{RUNTIME}must not refer to a runtime with mlPolicy flux, which Muster does not support"]),
    "mpi without a launcher": ({"on": runtime({"mpi": {}}, replicated_job("node"))},
        [f"{RUNTIME}must refer to a runtime with replicated jobs launcher and node, because its policy is mpi"]),
    "no container node": ({"on": runtime({"jax": {}},
        replicated_job("node", "trainer", {"containers": [{"name": "main"}]}))},
        [f"{RUNTIME}must refer to a runtime whose job node has a container 'node'"]),
    "no trainer": ({"on": runtime({"torch": {}}, replicated_job("node"))},
                   [f"{RUNTIME}must refer to a runtime with a step trainer, because its policy is torch"]),
    "implementation": (
        {"on": mpi_runtime(mpiImplementation="")},
        [('spec.runtimeRef: Invalid value: "": must be an MPI implementation that Muster supports (OpenMPI, Intel, '
          "MPICH): mpi.mpiImplementation of ClusterTrainingRuntime runtime")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "messages"), BAD.values(), ids=BAD.keys())
def test_each_message(given: JSON, messages: list[str]) -> None:
    """Path, value and what is right; several at once; and then neither a plan nor a component."""
    result = compiled(given.get("job") or train_job(), given.get("on") or runtime({"torch": {}}))
    assert errors_of(result) == messages
    assert (result.plan, result.components) == (None, ())


def test_user_wins_where_nothing_is_reserved() -> None:
    """JAX and the variables of Open MPI 5 may be overridden; no error, no second value."""
    job = train_job(trainer={"env": [{"name": "JAX_PROCESS_ID", "value": "7"}]})
    container = container_of(compiled(job, runtime({"jax": {}})))
    assert [each.get("value") for each in container["env"] if each["name"] == "JAX_PROCESS_ID"] == ["7"]
    job = train_job(trainer={"env": [{"name": "PRTE_MCA_plm_ssh_args", "value": "-v"}]})
    assert env_of(container_of(compiled(job, mpi_runtime()), "launcher"))["PRTE_MCA_plm_ssh_args"] == "-v"


def test_rendezvous_of_the_user_is_warned_of() -> None:
    """PET_RDZV_* is allowed, as it always was."""
    result = compiled(train_job(trainer={"env": [{"name": "PET_RDZV_ID", "value": "x"}]}), runtime({"torch": {}}))
    assert not errors_of(result)
    assert "spec.trainer.env[0].name: PET_RDZV_ID makes torchrun ignore" in result.findings.warnings[0]


def test_env_injection() -> None:
    """Further containers and init containers get all five variables."""
    containers = [{"name": "node", "image": "i"}, {"name": "side", "image": "i"}]
    pod = {"containers": containers, "initContainers": [{"name": "check", "image": "i"}]}
    targets = [{"jobName": "node", "containerNames": ["side", "check"]}]
    base = runtime({"torch": {"envInjection": {"targets": targets}}}, replicated_job("node", "trainer", pod))
    spec = pods_of(compiled(train_job(), base))["spec"]
    wanted = env_of(spec["containers"][0])
    assert len(wanted) == 5
    assert env_of(spec["containers"][1]) == env_of(spec["initContainers"][0]) == wanted


def test_elastic_policy_of_the_runtime() -> None:
    """A missing bound is the number of nodes; the gang needs the minimum only."""
    elastic = {"elasticPolicy": {"minNodes": 2, "maxRestarts": 5}}
    base = runtime({"numNodes": 4, "torch": elastic}, podGroupPolicy={"volcano": {}})
    result = compiled(train_job(), base)
    env = env_of(container_of(result))
    assert (env["PET_NNODES"], env["PET_MAX_RESTARTS"]) == ("2:4", "5")
    assert "PET_NODE_RANK" not in env
    assert component(result, "PodGroup")["spec"]["minMember"] == 2


@pytest.mark.parametrize("policy", ["volcano", "coscheduling"])
def test_gang_counts_limits_and_what_can_exist(policy: str) -> None:
    """The launcher waits for the nodes, so the minimum is the nodes; limits count where there is no request."""
    base = mpi_runtime()
    base = runtime({"mpi": {}}, replicated_job("launcher", "trainer", dependsOn=[{"name": "node", "status": "Ready"}]),
                   replicated_job("node"), podGroupPolicy={policy: {}})  # fmt: skip
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 2, "cpu": "500m"}}}
    result = compiled(train_job(trainer=trainer), base)
    spec = component(result, "PodGroup")["spec"]
    assert (spec["minMember"], spec["minResources"]) == (3, {GPU: "6", "cpu": "1500m"})
    metadata = pods_of(result, "launcher")["metadata"]
    assert "train" in {**metadata.get("annotations", {}), **metadata.get("labels", {})}.values()


def test_nothing_is_changed_and_all_is_repeatable() -> None:
    """Compiling twice gives the same, and leaves TrainJob and runtime as they were."""
    job, base = train_job(trainer={"numNodes": 2, "env": [{"name": "A", "value": "1"}]}), mpi_runtime()
    first = compiled(job, base, "Job")
    again = compiled(job, base, "Job")
    assert first.components == again.components
    assert plan_of(first) == plan_of(again)
    assert base == mpi_runtime()


def test_watched_kinds() -> None:
    """What a controller must watch follows from the plugins."""
    assert FRAMEWORK.watched() == [
        "configmaps",
        "jobs.batch",
        "jobs.batch.volcano.sh",
        "jobsets.jobset.x-k8s.io",
        "podgroups.scheduling.volcano.sh",
        "podgroups.scheduling.x-k8s.io",
        "secrets",
    ]


def test_what_a_train_job_says_of_its_gang_is_on_the_pod_group_of_a_job_set() -> None:
    """The planner reads it there; of restarts a JobSet knows nothing but its own policy, which is told."""
    job = train_job()
    said = {"muster.dev/evict-notice": "300s", "muster.dev/on-node-fault": "restart", "muster.dev/spares": "1"}
    job.metadata.annotations = {**said, "muster.dev/restart-budget": "5 in 1h", "example.com/own": "x"}
    result = compiled(job, runtime({"torch": {}}), "JobSet")
    assert component(result, "PodGroup")["metadata"]["annotations"] == said
    [warning] = result.findings.warnings
    assert "failurePolicy.maxRestarts" in warning
    assert not compiled(job, runtime({"torch": {}}), "Job").findings.warnings
    silent = compiled(train_job(), runtime({"torch": {}}), "JobSet")
    assert "annotations" not in component(silent, "PodGroup")["metadata"]
    assert component(silent, "PodGroup")["spec"]["queue"] == "default"  # written, as it may have been another one
    assert "status" not in component(silent, "PodGroup"), "the planner writes it"


@pytest.mark.parametrize(("framework", "slots"), [("torch", 2), ("jax", 1), ("xgboost", 2), ("plain", None)])
def test_processes_of_the_plan(framework: str, slots: int | None) -> None:
    """One for each GPU where the framework has several in a pod."""
    base = runtime({} if framework == "plain" else {framework: {}})
    plan = plan_of(compiled(train_job(trainer={"resourcesPerNode": {"limits": {GPU: 2}}}), base))
    assert [pod_set.slots for pod_set in plan.pod_sets] == [slots]


@pytest.mark.parametrize(
    ("bounds", "wanted", "count"),
    [({"minNodes": 2, "maxNodes": 4}, "3", 3), ({"minNodes": 2, "maxNodes": 4}, "1", 2),
     ({"minNodes": 2, "maxNodes": 4}, "9", 4), ({"minNodes": 2, "maxNodes": 4}, "many", 4), ({"maxNodes": 9}, "1", 4),
     (None, "3", 4)],
)  # fmt: skip
def test_an_elastic_training_may_change_its_size(bounds: JSON | None, wanted: str, count: int) -> None:
    """By annotation, within the bounds of its policy; another one has the size of its trainer."""
    job = train_job({"annotations": {"muster.dev/num-nodes": wanted}}, trainer={"numNodes": 4})
    assert describe(job, runtime({"torch": {"elasticPolicy": bounds} if bounds else {}})).size == count


def test_the_class_that_a_train_job_names_is_that_of_all_its_pods() -> None:
    """The annotation counts more than the runtime's template."""
    on = runtime({"torch": {}}, replicated_job("node", "trainer", {"priorityClassName": "low", "containers": []}))
    job = train_job({"annotations": {"muster.dev/priority-class": "high"}})
    assert [pod_template(each)["spec"]["priorityClassName"] for each in merged(job, on)["spec"]["replicatedJobs"]] == [
        "high"
    ]
    assert pod_template(merged(train_job(), on)["spec"]["replicatedJobs"][0])["spec"]["priorityClassName"] == "low"
