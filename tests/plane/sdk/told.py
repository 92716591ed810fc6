"""What all scenarios need: a function to train, and a job as the SDK shows it."""

from typing import Any

from kubeflow.trainer import TrainerClient

Answer = dict[str, Any]
CPU = {"cpu": 1}


def train() -> None:
    """What the user trains."""
    print("a step")  # noqa: T201 - it is a user's function


def told(client: TrainerClient, name: str) -> Answer:
    """The job as the SDK shows it."""
    job = client.get_job(name)
    steps = sorted((step.name, step.status, step.device_count) for step in job.steps)
    return {"status": job.status, "nodes": job.num_nodes, "steps": steps, "runtime": job.runtime.name}
