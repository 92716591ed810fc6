"""The Helm chart of a release, and its manifests for clusters without helm."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from musterctl.plane import binaries
from release import archives, oci
from release.source import ReleaseError, Source

CHART: Final = "charts/muster"
_IMAGE: Final = re.compile(r"(?m)^(image:\n(?:  .*\n)*?  registry: )''(\n(?:  .*\n)*?  digest: )''$")
"""Pattern of the image in values.yaml."""


def set_image(source: Source, registry: str, digest: str) -> None:
    """Write the image's registry and digest into the values of the exported chart."""
    file = source.folder / CHART / "values.yaml"
    text, count = _IMAGE.subn(rf"\g<1>'{registry}'\g<2>'{digest}'", file.read_text(encoding="utf-8"))
    if count != 1:
        raise ReleaseError(f"{CHART}/values.yaml must have one image with registry '' and digest '', and has {count}")
    file.write_text(text, encoding="utf-8")


def annotate(source: Source, registry: str, digest: str) -> None:
    """Write what Artifact Hub shows into the chart's annotations: image, CRDs, and if the version is a preview."""
    file = source.folder / CHART / "Chart.yaml"
    chart = yaml.safe_load(file.read_text(encoding="utf-8"))
    name = f"{registry}/muster@{digest}".removeprefix("/")
    crds = [yaml.safe_load(each.read_text(encoding="utf-8")) for each in _crds(source)]
    chart["annotations"] |= {
        "artifacthub.io/images": yaml.safe_dump([{"name": "muster", "image": name}]),
        "artifacthub.io/crds": yaml.safe_dump([_described(each) for each in crds], sort_keys=False),
        "artifacthub.io/prerelease": str("-" in source.version).lower(),
    }
    file.write_text(yaml.safe_dump(chart, sort_keys=False), encoding="utf-8")


def _crds(source: Source) -> list[Path]:
    return sorted((source.folder / CHART / "files/crds").glob("*.yaml"))


def _described(crd: dict[str, Any]) -> dict[str, str]:
    version = next(each for each in crd["spec"]["versions"] if each["storage"])
    kind = crd["spec"]["names"]["kind"]
    text = version["schema"]["openAPIV3Schema"].get("description", kind)
    return {
        "kind": kind,
        "version": version["name"],
        "name": crd["metadata"]["name"],
        "displayName": kind,
        "description": text.partition("\n")[0],
    }


def compact(source: Source) -> None:
    """Write the CRDs as JSON without indentation, as helm stores each file in the release's Secret of at most 1 MiB."""
    for crd in _crds(source):
        definition = yaml.safe_load(crd.read_text(encoding="utf-8"))
        crd.write_text(json.dumps(definition, separators=(",", ":")) + "\n", encoding="utf-8")


def package(source: Source, registry: str, target: Path, scratch: Path) -> None:
    """Write the chart as helm packages it, but with the commit's time; also as the artefact that `helm push` makes."""
    compact(source)
    source.run(binaries.helm(), "package", CHART, f"--destination={scratch}")
    packed = scratch / f"muster-{source.version}.tgz"
    archives.normalise(packed, scratch / "chart", source.epoch)
    file = target / f"muster-chart-{source.version}.tgz"
    shutil.move(packed, file)
    description = yaml.safe_load((source.folder / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    artefact(file, description, f"{registry or 'localhost'}/charts/muster:{source.version}", source.epoch)


def artefact(packed: Path, description: dict[str, Any], name: str, epoch: int) -> None:
    """Write a packaged chart as an OCI archive beside it."""
    layout = oci.Layout()
    manifest = {
        "schemaVersion": 2,
        "mediaType": oci.MANIFEST,
        "config": layout.add_json(description, "application/vnd.cncf.helm.config.v1+json"),
        "layers": [layout.add(packed.read_bytes(), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")],
    }
    layout.write(packed.with_suffix(".oci.tar"), layout.add_json(manifest, oci.MANIFEST), name, epoch)


def manifests(source: Source, target: Path) -> None:
    """Write the CRDs, and the manifests of the chart for each supported version of Kubernetes.

    The manifests differ by version, because a kube-scheduler must not be newer than its API server.
    """
    texts = (each.read_text(encoding="utf-8").removeprefix("---\n") for each in _crds(source))
    (target / "crds.yaml").write_text("".join(f"---\n{text}" for text in texts), encoding="utf-8")
    for minor in binaries.VERSIONS:
        version = binaries.release_of(binaries.OLDER.get(minor, binaries.CONTROL_PLANE))
        text = source.run(sys.executable, "-m", "musterctl", "render", f"--kubernetes-version={version}")
        (target / f"install-kubernetes-{minor}.yaml").write_text(text, encoding="utf-8")
