"""Where the Helm chart is: in the repository in a folder of its own, in an installed Muster beside this module."""

from pathlib import Path
from typing import Final

_BESIDE: Final = Path(__file__).parent / "charts" / "muster"
"""setup.py puts it there."""
CHART: Final = _BESIDE if _BESIDE.is_dir() else Path(__file__).parents[1] / "charts" / "muster"
