"""Location of the Helm chart: a folder of the repository, or of this package in an installed Muster."""

from pathlib import Path
from typing import Final

_BESIDE: Final = Path(__file__).parent / "charts" / "muster"
"""The folder of the chart in this package, where setup.py puts it."""
CHART: Final = _BESIDE if _BESIDE.is_dir() else Path(__file__).parents[1] / "charts" / "muster"
