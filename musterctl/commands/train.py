"""`muster train`: a Python file, on many nodes, for people without Kubeflow's SDK."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.kube.client import Client
from musterctl.cluster import known
from musterctl.commands import trainfile
from musterctl.commands.jobrun import WithCommand
from musterctl.commands.trainview import follow
from musterctl.objects import connect_in, create, name_of
from musterctl.output.listing import namespace_option, show_object, where_options

_INTERRUPTED = 130


class WithArguments(WithCommand):
    """What follows `--` are arguments of the file or function."""

    rest = "ARGUMENTS"


@click.command(cls=WithArguments)
@click.argument("file", metavar="FILE.py[:FUNCTION]")
@click.option("--nodes", type=click.IntRange(min=1), help="How many pods train together.  [default: the runtime's]")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each node; torchrun starts a process for each.")
@click.option("--cpu", help="CPUs of each node, for example 4.")
@click.option("--memory", help="Memory of each node, for example 16Gi.")
@click.option("--queue", help="The queue that it waits in.  [default: the namespace's, else default]")
@click.option("--runtime", default="torch-distributed", show_default=True, help="Which framework, and which image.")
@click.option("--image", help="The image of the pods.  [default: the runtime's]")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="A variable of the training. Several times.")
@click.option("--annotation", "annotations", multiple=True, metavar="KEY=VALUE", help="Of its pods. Several times.")
@click.option("--job", "job_name", metavar="NAME", help="The TrainJob's name.  [default: the file's, and a number]")
@click.option("--detach", is_flag=True, help="Submit it, and do not wait for its end.")
@click.option("--no-logs", is_flag=True, help="Tell how it goes, not what it prints.")
@click.option("--dry-run", is_flag=True, help="Print the TrainJob, and submit nothing.")
@namespace_option
@where_options
def train(
    *,
    file: str,
    command: tuple[str, ...],
    runtime: str,
    job_name: str | None,
    detach: bool,
    no_logs: bool,
    dry_run: bool,
    namespace: str | None,
    kubeconfig: Path | None,
    plane: str | None,
    **options: Any,
) -> None:
    r"""Runs a Python file on several nodes at once, as a TrainJob: they start together, in a queue.

    The file itself is sent, not what it imports: that has to be in the image. With FILE.py:FUNCTION only the function
    is sent and called, with ARGUMENTS of the form name=value. Standard output is what rank 0 prints, standard error how
    it goes and why it waits. Ctrl-C leaves it running.

    \b
    muster train train.py --nodes 4 --gpus 8 --queue research -- --epochs 3
    muster train train.py:main --nodes 2 --gpus 1 -- lr=0.1
    """
    name, content, arguments = trainfile.read(file, command)
    wanted = name_of(TRAIN_JOBS, job_name) if job_name is not None else trainfile.job_name(name)
    client, space = connect_in(namespace, kubeconfig, plane)
    found = runtime_of(client, runtime, space)
    resources = trainfile.amounts(options.pop("gpus"), options.pop("cpu"), options.pop("memory"))
    options["env"] = _pairs(options["env"], "--env")
    options["annotations"] = _pairs(options["annotations"], "--annotation")
    run = trainfile.command(trainfile.framework(found), name, content, arguments)
    manifest = trainfile.manifest(wanted, found, run, resources=resources, **options)
    if dry_run:
        show_object(manifest, "yaml")
        return
    made = msgspec.convert(create(client, TRAIN_JOBS, manifest, space), TrainJob)
    if detach:
        return
    try:
        good = follow(client, made, trainfile.trainers(found), logs=not no_logs)
    except KeyboardInterrupt:
        click.echo(f"\n{wanted} goes on; to end it: kubectl delete trainjob {wanted} -n {space}", err=True)
        sys.exit(_INTERRUPTED)
    if not good:
        sys.exit(1)


def runtime_of(client: Client, name: str, namespace: str) -> trainfile.Runtime:
    """The runtime of the namespace, else of the cluster; a ClickException names those that there are."""
    with known(client, CLUSTER_TRAINING_RUNTIMES):
        own = {each.metadata.name: each for each in client.list(TRAINING_RUNTIMES, namespace)}
        shared = {each.metadata.name: each for each in client.list(CLUSTER_TRAINING_RUNTIMES)}
    found: trainfile.Runtime | None = own.get(name) or shared.get(name)
    if found is None:
        there = ", ".join(sorted({*own, *shared})) or "none"
        raise click.ClickException(f"there is no runtime {name!r}; there are: {there}")
    return found


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    found = [text.partition("=") for text in texts]
    for (key, equals, _), text in zip(found, texts, strict=True):
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not of the form name=value", None, None, option)
    return {key: value for key, _, value in found}
