"""Fixtures of the tests of commands."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from answering_server import Server
from click.testing import CliRunner, Result
from loopback_server import Loopback, serving

from musterctl.app import main


@pytest.fixture
def shape(tmp_path: Path) -> Callable[..., Result]:
    """Runs `muster shape` on objects."""

    def run(*objects: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
        file = tmp_path / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        return CliRunner().invoke(main, ["shape", "-f", str(file), *options])

    return run


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What may be listed, by path; all else is forbidden. A text is the answer itself, as that of a log."""
    allowed: dict[str, Any] = {}

    class Handler(Loopback):
        def reply(self) -> None:
            path = self.path.partition("?")[0]
            kind = path.rpartition("/")[2]
            found = allowed.get(path, [])
            body: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": found}
            if isinstance(found, str):
                self.answer(found)
                return
            if found and path.endswith(f"/{found[0]['metadata']['name']}"):
                body = found[0]
            if path not in allowed:
                words = f'{kind} is forbidden: User "anne" cannot list resource "{kind}" at the cluster scope'
                body = {"kind": "Status", "reason": "Forbidden", "message": words, "details": {"kind": kind}}
            self.answer(body, 200 if path in allowed else 403)

    with serving(Handler, tmp_path / "kubeconfig"):
        yield allowed


@pytest.fixture
def muster(lists: dict[str, Any], tmp_path: Path) -> Any:
    """Runs the command line against the server."""
    del lists

    def run(*arguments: str, code: int = 0, stdin: str = "") -> Result:
        result = CliRunner().invoke(main, [*arguments, f"--kubeconfig={tmp_path / 'kubeconfig'}"], input=stdin)
        assert result.exit_code == code, result.output
        assert not re.search(r"\b403\b", result.output)
        return result

    return run


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that runs, and a kubeconfig for it."""
    one = Server()
    with serving(one.handler(), tmp_path / "kubeconfig"):
        yield one


@pytest.fixture
def asked(server: Server, tmp_path: Path) -> Any:
    """Runs the command line against the server."""
    del server

    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(main, [*arguments, f"--kubeconfig={tmp_path / 'kubeconfig'}"], input=stdin)

    return run
