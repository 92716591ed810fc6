"""`muster up`: starts a local control plane, attaches Muster to an existing cluster, or creates a kind cluster.

The planner's configuration can be changed while a control plane runs, because the extender reloads the file.
"""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from muster.api.muster.configuration import PublishedConfig
from muster.api.muster.pools import LONGEST_NAME, is_pool_name
from muster.resources import quantity
from musterctl.chart.files import DEFAULT_EXTENDER_PORT
from musterctl.commands.plane import show, show_kind
from musterctl.kind.cluster import KindCluster, KindOptions
from musterctl.options import admission_config_option, name_option
from musterctl.output.terminal import Console
from musterctl.plane import binaries, state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane
from musterctl.plane.state import PlaneOptions
from musterctl.plane.supervisor import supervise
from musterctl.reader import planning_config_option
from musterctl.running import published_in

VERSION_VARIABLE = "MUSTER_KUBERNETES"
_OF_PLANES = ("nodes", "pool", "cpu", "memory", "gpus", "racks", "blocks", "kubernetes")
"""Options that only new local control planes have; they cannot be used with an existing cluster."""
_ANSWER_S: Final = 30.0
_POLL_S: Final = 0.2


def _quantity(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Parameter type for Kubernetes quantities, which refuses other values."""
    try:
        if value is not None:
            quantity.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    return value


@click.command()
@name_option
@click.option("--nodes", type=click.IntRange(min=0), help="Simulated nodes.  [default: 8]")
@click.option(
    "--pool",
    "pool",
    multiple=True,
    metavar="NAME",
    help="A node pool with its own scheduler and extender, and its part of the nodes; may be repeated "
    "(docs/autoscaling.md).",
)
@click.option("--cpu", callback=_quantity, help="CPUs per node.  [default: 32]")
@click.option("--memory", callback=_quantity, help="Memory per node.  [default: 256Gi]")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs per node.  [default: 8]")
@click.option("--racks", type=click.IntRange(min=1), help="Racks of consecutive nodes.  [default: 2]")
@click.option("--blocks", type=click.IntRange(min=1), help="Blocks of consecutive racks.  [default: 1]")
@click.option(
    "--kubernetes",
    metavar="VERSION",
    help=f"Version of the control plane: {', '.join(binaries.VERSIONS)}; with kind a full version, such as 1.34.0. "
    f"{VERSION_VARIABLE} sets the version of local control planes.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="Attach to the control plane of this kubeconfig instead of creating one.",
)
@click.option("--no-scheduler", is_flag=True, help="Only with --kubeconfig: Muster's kube-scheduler runs elsewhere.")
@click.option(
    "--shared-scheduler",
    "shared",
    is_flag=True,
    default=None,
    help="The cluster's own scheduler serves Muster's pods too; with --kubeconfig, that scheduler runs elsewhere.",
)
@admission_config_option
@planning_config_option
@click.option("--webhook-port", type=click.IntRange(1, 65535), help="Port of the webhook.  [default: a free one]")
@click.option("--extender-port", type=click.IntRange(1, 65535), help="Port of the extender.  [default: a free one]")
@click.option(
    "--foreground", is_flag=True, help="Stay in the foreground, restart dead components, and stop all on SIGTERM."
)
@click.option(
    "--provider",
    type=click.Choice(["processes", "kind"]),
    default="processes",
    show_default=True,
    help="kind creates a cluster of containers and installs the chart in it.",
)
@click.option("--image", help="kind only: an image of Muster, instead of building an image.")
def up(name: str, *, foreground: bool, provider: str, no_scheduler: bool, image: str | None, **given: Any) -> None:
    """Starts a control plane with simulated nodes and Muster on it.

    Components that already run are not restarted.
    """
    chosen = {option: value for option, value in given.items() if value is not None and value != ()}
    if provider == "kind":
        flags = {"foreground": foreground, "no_scheduler": no_scheduler}
        _kind(name, {**chosen, **{flag: True for flag, on in flags.items() if on}}, image or "")
        return
    if image:
        raise click.UsageError("--image requires --provider kind: otherwise, the processes run from this installation")
    if "kubeconfig" not in chosen and (version := os.environ.get(VERSION_VARIABLE)):
        chosen.setdefault("kubernetes", version)
    if no_scheduler:
        chosen["scheduler"] = False
    if no_scheduler or (chosen.get("shared") and "kubeconfig" in chosen):
        chosen = {"extender_port": DEFAULT_EXTENDER_PORT, **chosen}
    before = _kept(state.folder_of(name))
    plane = plane_of(name, chosen, bound=foreground)
    followed = change_planning(plane, before)
    console = Console(stderr=True)
    if foreground:
        _stay(plane, console)
    else:
        start(plane, console)
        plane.supervisor.start()
        if followed:
            wait_planning(plane)
        show(plane)


def _kind(name: str, chosen: Mapping[str, Any], image: str) -> None:
    """Create or update a kind cluster; refuse options that apply only to local control planes."""
    useless = [f"--{option.replace('_', '-')}" for option in chosen if option not in KindOptions.__struct_fields__]
    if useless:
        raise click.UsageError(
            f"{', '.join(useless)}: cannot be combined with --provider kind; use the chart's values instead"
        )
    if name in state.names():
        raise LocalError(f"{name} is a control plane of local processes; `muster down --name {name}` ends it")
    cluster = KindCluster(name)
    console = Console(stderr=True)
    began_s = time.monotonic()
    cluster.up(chosen, image=image, report=lambda what: _waiting(console, began_s, what))
    show_kind(cluster)


def _waiting(console: Console, began_s: float, what: str) -> None:
    """Print a line that names the awaited condition."""
    text = f"{time.monotonic() - began_s:4.0f} s  waiting for {what}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def plane_of(name: str, chosen: Mapping[str, Any] | None = None, *, bound: bool = False) -> Plane:
    """Return the local control plane with this name, or create it with the options in `chosen`.

    If it already runs with other options, raise LocalError.
    """
    chosen = chosen or {}
    if KindCluster(name).made() is not None:
        raise LocalError(f"{name} is a kind cluster: name it with --provider kind, or end it with `muster down`")
    folder = state.folder_of(name)
    found = state.load(folder)
    if found is not None:
        differences = _differences(found.options, chosen)
        if not differences and "planning_config" in chosen:
            _keep(folder, chosen["planning_config"])
        plane = Plane(folder, bound=bound)
        if not differences:
            return plane
        if not plane.attached or any(part.alive for part in plane.parts.values()):
            raise LocalError(
                f"control plane {name} exists with {', '.join(differences)}; `muster down --name {name}` ends it"
            )
        plane.remove()
    options = PlaneOptions(**chosen)
    _check(options, chosen)
    wanted = set(state.ALL)
    if options.kubeconfig:
        wanted -= state.CLUSTER
    if options.shared or not options.scheduler:
        wanted -= {state.MUSTER_SCHEDULER}
    return Plane(folder, wanted, options, bound=bound)


def _check(options: PlaneOptions, chosen: Mapping[str, Any]) -> None:
    """Refuse options that cannot be combined."""
    if options.kubeconfig and (useless := [f"--{option}" for option in _OF_PLANES if option in chosen]):
        raise click.UsageError(
            f"{', '.join(useless)}: cannot be combined with --kubeconfig, because the existing cluster "
            f"determines its nodes and version"
        )
    if options.kubernetes and options.kubernetes not in binaries.VERSIONS:
        raise click.UsageError(
            f"--kubernetes {options.kubernetes}: supported versions are {', '.join(binaries.VERSIONS)}"
        )
    if wrong := [pool for pool in options.pool if not is_pool_name(pool)]:
        raise click.UsageError(f"--pool {wrong[0]}: use lower-case letters, digits and '-', at most {LONGEST_NAME}")
    if options.pool and options.shared:
        raise click.UsageError(
            "--pool: cannot be combined with --shared-scheduler, because each pool has its own kube-scheduler"
        )
    if not options.kubeconfig and not options.scheduler:
        raise click.UsageError("--no-scheduler requires --kubeconfig: a new control plane needs its own scheduler")


def _differences(options: PlaneOptions, chosen: Mapping[str, Any]) -> list[str]:
    """Return a text about each chosen option that has a different value in the existing control plane."""
    stored = msgspec.structs.asdict(options)
    if options.admission_config:
        stored["admission_config"] = "of other content"  # text shown instead of a whole file
    fixed = {option: value for option, value in chosen.items() if option != "planning_config"}
    different = [option for option, value in fixed.items() if getattr(options, option) != value]
    return [f"{option.replace('_', ' ')} {stored[option] or 'unset'}" for option in different]


def start(plane: Plane, console: Console, *, lines: bool = False) -> None:
    """Start the control plane and show the awaited conditions.

    With `lines`, print a line for each condition. If the start of a new control plane fails, remove it.
    """
    began_s = time.monotonic()
    try:
        if lines or not console.is_terminal:
            plane.start(lambda what: _waiting(console, began_s, what))
        else:
            with console.status("starting") as shown:
                plane.start(lambda what: shown.update(f"waiting for {what}"))
    except BaseException:
        if plane.is_new:
            plane.remove(lambda what: click.echo(what, err=True))
        raise


def _stay(plane: Plane, console: Console) -> None:
    """Start the control plane, restart dead components, and stop it on SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: `finally` stops the plane
    try:
        start(plane, console, lines=True)
        show(plane)
        click.echo("ready")
        supervise(plane.parts, click.echo, lambda: plane.renew_tokens(click.echo), plane.alone)
    except KeyboardInterrupt:
        pass  # the normal end
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, signal.SIG_IGN)
        plane.stop(click.echo)


def _kept(folder: Path) -> str | None:
    """Return the planner's configuration that this folder stores; "" for the default, None without a control plane."""
    found = state.load(folder)
    return found.options.planning_config if found else None


def _keep(folder: Path, text: str) -> None:
    """Store a new configuration of the planner for the control plane in this folder."""
    found = state.load(folder)
    if found is not None and found.options.planning_config != text:
        options = msgspec.structs.replace(found.options, planning_config=text)
        state.save(folder, msgspec.structs.replace(found, options=options))


def change_planning(plane: Plane, before: str | None) -> bool:
    """Write the planner's configuration if it has changed.

    Return False if no running extender has to load the configuration.
    """
    text = plane.state.options.planning_config
    if before is None or text == before or not plane.part(state.EXTENDER).alive:
        return False
    plane.commandlines.write_planning(text)
    return True


def wait_planning(plane: Plane) -> None:
    """Wait until the extender of a running control plane uses the planner's configuration.

    If the extender does not use the configuration, raise LocalError with the reason.
    """
    deadline_s = time.monotonic() + _ANSWER_S
    text, log_file = plane.state.options.planning_config, plane.part(state.EXTENDER).log_file
    with closing(plane.client()) as client:
        while (answer := _answer(published_in(client), text)) is None:
            if time.monotonic() > deadline_s:
                raise LocalError(
                    f"the extender has not reported within {_ANSWER_S:.0f} s whether it uses the configuration; see "
                    f"{log_file}, or restart it with the configuration: `muster restart {state.EXTENDER}`"
                )
            time.sleep(_POLL_S)
    if answer:
        raise LocalError(
            f"the extender refuses the configuration, and keeps the previous one: {answer}; "
            f"`muster restart {state.EXTENDER}` restarts it with the installed packages"
        )


def _answer(found: PublishedConfig | None, text: str) -> str | None:
    return found.answer_to(text) if found else None
