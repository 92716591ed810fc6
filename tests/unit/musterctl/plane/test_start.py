"""How `muster up` starts: what it says meanwhile, which rights it asks for, and what a failure leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from loopback_server import Loopback, serving

from musterctl.app import main
from musterctl.plane import rights, state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane


class Server:
    """An API server that only says who may do what; `denied` are (resource, verb)."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str]] = set()
        self.requests: list[str] = []

    def handler(self) -> type[Loopback]:
        """What answers."""
        server = self

        class Handler(Loopback):
            def reply(self) -> None:
                server.requests.append(self.path)
                spec = self.asked()["spec"]
                asked = spec["resourceAttributes"]
                resource = f"{asked['resource']}.{asked.get('group', '')}".rstrip(".")
                resource += f"/{asked['subresource']}" if "subresource" in asked else ""
                allowed = (resource, asked["verb"]) not in server.denied
                self.answer({"metadata": {}, "spec": spec, "status": {"allowed": allowed}}, 201)

        return Handler


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that runs, a kubeconfig for it, and a home of our own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    one = Server()
    with serving(one.handler(), tmp_path / "kubeconfig"):
        yield one


def up(tmp_path: Path) -> Result:
    """`muster up` for that server."""
    return CliRunner().invoke(main, ["up", f"--kubeconfig={tmp_path / 'kubeconfig'}", "--no-scheduler"])


def test_each_right_that_is_missing_is_named(server: Server, tmp_path: Path) -> None:
    """Nothing but questions went to the cluster, and no folder is left."""
    server.denied = {("pods/binding", "create"), ("queues.scheduling.volcano.sh", "watch"), ("pods", "get")}
    server.denied |= {("pods", "list")}
    result = up(tmp_path)
    assert result.exit_code == 1
    named = [line for line in result.stderr.splitlines() if line.startswith("  ") and "waiting" not in line]
    assert named == ["  get, list pods", "  create pods/binding", "  watch queues.scheduling.volcano.sh"]
    assert "--clusterrole=cluster-admin" in result.stderr
    assert {path.partition("?")[0] for path in server.requests} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }
    assert not state.folder_of("default").exists()


def test_rights_are_asked_once_each() -> None:
    """What the processes watch is among them."""
    needed = rights.needed()
    assert len(needed) == len(set(needed))
    assert {("placements.muster.dev", "watch"), ("nodes", "list"), ("pods", "create")} <= {*needed}


def test_a_start_says_what_it_waits_for(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line by line where nobody looks at a terminal; a plane that was there before survives a failure."""
    del server

    def start(plane: Plane, report: Any) -> None:
        report("webhook")
        if not (plane.root / "works").exists():
            raise LocalError("webhook ended with exit code 1. The end of its log:\nno such file")

    monkeypatch.setattr(Plane, "start", start)
    failed = up(tmp_path)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.splitlines()[0] == "   0 s  waiting for webhook"
    assert failed.stderr.endswith("no such file\n")
    folder = state.folder_of("default")
    assert not folder.exists()
    Plane(folder)
    (folder / "kept").touch()
    assert CliRunner().invoke(main, ["up"]).exit_code == 1
    assert (folder / "kept").exists()
