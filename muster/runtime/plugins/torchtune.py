"""TorchTune: `tune run` with the recipe and the configuration that fit model, nodes and devices.

The model follows from the runtime's name (`torchtune-llama3.2-1b`), on which clients rely. Number of nodes and
processes are those of the plan, so validation and result cannot disagree.
"""

from collections.abc import Sequence
from typing import NamedTuple

from muster.api.fields import FieldError, Findings
from muster.runtime.info import Info, Late, PodSet, text
from muster.runtime.plugins.torch_settings import PORT, processes
from muster.runtime.train_job import pod_template

ENTRYPOINT = ("tune", "run")
IMMUTABLE = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
LLAMA_1B, LLAMA_3B, LLAMA_70B, QWEN = "llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"
MODELS = (LLAMA_1B, LLAMA_3B, LLAMA_70B, QWEN)
_NAME_PARTS = 3


class Tuning(NamedTuple):
    """The choice of a recipe. `single`: one process on one node; `spread`: several, which have to meet."""

    nodes: int
    single: bool
    spread: bool
    lora: bool
    qlora: bool


def is_torchtune(info: Info) -> bool:
    """True if the user runs TorchTune."""
    return bool(info.trainer and tuple(info.trainer.command) == ENTRYPOINT)


def model_of(runtime: str) -> str:
    """`torchtune-llama3.2-1b` → `llama3_2/1B`; empty for names of another form."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == _NAME_PARTS else ""


def recipe_of(tuning: Tuning) -> tuple[str, str]:
    """Recipe and suffix of the configuration."""
    if tuning.nodes > 1:
        return "full_finetune_distributed", "_full_multinode"
    kind = "qlora" if tuning.qlora else "lora" if tuning.lora else "full"
    recipe = "full_finetune" if kind == "full" else "lora_finetune"
    if tuning.single:
        return f"{recipe}_single_device", f"_{kind}_single_device"
    return f"{recipe}_distributed", f"_{kind}"


def command(info: Info, pod_set: PodSet) -> list[str | Late]:
    """The whole command; the user's arguments follow it."""
    tuning = _tuning(info, pod_set)
    recipe, suffix = recipe_of(tuning)
    words: list[str | Late] = [*ENTRYPOINT]
    if tuning.spread:
        words.append(Late(lambda: f"--rdzv_endpoint={text(info.leader())}:{PORT}"))
    config = f"{model_of(info.runtime_name)}{suffix}"
    return [*words, recipe, "--config", config, *_overrides(info, pod_set)]


def check(info: Info) -> Findings:
    """Model, number of nodes, LoRA and arguments."""
    findings = Findings()
    for pod_set in info.trainers:
        findings.errors += _model_errors(info, _tuning(info, pod_set))
    findings.errors += _argument_errors(_arguments(info))
    return findings


def _model_errors(info: Info, tuning: Tuning) -> list[FieldError]:
    name = "spec.runtimeRef.name"
    model = model_of(info.runtime_name)
    if model not in MODELS:
        message = f"must have a supported pretrained model, invalid model configured: {model}"
        return [FieldError(name, message, info.runtime_name)]
    errors = []
    if tuning.nodes > 1 and model != LLAMA_70B:
        errors.append(FieldError("spec.trainer.numNodes", f"must be 1 for {model} model", tuning.nodes))
    if tuning.nodes > 1 and (tuning.lora or tuning.qlora):
        message = "LoRA fine-tuning is not supported for multi-node training in TorchTune"
        errors.append(FieldError("spec.trainer.numNodes", message, tuning.nodes))
    suffix = recipe_of(tuning)[1]
    if "_qlora" in suffix and model == QWEN:
        errors.append(FieldError(name, f"QLoRA is not supported for {model} model", info.runtime_name))
    if suffix == "_qlora" and model in {LLAMA_1B, LLAMA_3B} and info.trainer:
        message = f"must be auto or 1 for {model} model when using QLoRA"
        errors.append(FieldError("spec.trainer.numProcPerNode", message, info.trainer.num_proc_per_node))
        message = f"must have gpu resource with value 1 for {model} model when using QLoRA"
        errors.append(FieldError("spec.trainer.resourcesPerNode", message, info.trainer.resources_per_node))
    return errors


def _argument_errors(arguments: Sequence[str]) -> list[FieldError]:
    errors = []
    for index, argument in enumerate(arguments):
        key = argument.partition("=")[0]
        if key in IMMUTABLE:
            message = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            errors.append(FieldError(f"spec.trainer.args[{index}]", message, argument))
    return errors


def _tuning(info: Info, pod_set: PodSet) -> Tuning:
    number, _ = processes(info, pod_set)
    devices = pod_set.gpus
    several = (number.isdecimal() and int(number) > 1) or (not number.isdecimal() and devices > 1)
    one = number == "1" or devices == 1
    arguments = _arguments(info)
    quantized = any("model.quantize_base" in each and each.lower().endswith("=true") for each in arguments)
    dora = any("model.use_dora" in each and each.lower().endswith("=true") for each in arguments)
    return Tuning(
        nodes=info.size,
        single=info.size == 1 and one,
        spread=info.size > 1 or several,
        lora=any("model.lora_attn_modules" in each for each in arguments),
        qlora=quantized and not dora,
    )


def _arguments(info: Info) -> list[str]:
    return list(info.trainer.args) if info.trainer else []


def _overrides(info: Info, pod_set: PodSet) -> list[str]:
    """The paths of model and output, which the runtime's own command fixes."""
    jobs = info.runtime.spec.template.spec.replicated_jobs if info.runtime else []
    templates = [pod_template({"template": job.template}) for job in jobs if job.name == pod_set.name]
    containers = [each for template in templates for each in (template.get("spec") or {}).get("containers") or []]
    name = pod_set.target.name if pod_set.target else None
    words = [word for each in containers if each.get("name") == name for word in each.get("command") or []]
    return [word for word in words if word.partition("=")[0] in IMMUTABLE]
