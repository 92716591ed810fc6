"""The help of every command: summaries that are whole sentences, and examples that keep their lines."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from musterctl.app import main


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its path, groups before their commands."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, (*path, name))


COMMANDS = dict(walk(main))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(("muster", *path)))
def test_help_is_whole(path: tuple[str, ...]) -> None:
    """No summary is cut off, no mark for click is shown, and defaults are; `kubectl --help` is kubectl's own."""
    command = COMMANDS[path]
    summary = (command.help or "").split("\n\n")[0]
    assert summary.endswith(".")
    assert " ".join(summary.split()) == command.get_short_help_str(10_000)
    for each in command.params:
        if each.name and each.name.endswith("_port"):
            assert (each.type.min, each.type.max) == (1, 65535), each.name
        if isinstance(each, click.Option) and each.help and not each.is_flag and isinstance(each.default, str | int):
            assert each.show_default or not each.default, each.name
    if path != ("kubectl",):
        shown = CliRunner().invoke(main, [*path, "--help"]).output
        assert "..." not in shown.partition("\nCommands:\n")[2]
        assert "\b" not in shown
        assert "\\b" not in shown


def test_every_command_is_walked() -> None:
    """Also those below groups."""
    assert {("job", "run"), ("queue", "create"), ("config", "check"), ("certs", "status"), ("up",)} <= COMMANDS.keys()


def test_shape_needs_a_file() -> None:
    """Without one it would wait for standard input."""
    result = CliRunner().invoke(main, ["shape"])
    assert (result.exit_code, "Missing option '-f'" in result.output) == (2, True)
