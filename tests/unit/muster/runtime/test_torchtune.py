"""TorchTune: recipe and configuration for model, nodes, devices and arguments; and what it cannot do."""

from typing import Any

import pytest
from frameworks_world import compiled, env_of, errors_of, pods_of, replicated_job, runtime, train_job

LLAMA, LARGE, QWEN = "torchtune-llama3.2-1b", "torchtune-llama3.3-70b", "torchtune-qwen2.5-1.5b"
LORA = "model.lora_attn_modules=[q_proj]"
QLORA = "model.quantize_base=True"
DORA = "model.use_dora=true"


def tuned(name: str = LLAMA, gpus: int = 1, **trainer: Any) -> Any:
    """A TrainJob that runs TorchTune."""
    node = {
        "name": "node",
        "image": "i",
        "command": ["tune", "run", "ignored", "output_dir=/out", "tokenizer.path=/t", "epochs=3"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {},
    }
    base = runtime({"torch": {}}, replicated_job("node", "trainer", {"containers": [node]}), name=name)
    return compiled(train_job(trainer={"command": ["tune", "run"], **trainer}), base)


def command(result: Any) -> list[str]:
    """The command of the trainer's container."""
    assert not errors_of(result)
    found: list[str] = pods_of(result)["spec"]["containers"][0]["command"]
    return found


@pytest.mark.parametrize(("gpus", "trainer", "recipe", "config"), [
    (1, {}, "full_finetune_single_device", "_full_single_device"),
    (1, {"args": [LORA]}, "lora_finetune_single_device", "_lora_single_device"),
    (1, {"args": [LORA, QLORA]}, "lora_finetune_single_device", "_qlora_single_device"),
    (1, {"args": [LORA, QLORA, DORA]}, "lora_finetune_single_device", "_lora_single_device"),
    (4, {"numProcPerNode": 1}, "full_finetune_single_device", "_full_single_device"),
    (4, {}, "full_finetune_distributed", "_full"),
    (4, {"args": [LORA]}, "lora_finetune_distributed", "_lora"),
    (0, {"resourcesPerNode": {"limits": {"cpu": 4}}}, "full_finetune_distributed", "_full"),
    (0, {}, "full_finetune_single_device", "_full_single_device"),
])  # fmt: skip
def test_recipe(gpus: int, trainer: dict[str, Any], recipe: str, config: str) -> None:
    """One process on one node has recipes of its own; QLoRA goes before LoRA, DoRA is LoRA."""
    words = command(tuned(gpus=gpus, **trainer))
    place = words.index("--config")
    assert (words[place - 1], words[place + 1]) == (recipe, f"llama3_2/1B{config}")
    assert any(word.startswith("--rdzv_endpoint") for word in words) == recipe.endswith("distributed")


def test_whole_command_of_several_nodes() -> None:
    """Rendezvous at rank 0, the recipe for several nodes, and of the runtime's words only the four it fixes."""
    result = tuned(LARGE, gpus=8, numNodes=2, args=["epochs=1"])
    assert command(result) == [
        "tune",
        "run",
        "--rdzv_endpoint=train-node-0-0.train:29500",
        "full_finetune_distributed",
        "--config",
        "llama3_3/70B_full_multinode",
        "output_dir=/out",
        "tokenizer.path=/t",
    ]
    container = pods_of(result)["spec"]["containers"][0]
    assert container["args"] == ["epochs=1"]
    assert set(env_of(container)) == {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK"}


IMMUTABLE = 'spec.trainer.args[1]: must not set immutable config "output_dir" in trainer args'
MODEL = "spec.runtimeRef.name: must have a supported pretrained model, invalid model configured: "


@pytest.mark.parametrize(
    ("name", "gpus", "trainer", "messages"),
    [
        ("torchtune-llama9-1b", 1, {}, [f"{MODEL}llama9/1B"]),
        ("tune", 1, {}, [MODEL]),
        (LLAMA, 1, {"numNodes": 2, "args": [LORA]}, [
            "spec.trainer.numNodes: must be 1 for llama3_2/1B model",
            "spec.trainer.numNodes: LoRA fine-tuning is not supported for multi-node training in TorchTune",
        ]),
        (LARGE, 1, {"numNodes": 2, "args": [QLORA]},
            ["spec.trainer.numNodes: LoRA fine-tuning is not supported for multi-node training in TorchTune"]),
        (QWEN, 1, {"args": [QLORA]}, ["spec.runtimeRef.name: QLoRA is not supported for qwen2_5/1.5B model"]),
        (LLAMA, 2, {"args": [QLORA]}, [
            "spec.trainer.numProcPerNode: must be auto or 1 for llama3_2/1B model when using QLoRA",
            "spec.trainer.resourcesPerNode: must have gpu resource with value 1 for llama3_2/1B model when using QLoRA",
        ]),
        (LLAMA, 1, {"args": ["epochs=1", "output_dir=/x"]}, [f"{IMMUTABLE}; it is managed by the runtime"]),
    ],
)  # fmt: skip
def test_refusals(name: str, gpus: int, trainer: dict[str, Any], messages: list[str]) -> None:
    """Each with its path and the words that clients know."""
    assert [f"{error.path}: {error.message}" for error in tuned(name, gpus, **trainer).errors] == messages
