"""`muster train list`, `logs`, `attach`, `stop` and `resume` for existing TrainJobs, and the group `muster train`."""

from typing import Any

import click

from muster.api.kubeflow import trainer, trainingruntime
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.cluster import Where, connect_in, failing_as, name_of
from musterctl.commands.logs import log_options, show_logs
from musterctl.commands.ps import list_gangs
from musterctl.commands.train import run_file, watch_to_the_end
from musterctl.commands.trainfile import trainers
from musterctl.commands.verbs import of_kind
from musterctl.options import (
    all_namespaces_option,
    name_argument,
    namespace_option,
    table_output_option,
    watch_option,
    where_options,
)
from musterctl.output.gangtable import Shown

one_argument = name_argument(trainer.TRAIN_JOBS, "job_name")


class FileOrCommand(click.Group):
    """A command group whose command `run` is the default: `muster train train.py` means `muster train run train.py`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before arguments that are neither a command nor a request for help."""
        if args and args[0] not in self.commands and args[0] not in {"-h", "--help"}:
            args = [run_file.name or "", *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name; `run` for the name of a Python file."""
        return super().get_command(ctx, cmd_name) or (run_file if ".py" in cmd_name else None)


@click.group(
    cls=FileOrCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nmuster train train.py --nodes 4 --gpus 8 --queue research -- --epochs 3\nmuster train run --help",
)
def train() -> None:
    """Runs Python files on several nodes, and manages TrainJobs.

    `muster train FILE.py` means `muster train run FILE.py`.
    """


train.add_command(run_file)


@train.command("list")
@namespace_option
@all_namespaces_option
@table_output_option
@watch_option
@where_options
def list_train_jobs(*, namespace: str | None, all_namespaces: bool, output: str, watch: bool, where: Where) -> None:
    """Lists running and ended TrainJobs, with position and reason."""
    client, space = connect_in(namespace, where)
    shown = Shown(None if all_namespaces else space, output=output, ended=True, kind=trainer.TRAIN_JOBS.kind)
    list_gangs(client, shown, watch=watch)


@train.command("logs")
@one_argument
@log_options
@namespace_option
@where_options
def train_logs(*, job_name: str, namespace: str | None, where: Where, **how: Any) -> None:
    """Prints the logs of a TrainJob's pods, by default the log of rank 0."""
    name = name_of(trainer.TRAIN_JOBS, job_name)
    client, space = connect_in(namespace, where)
    show_logs(client, space, name, kind=trainer.TRAIN_JOBS.kind, **how)


@train.command()
@one_argument
@click.option("--no-logs", is_flag=True, help="Show progress without the pods' logs.")
@namespace_option
@where_options
def attach(*, job_name: str, no_logs: bool, namespace: str | None, where: Where) -> None:
    """Follows a TrainJob to its end, as `muster train FILE.py` does.

    After Ctrl-C the TrainJob keeps running.
    """
    name = name_of(trainer.TRAIN_JOBS, job_name)
    client, space = connect_in(namespace, where)
    with failing_as("read", client, trainer.TRAIN_JOBS, name, space):
        found = client.get(trainer.TRAIN_JOBS, name, space)
    watch_to_the_end(client, found, _trainers(client, found), logs=not no_logs)


def _trainers(client: Client, train_job: trainer.TrainJob) -> list[str]:
    """Return the names of the replicated jobs whose pods train.

    If the runtime cannot be read, return `node`, which is the name in all of Muster's runtimes.
    """
    ref, namespace = train_job.spec.runtime_ref, train_job.metadata.namespace
    try:
        if ref.kind == trainingruntime.TRAINING_RUNTIMES.kind:
            return trainers(client.get(trainingruntime.TRAINING_RUNTIMES, ref.name, namespace))
        return trainers(client.get(trainingruntime.CLUSTER_TRAINING_RUNTIMES, ref.name))
    except (Forbidden, NotFound):
        return [trainer.NODE]


_STOPS = (
    "Stops TrainJobs: deletes their pods and frees their nodes.\n\n"
    "`muster train resume` starts them again, from their last checkpoint if they save checkpoints."
)
train.add_command(of_kind("stop", "hold", trainer.TRAIN_JOBS, _STOPS))
train.add_command(of_kind("resume", "release", trainer.TRAIN_JOBS, "Resumes stopped TrainJobs."))
