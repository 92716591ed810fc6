"""The image of a release: an OCI archive for one or more platforms, built with podman."""

import argparse
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

from release import archives
from release.source import ReleaseError, Source

_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_BY_DIGEST: Final = re.compile(r".+@sha256:[0-9a-f]{64}|localhost/.+")
LOCK: Final = "requirements-tracing.lock"
"""The packages of the image; with it, a cluster can send traces."""


def build(source: Source, options: argparse.Namespace, target: Path, scratch: Path) -> str:
    """Write the archive into `target`, and return the digest of the image index in it."""
    base, platforms = options.base, options.platforms.split(",")
    if not _BY_DIGEST.fullmatch(base):
        raise ReleaseError(
            f"the base image {base!r} must be named by digest, NAME@sha256:…, or be built here, localhost/…"
        )
    engine = shutil.which("podman")
    if engine is None:
        raise ReleaseError(
            "the image is built with podman, which is not on the PATH: or name a built one by its digest"
        )
    members: dict[str, bytes | Path] = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    entries = []
    for platform in platforms:
        layout = scratch / platform.replace("/", "-")
        _build_one(source, engine, base, platform, layout)
        (entry,) = json.loads((layout / "index.json").read_bytes())["manifests"]
        members |= {
            path.relative_to(layout).as_posix(): path for path in (layout / "blobs").rglob("*") if path.is_file()
        }
        system, architecture = platform.split("/")
        described = {name: entry[name] for name in ("mediaType", "digest", "size")}
        entries.append(described | {"platform": {"architecture": architecture, "os": system}})
    index = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": entries})
    digest = hashlib.sha256(index).hexdigest()
    members[f"blobs/sha256/{digest}"] = index
    name = f"{options.registry or 'localhost'}/muster:{source.version}"
    named = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
    entry = {"mediaType": _INDEX, "digest": f"sha256:{digest}", "size": len(index), "annotations": named}
    members["index.json"] = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]})
    archives.write(target / f"muster-image-{source.version}.tar", members, source.epoch)
    return f"sha256:{digest}"


def _build_one(source: Source, engine: str, base: str, platform: str, layout: Path) -> None:
    """Build the image for a platform into a folder with the OCI layout; nothing comes from earlier builds."""
    values = {"BASE": base, "LOCK": LOCK, "SOURCE_DATE_EPOCH": source.epoch, "VERSION": source.version}
    names = [f"--build-arg={name}={value}" for name, value in values.items()]
    identity = layout.with_suffix(".id")
    fixed = ["--no-cache", f"--timestamp={source.epoch}", f"--platform={platform}", f"--iidfile={identity}"]
    source.run(engine, "build", *fixed, *names, str(source.folder))
    image = identity.read_text(encoding="utf-8").strip()
    source.run(engine, "save", "--format=oci-dir", f"--output={layout}", image)


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
