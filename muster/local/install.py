"""What a control plane must hold before Muster runs on it: namespace, CRDs, nodes, webhook configurations."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muster.api.names import FIELD_MANAGER, SYSTEM_NAMESPACE
from muster.local.errors import LocalError

CRDS = Path(__file__).parents[2] / "charts" / "muster" / "crds"


class Installer:
    """Applies objects with kubectl."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        self._command = [str(kubectl), f"--kubeconfig={kubeconfig}"]

    def namespace(self) -> None:
        """The namespace of Muster's leases."""
        self.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}])

    def crds(self) -> None:
        """Muster's CRDs, and waits until the API server serves them."""
        files = sorted(CRDS.glob("*.yaml"))
        if files:
            self._run(
                "apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}", f"--filename={CRDS}"
            )
            self._run("wait", "--for=condition=Established", "--timeout=30s", f"--filename={CRDS}")

    def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Server-side apply of the objects."""
        if objects:
            document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
            self._run(
                "apply",
                "--server-side",
                "--force-conflicts",
                f"--field-manager={FIELD_MANAGER}",
                "--filename=-",
                stdin=json.dumps(document),
            )

    def create(self, objects: Sequence[dict[str, Any]]) -> None:
        """Creates the objects, those that exist stay as they are."""
        existing = self._run("get", "nodes", "--output=name").split()
        document = {
            "apiVersion": "v1",
            "kind": "List",
            "items": [item for item in objects if f"node/{item['metadata']['name']}" not in existing],
        }
        if document["items"]:
            self._run("create", "--filename=-", stdin=json.dumps(document))

    def _run(self, *arguments: str, stdin: str = "") -> str:
        result = subprocess.run([*self._command, *arguments], input=stdin, capture_output=True, text=True, check=False)
        if result.returncode:
            raise LocalError(f"kubectl {arguments[0]} failed: {result.stderr.strip()}")
        return result.stdout
