"""The chart's files: where they are, the manifests in them that `muster up` installs too, and helm for the whole."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from muster.api.names import SYSTEM_NAMESPACE
from muster.chart import CHART
from musterctl.plane import binaries
from musterctl.plane.machine import LocalError

__all__ = ["CHART", "CRDS", "FILES", "RUNTIMES", "document", "manifests", "policies"]
FILES: Final = CHART / "files"
CRDS: Final = FILES / "crds"
RUNTIMES: Final = CHART / "runtimes"


def document(path: Path) -> Any:
    """The one YAML document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def manifests(path: Path, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The manifests of a file; `names` are filled in for the marks that stand in it, such as `<namespace>`.

    `muster.manifests` in the chart's `_helpers.tpl` does the same for helm.
    """
    text = path.read_text(encoding="utf-8")
    for mark, name in (names or {}).items():
        text = text.replace(mark, name)
    return list(yaml.safe_load_all(text))


def policies() -> list[dict[str, Any]]:
    """The admission policies, each with its binding: what RBAC cannot say."""
    return [each for path in sorted((FILES / "policies").glob("*.yaml")) for each in manifests(path)]


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
