"""A fine-tuning job with LoRA. Initializers download the dataset and then the model into a volume; then torchtune runs.

The volume is a claim of 20Gi, for which the cluster needs a provisioner; `volume.yaml` is a volume for `muster up`.
"""

from kubeflow.trainer import (
    BuiltinTrainer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    LoraConfig,
    TorchTuneConfig,
    TrainerClient,
)
from kubeflow.trainer.options import Labels
from local_plane import ends


def main() -> None:
    """Submit the job, and print the current step."""
    client = TrainerClient()
    name = client.train(
        runtime="torchtune-llama3.2-1b",
        initializer=Initializer(
            dataset=HuggingFaceDatasetInitializer(storage_uri="hf://tatsu-lab/alpaca/data"),
            model=HuggingFaceModelInitializer(storage_uri="hf://meta-llama/Llama-3.2-1B-Instruct"),
        ),
        trainer=BuiltinTrainer(
            config=TorchTuneConfig(
                batch_size=4, epochs=1, peft_config=LoraConfig(lora_rank=8), resources_per_node={"cpu": 4, "gpu": 2}
            )
        ),
        options=[Labels({"muster.dev/queue": "default"}), ends(2, "dataset-initializer", "model-initializer", "node")],
    )
    print(f"TrainJob {name} is submitted")
    job = client.wait_for_job_status(name, timeout=1200)
    for step in job.steps:
        print(f"{step.name} is {step.status}")
    print(f"TrainJob {name} is {job.status}")


if __name__ == "__main__":
    main()
