"""The `muster` command: the table of its sub-commands, and how their errors are shown."""

import importlib
from typing import Any, Final

import click

from muster.kube.errors import APIError, ConfigurationError
from musterctl.plane.errors import LocalError

COMMANDS: Final = {
    "up": "musterctl.commands.up:up",
    "status": "musterctl.commands.plane:status",
    "down": "musterctl.commands.plane:down",
    "kubectl": "musterctl.commands.plane:kubectl",
    "config": "musterctl.commands.config:config",
    "render": "musterctl.commands.render:render",
    "job": "musterctl.commands.job:job",
    "train": "musterctl.commands.train:train",
    "queue": "musterctl.commands.queue:queue",
    "explain": "musterctl.commands.explain:explain",
    "shape": "musterctl.commands.shape:shape",
    "topo": "musterctl.commands.topo:topo",
    "simulate": "musterctl.commands.simulate:simulate",
    "snapshot": "musterctl.commands.explain:snapshot",
    "certs": "musterctl.commands.certs:certs",
    "demo": "musterctl.commands.demo:demo",
}
"""Where each command stands; a command's module is imported when the command is used."""


class Commands(click.Group):
    """A group that finds its commands in a table and turns Muster's errors into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's signature
        """The commands in the order of the table, which is that in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 # click's signature
        """The command of that name; its module is imported only now, so that others do not wait for it."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; errors that are written for people are shown without a traceback."""
        try:
            return super().invoke(ctx)
        except (LocalError, APIError, ConfigurationError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster")
def main() -> None:
    """Gangs, queues and distributed-training jobs on a stock Kubernetes scheduler."""
