"""Options that several commands share: cluster, namespace, output, and the webhook's configuration.

Options of commands that use the planner are in `musterctl.reader`.
"""

import sys
from collections.abc import Callable
from functools import partial, wraps
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from muster.api.base import Resource
from muster.api.names import EXPECTED_RUNTIME, SYSTEM_NAMESPACE
from muster.resources.runtime import parse_days_s
from musterctl import completion
from musterctl.cluster import Where, only_name
from musterctl.plane import state
from musterctl.webclient import WebServer
from webhook.config import load
from webhook.offline.manifests import JSON, ManifestError, documents_in

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., None]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_name = partial(
    click.option,
    "--name",
    envvar="MUSTER_NAME",
    show_envvar=True,
    shell_complete=completion.planes,
    help="Name of the local control plane; several can run at the same time.",
)
name_option = _name(default=state.DEFAULT_NAME, show_default=True)
existing_name_option = _name(default=only_name, show_default="the only plane, else default")


def _checked(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    if value is None:
        return None
    try:
        load(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    return value.read_text(encoding="utf-8")


admission_config_option = click.option(
    "--admission-config",
    type=FILE,
    callback=_checked,
    metavar="FILE",
    help="Resource groups for the webhook, in the YAML of Volcano's admission.",
)
plane_option = click.option(
    "--name",
    "plane",
    envvar="MUSTER_NAME",
    show_envvar=True,
    shell_complete=completion.planes,
    help="A local control plane that `muster up` has started.",
)
kubeconfig_option = click.option(
    "--kubeconfig", type=FILE, help="Another cluster.  [default: KUBECONFIG, else the plane]"
)
_server = click.option(
    "--server",
    "server_url",
    envvar="MUSTER_WEB",
    show_envvar=True,
    metavar="URL",
    help="URL of Muster's web page in the cluster, which provides data that you cannot list yourself (docs/web.md).",
)
_server_ca = click.option(
    "--server-ca",
    type=FILE,
    envvar="MUSTER_WEB_CA",
    show_envvar=True,
    help="PEM file with the certificate authority of the page.",
)
namespace_option = click.option("-n", "--namespace", help="[default: the kubeconfig context's namespace]")
all_namespaces_option = click.option("-A", "--all-namespaces", is_flag=True, help="List objects of all namespaces.")
object_output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
)


table_output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table"
)
watch_option = click.option("-w", "--watch", is_flag=True, help="After the list, show each change until interrupted.")


def name_argument(resource: Resource[Any], variable: str, *, several: bool = False) -> Callable[[F], F]:
    """Return the command-line argument NAME for an object of a kind, with shell completion; with `several`, NAME..."""
    complete = completion.names_of(resource)
    if several:
        return click.argument(variable, metavar="NAME...", nargs=-1, required=True, shell_complete=complete)
    return click.argument(variable, metavar="NAME", shell_complete=complete)


def with_options(command: F, *options: Callable[[F], F]) -> F:
    """Add options to a command; the help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def where_options(command: Command) -> Command:
    """Add the options --kubeconfig and --name to a command, which gets the chosen cluster as its argument `where`."""

    @wraps(command)
    def run(*args: Any, kubeconfig: Path | None, plane: str | None, **more: Any) -> None:
        command(*args, where=Where(kubeconfig, plane), **more)

    return with_options(run, kubeconfig_option, plane_option)


def release_options(command: F) -> F:
    """Add the options --namespace, --values and --kubernetes-version, with which a command renders the chart."""
    return with_options(
        command,
        click.option(
            "-n", "--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Namespace of Muster's pods."
        ),
        click.option(
            "-f",
            "--values",
            multiple=True,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File with values of the release, as `helm get values` prints them; may be given several times.",
        ),
        click.option(
            "--kubernetes-version", help="Version of the cluster, e.g. 1.34.2, which kube-scheduler's image follows."
        ),
    )


def duration(_: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Parse the time span in an option, and return it in seconds; None if the option is not given."""
    try:
        return None if value is None else parse_days_s(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error


class Submitted(NamedTuple):
    """The priority, the time limit and the expected run time of a new workload."""

    priority: JSON
    """The fields that set the PriorityClass; empty without a class."""
    deadline: JSON
    """The fields that set the time limit; empty without a limit."""
    annotations: dict[str, str]
    """The annotation with the expected run time; empty if no expected run time is given."""


NOTHING_SUBMITTED = Submitted({}, {}, {})


def submission_options(
    command: Command, *, time_help: str = "The time limit of the pods, which are terminated after it: 4h."
) -> Command:
    """Add the options --priority, --expected-runtime and --time; the command gets their values as `submitted`."""

    @wraps(command)
    def run(*args: Any, priority: str | None, expected_s: float | None, time_s: float | None, **more: Any) -> None:
        submitted = Submitted(
            {"priorityClassName": priority} if priority else {},
            {"activeDeadlineSeconds": ceil(time_s)} if time_s else {},
            {EXPECTED_RUNTIME: f"{ceil(expected_s)}s"} if expected_s else {},
        )
        command(*args, submitted=submitted, **more)

    span = partial(click.option, callback=duration, metavar="DURATION")
    return with_options(
        run,
        click.option("--priority", metavar="CLASS", help="The PriorityClass of the pods."),
        span("--expected-runtime", "expected_s", help="The expected run time, for the planner: 90m."),
        span("--time", "time_s", help=time_help),
    )


since_option = click.option(
    "--since",
    "since_s",
    default="7d",
    show_default=True,
    callback=duration,
    metavar="DURATION",
    help="How far back, e.g. 12h, 7d or 4w.",
)
"""The option --since; the command gets the value in seconds as its argument `since_s`."""


def server_options(command: Command) -> Command:
    """Add the options --server and --server-ca; the command gets the web page in the cluster, or None, as `server`."""

    @wraps(command)
    def run(*args: Any, server_url: str | None, server_ca: Path | None, **more: Any) -> None:
        command(*args, server=WebServer(server_url, server_ca) if server_url else None, **more)

    return with_options(run, _server, _server_ca)


def records_options(command: Command) -> Command:
    """Add the options --store, --server and --server-ca, which choose the source of the history."""
    store = click.option(
        "--store", envvar="MUSTER_HISTORY", show_envvar=True, metavar="URL", help="The history's store."
    )
    return with_options(server_options(command), store)


def listing_options(command: F) -> F:
    """Add the options -l, -o and -w, as in `kubectl get`."""
    selector = click.option("-l", "--selector", default="", help="Label selector, as in kubectl.")
    return with_options(command, selector, table_output_option, watch_option)


class WithCommand(click.Command):
    """A command of `muster`; its arguments after `--` are the command that pods run."""

    rest = "COMMAND"
    """Name of the arguments after `--` in the help text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before the first `--`, and store the arguments after it as `command`."""
        place = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:place])
        ctx.params["command"] = tuple(args[place + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line in the help text."""
        return [*super().collect_usage_pieces(ctx), f"[-- {self.rest}...]"]


def documents(file: str) -> list[JSON]:
    """Return the objects in a file (`-` for standard input), including each object in a List.

    If the file cannot be read, raise ClickException with the reason.
    """
    try:
        return list(documents_in(_text(file), file))
    except ManifestError as error:
        raise click.ClickException(str(error)) from error


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:  # bad UTF-8
        raise click.ClickException(f"cannot read {file}: {error}") from error
