"""Options that several commands share: which plane, which cluster, what to print, and how the webhook is configured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from extender.planner.framework.inputs import RECOVERY_S
from musterctl.kind import cluster
from musterctl.kind.cluster import KindCluster
from musterctl.plane import state
from musterctl.plane.errors import LocalError
from musterctl.plane.plane import Plane
from webhook.config import load

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

name_option = click.option(
    "--name",
    default=state.DEFAULT_NAME,
    show_default=True,
    envvar="MUSTER_NAME",
    show_envvar=True,
    help="Which plane; several can stand side by side.",
)


def _checked(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """The text of a configuration that can be used."""
    if value is None:
        return None
    try:
        load(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    return value.read_text(encoding="utf-8")


admission_config_option = click.option(
    "--admission-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_checked,
    metavar="FILE",
    help="Resource groups for the webhook, in the YAML of Volcano's admission.",
)


def cluster_options(command: F) -> F:
    """Adds --kubeconfig, --name and --scheduler-config: where a command that thinks like the planner looks."""
    for option in (
        click.option("--scheduler-config", type=_FILE, help="The planner's configuration, if it has one."),
        click.option("--name", envvar="MUSTER_NAME", show_envvar=True, help="A plane of `muster up`."),
        click.option("--kubeconfig", type=_FILE, help="Another cluster.  [default: KUBECONFIG, else the plane]"),
    ):
        command = option(command)
    return command


snapshot_option = click.option("--snapshot", type=_FILE, help="A file of `muster snapshot` in place of a cluster.")
recovery_option = click.option(
    "--recovery-timeout",
    "recovery_s",
    type=float,
    default=RECOVERY_S,
    show_default=True,
    help="Seconds a gang may stay partial, as the extender has it.",
)
namespace_option = click.option("-n", "--namespace", default="default", show_default=True)
output_option = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)


def existing(name: str) -> Plane | KindCluster:
    """The plane, or kind cluster, of that name; a LocalError that says which there are if it does not exist."""
    folder = state.folder_of(name)
    if (kind := KindCluster(name)).made() is not None:
        return kind
    if state.load(folder) is None:
        others = ", ".join(sorted([*state.names(), *cluster.names()]))
        raise LocalError(
            f"there is no plane {name!r}" + (f"; there is {others}" if others else "; `muster up` makes one")
        )
    return Plane(folder)
