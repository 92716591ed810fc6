"""A function under mpirun on three nodes. Muster creates the ssh keys and the hostfile, and waits for the nodes.

The launcher is the first of the nodes, and ends the TrainJob when mpirun ends.
"""

from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import Labels
from local_plane import ends


def train() -> None:
    """Run in each process that mpirun starts; the image must contain mpi4py."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    print(f"rank {world.rank} of {world.size}: the sum of all ranks is {world.allreduce(world.rank)}")


def main() -> None:
    """Submit the TrainJob, wait for its end, and print its status changes."""
    client = TrainerClient()
    name = client.train(
        runtime="mpi-distributed",
        trainer=CustomTrainer(func=train, num_nodes=3, resources_per_node={"cpu": 2}),
        options=[Labels({"muster.dev/queue": "default"}), ends(5, "launcher")],
    )
    print(f"TrainJob {name} is submitted")
    job = client.wait_for_job_status(name, {"Running", "Complete"})
    print(f"TrainJob {name} has {len(job.steps)} steps: {', '.join(sorted(step.name for step in job.steps))}")
    print(f"TrainJob {name} is {client.wait_for_job_status(name).status}")
    for event in client.get_job_events(name):
        if event.involved_object_kind == "TrainJob":
            print(f"{event.reason}: {event.message}")


if __name__ == "__main__":
    main()
