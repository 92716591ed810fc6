"""The plugin `kubectl muster`: an archive with the wheel, and the manifest with which krew installs it."""

from pathlib import Path
from typing import Final

import yaml

from release import archives
from release.evidence import sha256
from release.source import Source

_SCRIPT: Final = Path(__file__).with_name("kubectl-muster")
_DESCRIPTION: Final = """\
Shows gangs, queues and nodes, explains why a job waits, submits jobs and changes them.
The plugin needs Python 3.11 or later with venv. Its first call installs the packages of its lock file.
"""
_PLATFORMS: Final = ("amd64", "arm64")


def write(source: Source, target: Path, scratch: Path, download: str) -> None:
    """Write the archive; and the manifest, if `download` has the address where the release's files will be."""
    script = scratch / "kubectl-muster"
    script.write_text(_SCRIPT.read_text(encoding="utf-8").replace("VERSION", source.version), encoding="utf-8")
    script.chmod(0o755)
    (wheel,) = target.glob("*.whl")
    files = [script, wheel, *(source.folder / name for name in ("requirements.lock", "LICENSE"))]
    archive = target / f"kubectl-muster-{source.version}.tar.gz"
    archives.write(archive, {file.name: file for file in files}, source.epoch, compress=True)
    if download:
        text = yaml.safe_dump(manifest(source.version, f"{download}/{archive.name}", sha256(archive)), sort_keys=False)
        (target / "krew.yaml").write_text(text, encoding="utf-8")


def manifest(version: str, uri: str, digest: str) -> dict[str, object]:
    """Return the manifest of the plugin."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "muster"},
        "spec": {
            "version": f"v{version}",
            "homepage": uri.partition("/releases/")[0],
            "shortDescription": "Gangs, queues and training jobs of Muster",
            "description": _DESCRIPTION,
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
                    "uri": uri,
                    "sha256": digest,
                    "bin": "kubectl-muster",
                }
                for architecture in _PLATFORMS
            ],
        },
    }
