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
"""The recipe for the programs of a local control plane."""

HELM: Final = Recipe(
    "helm",
    Path(__file__).with_name("helm"),
    {"helm": "helm.sh/helm/v4/cmd/helm"},
    minutes=1,
    otherwise="; alternatively, put helm on the PATH",
)
"""The recipe for helm. The recipe has its own Go module, because helm needs other versions of Kubernetes' libraries."""


def _older(module: Path) -> Recipe:
    """Return the recipe for an older version of Kubernetes; the folder `module` contains its go.mod.

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
"""The default Kubernetes version of local control planes."""
OLDER: Final = {
    _minor_of(recipe): recipe for recipe in map(_older, sorted(Path(__file__).parent.glob("kubernetes_1_*")))
}
"""Maps each older version of Kubernetes to the recipe that builds its programs, without etcd and kwok."""


def user_cache() -> Path:
    """Return Muster's folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster"


def cache() -> Path:
    """Return the folder that contains all builds of the control plane's programs."""
    return user_cache() / CONTROL_PLANE.name


def cached(recipe: Recipe = CONTROL_PLANE, needed: Collection[str] | None = None) -> Path:
    """Build the missing ones of a recipe's `needed` programs (by default all), and return the folder.

    The name of the folder depends on all sources, so that programs in the same folder have the same version.
    """
    content = b"".join(path.read_bytes() for path in sorted(recipe.module.iterdir()) if path.is_file())
    folder = user_cache() / recipe.name / hashlib.sha256(content + recipe.tags.encode()).hexdigest()
    if _missing(recipe, needed, folder):
        with locked(folder.with_suffix(".lock")):
            if missing := _missing(recipe, needed, folder):  # another process may have built them in the meantime
                _build(replace(recipe, programs=missing), folder)
    return folder


def _missing(recipe: Recipe, needed: Collection[str] | None, folder: Path) -> dict[str, str]:
    """Return the needed programs that are missing in the folder, each with its Go package."""
    wanted = recipe.programs if needed is None else needed
    return {name: recipe.programs[name] for name in wanted if not (folder / name).exists()}


def _build(recipe: Recipe, folder: Path) -> None:
    """Build the programs in a temporary folder, then move each program into `folder` in one step."""
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
"""The versions of Kubernetes that a local control plane can have."""


def find_programs(needed: tuple[str, ...] = tuple(CONTROL_PLANE.programs), kubernetes: str = "") -> dict[str, Path]:
    """Return the path of each program; build missing programs.

    A location is used only if it has *all* needed programs, so that versions are never mixed. If the caller names a
    version of Kubernetes, only programs that Muster has built are used.
    """
    if kubernetes:
        return _of_version(needed, kubernetes)
    for search_path in filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH"))):
        found = {name: Path(path) for name in needed if (path := shutil.which(name, path=search_path))}
        if found and len(found) == len(needed):
            return found
    return _of_version(needed, NEWEST)


def _of_version(needed: tuple[str, ...], kubernetes: str) -> dict[str, Path]:
    """Return the programs that Muster builds for a Kubernetes version; etcd and kwok are the same for all versions."""
    if kubernetes not in VERSIONS:
        raise LocalError(f"Kubernetes {kubernetes} is not supported; supported versions are {', '.join(VERSIONS)}")
    found: dict[str, Path] = {}
    for recipe in (OLDER.get(kubernetes, CONTROL_PLANE), CONTROL_PLANE):
        names = [name for name in needed if name in recipe.programs and name not in found]
        folder = cached(recipe, names)
        found |= {name: folder / name for name in names}
    return found


def helm() -> Path:
    """Return the path of helm: on the PATH, or else built once into the user's cache."""
    found = shutil.which("helm")
    return Path(found) if found else cached(HELM) / "helm"


if __name__ == "__main__":
    try:
        find_programs()
    except LocalError as error:
        sys.exit(f"error: {error}")
