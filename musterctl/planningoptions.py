"""Options of commands that use the planner: its configuration, a snapshot, the format of a report.

These options are not in `musterctl.options`, because importing the planner takes a second of CPU, which other commands
avoid.
"""

from functools import wraps
from pathlib import Path
from typing import Any

import click

from extender.planner.api import report_of
from musterctl.cluster import Where
from musterctl.options import FILE, Command, kubeconfig_option, object_output_option, plane_option, with_options
from musterctl.reader import ClusterReader


def plannable(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """Return the text of a planner configuration, which must be valid."""
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
    help="Actions and plugins of the planner, as `muster config check` reads them; on a plane that exists they change, "
    "and /dev/null brings the default ones back.",
)
_scheduler_config = click.option(
    "--scheduler-config", type=FILE, help="Another configuration of the planner.  [default: the one that runs]"
)
_snapshot = click.option("--snapshot", type=FILE, help="A file of `muster snapshot` in place of a cluster.")
planned_namespace_option = click.option(
    "-n", "--namespace", help="[default: that of the kubeconfig's context; in a snapshot default]"
)
recovery_option = click.option(
    "--recovery-timeout",
    "recovery_s",
    type=click.FloatRange(min=0),
    help="Another time, in seconds, for which a gang may stay partial.  [default: that of the extender]",
)


def dump_options(command: Command) -> Command:
    """Add the options of a live dump of the cluster; the command gets `read`, a Reader that makes the dump."""

    @wraps(command)
    def run(*args: Any, kubeconfig: Path | None, plane: str | None, scheduler_config: Path | None, **more: Any) -> None:
        snapshot, recovery_s = more.pop("snapshot", None), more.pop("recovery_s", None)
        command(*args, read=ClusterReader(Where(kubeconfig, plane), scheduler_config, snapshot, recovery_s), **more)

    return with_options(run, kubeconfig_option, plane_option, _scheduler_config)


def report_options(command: Command) -> Command:
    """Add the options of a report about the cluster or a snapshot: as `dump_options`, with --snapshot and --output."""
    return with_options(dump_options(command), _snapshot, object_output_option)
