"""`muster job`: Volcano Jobs from the command line."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import click

from muster.api.volcano import batch, scheduling
from muster.kube.client import Client
from musterctl import cluster, completion
from musterctl.commands.jobview import view_lines
from musterctl.commands.verbs import of_kind
from musterctl.options import (
    NOTHING_SUBMITTED,
    Submitted,
    WithCommand,
    all_namespaces_option,
    documents,
    listing_options,
    name_argument,
    namespace_option,
    object_output_option,
    submission_options,
    where_options,
)
from musterctl.output.listing import (
    Column,
    Listing,
    age,
    amounts,
    from_spec,
    from_status,
    show_object,
    without_managers,
)

COLUMNS = (
    Column("STATUS", lambda job: job.get("status", {}).get("state", {}).get("phase", "")),
    from_spec("MINAVAILABLE", "minAvailable", 0),
    from_status("PENDING", "pending"),
    from_status("RUNNING", "running"),
    from_status("SUCCEEDED", "succeeded"),
    from_status("FAILED", "failed"),
    Column("AGE", age),
    from_spec("QUEUE", "queue", wide=True),
    from_status("RETRIES", "retryCount", wide=True),
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
    *, namespace: str | None, all_namespaces: bool, selector: str, output: str, watch: bool, where: cluster.Where
) -> None:
    """Lists Jobs with their phase and the states of their pods."""
    client, space = cluster.connect_in(namespace, where)
    listing = Listing(batch.JOBS, COLUMNS, output, namespaces=all_namespaces)
    listing.show(client, None if all_namespaces else space, selector, watch=watch)


@job.command()
@name_argument(batch.JOBS, "job_name")
@namespace_option
@object_output_option
@where_options
def view(*, job_name: str, namespace: str | None, output: str, where: cluster.Where) -> None:
    """Shows a Job with its state, tasks, gang, pods and latest events."""
    name = cluster.name_of(batch.JOBS, job_name)
    client, space = cluster.connect_in(namespace, where)
    found = cluster.get(client, batch.JOBS, name, space)
    if output != "text":
        show_object(without_managers(found), output)
        return
    for line in view_lines(client, found):
        click.echo(line)


_SUSPENDS = "Suspends Jobs: stops their pods, except finished ones.\n\n`muster job resume` starts them again."
for _command in (
    of_kind("suspend", "hold", batch.JOBS, _SUSPENDS),
    of_kind("resume", "release", batch.JOBS, "Resumes suspended Jobs."),
    of_kind("delete", "cancel", batch.JOBS, "Deletes Jobs with all their objects."),
):
    job.add_command(_command)


@job.command(
    cls=WithCommand,
    epilog="\b\nmuster job run train --image IMAGE --replicas 4 --limits nvidia.com/gpu=1 -- python train.py",
)
@click.argument("job_name", metavar="[NAME]", required=False)
@click.option("-f", "--filename", "files", multiple=True, help="A manifest; - is standard input.")
@click.option("--image", help="The image of the pods.")
@click.option("--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="Number of pods.")
@click.option("--min", "minimum", type=click.IntRange(min=0), help="Pods that start together.  [default: all]")
@click.option(
    "--queue",
    default="default",
    show_default=True,
    shell_complete=completion.names_of(scheduling.QUEUES),
    help="The queue of the Job.",
)
@click.option("--requests", multiple=True, help="Requests of each pod: cpu=4,memory=8Gi,nvidia.com/gpu=1.")
@click.option("--limits", multiple=True, help="Limits of each pod: cpu=4,memory=8Gi,nvidia.com/gpu=1.")
@click.option("--dry-run", is_flag=True, help="Print the objects, and create nothing.")
@submission_options
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
    where: cluster.Where,
    **options: Any,
) -> None:
    """Submits a Job from an image and COMMAND, or from a manifest.

    A Job from an image has one task. With a manifest, all objects in the manifest are created in order; NAME renames
    the Job.
    """
    name = cluster.name_of(batch.JOBS, job_name) if job_name is not None else None
    if files:
        refuse_with_files(ctx, (*options, "priority", "expected_s", "time_s"))
    found = from_files(files, name, namespace) if files else [from_options(name, **options)]
    if dry_run:
        _show(found, namespace)
        return
    client, space = cluster.connect_in(namespace, where)
    cluster.for_each(found, lambda each: _submit(client, each, space))


def _submit(client: Client, content: cluster.JSON, namespace: str) -> None:
    own = (content.get("metadata") or {}).get("namespace")
    cluster.create(client, cluster.kind_of(client, content), content, own or namespace)


def _show(found: Sequence[cluster.JSON], namespace: str | None) -> None:
    for number, content in enumerate(found):
        if number:
            click.echo("---")
        if namespace and content["apiVersion"] == batch.JOBS.api_version:
            content["metadata"] = {**(content.get("metadata") or {}), "namespace": namespace}
        show_object(content, "yaml")


def from_files(files: Iterable[str], job_name: str | None, namespace: str | None) -> list[cluster.JSON]:
    """Return all objects in the files; the only Job is renamed to `job_name`, if it is given.

    Raise UsageError if namespaces conflict.
    """
    found = [(file, each) for file in files for each in documents(file)]
    for file, each in found:
        if not (isinstance(each.get("apiVersion"), str) and isinstance(each.get("kind"), str)):
            raise click.ClickException(f"{file}: an object has no apiVersion or no kind: {each!r:.60}")
        own = (each.get("metadata") or {}).get("namespace")
        if namespace and own and own != namespace:
            raise click.UsageError(
                f"{file}: {_title(each)} is in namespace {own}, and --namespace is {namespace}: pass -n {own}"
            )
    jobs = [
        each for _, each in found if (each["apiVersion"], each["kind"]) == (batch.JOBS.api_version, batch.JOBS.kind)
    ]
    names = ", ".join(files)
    if not jobs:
        raise click.ClickException(f"{names}: the manifests contain no Job of {batch.JOBS.api_version}")
    if job_name and len(jobs) > 1:
        raise click.UsageError(
            f"{names}: the manifests contain {len(jobs)} Jobs, and NAME can rename only one: omit NAME"
        )
    if job_name:
        jobs[0]["metadata"] = {**(jobs[0].get("metadata") or {}), "name": job_name}
    return [each for _, each in found]


def refuse_with_files(ctx: click.Context, names: Collection[str]) -> None:
    """Refuse options that have no effect together with a manifest."""
    given = [
        option.opts[-1]
        for option in ctx.command.params
        if option.name in names and ctx.get_parameter_source(option.name) is not click.core.ParameterSource.DEFAULT
    ]
    if ctx.params["command"]:
        given.append("-- COMMAND")
    if given:
        raise click.UsageError(
            f"a manifest (-f) defines the whole object: omit {', '.join(given)}, or change the manifest"
        )


def from_options(
    job_name: str | None,
    command: tuple[str, ...],
    *,
    image: str | None,
    replicas: int,
    minimum: int | None,
    queue: str,
    requests: tuple[str, ...],
    limits: tuple[str, ...],
    submitted: Submitted = NOTHING_SUBMITTED,
) -> cluster.JSON:
    """Return the manifest of a Job with one task `worker`, whose containers are not restarted."""
    if not job_name or not image:
        raise click.UsageError("give a NAME and --image, or a manifest with -f")
    resources = {"requests": amounts(requests, "--requests"), "limits": amounts(limits, "--limits")}
    container: cluster.JSON = {"name": "main", "image": image}
    if command:
        container["command"] = list(command)
    if any(resources.values()):
        container["resources"] = {name: given for name, given in resources.items() if given}
    least = replicas if minimum is None else minimum
    task = {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": min(least, replicas),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container], **submitted.deadline}},
    }
    spec: dict[str, Any] = {"queue": queue, **submitted.priority, "minAvailable": least, "tasks": [task]}
    metadata = {"name": job_name, **({"annotations": submitted.annotations} if submitted.annotations else {})}
    return {"apiVersion": batch.JOBS.api_version, "kind": batch.JOBS.kind, "metadata": metadata, "spec": spec}


def _title(content: cluster.JSON) -> str:
    metadata = content.get("metadata") or {}
    return f"{content['kind']} {metadata.get('name') or metadata.get('generateName') or 'without a name'}"
