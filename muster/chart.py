"""Location of the Helm chart: a folder of the repository or, in an installed Muster, of the package `muster`."""

from pathlib import Path
from typing import Final

_BESIDE: Final = Path(__file__).parent / "charts" / "muster"
"""The folder of the chart in the package `muster`, to which setup.py copies the chart."""
CHART: Final = _BESIDE if _BESIDE.is_dir() else Path(__file__).parents[1] / "charts" / "muster"
