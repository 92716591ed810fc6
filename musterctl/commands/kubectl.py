"""`muster kubectl …`: kubectl against a plane."""

import os

import click

from musterctl.options import existing
from musterctl.plane import state

_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@click.command(context_settings=_PASS_THROUGH, add_help_option=False, options_metavar="[--name NAME]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Runs kubectl against a plane; everything is passed on, but for a leading --name."""
    name = os.environ.get("MUSTER_NAME", state.DEFAULT_NAME)
    if arguments[:1] == ("--name",) and len(arguments) > 1:
        name, arguments = arguments[1], arguments[2:]
    plane = existing(name)
    os.execv(plane.kubectl_program(), ["kubectl", f"--kubeconfig={plane.kubeconfig}", *arguments])  # noqa: S606 # becomes kubectl
