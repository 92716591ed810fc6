"""The TrainJob of `muster train`: a Python file, or one function in the file, inside the command of a container."""

import ast
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import msgspec

from muster.api import names
from muster.api.kubeflow.trainer import ANCESTOR, NODE, RUNTIME_FRAMEWORK, TRAIN_JOBS, TRAINER
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.resources.vector import GPU
from muster.runtime.train_job import framework_of
from musterctl.chart.files import RUNTIMES, document
from musterctl.options import NOTHING_SUBMITTED, Submitted

JSON = dict[str, Any]
Runtime = TrainingRuntime | ClusterTrainingRuntime
MANAGER = "muster.dev/train"
MAX_BYTES = 100_000
"""Maximum size of a file, in bytes, because Linux allows 128 KiB for one argument of a program."""
_STARTERS = {"torch": "torchrun", "mpi": "python"}
_NAME_CHARS = 40


def read_train_file(place: str, arguments: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return the name and the content of FILE, and the arguments; for FILE:FUNCTION, the content calls the function."""
    file, _, function = place.partition(":")
    path = Path(file)
    try:
        content = path.read_text(encoding="utf-8")
        tree = ast.parse(content, filename=file)
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (SyntaxError, ValueError) as error:
        raise click.ClickException(f"{file} is not Python: {error}") from error
    if function:
        content, arguments = _function(content, tree, file, function, arguments), ()
    size = len(content.encode())
    if size > MAX_BYTES:
        raise click.ClickException(
            f"{file} has {size} bytes, and {MAX_BYTES} can be sent with a TrainJob: put the code into an image, and "
            "send a short file that starts it"
        )
    return path.name, content, list(arguments)


def shipped() -> dict[str, ClusterTrainingRuntime]:
    """Return the runtimes that the chart contains, keyed by name."""
    found = (msgspec.convert(document(file), ClusterTrainingRuntime) for file in sorted(RUNTIMES.glob("*.yaml")))
    return {each.metadata.name: each for each in found}


def command(framework: str, name: str, content: str, arguments: Sequence[str]) -> list[str]:
    """Return a command that writes the file into a new folder and runs it; `$$` is an escaped `$` in Kubernetes."""
    end = "MUSTER_END"
    while end in content:
        end += "_"
    given = " ".join(("", *(shlex.quote(each) for each in arguments)))
    file = f'"$folder"/{shlex.quote(name)}'
    body = content if content.endswith("\n") or not content else f"{content}\n"
    script = (
        f"folder=$(mktemp -d) || exit 1\ncat > {file} <<'{end}'\n{body}{end}\n"
        f"exec {_STARTERS.get(framework, 'python')} {file}{given}\n"
    )
    start = ["mpirun"] if framework == "mpi" else []  # Muster's variables tell mpirun the host file
    return [*start, "sh", "-c", script.replace("$", "$$")]


def framework(runtime: Runtime) -> str:
    """Return the framework that this runtime uses to start a Python file.

    Raise ClickException if the runtime cannot run files.
    """
    if runtime.metadata.labels.get(RUNTIME_FRAMEWORK) == "torchtune":
        raise click.ClickException(
            f"runtime {runtime.metadata.name} fine-tunes with torchtune and cannot run your file: choose another one "
            "with --runtime, or submit a TrainJob with arguments for it"
        )
    return framework_of(runtime.spec.ml_policy)


def job_name(file: str) -> str:
    """Return a new name for a TrainJob, derived from the file's name."""
    stem = re.sub(r"[^a-z0-9]+", "-", file.removesuffix(".py").lower()).strip("-")[:_NAME_CHARS].rstrip("-")
    return f"{stem if stem[:1].isalpha() else f'train-{stem}'.rstrip('-')}-{secrets.token_hex(3)}"


def manifest(
    name: str,
    runtime: Runtime,
    run: Sequence[str],
    *,
    nodes: int | None,
    resources: Mapping[str, str],
    queue: str | None,
    image: str | None,
    env: Mapping[str, str],
    annotations: Mapping[str, str],
    submitted: Submitted = NOTHING_SUBMITTED,
) -> JSON:
    """Return the manifest of the TrainJob."""
    kind = "ClusterTrainingRuntime" if isinstance(runtime, ClusterTrainingRuntime) else "TrainingRuntime"
    trainer: JSON = {"command": list(run)}
    if nodes is not None:
        trainer["numNodes"] = nodes
    if resources:
        trainer["resourcesPerNode"] = {"requests": dict(resources), "limits": dict(resources)}
    if image:
        trainer["image"] = image
    if env:
        trainer["env"] = [{"name": key, "value": value} for key, value in env.items()]
    spec: JSON = {"runtimeRef": {"name": runtime.metadata.name, "kind": kind}, "trainer": trainer}
    if annotations:
        spec["runtimePatches"] = [_annotated(runtime, annotations)]
    spec |= submitted.deadline
    notes = dict(submitted.annotations)
    if submitted.priority:
        notes[names.PRIORITY_CLASS] = submitted.priority["priorityClassName"]
    metadata: JSON = {"name": name, **({"labels": {names.QUEUE: queue}} if queue else {})}
    if notes:
        metadata["annotations"] = notes
    return {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, "metadata": metadata, "spec": spec}


def trainers(runtime: Runtime) -> list[str]:
    """Return the replicated jobs whose pods run the command; `node` if the runtime marks none as the trainer."""
    jobs = runtime.spec.template.spec.replicated_jobs
    found = [job.name for job in jobs if _labels(job.template).get(ANCESTOR) == TRAINER]
    return found or [NODE]


def amounts(gpus: int | None, cpu: str | None, memory: str | None) -> dict[str, str]:
    """Return the resources that the options set for each node."""
    given = {"cpu": cpu, "memory": memory, GPU: None if gpus is None else str(gpus)}
    return {key: value for key, value in given.items() if value}


def _annotated(runtime: Runtime, annotations: Mapping[str, str]) -> JSON:
    template = {"spec": {"template": {"metadata": {"annotations": dict(annotations)}}}}
    jobs = [{"name": each, "template": template} for each in trainers(runtime)]
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def _labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    labels: Mapping[str, Any] = (template.get("metadata") or {}).get("labels") or {}
    return labels


def _function(content: str, tree: ast.Module, file: str, name: str, arguments: Sequence[str]) -> str:
    """Return the source of a function at the top level of a file, followed by its call with `key=value` arguments."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    if name not in functions:
        there = ", ".join(functions) or "none"
        raise click.ClickException(f"{file} has no function {name!r} at its top level; its functions are: {there}")
    node = functions[name]
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    source = dedent("\n".join(content.split("\n")[first - 1 : node.end_lineno]))
    return f"{source}\n\n\n{name}({', '.join(map(_keyword, arguments))})\n"


def _keyword(text: str) -> str:
    """Return an argument such as `lr=0.1` as a keyword argument; a value that is not a literal becomes a string."""
    key, equals, value = text.partition("=")
    if not (equals and key.isidentifier()):
        raise click.ClickException(f"{text!r} is not an argument for a function: write name=value, as in lr=0.1")
    try:
        return f"{key}={ast.literal_eval(value)!r}"
    except (ValueError, SyntaxError):
        return f"{key}={value!r}"
