"""Archives with the OCI layout, which registries take as they are: the digest is known before the push."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from release import archives

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
Descriptor = dict[str, Any]


class Layout:
    """The files of an archive: blobs by their hash, and one named entry."""

    def __init__(self) -> None:
        self._members: dict[str, bytes | Path] = {}

    def add(self, content: bytes, media_type: str) -> Descriptor:
        """Add a blob, and return its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self._members[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(self, content: object, media_type: str) -> Descriptor:
        """Add a document, and return its descriptor."""
        return self.add(json.dumps(content, separators=(",", ":")).encode(), media_type)

    def add_folder(self, folder: Path) -> Descriptor:
        """Add the blobs of a layout in a folder, and return the descriptor of its only entry."""
        blobs = (path for path in (folder / "blobs").rglob("*") if path.is_file())
        self._members |= {path.relative_to(folder).as_posix(): path for path in blobs}
        (entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        return {name: entry[name] for name in ("mediaType", "digest", "size")}

    def write(self, target: Path, entry: Descriptor, name: str, epoch: int) -> None:
        """Write the archive, whose entry has this name (REGISTRY/REPOSITORY:TAG)."""
        named = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry | {"annotations": named}]}
        fixed = {"index.json": index, "oci-layout": {"imageLayoutVersion": "1.0.0"}}
        documents = {path: json.dumps(content).encode() for path, content in fixed.items()}
        archives.write(target, self._members | documents, epoch)
