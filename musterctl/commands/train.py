"""`muster train`: runs a Python file on several nodes without Kubeflow's SDK, and shows its progress and logs.

The module `trainjobs` has the commands for existing TrainJobs, and the command group.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import click
import msgspec

from muster.api import names
from muster.api.kubeflow import trainer, trainingruntime
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano import batch, scheduling
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound, Unreachable
from muster.kube.loop import ENDED
from muster.workloads.jobset import JOBSET_NAME, REPLICATED_JOB
from musterctl.chart.roles import VIEW_QUEUES
from musterctl.cluster import Where, connect_in, create, known, name_of
from musterctl.commands import trainfile
from musterctl.options import WithCommand, namespace_option, submission_options, where_options
from musterctl.output.listing import INTERRUPTED, show_object

POLL_S = 1.0
_LAST_LINES_S = 5.0
"""Maximum time, in seconds, to wait for the last lines of a log."""


class WithArguments(WithCommand):
    """A command whose arguments after `--` are passed to the file or function."""

    rest = "ARGUMENTS"


@click.command(
    "run",
    cls=WithArguments,
    epilog="\b\nmuster train train.py --nodes 4 --gpus 8 --queue research -- --epochs 3\n"
    "muster train train.py:main --nodes 2 --gpus 1 -- lr=0.1",
)
@click.argument("file", metavar="FILE.py[:FUNCTION]")
@click.option("--nodes", type=click.IntRange(min=1), help="Number of nodes, one pod each.  [default: the runtime's]")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each node; torchrun starts a process for each.")
@click.option("--cpu", help="CPUs of each node, for example 4.")
@click.option("--memory", help="Memory of each node, for example 16Gi.")
@click.option("--queue", help="The queue of the job.  [default: the namespace's, else default]")
@click.option("--runtime", default="torch-distributed", show_default=True, help="The runtime: framework and image.")
@click.option("--image", help="The image of the pods.  [default: the runtime's]")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="An environment variable; may be repeated.")
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    metavar="KEY=VALUE",
    help="An annotation of the pods; may be repeated.",
)
@click.option(
    "--job",
    "job_name",
    metavar="NAME",
    help="The TrainJob's name.  [default: the name of the file, with a random suffix]",
)
@click.option("--detach", is_flag=True, help="Do not wait for the end of the training.")
@click.option("--no-logs", is_flag=True, help="Show progress without the pods' logs.")
@click.option("--dry-run", is_flag=True, help="Print the TrainJob, and create nothing.")
@partial(submission_options, time_help="The time limit of the TrainJob, which also counts while it waits: 4h.")
@namespace_option
@where_options
def run_file(
    *,
    file: str,
    command: tuple[str, ...],
    runtime: str,
    job_name: str | None,
    detach: bool,
    no_logs: bool,
    dry_run: bool,
    namespace: str | None,
    where: Where,
    **options: Any,
) -> None:
    """Runs a Python file on several nodes, as a TrainJob.

    Only the file itself is sent, so modules that it imports must be in the image. With FILE.py:FUNCTION, only the
    function is sent; it is called with ARGUMENTS of the form name=value. The log of rank 0 goes to standard output, the
    progress and the reason for waiting to standard error. After Ctrl-C the training keeps running.
    """
    name, content, arguments = trainfile.read_train_file(file, command)
    wanted = name_of(trainer.TRAIN_JOBS, job_name) if job_name is not None else trainfile.job_name(name)
    client, space = connect_in(namespace, where)
    found = runtime_of(client, runtime, space)
    resources = trainfile.amounts(options.pop("gpus"), options.pop("cpu"), options.pop("memory"))
    options["env"] = _pairs(options["env"], "--env")
    options["annotations"] = _pairs(options["annotations"], "--annotation")
    program = trainfile.command(trainfile.framework(found), name, content, arguments)
    manifest = trainfile.manifest(wanted, found, program, resources=resources, **options)
    if dry_run:
        show_object(manifest, "yaml")
        return
    made = msgspec.convert(create(client, trainer.TRAIN_JOBS, manifest, space), trainer.TrainJob)
    if detach:
        return
    watch_to_the_end(client, made, trainfile.trainers(found), logs=not no_logs)


def watch_to_the_end(client: Client, train_job: trainer.TrainJob, trainers: Sequence[str], *, logs: bool) -> None:
    """Print the progress until the end; exit with code 1 if the training fails.

    After Ctrl-C, the training keeps running.
    """
    name, namespace = train_job.metadata.name, train_job.metadata.namespace
    try:
        good = follow(client, train_job, trainers, logs=logs)
    except KeyboardInterrupt:
        click.echo(f"\n{name} keeps running; to end it: kubectl delete trainjob {name} -n {namespace}", err=True)
        sys.exit(INTERRUPTED)
    if not good:
        sys.exit(1)


def runtime_of(client: Client, name: str, namespace: str) -> trainfile.Runtime:
    """Return the runtime with this name in the namespace, or else the cluster-wide runtime.

    If no runtime has this name, raise ClickException, which lists all runtimes. For a user who is not allowed to list
    ClusterTrainingRuntimes, return the chart's runtime with this name.
    """
    own: dict[str, trainfile.Runtime] = {}
    with known(client, trainingruntime.CLUSTER_TRAINING_RUNTIMES), suppress(Forbidden):
        own = {each.metadata.name: each for each in client.list(trainingruntime.TRAINING_RUNTIMES, namespace)}
    if name in own:
        return own[name]
    hint = ""
    try:
        with known(client, trainingruntime.CLUSTER_TRAINING_RUNTIMES):
            shared = {each.metadata.name: each for each in client.list(trainingruntime.CLUSTER_TRAINING_RUNTIMES)}
    except Forbidden:
        shared = trainfile.shipped()
        role = f"the ClusterRole {VIEW_QUEUES} in a ClusterRoleBinding"
        hint = f" (you cannot list ClusterTrainingRuntimes: ask an administrator for {role})"
    if name not in shared:
        there = ", ".join(sorted({*own, *shared})) or "none"
        raise click.ClickException(f"there is no runtime {name!r}; available runtimes are: {there}{hint}")
    return shared[name]


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    found = [text.partition("=") for text in texts]
    for (key, equals, _), text in zip(found, texts, strict=True):
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not of the form name=value", None, None, option)
    return {key: value for key, _, value in found}


def follow(client: Client, train_job: trainer.TrainJob, trainers: Sequence[str], *, logs: bool) -> bool:
    """Print the progress of a TrainJob until its end, and return True if it has succeeded.

    Raise ClickException if the TrainJob is deleted.
    """
    name, namespace = train_job.metadata.name, train_job.metadata.namespace
    printer = Logs(client, namespace)
    printed = ""
    while True:
        with suppress(Unreachable):  # keep waiting: the training continues without this connection
            try:
                train_job = client.get(trainer.TRAIN_JOBS, name, namespace)
            except NotFound:
                raise click.ClickException(f"TrainJob {name} was deleted") from None
            ended = next((each for each in train_job.status.conditions if each.type in {"Complete", "Failed"}), None)
            now = state_text(train_job, lambda: waits(client, name, namespace))
            if logs and (pod := first_pod(client, train_job, trainers)):
                printer.follow(pod)
            if ended:
                printer.finish()
            if now != printed:
                click.echo(f"{name}: {now}", err=True)
                printed = now
            if ended:
                return ended.type == "Complete"
        time.sleep(POLL_S)


def state_text(train_job: trainer.TrainJob, why: Callable[[], str]) -> str:
    """Return the state of a TrainJob in a few words; `why` is called only if the TrainJob waits."""
    held = {each.type: each for each in train_job.status.conditions}
    counts = train_job.status.jobs_status
    fetching = [each.name for each in counts if each.name.endswith("initializer") and not each.succeeded]
    if "Complete" in held:
        return "complete"
    for kind in ("Failed", "Blocked"):
        if kind in held:
            return f"{kind.lower()}: {held[kind].message}"
    if train_job.spec.suspend:
        return "suspended"
    if counts and all(each.ready or each.succeeded for each in counts):
        return "runs"
    if fetching:
        return f"waits for {fetching[0]}"
    return f"waits: {reason}" if (reason := why()) else "waits for its pods"


def waits(client: Client, name: str, namespace: str) -> str:
    """Return the reason why the gang of a TrainJob waits; "" if no reason is known."""
    try:
        job = client.get(batch.JOBS, name, namespace)
        group = client.get(scheduling.POD_GROUPS, f"{name}-{job.metadata.uid}", namespace)
    except NotFound:
        return ""
    return group.why_waiting


def first_pod(client: Client, train_job: trainer.TrainJob, trainers: Sequence[str]) -> Pod | None:
    """Return the pod of rank 0 if this pod has started; otherwise None."""
    name, namespace = train_job.metadata.name, train_job.metadata.namespace
    selector = f"{JOBSET_NAME}={name},{REPLICATED_JOB}={trainers[0]},{names.COMPLETION_INDEX}=0"
    found = client.list(PODS, namespace, label_selector=selector)
    begun = [each for each in found if each.status.phase in {"Running", "Succeeded", "Failed"}]
    return max(begun, key=lambda each: each.metadata.creation_timestamp or "", default=None)


class Logs:
    """Printer of the log of rank 0; when the gang restarts, the log of its new pod follows."""

    def __init__(self, client: Client, namespace: str, container: str = trainer.NODE) -> None:
        self._client = client
        self._namespace = namespace
        self._container = container
        self._uid = ""
        self._thread: threading.Thread | None = None

    def follow(self, pod: Pod) -> None:
        """Print the log of a pod from the beginning, unless the log of this pod is already being printed."""
        if pod.metadata.uid == self._uid:
            return
        self._uid = pod.metadata.uid
        self._thread = threading.Thread(target=self._print, args=(pod.metadata.name,), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until the last lines of the log have been printed."""
        if self._thread:
            self._thread.join(_LAST_LINES_S)

    def _print(self, pod: str) -> None:
        try:
            for line in self._client.log_lines(pod, self._namespace, self._container):
                click.echo(line)
        except APIError as error:
            if error.reason != ENDED:  # the command is ending
                click.echo(f"{pod}: its log cannot be read: {error.message}", err=True)
