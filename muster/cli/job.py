"""`muster job`: Volcano Jobs from the command line."""

from pathlib import Path
from typing import Any

import click
import yaml

from muster.api.batch import JOBS
from muster.cli.commands import send
from muster.cli.jobview import view_lines
from muster.cli.listing import (
    JSON,
    Column,
    Listing,
    age,
    all_namespaces_option,
    amounts,
    connect_in,
    get,
    listing_options,
    namespace_option,
    reference,
    show_object,
    where_options,
    whole,
)

COLUMNS = (
    Column("STATUS", lambda job: job.get("status", {}).get("state", {}).get("phase", "")),
    Column("MINAVAILABLE", lambda job: job.get("spec", {}).get("minAvailable", 0)),
    Column("PENDING", lambda job: job.get("status", {}).get("pending", 0)),
    Column("RUNNING", lambda job: job.get("status", {}).get("running", 0)),
    Column("SUCCEEDED", lambda job: job.get("status", {}).get("succeeded", 0)),
    Column("FAILED", lambda job: job.get("status", {}).get("failed", 0)),
    Column("AGE", age),
    Column("QUEUE", lambda job: job.get("spec", {}).get("queue", ""), wide=True),
    Column("RETRIES", lambda job: job.get("status", {}).get("retryCount", 0), wide=True),
    Column("WHY", lambda job: job.get("status", {}).get("state", {}).get("message", ""), wide=True),
)


@click.group()
def job() -> None:
    """Lists, shows, runs, suspends, resumes and deletes Volcano Jobs."""


@job.command("list")
@namespace_option
@all_namespaces_option
@listing_options
@where_options
def list_jobs(
    *,
    namespace: str | None,
    all_namespaces: bool,
    selector: str,
    output: str,
    watch: bool,
    kubeconfig: Path | None,
    plane: str | None,
) -> None:
    """Lists Jobs."""
    listing = Listing(JOBS, COLUMNS, output, spaces=all_namespaces)
    client, space = connect_in(namespace, kubeconfig, plane)
    listing.show(client, None if all_namespaces else space, selector, watch=watch)


@job.command()
@click.argument("job_name", metavar="NAME")
@namespace_option
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@where_options
def view(*, job_name: str, namespace: str | None, output: str, kubeconfig: Path | None, plane: str | None) -> None:
    """Shows a Job: its state and why, its tasks, its gang, its pods and what happened lately."""
    client, space = connect_in(namespace, kubeconfig, plane)
    found = get(client, whole(JOBS), job_name, space)
    if output != "text":
        show_object(found, output)
        return
    for line in view_lines(client, found):
        click.echo(line)


@job.command()
@click.argument("job_name", metavar="NAME")
@namespace_option
@where_options
def suspend(*, job_name: str, namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Stops a Job's pods; those that have finished stay. `muster job resume` goes on."""
    send("AbortJob", JOBS, job_name, namespace, kubeconfig, plane)


@job.command()
@click.argument("job_name", metavar="NAME")
@namespace_option
@where_options
def resume(*, job_name: str, namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Goes on with a Job that was suspended."""
    send("ResumeJob", JOBS, job_name, namespace, kubeconfig, plane)


@job.command()
@click.argument("job_names", metavar="NAME...", nargs=-1, required=True)
@namespace_option
@where_options
def delete(*, job_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Deletes Jobs with all that belongs to them."""
    client, space = connect_in(namespace, kubeconfig, plane)
    for name in job_names:
        get(client, whole(JOBS), name, space)
        client.delete(JOBS, name, space)
        click.echo(f'{reference(JOBS, "")[:-1]} "{name}" deleted')


@job.command(context_settings={"ignore_unknown_options": True})
@click.argument("job_name", metavar="[NAME]", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-f", "--filename", type=click.Path(dir_okay=False, allow_dash=True), help="A manifest; - is stdin.")
@click.option("--image", help="The image of the pods.")
@click.option("--replicas", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--min", "minimum", type=click.IntRange(min=0), help="Pods that start together.  [default: all]")
@click.option("--queue", default="default", show_default=True)
@click.option("--requests", multiple=True, help="Of each pod: cpu=4,memory=8Gi,nvidia.com/gpu=1.")
@click.option("--limits", multiple=True, help="Of each pod, in the same form.")
@click.option("--dry-run", is_flag=True, help="Print the Job and do nothing.")
@namespace_option
@where_options
def run(
    *,
    job_name: str | None,
    command: tuple[str, ...],
    filename: str | None,
    namespace: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    plane: str | None,
    **options: Any,
) -> None:
    """Submits a Job: from a manifest, or one task of pods of an image that run COMMAND.

    muster job run train --image IMAGE --replicas 4 --limits nvidia.com/gpu=1 -- python train.py
    """
    content = _from_file(filename) if filename else _from_options(job_name, command, **options)
    if job_name and filename:
        content = {**content, "metadata": {**content.get("metadata", {}), "name": job_name}}
    if dry_run:
        show_object({"apiVersion": JOBS.api_version, "kind": JOBS.kind, **content}, "yaml")
        return
    client, space = connect_in(content.get("metadata", {}).get("namespace") or namespace, kubeconfig, plane)
    made = client.create(whole(JOBS), content, space)
    click.echo(f"{reference(JOBS, made['metadata']['name'])} created")


def _from_file(filename: str) -> JSON:
    with click.open_file(filename) as file:
        try:
            content = yaml.safe_load(file)
        except yaml.YAMLError as error:
            raise click.ClickException(f"{filename} is not YAML: {error}") from error
    if not isinstance(content, dict) or (content.get("apiVersion"), content.get("kind")) != (JOBS.api_version, "Job"):
        raise click.ClickException(f"{filename}: expected one Job of {JOBS.api_version}")
    return content


def _from_options(
    job_name: str | None,
    command: tuple[str, ...],
    *,
    image: str | None,
    replicas: int,
    minimum: int | None,
    queue: str,
    requests: tuple[str, ...],
    limits: tuple[str, ...],
) -> JSON:
    if not job_name or not image:
        raise click.UsageError("give a NAME and --image, or a manifest with -f")
    resources = {"requests": amounts(requests, "--requests"), "limits": amounts(limits, "--limits")}
    container: JSON = {"name": "main", "image": image}
    if command:
        container["command"] = list(command)
    if any(resources.values()):
        container["resources"] = {name: given for name, given in resources.items() if given}
    least = replicas if minimum is None else minimum
    task = {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": min(least, replicas),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {"metadata": {"name": job_name}, "spec": {"queue": queue, "minAvailable": least, "tasks": [task]}}
