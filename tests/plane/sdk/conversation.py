"""What a data scientist does with Kubeflow's SDK, unmodified: each scenario prints what the SDK said, as JSON.

Runs under the Python that has the package `kubeflow`: `conversation.py KUBECONFIG NAMESPACE SCENARIO`.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from kubeflow.trainer import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    KubernetesBackendConfig,
    TorchTuneConfig,
    TrainerClient,
)
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    Labels,
    Name,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
)
from kubeflow.trainer.options.kubernetes import (
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    TrainingRuntimeSpecPatch,
)

Answer = dict[str, Any]
CPU = {"cpu": 1}


def train() -> None:
    """What the user trains."""
    print("a step")  # noqa: T201 - it is a user's function


def ends(run_s: float, *jobs: str, exit_code: int = 0) -> RuntimePatch:
    """Has the pods of these replicated jobs end after a while: simulated nodes run nothing."""
    annotations = {"kwok.muster.dev/run-seconds": str(run_s), "kwok.muster.dev/exit-code": str(exit_code)}
    template = JobTemplatePatch(spec=JobSpecPatch(template=PodTemplatePatch(metadata={"annotations": annotations})))
    patches = [ReplicatedJobPatch(name=job, template=template) for job in jobs or ("node",)]
    spec = JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=patches))
    return RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=spec))


def told(client: TrainerClient, name: str) -> Answer:
    """The job as the SDK shows it."""
    job = client.get_job(name)
    steps = sorted((step.name, step.status, step.device_count) for step in job.steps)
    return {"status": job.status, "nodes": job.num_nodes, "steps": steps, "runtime": job.runtime.name}


def runtimes(client: TrainerClient) -> Answer:
    """What there is to train on."""
    names = [each.name for each in client.list_runtimes()]
    one = client.get_runtime("torch-distributed")
    return {"names": names, "framework": one.trainer.framework, "nodes": one.trainer.num_nodes}


def function(client: TrainerClient) -> Answer:
    """A function on two nodes, from submission to deletion."""
    trainer = CustomTrainer(func=train, num_nodes=2, resources_per_node=CPU, env={"MINE": "1"})
    name = client.train(trainer=trainer, options=[ends(4)])
    seen: list[str] = []
    client.wait_for_job_status(
        name, {"Running"}, timeout=60, polling_interval=1, callbacks=[lambda job: seen.append(job.status)]
    )
    running = told(client, name)
    client.wait_for_job_status(name, timeout=60, polling_interval=1)
    listed = [job.name for job in client.list_jobs()]
    events = sorted({(event.involved_object_kind, event.reason) for event in client.get_job_events(name)})
    complete = told(client, name)
    client.delete_job(name)
    for _ in range(100):
        if name not in [job.name for job in client.list_jobs()]:
            break
        time.sleep(0.1)
    gone = name not in [job.name for job in client.list_jobs()]
    return {"seen": seen, "running": running, "complete": complete, "listed": name in listed, "events": events,
            "gone": gone}  # fmt: skip


def failure(client: TrainerClient) -> Answer:
    """A function that fails."""
    trainer = CustomTrainer(func=train, num_nodes=1, resources_per_node=CPU)
    name = client.train(trainer=trainer, options=[ends(1, exit_code=3)])
    try:
        client.wait_for_job_status(name, timeout=60, polling_interval=1)
    except RuntimeError as error:
        return {"error": str(error), **told(client, name)}
    return {"error": "", **told(client, name)}


def mpi(client: TrainerClient) -> Answer:
    """A function under mpirun: the launcher is the first node."""
    trainer = CustomTrainer(func=train, num_nodes=2, resources_per_node=CPU)
    name = client.train(runtime="mpi-distributed", trainer=trainer, options=[ends(5, "launcher")])
    client.wait_for_job_status(name, {"Running", "Complete"}, timeout=90, polling_interval=1)
    running = told(client, name)
    client.wait_for_job_status(name, timeout=90, polling_interval=1)
    return {"running": running, "complete": told(client, name)}


def options(client: TrainerClient) -> Answer:
    """A container with every option there is."""
    trainer = CustomTrainerContainer(image="train:1", num_nodes=1, resources_per_node={"cpu": 2, "gpu": 4})
    made = client.train(
        runtime="plain",
        trainer=trainer,
        options=[
            Name("named"), Labels({"muster.dev/queue": "default"}), Annotations({"team": "a"}), ends(1),
            TrainerCommand(["python"]), TrainerArgs(["-c", "pass"]), ActiveDeadlineSeconds(600),
        ],
    )  # fmt: skip
    client.wait_for_job_status(made, timeout=60, polling_interval=1)
    return {"name": made, **told(client, made)}


def torchtune(client: TrainerClient) -> Answer:
    """A fine-tuning with its initializers."""
    found = client.get_runtime("torchtune-llama3.2-1b")
    name = client.train(
        runtime=found,
        initializer=Initializer(
            dataset=HuggingFaceDatasetInitializer(storage_uri="hf://tatsu-lab/alpaca/data"),
            model=HuggingFaceModelInitializer(storage_uri="hf://meta-llama/Llama-3.2-1B"),
        ),
        trainer=BuiltinTrainer(config=TorchTuneConfig(resources_per_node={"cpu": 4, "gpu": 1})),
        options=[ends(1, "dataset-initializer", "model-initializer", "node")],
    )
    client.wait_for_job_status(name, timeout=120, polling_interval=1)
    return {"kind": found.trainer.trainer_type.value, **told(client, name)}


def logs(client: TrainerClient) -> Answer:
    """What a training has printed."""
    name = client.train(trainer=CustomTrainer(func=train, num_nodes=1, resources_per_node=CPU))
    client.wait_for_job_status(name, {"Running"}, timeout=60, polling_interval=1)
    return {"lines": list(client.get_job_logs(name)), "followed": list(client.get_job_logs(name, follow=True))}


SCENARIOS: dict[str, Callable[[TrainerClient], Answer]] = {
    each.__name__: each for each in (runtimes, function, failure, mpi, options, torchtune, logs)
}


def main() -> None:
    """One scenario."""
    kubeconfig, namespace, scenario = sys.argv[1:]
    os.environ["KUBECONFIG"] = kubeconfig
    client = TrainerClient(KubernetesBackendConfig(namespace=namespace, config_file=kubeconfig))
    json.dump(SCENARIOS[scenario](client), sys.stdout)


if __name__ == "__main__":
    main()
