"""Build the files of a release from the checked-out commit: `make dist VERSION=1.0.0`.

VERSION is written into the exported source; by default it is the version in pyproject.toml. An image that was built
elsewhere is named by its digest; otherwise podman builds one on BASE, which must be a digest as well.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from musterctl.plane.machine import LocalError
from release import chart, evidence, image, krew, manual, packages, sbom
from release.notes import notes
from release.source import ROOT, Source, export

_FOLDER_MODE = 0o022
"""The umask of all steps: packages contain the modes of files."""


def main() -> str | None:
    """Build the release; return an error."""
    options = _arguments()
    os.umask(_FOLDER_MODE)
    with tempfile.TemporaryDirectory(prefix="muster-release-", dir="/var/tmp") as folder:
        try:
            source = export(Path(folder) / "source", options.version)
            target = options.output / source.version
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            build(source, options, target.resolve(), Path(folder))
        except LocalError as error:
            return str(error)
    print("".join(f"{file}\n" for file in sorted(target.iterdir())), end="")
    return None


def build(source: Source, options: argparse.Namespace, target: Path, scratch: Path) -> None:
    """Write all files of the release into `target`."""
    text = notes((source.folder / "CHANGELOG.md").read_text(encoding="utf-8"), source.version, options.download)
    (target / "release-notes.md").write_text(text, encoding="utf-8")
    digest = options.image or image.build(source, options, target, scratch)
    packages.sdist(source, target, scratch)
    chart.set_image(source, options.registry, digest)
    chart.annotate(source, options.registry, digest)
    chart.manifests(source, target)
    manual.write(source)
    packages.wheel(source, target)
    chart.package(source, options.registry, target, scratch)
    krew.write(source, target, scratch, options.download)
    sbom.write(source, target)
    parameters = {"base": options.base, "image": digest, "platforms": options.platforms, "registry": options.registry}
    evidence.provenance(source, target, parameters, options.builder)
    evidence.sums(target)
    if options.key:
        evidence.sign(target, options.key)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--version", default="", help="version of the release, e.g. 1.0.0 or 1.0.0-rc.1")
    parser.add_argument("--registry", default="", help="prefix of the image's repository in the chart, e.g. HOST/OWNER")
    parser.add_argument("--image", default="", help="digest of an image that is built already, sha256:…")
    parser.add_argument("--base", default="", help="base image by digest")
    parser.add_argument("--platforms", default="linux/amd64", help="platforms of the image, separated by commas")
    parser.add_argument("--key", type=Path, help="private ECDSA key (PEM) that signs the checksums")
    parser.add_argument("--download", default="", help="URL of the folder where the files will be published")
    parser.add_argument("--builder", default="https://muster.dev/make-dist", help="URI of the builder")
    parser.add_argument("--output", type=Path, default=ROOT / "build/dist", help="folder of all releases")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
