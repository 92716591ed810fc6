"""Reader of the input of reports (a dump of a cluster, or a snapshot), and the options of commands that use it.

This module is separate from `musterctl.cluster` and `musterctl.options`, because importing the planner takes a second
of CPU, which other commands avoid.
"""

import time
from contextlib import closing, suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from extender.explain.clusterdump import ClusterDump, load
from extender.explain.pools import pools_of
from extender.planner.api import FEED, report_of
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes import autoscaling, extensions
from muster.api.muster.configuration import PublishedConfig
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl import running
from musterctl.cluster import Where, known
from musterctl.options import FILE, Command, kubeconfig_option, object_output_option, plane_option, with_options

T = TypeVar("T")


class ClusterReader(NamedTuple):
    """Reader of a cluster or a snapshot; options of the command override the planner's configuration and timing."""

    where: Where
    scheduler_config: Path | None = None
    snapshot: Path | None = None
    recovery_s: float | None = None

    def __call__(self) -> ClusterDump:
        """Return a dump of the cluster, or the dump in the snapshot, with the planner's current configuration.

        Raise Forbidden if the user is not allowed to list all kinds.
        """
        dump = self._dump()
        if self.recovery_s is not None:
            for pool in pools_of(dump):
                dump.set_timing(pool, recovery_s=self.recovery_s)
        return dump

    def _dump(self) -> ClusterDump:
        config = self.scheduler_config.read_text(encoding="utf-8") if self.scheduler_config else ""
        if self.snapshot is not None:
            dump = _loaded(self.snapshot, config)
            for pool in pools_of(dump):
                if pool not in dump.suspects:
                    running.note_unknown(running.BUILT_IN_SUSPECTS, pool, f"{self.snapshot} has no other")
                if pool not in dump.inputs:
                    running.note_unknown(running.DEFAULT_TIMING, pool, f"{self.snapshot} has no other")
            return dump
        with closing(self.where.client()) as client:
            dump = take_dump(client, config)
            pools = pools_of(dump)
            published = running.published_by(client, pools)
            if any(names.BUDGET in queue.metadata.annotations for queue in dump.objects_of(QUEUES)):
                known = (one for one in published.values() if isinstance(one, PublishedConfig))
                where = next((one.metadata.namespace for one in known), names.SYSTEM_NAMESPACE)
                dump.usage = running.usage_in(client, where)
        if self.scheduler_config is None:
            configs = {pool: running.config_of(published.get(pool), pool) for pool in pools}
            dump.scheduler_config = configs.pop(DEFAULT_POOL)
            dump.pool_configs = configs
        dump.suspects, dump.inputs = running.suspects_of(published, pools), running.inputs_of(published, pools)
        return dump

    def namespace(self, given: str | None) -> str:
        """Return the given namespace, or else the namespace of the kubeconfig's context; a snapshot has no context."""
        if given or self.snapshot is not None:
            return given or "default"
        return self.where.config().namespace

    def client(self) -> Client | None:
        """Return a client of the cluster; None for a snapshot."""
        return self.where.client() if self.snapshot is None else None


def _loaded(snapshot: Path, config: str) -> ClusterDump:
    """Return the dump in a snapshot."""
    try:
        dump = load(snapshot.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{snapshot}: {error}") from error
    dump.scheduler_config = config or dump.scheduler_config
    return dump


def take_dump(client: Client, scheduler_config: str = "") -> ClusterDump:
    """Return a dump of a running cluster.

    Each kind is listed by a separate request, so the dump does not show a single moment.
    """
    dump = ClusterDump(time.time(), scheduler_config)
    for fed in FEED:
        resource = served(client, fed.resource) if fed.optional else fed.resource
        if resource is not None:
            with suppress(NotFound) if fed.newer else known(client, resource):
                dump.add_objects(fed.resource, client.list(resource))
    with suppress(NotFound, Forbidden):  # few clusters have the kind, and few users may read it
        dump.add_objects(
            autoscaling.PROVISIONING_REQUESTS,
            client.list(autoscaling.PROVISIONING_REQUESTS, label_selector=f"{names.MANAGED_BY}=muster"),
        )
    return dump


def served(client: Client, resource: Resource[T]) -> Resource[T] | None:
    """Return a third-party kind with the version that the cluster serves.

    Return None if the cluster does not serve the kind, or if the user is not allowed to read its versions.
    """
    try:
        version = client.get(extensions.DEFINITIONS, resource.full_name).served(resource.version)
    except (NotFound, Forbidden):
        return None
    return replace(resource, version=version) if version else None


def plannable(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """Read a planner's configuration from the option's file, and return its text; refuse an invalid configuration."""
    if value is None:
        return None
    text = value.read_text(encoding="utf-8")
    if errors := report_of(text).errors:
        raise click.BadParameter("; ".join(errors), param=param)
    return text


planning_config_option = click.option(
    "--scheduler-config",
    "planning_config",
    type=FILE,
    callback=plannable,
    metavar="FILE",
    help="Actions and plugins of the planner, in the format that `muster config check` reads; for an existing "
    "local control plane they are changed, and /dev/null restores the defaults.",
)
_scheduler_config = click.option(
    "--scheduler-config", type=FILE, help="Another configuration of the planner.  [default: the extender's current one]"
)
_snapshot = click.option("--snapshot", type=FILE, help="A file from `muster snapshot`, used instead of a cluster.")
planned_namespace_option = click.option(
    "-n", "--namespace", help="[default: the kubeconfig context's namespace; in a snapshot, default]"
)
recovery_option = click.option(
    "--recovery-timeout",
    "recovery_s",
    type=click.FloatRange(min=0),
    help="Another time in seconds after which a partly bound gang is evicted.  [default: the extender's setting]",
)


def dump_options(command: Command) -> Command:
    """Add the options that choose a cluster and a planner configuration.

    The command gets a `ClusterReader` as `read`.
    """

    @wraps(command)
    def run(*args: Any, kubeconfig: Path | None, plane: str | None, scheduler_config: Path | None, **more: Any) -> None:
        snapshot, recovery_s = more.pop("snapshot", None), more.pop("recovery_s", None)
        command(*args, read=ClusterReader(Where(kubeconfig, plane), scheduler_config, snapshot, recovery_s), **more)

    return with_options(run, kubeconfig_option, plane_option, _scheduler_config)


def report_options(command: Command) -> Command:
    """Add the options for reports about a cluster or snapshot: `dump_options`, --snapshot and --output."""
    return with_options(dump_options(command), _snapshot, object_output_option)
