"""Plugin for Torch, which sets torchrun's variables, so that `torchrun train.py` needs no arguments.

A run has one of three forms. The default form has a fixed number of pods. The elastic form (`minNodes:maxNodes`) uses
the rendezvous c10d. The form `python` is for containers that run their script without torchrun.

TorchTune runs as `tune run` with the recipe and the configuration for the model, nodes and devices. The model is a part
of the runtime's name (`torchtune-llama3.2-1b`), as Kubeflow's clients expect. The numbers of nodes and processes come
from the plan, so validation and command cannot contradict each other.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.limits import PROCESSES, whole_number
from muster.runtime.info import Info, Late, PodSet, Variables, text
from muster.runtime.plugins.shared import errors_of, leader, rank, reserved, size
from muster.runtime.settings import ELASTIC, MAX_RESTARTS, NPROC_PER_NODE, TORCH_ENV, Setting, annotation
from muster.runtime.train_job import pod_template

PORT = 29500
_MASTER = ("PET_MASTER_ADDR", "PET_MASTER_PORT")
RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", *_MASTER)
OVERRIDING = ("PET_STANDALONE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
ELASTIC_RESERVED = (*RESERVED, *OVERRIDING, "PET_MAX_RESTARTS")
PYTHON_RESERVED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
_TUNE = ("tune", "run")
_TUNE_IMMUTABLE = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
_LLAMA_1B, _LLAMA_3B, _LLAMA_70B, _QWEN = "llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"
_MODELS = (_LLAMA_1B, _LLAMA_3B, _LLAMA_70B, _QWEN)
_NAME_PARTS = 3


class Torch:
    """Plugin that adds Torch's variables to the containers of each pod set that trains."""

    name = "Torch"
    framework = "torch"

    def validate(self, info: Info) -> Findings:
        """Reject reserved variables, and settings that torchrun cannot use."""
        findings = Findings()
        if info.framework != self.framework:
            return findings
        if is_plain(info):
            findings.add(reserved(info, PYTHON_RESERVED))
        elif info.setting(ELASTIC):
            findings.add(reserved(info, ELASTIC_RESERVED))
        else:
            findings.add(reserved(info, RESERVED))
            findings.warnings += _overriding(info)
        of_pod_sets = (partial(processes, pod_set=pod_set) for pod_set in info.trainers)
        findings.errors += errors_of(info, form, nodes, restarts, *of_pod_sets)
        if _is_torchtune(info) and not findings.errors:
            findings.errors += _tuning_errors(info)
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Add the variables, in the same order as Kubeflow Trainer, and the rendezvous port."""
        form(info)  # missing in pods whose owner was not validated
        restarts(info)
        if info.train_job and (elastic := info.setting(ELASTIC)):
            info.annotations[names.ELASTIC] = elastic.text  # the planner and the Job controller read this annotation
        for pod_set in info.trainers:
            number, source = processes(info, pod_set)
            target = pod_set.target
            pod_set.slots = _slots(pod_set, number)
            variables = _variables(info, pod_set, (number, source))
            if target and _is_torchtune(info):
                target.command = _tune_command(info, pod_set)
                target.set(self.name, {key: value for key, value in variables.items() if key not in _MASTER})
            elif target:
                target.set(self.name, variables)
            for container in info.injections:
                container.set(self.name, variables)
            pod_set.port(PORT)


def _overriding(info: Info) -> list[str]:
    """Return a warning for each user variable that disables the rendezvous."""
    return [
        f"{info.user_env.path}[{index}].name: {variable.name} makes torchrun ignore the rendezvous that Muster sets "
        "up; remove it unless this is intended"
        for index, variable in enumerate(info.user_env.variables)
        if variable.name in OVERRIDING
    ]


def _variables(info: Info, pod_set: PodSet, number: tuple[str, str]) -> Variables:
    if is_plain(info):
        return _python(info, pod_set)
    if info.setting(ELASTIC):
        return _elastic(info, number)
    return {
        "PET_NNODES": size(info),
        "PET_NPROC_PER_NODE": number,
        "PET_NODE_RANK": rank(info, pod_set),
        "PET_MASTER_ADDR": leader(info),
        "PET_MASTER_PORT": (str(PORT), "torchrun's default port"),
    }


def _elastic(info: Info, number: tuple[str, str]) -> Variables:
    """Return the variables of elastic pods, which get their ranks at each rendezvous."""
    count, source = nodes(info)
    return {
        "PET_NNODES": (count, source),
        "PET_NPROC_PER_NODE": number,
        "PET_RDZV_BACKEND": ("c10d", source),
        "PET_RDZV_ENDPOINT": leader(info, PORT),
        "PET_RDZV_ID": (info.owner.name, f"name of {info.workload}"),
        "PET_MAX_RESTARTS": restarts(info),
    }


def _python(info: Info, pod_set: PodSet) -> Variables:
    """Return the variables of one process in each pod, for torch's `env://` initialisation."""
    return {
        "RANK": rank(info, pod_set),
        "WORLD_SIZE": size(info),
        "LOCAL_RANK": ("0", "one process in each pod"),
        "MASTER_ADDR": leader(info),
        "MASTER_PORT": (str(PORT), "torchrun's default port"),
    }


def processes(info: Info, pod_set: PodSet) -> tuple[str, str]:
    """Return PET_NPROC_PER_NODE, and the source of this value."""
    setting = info.setting(NPROC_PER_NODE) or Setting("auto", "", "default (auto)")
    wanted, source = setting.text, setting.source
    if is_plain(info):
        if wanted in {"auto", "1"}:
            return "1", "one process in each pod"
        raise setting.invalid(
            f"must be 1 where {annotation(TORCH_ENV)} is python: only torchrun starts several processes"
        )
    container = pod_set.target.name if pod_set.target else ""
    devices, seen = pod_set.accelerators
    if wanted == "cpu" or (wanted == "auto" and not devices):
        return str(pod_set.cpus), f"{source}: CPUs of container {container}, rounded up"
    if wanted in {"auto", "gpu"}:
        if not devices:
            raise setting.invalid(f"container {container} requests no GPU: add one to its resources, or use cpu")
        if not seen:
            return str(devices), f"{source}: accelerators of container {container}"
        return wanted, f"{source}: torchrun counts the GPUs it sees ({devices} requested)"
    if number := whole_number(wanted, PROCESSES.value):
        return str(number), source
    raise setting.invalid(f"must be auto, cpu, gpu or a number of processes from 1 to {PROCESSES.value}")


def form(info: Info) -> None:
    """Check that the form of the run is torchrun or python, and that a run with python is not elastic."""
    setting, elastic = info.setting(TORCH_ENV), info.setting(ELASTIC)
    if setting and setting.text not in {"torchrun", "python"}:
        raise setting.invalid("must be torchrun (the default) or python")
    if is_plain(info) and elastic:
        raise elastic.invalid(f"must be left out where {annotation(TORCH_ENV)} is python: only torchrun is elastic")


def nodes(info: Info) -> tuple[str, str]:
    """Return `minNodes:maxNodes`, and the source of this value; empty if the world has a fixed size."""
    setting = info.setting(ELASTIC)
    if setting is None:
        return "", ""
    low, colon, high = setting.text.partition(":")
    least, most = whole_number(low), whole_number(high)
    if not colon or not least or most is None or least > most:
        raise setting.invalid("must be minNodes:maxNodes, e.g. 2:4, with 1 <= minNodes <= maxNodes")
    if not least <= info.size <= most:
        raise setting.invalid(f"must include the number of pods of {info.workload} ({info.size})")
    return f"{least}:{most}", setting.source


def restarts(info: Info) -> tuple[str, str]:
    """Return the number of times that the workers of an elastic run may be restarted, and the source of this value."""
    setting = info.setting(MAX_RESTARTS)
    if setting is None:
        return "3", "default"
    number = whole_number(setting.text)
    if number is None:
        raise setting.invalid("must be a number of restarts of at least 0")
    if not info.setting(ELASTIC):
        raise setting.invalid(f"must be left out unless {annotation(ELASTIC)} is set")
    return str(number), setting.source


def is_plain(info: Info) -> bool:
    """Return True if the containers run `python` themselves, without torchrun."""
    setting = info.setting(TORCH_ENV)
    return setting is not None and setting.text == "python"


def _slots(pod_set: PodSet, number: str) -> int:
    """Return the number of processes in a pod; if `number` is a word such as `gpu`, torchrun counts the GPUs."""
    return int(number) if number.isdecimal() else pod_set.accelerators.number


class _Tuning(NamedTuple):
    """The properties of a TorchTune run that determine its recipe.

    `single` is True for one process on one node; `spread` is True for several processes, which need a rendezvous.
    """

    nodes: int
    single: bool
    spread: bool
    lora: bool
    qlora: bool


def _is_torchtune(info: Info) -> bool:
    return bool(info.trainer and tuple(info.trainer.command) == _TUNE)


def _model_of(runtime: str) -> str:
    """Return the model of a runtime name: `llama3_2/1B` for `torchtune-llama3.2-1b`; empty for other forms of names."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == _NAME_PARTS else ""


def _recipe_of(tuning: _Tuning) -> tuple[str, str]:
    if tuning.nodes > 1:
        return "full_finetune_distributed", "_full_multinode"
    kind = "qlora" if tuning.qlora else "lora" if tuning.lora else "full"
    recipe = "full_finetune" if kind == "full" else "lora_finetune"
    if tuning.single:
        return f"{recipe}_single_device", f"_{kind}_single_device"
    return f"{recipe}_distributed", f"_{kind}"


def _tune_command(info: Info, pod_set: PodSet) -> list[str | Late]:
    """Return the complete TorchTune command, which the user's arguments follow."""
    tuning = _tuning(info, pod_set)
    recipe, suffix = _recipe_of(tuning)
    rendezvous = [Late(lambda: f"--rdzv_endpoint={text(info.leader())}:{PORT}")] if tuning.spread else []
    config = f"{_model_of(info.runtime_name)}{suffix}"
    return [*_TUNE, *rendezvous, recipe, "--config", config, *_overrides(info, pod_set)]


def _tuning_errors(info: Info) -> Iterator[FieldError]:
    for pod_set in info.trainers:
        yield from _model_errors(info, _tuning(info, pod_set))
    for index, argument in enumerate(_arguments(info)):
        key = argument.partition("=")[0]
        if key in _TUNE_IMMUTABLE:
            message = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            yield FieldError(f"spec.trainer.args[{index}]", message, argument)


def _model_errors(info: Info, tuning: _Tuning) -> Iterator[FieldError]:
    name = "spec.runtimeRef.name"
    model = _model_of(info.runtime_name)
    if model not in _MODELS:
        message = f"must have a supported pretrained model, invalid model configured: {model}"
        yield FieldError(name, message, info.runtime_name)
        return
    if tuning.nodes > 1 and model != _LLAMA_70B:
        yield FieldError("spec.trainer.numNodes", f"must be 1 for {model} model", tuning.nodes)
    if tuning.nodes > 1 and (tuning.lora or tuning.qlora):
        message = "LoRA fine-tuning is not supported for multi-node training in TorchTune"
        yield FieldError("spec.trainer.numNodes", message, tuning.nodes)
    suffix = _recipe_of(tuning)[1]
    if "_qlora" in suffix and model == _QWEN:
        yield FieldError(name, f"QLoRA is not supported for {model} model", info.runtime_name)
    if suffix == "_qlora" and model in {_LLAMA_1B, _LLAMA_3B} and info.trainer:
        message = f"must be auto or 1 for {model} model when using QLoRA"
        yield FieldError("spec.trainer.numProcPerNode", message, info.trainer.num_proc_per_node)
        message = f"must have gpu resource with value 1 for {model} model when using QLoRA"
        yield FieldError("spec.trainer.resourcesPerNode", message, info.trainer.resources_per_node)


def _tuning(info: Info, pod_set: PodSet) -> _Tuning:
    number, _ = processes(info, pod_set)
    arguments = _arguments(info)
    quantized = any("model.quantize_base" in each and each.lower().endswith("=true") for each in arguments)
    dora = any("model.use_dora" in each and each.lower().endswith("=true") for each in arguments)
    return _Tuning(
        nodes=info.size,
        single=info.size == 1 and (number == "1" or pod_set.accelerators.number == 1),
        spread=info.size > 1 or _slots(pod_set, number) > 1,
        lora=any("model.lora_attn_modules" in each for each in arguments),
        qlora=quantized and not dora,
    )


def _arguments(info: Info) -> list[str]:
    return list(info.trainer.args) if info.trainer else []


def _overrides(info: Info, pod_set: PodSet) -> list[str]:
    """Return the arguments for the paths of model and output, which the runtime's own command contains."""
    jobs = info.runtime.spec.template.spec.replicated_jobs if info.runtime else []
    templates = [pod_template({"template": job.template}) for job in jobs if job.name == pod_set.name]
    containers = [each for template in templates for each in (template.get("spec") or {}).get("containers") or []]
    name = pod_set.target.name if pod_set.target else None
    words = [word for each in containers if each.get("name") == name for word in each.get("command") or []]
    return [word for word in words if word.partition("=")[0] in _TUNE_IMMUTABLE]
