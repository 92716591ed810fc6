"""Conversion of a TrainJob and its runtime into an `Info`, and into the components that run the TrainJob."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import msgspec
from msgspec import to_builtins

from muster.api import names
from muster.api.kubeflow.trainer import (
    ANCESTOR,
    DATASET_INITIALIZER,
    LAUNCHER,
    MODEL_INITIALIZER,
    NODE,
    TRAIN_JOBS,
    TRAINER,
    StepInitializer,
    Trainer,
    TrainJob,
)
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, MLPolicy, TrainingRuntime
from muster.api.kubernetes.core import EnvVar, PodSpec
from muster.api.muster.creator import passed_on
from muster.resources.accelerators import Claims, no_claims
from muster.runtime.framework import Framework
from muster.runtime.info import Info, PodSet, ShapedContainer, UserEnv
from muster.runtime.plan import Compiled, Role
from muster.runtime.settings import nodes_of, of_train_job
from muster.runtime.template import by_key, patched, with_trainer
from muster.runtime.workload import containers_of, template_of
from muster.workloads.adapter import Owner

Runtime = TrainingRuntime | ClusterTrainingRuntime
Target = Literal["Job", "JobSet"]
"""Kind of object that creates the pods of a TrainJob: Muster's Job (batch.volcano.sh) or a JobSet."""

JSON = dict[str, Any]
_INITIALIZERS: Mapping[str, Role] = {DATASET_INITIALIZER: "dataset-initializer", MODEL_INITIALIZER: "model-initializer"}


def compile_train_job(
    train_job: TrainJob, runtime: Runtime, framework: Framework, target: Target = "Job", claims: Claims = no_claims
) -> Compiled:
    """Return the plan and components of a TrainJob, or only its errors and warnings if it has errors.

    Errors have paths in the TrainJob (`spec.trainer.env`). Runtime patches are checked against the runtime's template
    before they are merged into it. The function does not change its arguments. `claims` returns the requests in the
    pods' device claims.
    """
    info = describe(train_job, runtime, target)
    for pod_set in info.pod_sets:
        pod_set.claims = claims
    return framework.compile(info)


def describe(train_job: TrainJob, runtime: Runtime, target: Target = "Job") -> Info:
    """Return the description of a TrainJob for plugins, with pod sets from the merged template.

    The function never fails, because the later validation reports a missing container or replicated job.
    """
    framework = framework_of(runtime.spec.ml_policy)
    template = merged(train_job, runtime)
    base, metadata = template.get("spec") or {}, template.get("metadata") or {}
    settings = of_train_job(train_job, runtime)
    variables = [_wire(each) for each in train_job.spec.trainer.env] if train_job.spec.trainer else []
    info = Info(
        framework,
        Owner.from_meta(TRAIN_JOBS, train_job.metadata),
        _pod_sets(base, runtime, framework, nodes_of(train_job, settings)),
        settings,
        user_env=UserEnv(variables, "spec.trainer.env"),
        target=target,
        train_job=train_job,
        runtime=runtime,
        base=base,
        labels=metadata.get("labels") or {},
        annotations=passed_on(
            train_job.metadata.annotations, {**(metadata.get("annotations") or {}), **_of_the_gang(train_job, runtime)}
        ),
    )
    info.injections = [container for _, _, container in injections(info) if container]
    return info


def _of_the_gang(train_job: TrainJob, runtime: Runtime) -> dict[str, str]:
    """Return the annotations about the gang and its restarts, from the TrainJob or otherwise from the runtime."""
    given = {**runtime.metadata.annotations, **train_job.metadata.annotations}
    return {key: given[key] for key in names.OF_TRAIN_JOBS if key in given}


def framework_of(policy: MLPolicy | None) -> str:
    """Return the framework of a runtime; `plain` if the runtime's policy names no framework."""
    if policy is None:
        return "plain"
    found = [name for name in ("torch", "mpi", "jax", "xgboost", "flux") if getattr(policy, name) is not None]
    return found[0] if found else "plain"


def step_of(job: Mapping[str, Any]) -> str:
    """Return the step that a replicated job performs, from the label of its template; "" without this label."""
    labels = (job["template"].get("metadata") or {}).get("labels") or {}
    return str(labels.get(ANCESTOR, ""))


def pod_template(job: Mapping[str, Any]) -> JSON:
    """Return the pod template of a replicated job."""
    template: JSON = (job["template"].get("spec") or {}).get("template") or {}
    return template


def mounted_paths(info: Info, pod_set: PodSet) -> set[str]:
    """Return the mount paths that the TrainJob and its runtime set in the container `node` of a pod set."""
    return {
        str(mount.get("mountPath", "")).rstrip("/")
        for job in info.base.get("replicatedJobs") or []
        for container in (pod_template(job).get("spec") or {}).get("containers") or []
        for mount in container.get("volumeMounts") or []
        if job["name"] == pod_set.name and container.get("name") == NODE
    }


def injections(info: Info) -> list[tuple[str, str, ShapedContainer | None]]:
    """Return the targets of the runtime's envInjection: pod set, container, and the container object if it exists."""
    policy = info.runtime.spec.ml_policy if info.runtime else None
    targets = policy.torch.env_injection.targets if policy and policy.torch and policy.torch.env_injection else []
    result = []
    for target in targets:
        pod_set = info.pod_set(target.job_name)
        result += [
            (target.job_name, name, pod_set.container(name) if pod_set else None) for name in target.container_names
        ]
    return result


def merged(train_job: TrainJob, runtime: Runtime) -> JSON:
    """Return the runtime's template (metadata, JobSet spec) with patches, trainer and initializers merged in."""
    result: JSON = to_builtins(runtime.spec.template)
    for patch in train_job.spec.runtime_patches:
        if patch.training_runtime_spec and patch.training_runtime_spec.template:
            result = patched(result, to_builtins(patch.training_runtime_spec.template))
    for job in result.get("spec", {}).get("replicatedJobs") or []:
        spec = pod_template(job).get("spec") or {}
        if priority := train_job.metadata.annotations.get(names.PRIORITY_CLASS):
            spec["priorityClassName"] = priority
        if spec.get("containers"):
            spec["containers"] = [_merged_container(each, job, train_job, runtime) for each in spec["containers"]]
    return result


def _merged_container(container: JSON, job: JSON, train_job: TrainJob, runtime: Runtime) -> JSON:
    trainer, initializer, step = train_job.spec.trainer, train_job.spec.initializer, step_of(job)
    framework = framework_of(runtime.spec.ml_policy)
    if trainer and container.get("name") == NODE:
        if framework == "mpi":
            return _merged_mpi(container, job["name"], trainer, runtime)
        if step == TRAINER:
            return with_trainer(container, trainer)
    steps = {DATASET_INITIALIZER: "dataset", MODEL_INITIALIZER: "model"}
    if initializer and step in steps and container.get("name") == step:
        return _with_initializer(container, getattr(initializer, steps[step]))
    return container


def _merged_mpi(container: JSON, job: str, trainer: Trainer, runtime: Runtime) -> JSON:
    """Merge the trainer: the launcher gets its command, and the nodes get its image and resources."""
    policy = runtime.spec.ml_policy
    computes = job == NODE or bool(policy and policy.mpi and policy.mpi.run_launcher_as_node)
    if job not in {NODE, LAUNCHER}:
        return container
    return with_trainer(container, trainer, command=job == LAUNCHER, resources=computes)


def _with_initializer(container: JSON, step: StepInitializer | None) -> JSON:
    if step is None:
        return container
    result = dict(container)
    uri = [{"name": "STORAGE_URI", "value": step.storage_uri}] if step.storage_uri else []
    env = by_key(by_key(result.get("env") or [], uri, "name"), step.env, "name")
    if env:
        result["env"] = env
    if step.secret_ref:
        reference = {"secretRef": to_builtins(step.secret_ref)}
        result["envFrom"] = [*(result.get("envFrom") or []), reference]
    return result


def _wire(variable: JSON) -> EnvVar:
    return EnvVar(
        name=str(variable.get("name", "")), value=str(variable.get("value") or ""), value_from=variable.get("valueFrom")
    )


def _pod_sets(base: JSON, runtime: Runtime, framework: str, nodes: int | None) -> list[PodSet]:
    """Return the pod sets of a JobSet spec.

    With a startup order, each pod set waits until the previous pod set is ready.
    """
    pod_sets = [_pod_set(job, runtime, framework, nodes) for job in base.get("replicatedJobs") or []]
    if (base.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
        for before, pod_set in pairwise(pod_sets):
            pod_set.after = {before.name: "Ready"}
    return pod_sets


def _pod_set(job: JSON, runtime: Runtime, framework: str, nodes: int | None) -> PodSet:
    spec = msgspec.convert(pod_template(job).get("spec") or {}, PodSpec)
    path = f"{runtime.kind or 'runtime'} {runtime.metadata.name}: replicatedJobs[{job['name']}].template.spec"
    containers = containers_of(spec, path)
    role = _role(job, framework)
    main = [each for each in containers if each.name == NODE and not each.init]
    return PodSet(
        name=job["name"],
        count=_node_count(job, role, runtime, framework, nodes),
        rank="",  # set when the network is known
        hosts=lambda _node_count: (),
        subdomain="",
        target=main[0] if main and role in {"trainer", "launcher"} else None,
        containers=containers,
        spec=spec,
        role=role,
        jobs=int(job.get("replicas") or 1) if role == "other" else 1,  # a step of a TrainJob is one Job
        template=pod_template(job).get("spec") or {},
        given_annotations=template_of(pod_template(job))[2],
        after={each["name"]: each["status"] for each in job.get("dependsOn") or []},
    )


def _role(job: JSON, framework: str) -> Role:
    step = step_of(job)
    if framework == "mpi":
        if job["name"] == LAUNCHER:
            return "launcher"
        if job["name"] == NODE:
            return "trainer"
    if step in _INITIALIZERS:
        return _INITIALIZERS[step]
    return "trainer" if step == TRAINER else "other"


def _node_count(job: JSON, role: Role, runtime: Runtime, framework: str, nodes: int | None) -> int:
    """Return the number of nodes for the pod set that trains; for other pod sets, the number in the template."""
    policy = runtime.spec.ml_policy
    spec = job["template"].get("spec") or {}
    parallelism = int(1 if spec.get("parallelism") is None else spec["parallelism"])
    if role == "trainer" and nodes is not None:
        return nodes
    if role == "trainer" and policy and (framework != "mpi" or policy.num_nodes is not None):
        return max(1, 1 if policy.num_nodes is None else policy.num_nodes)
    return max(1, parallelism) * int(job.get("replicas") or 1)
