"""A command whose API server does not answer says which one, and where to look."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from kubeconfigs import plain, write

from musterctl.app import main

NOBODY = "https://127.0.0.1:1"


def kubeconfig(path: Path) -> str:
    """A kubeconfig of a server that is not there."""
    return write(path, plain({"server": NOBODY}, {"token": "t"}))


@pytest.mark.parametrize(("name", "command"), [("ux1", "muster status --name ux1"), ("default", "muster status")])
def test_the_plane_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str) -> None:
    """And the command that shows its parts; the address of a local port would tell nobody anything."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = kubeconfig(tmp_path / "muster" / name / "admin.kubeconfig")
    (tmp_path / "muster" / name / "plane.json").write_text("{}")
    result = CliRunner().invoke(main, ["queue", "list", "--kubeconfig", file])
    assert result.exit_code == 1
    assert (
        result.output
        == f"Error: the API server of control plane {name} does not answer; `{command}` shows what is down\n"
    )


def test_another_cluster_is_told_by_its_address(tmp_path: Path) -> None:
    """With what went wrong, in words."""
    result = CliRunner().invoke(main, ["queue", "list", "--kubeconfig", kubeconfig(tmp_path / "config")])
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: the API server at {NOBODY} does not answer: ")
    assert result.output.endswith("; is the cluster of this kubeconfig up?\n")
