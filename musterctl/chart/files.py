"""The chart's files: where they are, and the manifests in them that helm and `muster up` both install."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from muster.chart import CHART

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
