"""Files that verify a release: the provenance, the checksums and their signature."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from musterctl.kind.image import run
from release.source import Source

PROVENANCE: Final = "provenance.intoto.json"
SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = f"{SUMS}.sig"
_BUILD_TYPE: Final = "https://muster.dev/make-dist/v1"
_ENCRYPTED: Final = "ENCRYPTED SIGSTORE PRIVATE KEY"
"""PEM label of a key by `cosign generate-key-pair`."""
_INPUTS: Final = "*.lock"
"""Files of the commit that determine the installed packages."""


def provenance(source: Source, target: Path, parameters: Mapping[str, str], builder: str) -> None:
    """Write an in-toto statement with the SLSA provenance (v1) of all files in `target`."""
    locks = sorted(source.folder.glob(_INPUTS))
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_descriptor(file) for file in sorted(target.iterdir())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"version": source.version, **parameters},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": source.commit}},
                    *(_descriptor(file) for file in locks),
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    _write_json(target / PROVENANCE, statement)


def sums(target: Path) -> None:
    """Write the checksums of all files in `target`, as sha256sum does."""
    lines = [f"{sha256(file)}  {file.name}\n" for file in sorted(target.iterdir())]
    (target / SUMS).write_text("".join(lines), encoding="utf-8")


def sign(target: Path, key: Path) -> None:
    """Sign the checksums with an ECDSA key: the base64 text that `cosign verify-blob --signature` reads.

    openssl does that with a plain key; cosign itself reads its own encrypted keys, with COSIGN_PASSWORD.
    """
    signature = target / SIGNATURE
    if _ENCRYPTED in key.read_text(encoding="ascii"):
        options = ["--yes", "--tlog-upload=false", f"--key={key.resolve()}", f"--output-signature={signature}"]
        run(["cosign", "sign-blob", *options, str(target / SUMS)], stdin=None)
        return
    run(["openssl", "dgst", "-sha256", "-sign", key.resolve(), "-out", signature, target / SUMS], stdin=None)
    signature.write_bytes(base64.b64encode(signature.read_bytes()))


def sha256(file: Path) -> str:
    """Return the hash of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _descriptor(file: Path) -> dict[str, Any]:
    return {"name": file.name, "digest": {"sha256": sha256(file)}}


def _write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
