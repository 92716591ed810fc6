"""Writes an image as an OCI layout in one tar archive, which `ctr images import` reads."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    """What an image is: uncompressed layers, lowest first, and what its containers start with."""

    name: str
    layers: Sequence[Path]
    architecture: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def write(content: Content, target: Path) -> None:
    """Writes the archive."""
    with tarfile.open(target, "w") as archive:
        layers = [_layer(archive, path) for path in content.layers]
        config = {
            "architecture": content.architecture,
            "os": "linux",
            "config": {
                "Env": [f"{name}={value}" for name, value in content.environment.items()],
                "Cmd": list(content.command),
            },
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _blob(archive, config, f"{_TYPE}.config.v1+json"),
            "layers": layers,
        }
        entry = _blob(archive, manifest, f"{_TYPE}.manifest.v1+json")
        entry["annotations"] = {"io.containerd.image.name": content.name}
        _file(archive, "index.json", _json({"schemaVersion": 2, "manifests": [entry]}))
        _file(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))


def name_and_digest(archive: Path) -> tuple[str, str]:
    """The name under which containerd imports the image of an archive, and its digest."""
    with tarfile.open(archive) as opened:
        index = opened.extractfile("index.json")
        (entry,) = json.load(index)["manifests"] if index else ()
    named = entry["annotations"]
    name = named.get("io.containerd.image.name") or named["org.opencontainers.image.ref.name"]
    return str(name), str(entry["digest"])


def _layer(archive: tarfile.TarFile, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    archive.add(path, f"blobs/sha256/{digest.hexdigest()}")
    return _descriptor(f"{_TYPE}.layer.v1.tar", digest.hexdigest(), path.stat().st_size)


def _blob(archive: tarfile.TarFile, value: object, media_type: str) -> dict[str, Any]:
    data = _json(value)
    digest = hashlib.sha256(data).hexdigest()
    _file(archive, f"blobs/sha256/{digest}", data)
    return _descriptor(media_type, digest, len(data))


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


def _file(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
