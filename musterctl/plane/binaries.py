"""The control plane's programs: in KUBEBUILDER_ASSETS, on the PATH, or built once into the user's cache."""

import os
import shutil
from pathlib import Path
from typing import Final

from musterctl.plane.build import CONTROL_PLANE, HELM, NEWEST, OLDER, cached
from musterctl.plane.errors import LocalError

VERSIONS: Final = (*OLDER, NEWEST)
"""The versions of Kubernetes that a plane can have."""


def find(needed: tuple[str, ...] = tuple(CONTROL_PLANE.programs), kubernetes: str = "") -> dict[str, Path]:
    """The path of each program; builds all of them where some are missing.

    A place counts only if it has *all* that is needed, so that versions are never mixed. Where a version of Kubernetes
    is named, its programs are those that are built here, whatever else the machine has.
    """
    if kubernetes:
        return _of_version(needed, kubernetes)
    for search_path in filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH"))):
        found = {name: Path(path) for name in needed if (path := shutil.which(name, path=search_path))}
        if found and len(found) == len(needed):
            return found
    folder = cached()
    return {name: folder / name for name in needed}


def _of_version(needed: tuple[str, ...], kubernetes: str) -> dict[str, Path]:
    """The programs of a version; those that have no version of Kubernetes are everywhere the same."""
    if kubernetes not in VERSIONS:
        raise LocalError(f"there is no recipe for Kubernetes {kubernetes}; there are {', '.join(VERSIONS)}")
    recipe = OLDER.get(kubernetes, CONTROL_PLANE)
    folders = {name: cached(recipe if name in recipe.programs else CONTROL_PLANE) for name in needed}
    return {name: folder / name for name, folder in folders.items()}


def helm() -> Path:
    """Helm on the PATH, or built once into the user's cache."""
    found = shutil.which("helm")
    return Path(found) if found else cached(HELM) / "helm"
