"""Where the chart's files are."""

from pathlib import Path
from typing import Any, Final

import yaml

from muster.chart import CHART

__all__ = ["CHART", "CRDS", "FILES", "POLICIES", "ROLES", "RUNTIMES", "document"]
FILES: Final = CHART / "files"
"""What templates read too."""
CRDS: Final = FILES / "crds"
RUNTIMES: Final = CHART / "runtimes"
ROLES: Final = FILES / "roles"
POLICIES: Final = FILES / "policies"


def document(path: Path) -> Any:
    """The one YAML document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
