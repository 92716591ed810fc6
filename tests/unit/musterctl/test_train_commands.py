"""`muster train` is a group whose command `run` needs no name."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from musterctl.app import main


def said(*arguments: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(main, ["train", *arguments]).output


@pytest.mark.parametrize("before", [(), ("run",), ("--nodes", "4"), ("run", "--nodes=4")], ids=" ".join)
def test_a_file_is_run(before: tuple[str, ...], tmp_path: Path) -> None:
    """With and without the word, wherever the options stand; words behind -- are the file's."""
    file = tmp_path / "list.py"
    assert f"{file} cannot be read" in said(*before, str(file), "--", "stop")
    file.write_text("def")
    assert f"{file} is not Python" in said(*before, str(file), "--", "stop")


def test_commands_are_commands() -> None:
    """Their names are no files, and the help lists them."""
    assert "Usage: main train stop" in said("stop", "--help")
    shown = said("--help")
    for name in ("run", "list", "logs", "attach", "stop", "resume"):
        assert f"\n  {name} " in shown
