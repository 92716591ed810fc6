"""The manual page and the shell completion of the command line, from its own help."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from musterctl.app import main
from release.source import ReleaseError, Source

_WIDTH: Final = 80
COMPLETION: Final = {
    "bash": "share/bash-completion/completions/muster",
    "zsh": "share/zsh/site-functions/_muster",
    "fish": "share/fish/vendor_completions.d/muster.fish",
}
"""The file of each shell, in the folder where the wheel is installed."""
MANUAL: Final = "share/man/man1/muster.1"


def write(source: Source) -> None:
    """Write all files into the exported source, where setup.py finds them."""
    texts = {MANUAL: manual(source.version)} | {file: completion(shell) for shell, file in COMPLETION.items()}
    for name, text in texts.items():
        file = source.folder / Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def completion(shell: str) -> str:
    """Return the script that a shell reads."""
    found = get_completion_class(shell)
    if found is None:
        raise ReleaseError(f"click knows no completion for {shell}")
    return found(main, {}, "muster", "_MUSTER_COMPLETE").source()


def manual(version: str) -> str:
    """Return the manual page in troff: the help of every command."""
    lines = [f'.TH MUSTER 1 "" "Muster {version}"', ".SH NAME", f"muster \\- {_escaped(main.help or '')}"]
    context = click.Context(main, info_name="muster", terminal_width=_WIDTH, **main.context_settings)
    for name, text in _helps(main, context):
        lines += [f".SH {name.upper()}", ".nf", _escaped(text), ".fi"]
    return "\n".join(lines) + "\n"


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the path and the help of a command, and of all commands below it."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            if each and not each.hidden:
                below = click.Context(each, info_name=name, parent=context, terminal_width=_WIDTH)
                yield from _helps(each, below)


def _escaped(text: str) -> str:
    """Return text that troff prints as it is: it reads backslashes everywhere, and dots and quotes at line starts."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in escaped.splitlines())
