"""Options that several commands share: plane or cluster, namespace, output, and the webhook's configuration."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from extender.planner.cycle import report_of
from extender.planner.framework.snapshot import RECOVERY_S
from muster.resources.runtime import parse_days_s
from musterctl import completion
from musterctl.cluster import Where, only_name
from musterctl.plane import state
from musterctl.reader import Reader
from musterctl.webclient import WebServer
from webhook.config import load

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., None]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

name_option = click.option(
    "--name",
    default=state.DEFAULT_NAME,
    show_default=True,
    envvar="MUSTER_NAME",
    show_envvar=True,
    shell_complete=completion.planes,
    help="Name of the plane; several can run side by side.",
)


existing_name_option = click.option(
    "--name",
    default=only_name,
    show_default="the only plane, else default",
    envvar="MUSTER_NAME",
    show_envvar=True,
    shell_complete=completion.planes,
    help="Name of the plane; several can run side by side.",
)


def _checked(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """Return the text of a configuration of admission, which must be valid."""
    if value is None:
        return None
    try:
        load(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    return value.read_text(encoding="utf-8")


def plannable(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """Return the text of a configuration of the planner, which must be one that can be used."""
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
admission_config_option = click.option(
    "--admission-config",
    type=FILE,
    callback=_checked,
    metavar="FILE",
    help="Resource groups for the webhook, in the YAML of Volcano's admission.",
)
_plane = click.option(
    "--name",
    "plane",
    envvar="MUSTER_NAME",
    show_envvar=True,
    shell_complete=completion.planes,
    help="A plane of `muster up`.",
)
_kubeconfig = click.option("--kubeconfig", type=FILE, help="Another cluster.  [default: KUBECONFIG, else the plane]")
_scheduler_config = click.option(
    "--scheduler-config", type=FILE, help="Another configuration of the planner.  [default: the one that runs]"
)
_snapshot = click.option("--snapshot", type=FILE, help="A file of `muster snapshot` in place of a cluster.")
_output = click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
_server = click.option(
    "--server",
    "server_url",
    envvar="MUSTER_WEB",
    show_envvar=True,
    metavar="URL",
    help="The page in the cluster, which is asked for what you may not list yourself (docs/web.md).",
)
_server_ca = click.option(
    "--server-ca", type=FILE, envvar="MUSTER_WEB_CA", show_envvar=True, help="The authority of its certificate (PEM)."
)
namespace_option = click.option("-n", "--namespace", help="[default: that of the kubeconfig's context]")
planned_namespace_option = click.option(
    "-n", "--namespace", help="[default: that of the kubeconfig's context; in a snapshot default]"
)
all_namespaces_option = click.option("-A", "--all-namespaces", is_flag=True, help="List objects of all namespaces.")
recovery_option = click.option(
    "--recovery-timeout",
    "recovery_s",
    type=float,
    default=RECOVERY_S,
    show_default=True,
    help="Seconds a gang may stay partial, as in the extender's settings.",
)
object_output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
)


def _with(command: F, *options: Callable[[F], F]) -> F:
    """Add options to a command; the help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def where_options(command: Command) -> Command:
    """Add --kubeconfig and --name; the command gets `where`, the cluster that they choose."""

    @wraps(command)
    def run(*args: Any, kubeconfig: Path | None, plane: str | None, **more: Any) -> None:
        command(*args, where=Where(kubeconfig, plane), **more)

    return _with(run, _kubeconfig, _plane)


def since_option(default: str) -> Callable[[F], F]:
    """Return --since, which says how far back; the command gets `since_s`, in seconds."""
    return click.option(
        "--since",
        "since_s",
        default=default,
        show_default=True,
        callback=_duration,
        metavar="DURATION",
        help="How far back, e.g. 12h, 7d or 4w.",
    )


def _duration(_: click.Context, param: click.Parameter, value: str) -> float:
    try:
        return parse_days_s(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error


def dump_options(command: Command) -> Command:
    """Add the options of a live dump of the cluster; the command gets `read`, a Reader, which takes it."""

    @wraps(command)
    def run(*args: Any, kubeconfig: Path | None, plane: str | None, scheduler_config: Path | None, **more: Any) -> None:
        snapshot = more.pop("snapshot", None)
        command(*args, read=Reader(Where(kubeconfig, plane), scheduler_config, snapshot), **more)

    return _with(run, _kubeconfig, _plane, _scheduler_config)


def report_options(command: Command) -> Command:
    """Add the options of a report about the cluster or a snapshot: as `dump_options`, with --snapshot and --output."""
    return _with(dump_options(command), _snapshot, _output)


def server_options(command: Command) -> Command:
    """Add --server and --server-ca; the command gets `server`, the page in the cluster, or None."""

    @wraps(command)
    def run(*args: Any, server_url: str | None, server_ca: Path | None, **more: Any) -> None:
        command(*args, server=WebServer(server_url, server_ca) if server_url else None, **more)

    return _with(run, _server, _server_ca)


def records_options(command: Command) -> Command:
    """Add --store, --server and --server-ca, which say where the history is read from."""
    store = click.option(
        "--store", envvar="MUSTER_HISTORY", show_envvar=True, metavar="URL", help="The history's store."
    )
    return _with(server_options(command), store)


def listing_options(command: F) -> F:
    """Add -l, -o and -w, as `kubectl get` has them."""
    return _with(
        command,
        click.option("-l", "--selector", default="", help="Label selector, as in kubectl."),
        click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table"),
        click.option("-w", "--watch", is_flag=True, help="After the list, show each change until interrupted."),
    )


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
