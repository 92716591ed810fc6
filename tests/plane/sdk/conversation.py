"""What a data scientist does with Kubeflow's SDK, unmodified: each scenario prints what the SDK said, as JSON.

Runs under the Python that has the package `kubeflow`: `conversation.py KUBECONFIG NAMESPACE SCENARIO`.
"""

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Callable

import wishes
from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient
from local_plane import ends
from told import CPU, Answer, told, train


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


def logs(client: TrainerClient) -> Answer:
    """What a training has printed."""
    name = client.train(trainer=CustomTrainer(func=train, num_nodes=1, resources_per_node=CPU))
    client.wait_for_job_status(name, {"Running"}, timeout=60, polling_interval=1)
    return {"lines": list(client.get_job_logs(name)), "followed": list(client.get_job_logs(name, follow=True))}


def packages(client: TrainerClient) -> Answer:
    """What is installed in a runtime: a TrainJob of the SDK's own, which it deletes."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        client.get_runtime_packages(client.get_runtime("short"))
    return {"said": said.getvalue().splitlines(), "left": len(client.list_jobs(client.get_runtime("short")))}


def own_runtime(client: TrainerClient) -> Answer:
    """A namespace's own runtime goes before the cluster's of that name; jobs can be listed by runtime."""
    name = client.train(runtime="plain", options=[ends(1)])
    return {
        "kinds": {each.name: each.kind.value for each in client.list_runtimes()},
        "image": client.get_runtime("torch-distributed").trainer.image,
        "listed": [job.name for job in client.list_jobs(client.get_runtime("plain"))] == [name],
        "others": client.list_jobs(client.get_runtime("torch-distributed")),
    }


def absent(client: TrainerClient) -> Answer:
    """Every call about something that is not there, or not allowed, is an error of the SDK's."""
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: client.get_job("nobody"),
        "runtime": lambda: client.get_runtime("nobody"),
        "train": lambda: client.train(runtime="nobody"),
        "delete": lambda: client.delete_job("nobody"),
        "logs": lambda: list(client.get_job_logs("nobody")),
        "events": lambda: client.get_job_events("nobody"),
        "wait": lambda: client.wait_for_job_status("nobody"),
        "refused": lambda: client.train(trainer=CustomTrainer(func=train, env={"PET_NNODES": "2"})),
    }
    answer = {}
    for name, call in calls.items():
        try:
            call()
        except RuntimeError as error:
            answer[name] = str(error.__cause__ or error)
    return answer


SCENARIOS: dict[str, Callable[[TrainerClient], Answer]] = {each.__name__: each for each in (
    runtimes, function, failure, mpi, logs, packages, own_runtime, absent, wishes.options, wishes.torchtune,
    wishes.full_torchtune, wishes.function_with_all, wishes.nothing_said, wishes.deadline, wishes.patches,
)}  # fmt: skip


def main() -> None:
    """One scenario."""
    kubeconfig, namespace, scenario = sys.argv[1:]
    os.environ["KUBECONFIG"] = kubeconfig
    client = TrainerClient(KubernetesBackendConfig(namespace=namespace, config_file=kubeconfig))
    json.dump(SCENARIOS[scenario](client), sys.stdout)


if __name__ == "__main__":
    main()
