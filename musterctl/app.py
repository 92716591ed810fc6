"""The command `muster`: the table of its sub-commands, and the conversion of their errors into messages."""

import importlib
from typing import Any, Final

import click

from muster.kube.errors import APIError, ConfigurationError, Unreachable
from musterctl.output.terminal import guarded
from musterctl.plane.machine import LocalError
from musterctl.unanswered import message_of

COMMANDS: Final = {
    "up": "musterctl.commands.up:up",
    "status": "musterctl.commands.plane:status",
    "down": "musterctl.commands.plane:down",
    "restart": "musterctl.commands.plane:restart",
    "kubectl": "musterctl.commands.plane:kubectl",
    "config": "musterctl.commands.config:config",
    "render": "musterctl.commands.config:render",
    "ps": "musterctl.commands.ps:ps",
    "history": "musterctl.commands.history:history",
    "usage": "musterctl.commands.usage:usage",
    "nodes": "musterctl.commands.nodes:nodes",
    "logs": "musterctl.commands.logs:logs",
    **{
        verb: f"musterctl.commands.verbs:{verb}" for verb in ("cancel", "hold", "release", "move", "priority", "resize")
    },
    "run": "musterctl.commands.run:run",
    "job": "musterctl.commands.job:job",
    "train": "musterctl.commands.trainjobs:train",
    "queue": "musterctl.commands.queue:queue",
    "explain": "musterctl.commands.explain:explain",
    "web": "musterctl.commands.web:web",
    "shape": "musterctl.commands.shape:shape",
    "topo": "musterctl.commands.explain:topo",
    "simulate": "musterctl.commands.simulate:simulate",
    "snapshot": "musterctl.commands.explain:snapshot",
    "record": "musterctl.commands.record:record",
    "replay": "musterctl.commands.replay:replay",
    "features": "musterctl.commands.features:features",
    "certs": "musterctl.commands.certs:certs",
    "upgrade": "musterctl.commands.upgrade:upgrade",
    "demo": "musterctl.commands.demo:demo",
}
"""Maps each command to its module and attribute; a module is imported when its command is used."""


class CommandGroup(click.Group):
    """A command group that finds its commands in the table and reports Muster's errors as messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's signature
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 # click's signature
        """Import the module of the command with this name, and return the command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line; control characters in its output are shown as text."""
        with guarded():
            return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; show an error with a message for users as this message, without a traceback."""
        try:
            return super().invoke(ctx)
        except Unreachable as error:
            raise click.ClickException(message_of(ctx, error)) from error
        except (LocalError, APIError, ConfigurationError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="muster")
def main() -> None:
    """Gangs, queues and distributed-training jobs on a stock Kubernetes scheduler."""
