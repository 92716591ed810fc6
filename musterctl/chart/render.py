"""The chart as plain manifests: helm renders it, and the namespace that it is for goes in front."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from muster.api.names import SYSTEM_NAMESPACE
from musterctl.chart.files import CHART
from musterctl.plane import binaries
from musterctl.plane.machine import LocalError

RELEASE: Final = "muster"
RESTRICTED: Final = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
"""Labels of a namespace that admits only pods of the Pod Security Standard "restricted"."""


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs helm; the caller looks at the exit code."""
    command = [str(binaries.helm()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a list, and no shell


def render(*, namespace: str = SYSTEM_NAMESPACE, values: Sequence[Path] = (), arguments: Sequence[str] = ()) -> str:
    """The manifests that `helm install` would apply, without its tests; `arguments` are more of helm's (`--set a=b`).

    Raises LocalError with helm's own words.
    """
    files = [f"--values={path}" for path in values]
    command = ["template", RELEASE, str(CHART), f"--namespace={namespace}", "--skip-tests", *files, *arguments]
    result = helm(*command)
    if result.returncode:
        raise LocalError(f"the chart cannot be rendered: {result.stderr.strip()}")
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": _metadata(namespace, result.stdout)}
    return f"---\n{yaml.safe_dump(own, sort_keys=False)}{result.stdout}"


def objects(text: str) -> list[dict[str, Any]]:
    """The objects in rendered manifests."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def _metadata(namespace: str, manifests: str) -> dict[str, Any]:
    """Of the namespace: it may enforce `restricted` unless pods need the node's network."""
    return {"name": namespace} | ({} if "hostNetwork: true" in manifests else {"labels": RESTRICTED})
