"""/debug of each process on a plane: what it holds, what it runs with, where its threads are."""

import json
import urllib.request
from pathlib import Path

import pytest

from muster.process.health import PAGES
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
HOLDS = {"webhook": "queues.scheduling.volcano.sh", "extender": "nodes", "controller": "queues"}
THREAD = {"webhook": "kube", "extender": "planner", "controller": "job-0"}


@pytest.mark.parametrize("process", HOLDS)
def test_it_tells_what_the_process_holds(shared_plane: Plane, process: str) -> None:
    """Counts of what is cached, flags and settings, every thread and task; and no token or key."""
    address = shared_plane.commandlines.url(f"{process}-status")
    pages = {}
    for page in PAGES:
        with urllib.request.urlopen(f"{address}{page}", timeout=5) as response:  # noqa: S310 - http, on loopback
            pages[page] = response.read().decode()
    told = json.loads(pages["/debug"])
    assert told["process"] == process
    assert told["sizes"][HOLDS[process]] >= 1
    assert told["options"]["settings"]["statusPort"] == shared_plane.state.ports[f"{process}-status"]
    assert f"{THREAD[process]}\n" in pages["/debug/threads"]
    assert "muster/kube/" in pages["/debug/tasks"]
    secrets = _secrets(shared_plane.root)
    assert len(secrets) > 20
    assert not [page for page, text in pages.items() if any(secret in text for secret in secrets)]


def _secrets(root: Path) -> set[str]:
    """The lines of tokens of the processes, and of keys."""
    files = [path for path in [*(root / "tokens").rglob("*"), *root.rglob("*.key")] if path.is_file()]
    lines = (line for path in files for line in path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if len(line) > 40}
