"""Variables that a framework's program reads are Muster's, in each form of it and for each kind of owner."""

from typing import NamedTuple

import pytest
from frameworks_world import (
    OWNERS,
    SECRET,
    TRAIN_JOBS,
    compiled,
    env_of,
    indexed_job,
    mpi_runtime,
    pods_of,
    runtime,
    shaped,
    template,
    train_job,
)
from webhook_world import NamespaceWorld, QueueWorld

from muster.api.fields import Findings
from muster.runtime import registry
from muster.workloads.batch_job import BATCH_JOB
from webhook.lookup import NamespaceQueues
from webhook.validate.workload import check_workload

OF_TORCHRUN = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
RENDEZVOUS = ("PET_STANDALONE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")


class Form(NamedTuple):
    """A form of a framework, with what docs/frameworks.md says of variables of the user."""

    framework: str
    annotations: dict[str, str]
    reserved: tuple[str, ...]
    warned_of: tuple[str, ...] = ()
    free: tuple[str, ...] = ("MY_OWN",)


FORMS = {
    "torch": Form("torch", {}, OF_TORCHRUN, RENDEZVOUS, ("MY_OWN", "PET_MAX_RESTARTS", "RANK", "WORLD_SIZE")),
    "torch, elastic": Form("torch", {"muster.dev/elastic": "2:4"}, (*OF_TORCHRUN, *RENDEZVOUS, "PET_MAX_RESTARTS"),
                           free=("RANK", "LOCAL_RANK")),
    "torch, python": Form("torch", {"muster.dev/torch-env": "python"},
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), free=("PET_NNODES", "PET_RDZV_BACKEND")),
    "jax": Form("jax", {}, ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")),
    "xgboost": Form("xgboost", {}, ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")),
    "tensorflow": Form("tensorflow", {}, ("TF_CONFIG", "TF_TASK_INDEX")),
    "mpi": Form("mpi", {}, ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots", "OMPI_MCA_plm_rsh_args"), free=("I_MPI_PERHOST", "HYDRA_HOST_FILE")),
    "mpi, Intel": Form("mpi", {"muster.dev/mpi-implementation": "Intel"}, ("I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"),
                       free=("OMPI_MCA_plm_rsh_args", "HYDRA_HOST_FILE")),
    "mpi, MPICH": Form("mpi", {"muster.dev/mpi-implementation": "MPICH"}, ("HYDRA_HOST_FILE",),
                       free=("I_MPI_PERHOST",)),
}  # fmt: skip
MINE = {"name": "A", "value": "1"}


def settings(form: Form) -> dict[str, str]:
    """Its annotations; mpi has a Secret of the user."""
    return {**form.annotations, **(SECRET if form.framework == "mpi" else {})}


def checked(form: Form, name: str, *, on_the_job: bool) -> Findings:
    """What admission finds in an Indexed Job whose template sets a variable, behind another one."""
    annotations = settings(form)
    group = indexed_job(template(form.framework, {} if on_the_job else annotations, {}))
    assert group.owner
    group.owner["metadata"]["annotations"] = annotations if on_the_job else {}
    group.owner["spec"]["template"]["metadata"]["labels"]["muster.dev/queue"] = "default"
    group.owner["spec"]["template"]["spec"]["containers"][0]["env"] = [MINE, {"name": name, "value": "mine"}]
    queues = NamespaceQueues(QueueWorld(), NamespaceWorld(), "team")
    return check_workload(BATCH_JOB, group.owner, queues, registry.framework())


@pytest.mark.parametrize("on_the_job", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_workload_may_set_none_of_them(form: str, *, on_the_job: bool) -> None:
    """Each is refused at its place, wherever the form is asked for; those of other forms are the user's."""
    given, path = FORMS[form], "spec.template.spec.containers[0].env[1].name"
    for name in given.reserved:
        found = checked(given, name, on_the_job=on_the_job)
        assert [(error.path, error.value) for error in found.errors] == [(path, name)], name
        told = f"is set by Muster for framework {given.framework}; remove it (reserved variables: "
        assert found.errors[0].message.startswith(told)
    for name in (*given.warned_of, *given.free):
        found = checked(given, name, on_the_job=on_the_job)
        assert not found.errors, name
        warned = [warning for warning in found.warnings if warning.startswith(f"{path}: {name} makes torchrun ignore")]
        assert len(warned) == len(found.warnings) == (name in given.warned_of), name


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_pod_may_contradict_none_that_it_gets(form: str, owner: str) -> None:
    """What the pods of this owner get is refused with another value in the pod itself, each variable at its place."""
    given = FORMS[form]
    pods = template(given.framework, settings(given), {})
    names = [*shaped(OWNERS[owner](pods)).env]
    if owner.startswith("Pod") and given.framework in {"tensorflow", "mpi"}:
        assert not names  # refused, as such a pod does not know the names of the others
        return
    assert len(names) > 1
    group = OWNERS[owner](pods)
    group.pod["spec"]["containers"][0]["env"] = [MINE, *({"name": name, "value": "mine"} for name in names)]
    errors = shaped(group).errors
    assert [error.value for error in errors] == names
    assert [error.path for error in errors] == [
        f"spec.containers[0].env[{place + 1}].name" for place in range(len(names))
    ]


@pytest.mark.parametrize("target", TRAIN_JOBS)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "tensorflow"])
def test_a_train_job_sets_what_is_not_reserved(form: str, target: str) -> None:
    """What is reserved is refused, and what is not has the user's value; jax reserves nothing there."""
    given = FORMS[form]
    on = mpi_runtime() if given.framework == "mpi" else runtime({given.framework: {}})
    part = "launcher" if given.framework == "mpi" else "node"
    reserved = () if given.framework == "jax" else given.reserved
    for name in {*given.reserved, *given.warned_of, *given.free}:
        env = [MINE, {"name": name, "value": "mine"}]
        job = train_job({"annotations": settings(given)}, trainer={"numNodes": 4, "env": env})
        result = compiled(job, on, TRAIN_JOBS[target])
        if name in reserved:
            [error] = result.errors
            assert error.path.startswith("spec.trainer.env"), name
            assert name in str(error)
        else:
            assert not result.errors, name
            assert env_of(pods_of(result, part)["spec"]["containers"][0])[name] == "mine"
