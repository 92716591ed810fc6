"""The commands of the runbook in docs/operations.md, failure by failure, and a runner for them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from documentation import commands, text_of
from gang_jobs import job

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

PAGE: Final = "operations.md"
_RUNBOOK: Final = re.compile(r"^## Runbook\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NAMESPACE: Final = "default"
"""The one that commands without a namespace mean."""
BARRIER_S: Final = 20.0
STARTS_S: Final = 120.0
RESTART: Final = "kubectl -n muster-system rollout restart deployment"
_PATIENCE_S: Final = 300
Instead = Callable[[], object] | str


def without_runbook(text: str) -> str:
    """The rest of the page; its runbook is for failures, which tests/plane/test_runbook.py causes."""
    return _RUNBOOK.sub("", text)


def sections() -> dict[str, list[str]]:
    """The commands of the runbook, by the heading above them."""
    found: dict[str, list[str]] = {}
    runbook = _RUNBOOK.search(text_of(PAGE))
    assert runbook, f"{PAGE} has no section Runbook"
    for part in runbook[0].split("\n### ")[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = [each.text for each in commands(text)]
    return found


@dataclass(frozen=True)
class Walk:
    """Runs the commands of a section on a plane."""

    plane: Plane
    folder: Path
    """Where they run."""
    inside: int = 0
    """Process id whose mount namespace the commands use; 0 for the namespace of the test."""
    environment: dict[str, str] = field(default_factory=dict)
    """Further variables of theirs."""
    programs: Path | None = None
    """A folder of further programs."""

    def section(
        self, heading: str, *, instead: Mapping[str, Instead] | None = None, fails: Sequence[str] = ()
    ) -> dict[str, str]:
        """All commands in their order; gives what each printed.

        A Deployment's restart, which a plane does not have, is the restart of its processes: `instead` has what stands
        in place of a command, a call or another command. Those in `fails` end with 1.
        """
        began_s, stands, said = time.monotonic(), dict(instead or {}), dict[str, str]()
        for command in sections()[heading]:
            found = stands.pop(command, command)
            said[command] = self.run(found, code=int(command in fails)) if isinstance(found, str) else f"{found()}"
        assert not stands, "a command is not on the page"
        self.took(heading, began_s)
        return said

    def run(self, command: str, *, code: int = 0) -> str:
        """What a command prints."""
        programs = [Path(sys.executable).parent, self.plane.kubectl_program().parent]
        programs += [self.programs] if self.programs else []
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "KUBECONFIG": str(self.plane.kubeconfig),
            **self.environment,
        }
        enter = ["nsenter", f"--mount=/proc/{self.inside}/ns/mnt"] if self.inside else []
        done = subprocess.run(
            [*enter, "bash", "-ec", command], cwd=self.folder, env=environment, timeout=_PATIENCE_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == code, f"{command}\nended with {done.returncode}, not {code}:\n{done.stdout}"
        return done.stdout

    def took(self, what: str, since_s: float) -> None:
        """Reports a duration, as the page states it."""
        sys.stderr.write(f"\n{what}: {time.monotonic() - since_s:.1f} s\n")


@pytest.fixture
def walk(tmp_path: Path) -> Callable[[Plane], Walk]:
    """Runs the page's commands on a plane."""
    return lambda plane: Walk(plane, tmp_path)


def submit(client: Client, name: str, replicas: int = 2, **more: Any) -> None:
    """A gang."""
    client.create(JOBS, job(name, NAMESPACE, replicas=replicas, **more), NAMESPACE)


def members(client: Client, name: str) -> dict[str, str]:
    """The pods of a gang that exist: UID by name."""
    return {
        pod.metadata.name: pod.metadata.uid
        for pod in client.list(PODS, NAMESPACE)
        if pod.metadata.name.startswith(f"{name}-") and pod.metadata.deletion_timestamp is None
    }
