"""A function on four nodes with two GPUs each, under torchrun: eight processes that start together, in a queue."""

from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import Labels
from local_plane import ends


def train(steps: int) -> None:
    """Run in each process. Only the source of this function is sent, so it must import its modules itself."""
    import os

    import torch
    import torch.distributed

    torch.distributed.init_process_group()
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for step in range(steps):
        total = torch.ones(1, device=f"cuda:{os.environ['LOCAL_RANK']}")
        torch.distributed.all_reduce(total)
        print(f"rank {rank} of {size}, step {step}: {total.item():g}")
    torch.distributed.destroy_process_group()


def main() -> None:
    """Submit the TrainJob, and wait for its end."""
    client = TrainerClient()
    name = client.train(
        trainer=CustomTrainer(
            func=train, func_args={"steps": 10}, num_nodes=4, resources_per_node={"cpu": 4, "gpu": 2}
        ),
        options=[Labels({"muster.dev/queue": "default"}), ends(5)],
    )
    print(f"TrainJob {name} is submitted")
    job = client.wait_for_job_status(name, {"Running", "Complete"})
    for step in job.steps:
        print(f"{step.name} is {step.status} on {step.device_count} {step.device}: pod {step.pod_name}")
    print(f"TrainJob {name} is {client.wait_for_job_status(name).status}")


if __name__ == "__main__":
    main()
