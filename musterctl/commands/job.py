"""`muster job`: Volcano Jobs from the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.commands.jobrun import WithCommand, from_files, from_options, refuse_with_files
from musterctl.commands.jobview import view_lines
from musterctl.objects import JSON, connect_in, create, failing_as, for_each, get, kind_of, name_of, reference, send
from musterctl.output.listing import (
    Column,
    Listing,
    age,
    all_namespaces_option,
    listing_options,
    namespace_option,
    show_object,
    where_options,
    without_managers,
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
    """Lists Jobs, their phases and how their pods are."""
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
    name = name_of(JOBS, job_name)
    client, space = connect_in(namespace, kubeconfig, plane)
    found = get(client, JOBS, name, space)
    if output != "text":
        show_object(without_managers(found), output)
        return
    for line in view_lines(client, found):
        click.echo(line)


names_argument = click.argument("job_names", metavar="NAME...", nargs=-1, required=True)


@job.command()
@names_argument
@namespace_option
@where_options
def suspend(*, job_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Stops the pods of Jobs; those that have finished stay. `muster job resume` goes on."""
    send("AbortJob", JOBS, job_names, namespace, kubeconfig, plane)


@job.command()
@names_argument
@namespace_option
@where_options
def resume(*, job_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Goes on with Jobs that were suspended."""
    send("ResumeJob", JOBS, job_names, namespace, kubeconfig, plane)


@job.command()
@names_argument
@namespace_option
@where_options
def delete(*, job_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None) -> None:
    """Deletes Jobs with all that belongs to them."""
    wanted = [name_of(JOBS, name) for name in job_names]
    client, space = connect_in(namespace, kubeconfig, plane)

    def remove(name: str) -> None:
        with failing_as("delete", client, JOBS, name, space):
            client.delete(JOBS, name, space)
        click.echo(f'{reference(JOBS, "")[:-1]} "{name}" deleted')

    for_each(wanted, remove)


@job.command(cls=WithCommand)
@click.argument("job_name", metavar="[NAME]", required=False)
@click.option("-f", "--filename", "files", multiple=True, help="A manifest; - is standard input.")
@click.option("--image", help="The image of the pods.")
@click.option("--replicas", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--min", "minimum", type=click.IntRange(min=0), help="Pods that start together.  [default: all]")
@click.option("--queue", default="default", show_default=True)
@click.option("--requests", multiple=True, help="Of each pod: cpu=4,memory=8Gi,nvidia.com/gpu=1.")
@click.option("--limits", multiple=True, help="Of each pod, in the same form.")
@click.option("--dry-run", is_flag=True, help="Print what would be created and do nothing.")
@namespace_option
@where_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    job_name: str | None,
    files: tuple[str, ...],
    namespace: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    plane: str | None,
    **options: Any,
) -> None:
    """Submits a Job: one task of pods of an image that run COMMAND, or that of a manifest.

    Everything in a manifest is created, in its order; NAME is another name for its Job.

    muster job run train --image IMAGE --replicas 4 --limits nvidia.com/gpu=1 -- python train.py
    """
    name = name_of(JOBS, job_name) if job_name is not None else None
    if files:
        refuse_with_files(ctx, options)
    found = from_files(files, name, namespace) if files else [from_options(name, **options)]
    if dry_run:
        _show(found, namespace)
        return
    client, space = connect_in(namespace, kubeconfig, plane)
    for_each(found, lambda each: _submit(client, each, space))


def _submit(client: Client, content: JSON, namespace: str) -> None:
    own = (content.get("metadata") or {}).get("namespace")
    create(client, kind_of(client, content), content, own or namespace)


def _show(found: Sequence[JSON], namespace: str | None) -> None:
    for number, content in enumerate(found):
        if number:
            click.echo("---")
        if namespace and content["apiVersion"] == JOBS.api_version:
            content["metadata"] = {**(content.get("metadata") or {}), "namespace": namespace}
        show_object(content, "yaml")
