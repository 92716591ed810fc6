"""`muster train` is a group whose command `run` needs no name."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import Forbidden, Unreachable
from muster.kube.loop import ENDED
from musterctl.app import main
from musterctl.commands.train import Logs


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


@pytest.mark.parametrize(
    ("error", "told"),
    [(Forbidden("no"), "worker-0: its log cannot be read: no\n"), (Unreachable("it is over", reason=ENDED), "")],
)
def test_a_log_that_cannot_be_read(error: Exception, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That is said, but where the command itself has come to its end."""

    def lines(*_: str) -> Iterator[str]:
        raise error
        yield  # a generator, as the client's is

    logs = Logs(cast("Client", SimpleNamespace(log_lines=lines)), "n")
    logs.follow(Pod(metadata=ObjectMeta(name="worker-0", uid="u")))
    logs.finish()
    assert capsys.readouterr().err == told
