"""Programs of neighbours, built once from their Go modules into the user's cache, and the files they publish."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

from musterctl.plane import binaries, gobuild

_MODULES = Path(__file__).parents[1] / "modules"


def built(name: str, package: str, *, minutes: int = 5, tags: str = "") -> Path:
    """The program of a package, of the module folder `modules/<name>`, with Go's build tags.

    `minutes` says how long a first build takes.
    """
    return binaries.cached(gobuild.Recipe(name, _MODULES / name, {name: package}, minutes, tags=tags)) / name


@cache
def published(name: str, module: str) -> Path:
    """The folder of a module's files (manifests, CRDs) in the version that `modules/<name>` requires."""
    folder = _MODULES / name
    go = gobuild.go_command((folder / "go.mod").read_text(encoding="utf-8"), binaries.cache())
    version = _run(go, folder, "list", "-mod=readonly", "-m", "-f", "{{.Version}}", module).strip()
    return Path(json.loads(_run(go, folder, "mod", "download", "-json", f"{module}@{version}"))["Dir"])


def _run(go: Path, folder: Path, *arguments: str) -> str:
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
    result = subprocess.run([go, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return result.stdout
