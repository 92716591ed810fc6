"""What can be wished for with a training: every trainer, every option, and data that are fetched before."""

from kubeflow.trainer import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    DataFormat,
    DataType,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    LoraConfig,
    Loss,
    S3DatasetInitializer,
    S3ModelInitializer,
    TorchTuneConfig,
    TorchTuneInstructDataset,
    TrainerClient,
)
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)
from local_plane import ends
from told import CPU, Answer, told, train


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
    fetched = list(client.get_job_logs(name, step="dataset-initializer"))
    return {"kind": found.trainer.trainer_type.value, "fetched": fetched, **told(client, name)}


def full_torchtune(client: TrainerClient) -> Answer:
    """A fine-tuning with everything that its configuration has, and data in S3."""
    config = TorchTuneConfig(
        dtype=DataType.BF16, batch_size=8, epochs=3, loss=Loss.CEWithChunkedOutputLoss, num_nodes=1,
        peft_config=LoraConfig(apply_lora_to_mlp=True, lora_rank=8, lora_alpha=16, quantize_base=True, use_dora=True),
        dataset_preprocess_config=TorchTuneInstructDataset(source=DataFormat.PARQUET, split="train[:5%]"),
        resources_per_node={"cpu": 4, "gpu": 1}
    )  # fmt: skip
    keys = {"access_key_id": "id", "secret_access_key": "secret", "endpoint": "https://s3.example.com", "region": "eu"}
    name = client.train(
        runtime="torchtune-llama3.2-1b",
        initializer=Initializer(
            dataset=S3DatasetInitializer(storage_uri="s3://bucket/alpaca/data.parquet", **keys),
            model=S3ModelInitializer(storage_uri="s3://bucket/llama", **keys),
        ),
        trainer=BuiltinTrainer(config=config),
    )
    return {"name": name}


def function_with_all(client: TrainerClient) -> Answer:
    """A function with arguments, packages, an image and variables."""
    trainer = CustomTrainer(
        func=learn, func_args={"lr": 0.1, "words": "it's {odd}"}, packages_to_install=["einops"],
        pip_index_urls=["https://example.com/simple"], image="mine:1", num_nodes=1,
        resources_per_node={"cpu": 2, "memory": "1Gi", "gpu": 1}, env={"MINE": "1"}
    )  # fmt: skip
    name = client.train(trainer=trainer, options=[ends(1)])
    client.wait_for_job_status(name, timeout=60, polling_interval=1)
    return {"name": name, **told(client, name)}


def learn(lr: float, words: str) -> None:
    """What the user trains, with arguments."""
    print(lr, words)  # noqa: T201 - it is a user's function


def nothing_said(client: TrainerClient) -> Answer:
    """No runtime, no trainer: the default runtime as it is."""
    name = client.train(options=[ends(1)])
    client.wait_for_job_status(name, timeout=60, polling_interval=1)
    return told(client, name)


def deadline(client: TrainerClient) -> Answer:
    """A training that takes longer than it may."""
    trainer = CustomTrainer(func=train, num_nodes=1, resources_per_node=CPU)
    name = client.train(trainer=trainer, options=[ActiveDeadlineSeconds(2)])
    client.wait_for_job_status(name, {"Failed"}, timeout=60, polling_interval=1)
    return {"events": sorted({event.reason for event in client.get_job_events(name)}), **told(client, name)}


def patches(client: TrainerClient) -> Answer:
    """Everything that a patch can say of pods, on the runtime `patched`; a gate holds them back."""
    pods = PodSpecPatch(
        service_account_name="default",
        volumes=[{"name": "scratch", "emptyDir": {}}],
        init_containers=[ContainerPatch(name="prepare", env=[{"name": "MINE", "value": "1"}])],
        containers=[
            ContainerPatch(
                name="node",
                volume_mounts=[{"name": "scratch", "mountPath": "/scratch"}],
                security_context={"runAsUser": 1000},
            )
        ],
        image_pull_secrets=[{"name": "registry"}],
        security_context={"fsGroup": 1000},
        node_selector={"disk": "fast"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"noisy": "yes"}}, "topologyKey": "kubernetes.io/hostname"}
        ]}},
        tolerations=[{"key": "spot", "operator": "Exists"}],
        scheduling_gates=[{"name": "example.com/mine"}],
    )  # fmt: skip
    template = PodTemplatePatch(metadata={"labels": {"of": "pod"}, "annotations": {"of": "pod"}}, spec=pods)
    job = JobTemplatePatch(metadata={"labels": {"of": "job"}}, spec=JobSpecPatch(template=template))
    whole = JobSetTemplatePatch(
        metadata={"labels": {"of": "jobset"}},
        spec=JobSetSpecPatch(replicated_jobs=[ReplicatedJobPatch(name="node", template=job)]),
    )
    patch = RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=whole))
    name = client.train(runtime="patched", options=[Name("patched"), patch])
    client.wait_for_job_status(name, {"Created"}, timeout=60, polling_interval=1)
    return {"name": name, "logs": list(client.get_job_logs(name))}
