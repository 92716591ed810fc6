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
    return binaries.cached(gobuild.Recipe(name, folder(name), {name: package}, minutes, tags=tags)) / name


def folder(name: str) -> Path:
    """The folder `modules/<name>`."""
    return _MODULES / name


@cache
def published(name: str, module: str) -> Path:
    """The folder of a module's files (manifests, CRDs) in the version that `modules/<name>` requires."""
    return Path(json.loads(_go(name, "mod", "download", "-json", f"{module}@{version(name, module)}"))["Dir"])


@cache
def version(name: str, module: str) -> str:
    """The version of a module that `modules/<name>` requires, or replaces it with."""
    template = "{{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}"
    return _go(name, "list", "-mod=readonly", "-m", "-f", template, module).strip()


def _go(name: str, *arguments: str) -> str:
    go = gobuild.go_command((folder(name) / "go.mod").read_text(encoding="utf-8"), binaries.cache())
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
    result = subprocess.run(
        [go, *arguments], cwd=folder(name), env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout
