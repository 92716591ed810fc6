"""The control plane's programs: in KUBEBUILDER_ASSETS, on the PATH, or built once into the user's cache."""

import os
import shutil
from pathlib import Path

from musterctl.plane.build import CONTROL_PLANE, HELM, cached

NEEDED = tuple(CONTROL_PLANE.programs)
"""The programs of a whole plane."""


def find(needed: tuple[str, ...] = NEEDED) -> dict[str, Path]:
    """The path of each program; builds all of them where some are missing.

    A place counts only if it has *all* that is needed, so that versions are never mixed.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for search_path in (assets, os.environ.get("PATH")):
        found = {name: shutil.which(name, path=search_path) for name in needed} if search_path else {}
        if found and all(found.values()):
            return {name: Path(path) for name, path in found.items() if path}
    folder = cached()
    return {name: folder / name for name in needed}


def helm() -> Path:
    """Helm on the PATH, or built once into the user's cache."""
    found = shutil.which("helm")
    return Path(found) if found else cached(HELM) / "helm"
