"""The objects that `muster job run` creates: those of manifests, or one Job made of options."""

from collections.abc import Collection, Iterable
from typing import Any

import click

from muster.api.volcano.batch import JOBS
from musterctl.manifests.documents import JSON, documents
from musterctl.output.listing import amounts


class WithCommand(click.Command):
    """A command line whose arguments behind `--` are the command of pods."""

    rest = "COMMAND"
    """Name of these arguments in the help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before the first `--`, and keep those behind it as `command`."""
        place = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:place])
        ctx.params["command"] = tuple(args[place + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line."""
        return [*super().collect_usage_pieces(ctx), f"[-- {self.rest}...]"]


def from_files(files: Iterable[str], job_name: str | None, namespace: str | None) -> list[JSON]:
    """Return all objects of the files, their one Job renamed to `job_name`; UsageError if namespaces contradict."""
    found = [(file, each) for file in files for each in documents(file)]
    for file, each in found:
        if not (isinstance(each.get("apiVersion"), str) and isinstance(each.get("kind"), str)):
            raise click.ClickException(f"{file}: an object has no apiVersion or no kind: {each!r:.60}")
        own = (each.get("metadata") or {}).get("namespace")
        if namespace and own and own != namespace:
            raise click.UsageError(
                f"{file}: {_title(each)} is in namespace {own}, and --namespace says {namespace}: pass -n {own}"
            )
    jobs = [each for _, each in found if (each["apiVersion"], each["kind"]) == (JOBS.api_version, JOBS.kind)]
    names = ", ".join(files)
    if not jobs:
        raise click.ClickException(f"{names}: there is no Job of {JOBS.api_version}")
    if job_name and len(jobs) > 1:
        raise click.UsageError(f"{names}: there are {len(jobs)} Jobs, and NAME can name only one: leave NAME out")
    if job_name:
        jobs[0]["metadata"] = {**(jobs[0].get("metadata") or {}), "name": job_name}
    return [each for _, each in found]


def refuse_with_files(ctx: click.Context, names: Collection[str]) -> None:
    """Refuse options that have no effect on manifests."""
    given = [
        option.opts[-1]
        for option in ctx.command.params
        if option.name in names and ctx.get_parameter_source(option.name) is not click.core.ParameterSource.DEFAULT
    ]
    if ctx.params["command"]:
        given.append("-- COMMAND")
    if given:
        raise click.UsageError(f"a manifest (-f) says it all: leave out {', '.join(given)}, or change the manifest")


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
) -> JSON:
    """Return a Job with one task `worker`, whose containers are not restarted."""
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
    spec: dict[str, Any] = {"queue": queue, "minAvailable": least, "tasks": [task]}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": job_name}, "spec": spec}


def _title(content: JSON) -> str:
    metadata = content.get("metadata") or {}
    return f"{content['kind']} {metadata.get('name') or metadata.get('generateName') or 'without a name'}"
