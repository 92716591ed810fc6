"""`make generate`: writes CRDs and pages from the wire types.

Without options, the command needs only the files of the repository. `--openapi-from` updates muster/crds/core.json, the
API server's schema of Job and pod templates, from a cluster (its kubeconfig) or a saved `GET
/openapi/v3/apis/batch/v1`. `--release`, which is used only for a release, saves the CRDs in charts/released. Later CRDs
must stay compatible with the saved CRDs.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from muster.api import names
from muster.crds.files import as_lines, manifests, reference
from muster.crds.openapi import CORE_FILE, OPENAPI_PATH, committed_core, core_text, reduced
from muster.kube.client import Client
from musterctl import facts
from musterctl.chart import generated
from musterctl.chart.files import document

ROOT = Path(__file__).resolve().parents[1]
CHART = Path("charts/muster")
CRDS = CHART / "files/crds"
RELEASED = Path("charts/released")
"""Folder with the CRDs of the last release, in a line-based format."""
RELEASED_NAMES = RELEASED / "names.list"
"""File with the names of labels and annotations in the last release."""
API_PAGE = Path("docs/api.md")


@click.command(help=__doc__)
@click.option(
    "--check", is_flag=True, help="Write nothing; name the files that differ and exit with 1 if there are any."
)
@click.option(
    "--openapi-from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A kubeconfig, or a JSON file with the OpenAPI v3 document of batch/v1.",
)
@click.option("--release", is_flag=True, help="Update charts/released, at a release of these CRDs.")
def main(source: Path | None, *, check: bool, release: bool) -> None:
    """Computes all generated files, and writes the files that differ; with --check, only lists these files."""
    if release:
        for path, text in released_files().items():
            _bring_about(ROOT / path, text)
        return
    core = reduced(read_openapi(source)) if source else committed_core()
    wanted = {CORE_FILE.relative_to(ROOT): core_text(core)} if source else {}
    wanted |= generated_files(core)
    differing = differences(ROOT, wanted)
    if check:
        for path in differing:
            print(f"{path} differs from the sources: run `make generate` and commit the result", file=sys.stderr)
        sys.exit(1 if differing else 0)
    for path in differing:
        _bring_about(ROOT / path, wanted.get(path))
        print(path)


def released_files() -> dict[Path, str]:
    """Return the files that record a release, keyed by path.

    Later CRDs and names must be compatible with these files.
    """
    crds = {
        RELEASED / f"{path.stem}.txt": "\n".join(as_lines(document(path))) + "\n"
        for path in sorted((ROOT / CRDS).glob("*.yaml"))
    }
    return {**crds, RELEASED_NAMES: "".join(f"{name}\n" for name in wire_names())}


def wire_names() -> list[str]:
    """Return the names of labels, annotations, gates and resources of Muster, in order."""
    groups = [(value,) if isinstance(value, str) else value for value in vars(names).values()]
    values = {value for group in groups if isinstance(group, tuple | frozenset) for value in group}
    return sorted(value for value in values if value.startswith(f"{names.DOMAIN}/") and not value.endswith("/"))


def generated_files(core: Mapping[str, Any]) -> dict[Path, str]:
    """Return a mapping from the path of each generated file, except core.json, to its text."""
    return {
        **{CRDS / name: text for name, text in manifests(core).items()},
        CHART / "files/webhooks.yaml": generated.webhooks_file(),
        CHART / "values.yaml": generated.values_file(),
        API_PAGE: reference(),
        **facts.pages(ROOT),
    }


def differences(root: Path, wanted: Mapping[Path, str]) -> list[Path]:
    """Return the generated files that are missing or differ, and superfluous files in the folder of CRDs.

    Paths are relative to `root`.
    """
    stray = {path.relative_to(root) for path in (root / CRDS).glob("*")} - wanted.keys()
    there = {path: (root / path).read_bytes() for path in wanted if (root / path).is_file()}
    changed = {path for path, text in wanted.items() if there.get(path) != text.encode()}
    return sorted(stray | changed)


def read_openapi(source: Path) -> dict[str, Any]:
    """Return the OpenAPI v3 document of batch/v1, from a saved response or from the cluster of a kubeconfig."""
    document: dict[str, Any]
    if source.suffix == ".json":
        document = json.loads(source.read_bytes())
    else:
        document = json.loads(Client.load(source).request("GET", OPENAPI_PATH))
    return document


def _bring_about(path: Path, text: str | None) -> None:
    """Write a generated file, or remove a file that must not exist."""
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
