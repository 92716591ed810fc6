"""The image of a release: an OCI archive for one or more platforms, built with podman."""

import argparse
import re
import shutil
from pathlib import Path
from typing import Final

from release import oci
from release.source import ReleaseError, Source

_BY_DIGEST: Final = re.compile(r".+@sha256:[0-9a-f]{64}|localhost/.+")
LOCK: Final = "requirements-tracing.lock"
"""The packages of the image; with it, a cluster can send traces."""


def build(source: Source, options: argparse.Namespace, target: Path, scratch: Path) -> str:
    """Write the archive into `target`, and return the digest of the image index in it."""
    if not _BY_DIGEST.fullmatch(options.base):
        raise ReleaseError(
            f"the base image {options.base!r} must be named by digest, NAME@sha256:…, or be built here, localhost/…"
        )
    engine = shutil.which("podman")
    if engine is None:
        raise ReleaseError(
            "the image is built with podman, which is not on the PATH: or name a built one by its digest"
        )
    layout, entries = oci.Layout(), []
    for platform in options.platforms.split(","):
        folder = scratch / platform.replace("/", "-")
        _build_one(source, engine, options.base, platform, folder)
        system, architecture = platform.split("/")
        entries.append(layout.add_folder(folder) | {"platform": {"architecture": architecture, "os": system}})
    index = layout.add_json({"schemaVersion": 2, "mediaType": oci.INDEX, "manifests": entries}, oci.INDEX)
    name = f"{options.registry or 'localhost'}/muster:{source.version}"
    layout.write(target / f"muster-image-{source.version}.tar", index, name, source.epoch)
    return str(index["digest"])


def _build_one(source: Source, engine: str, base: str, platform: str, layout: Path) -> None:
    """Build the image for a platform into a folder with the OCI layout; nothing comes from earlier builds."""
    values = {"BASE": base, "LOCK": LOCK, "SOURCE_DATE_EPOCH": source.epoch, "VERSION": source.version}
    names = [f"--build-arg={name}={value}" for name, value in values.items()]
    identity = layout.with_suffix(".id")
    fixed = ["--no-cache", f"--timestamp={source.epoch}", f"--platform={platform}", f"--iidfile={identity}"]
    source.run(engine, "build", *fixed, *names, str(source.folder))
    image = identity.read_text(encoding="utf-8").strip()
    source.run(engine, "save", "--format=oci-dir", f"--output={layout}", image)
