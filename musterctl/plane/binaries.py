"""The control plane's programs, from KUBEBUILDER_ASSETS, from the PATH, or built once into the user's cache.

`python -m musterctl.plane.binaries` finds or builds the programs. The module needs only the standard library, so that
`make demo` can build the programs while the packages of the virtual environment are being installed.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from musterctl.plane import gobuild
from musterctl.plane.gobuild import KUBERNETES, Recipe
from musterctl.plane.machine import LocalError, locked

CONTROL_PLANE: Final = Recipe(
    "controlplane",
    Path(__file__).with_name("controlplane"),
    {
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        "etcd": "go.etcd.io/etcd/server/v3",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    },
    minutes=5,
    otherwise="; alternatively, name a folder that holds the programs in KUBEBUILDER_ASSETS",
)
"""The programs of a plane."""

HELM: Final = Recipe(
    "helm",
    Path(__file__).with_name("helm"),
    {"helm": "helm.sh/helm/v4/cmd/helm"},
    minutes=1,
    otherwise="; alternatively, put helm on the PATH",
)
"""Helm, a separate Go module because it needs other versions of Kubernetes' libraries; not part of a plane."""


def _older(module: Path) -> Recipe:
    """Return the recipe for an older version of Kubernetes.

    The recipe builds only Kubernetes' own programs, because etcd and kwok work with every version.
    """
    programs = {name: each for name, each in CONTROL_PLANE.programs.items() if each.startswith("k8s.io/kubernetes/")}
    return Recipe(CONTROL_PLANE.name, module, programs, CONTROL_PLANE.minutes)


def release_of(recipe: Recipe) -> str:
    """Return the patch release of Kubernetes that a recipe builds, e.g. 1.34.4."""
    found = KUBERNETES.search(recipe.go_mod)
    if found is None:
        raise LocalError(f"{recipe.module / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1].removeprefix("v")


def _minor_of(recipe: Recipe) -> str:
    """Return the version of Kubernetes that a recipe builds, e.g. 1.34."""
    return release_of(recipe).rpartition(".")[0]


NEWEST: Final = _minor_of(CONTROL_PLANE)
"""The default Kubernetes version of planes."""
OLDER: Final = {
    _minor_of(recipe): recipe for recipe in map(_older, sorted(Path(__file__).parent.glob("kubernetes_1_*")))
}
"""Recipes of older versions of Kubernetes; they do not include etcd and kwok."""


def user_cache() -> Path:
    """Muster's folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster"


def cache() -> Path:
    """The folder of all builds of the control plane."""
    return user_cache() / CONTROL_PLANE.name


def cached(recipe: Recipe = CONTROL_PLANE, needed: Collection[str] | None = None) -> Path:
    """Return the folder of a recipe's programs, after building the `needed` programs (by default all) that are missing.

    The folder's name depends on all sources, so that programs which are built at different times have the same version.
    """
    content = b"".join(path.read_bytes() for path in sorted(recipe.module.iterdir()) if path.is_file())
    folder = user_cache() / recipe.name / hashlib.sha256(content + recipe.tags.encode()).hexdigest()
    if _missing(recipe, needed, folder):
        with locked(folder.with_suffix(".lock")):
            if missing := _missing(recipe, needed, folder):  # another process may have built them in the meantime
                _build(replace(recipe, programs=missing), folder)
    return folder


def _missing(recipe: Recipe, needed: Collection[str] | None, folder: Path) -> dict[str, str]:
    """Return the needed programs that are not in the folder, with their packages."""
    wanted = recipe.programs if needed is None else needed
    return {name: recipe.programs[name] for name in wanted if not (folder / name).exists()}


def _build(recipe: Recipe, folder: Path) -> None:
    """Build next to the folder, then move each program into it in one step."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    names = ", ".join(recipe.programs)
    sys.stderr.write(f"{names}: built once (about {recipe.minutes} min on 2 cores) into {folder} …\n")
    go = gobuild.go_command(recipe.go_mod, cache())
    gobuild.build(recipe, go, partial, folder.with_suffix(".log"))
    folder.mkdir(exist_ok=True)
    for name in recipe.programs:
        (partial / name).rename(folder / name)
    shutil.rmtree(partial)


VERSIONS: Final = (*OLDER, NEWEST)
"""The versions of Kubernetes that a plane can have."""


def find_programs(needed: tuple[str, ...] = tuple(CONTROL_PLANE.programs), kubernetes: str = "") -> dict[str, Path]:
    """Return the path of each program; build missing programs.

    A location is used only if it has *all* needed programs, so that versions are never mixed. If the caller names a
    version of Kubernetes, its programs are built by Muster, and other programs on the machine are ignored.
    """
    if kubernetes:
        return _of_version(needed, kubernetes)
    for search_path in filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH"))):
        found = {name: Path(path) for name in needed if (path := shutil.which(name, path=search_path))}
        if found and len(found) == len(needed):
            return found
    return _of_version(needed, NEWEST)


def _of_version(needed: tuple[str, ...], kubernetes: str) -> dict[str, Path]:
    """Return the programs for a version of Kubernetes, built by Muster; etcd and kwok are the same for all versions."""
    if kubernetes not in VERSIONS:
        raise LocalError(f"Kubernetes {kubernetes} is not supported; supported versions are {', '.join(VERSIONS)}")
    found: dict[str, Path] = {}
    for recipe in (OLDER.get(kubernetes, CONTROL_PLANE), CONTROL_PLANE):
        names = [name for name in needed if name in recipe.programs and name not in found]
        folder = cached(recipe, names)
        found |= {name: folder / name for name in names}
    return found


def helm() -> Path:
    """Helm on the PATH, or built once into the user's cache."""
    found = shutil.which("helm")
    return Path(found) if found else cached(HELM) / "helm"


if __name__ == "__main__":
    try:
        find_programs()
    except LocalError as error:
        sys.exit(f"error: {error}")
