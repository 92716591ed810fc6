"""The software bill of materials of a release, as SPDX 2.3 and as CycloneDX 1.6.

It lists the packages of the lock files, and Debian's packages in the image if the release contains it.
"""

import base64
import json
import re
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from release.image import LOCK
from release.source import Source

_PIN: Final = re.compile(r"(?m)^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)")
_STATUS: Final = "var/lib/dpkg/status"
_SCRIPTS: Final = "web/static/package-lock.json"
_SUPPLIER: Final = "Muster's maintainers"


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a release contains or installs."""

    name: str
    version: str
    type: str
    """Type of the package URL, with its namespace: pypi, npm, deb/debian."""
    license: str = ""
    """SPDX expression; empty if the package does not have one."""
    sha512: str = ""

    @property
    def url(self) -> str:
        """Return the package URL."""
        return f"pkg:{self.type}/{quote(self.name)}@{quote(self.version, safe=':')}"


def write(source: Source, target: Path) -> None:
    """Write both documents into `target`; an image there is read as well."""
    packages = [*python(source.folder / LOCK), *scripts(source.folder / _SCRIPTS)]
    for archive in target.glob("muster-image-*.tar"):
        packages += debian(archive)
    packages = sorted(set(packages), key=lambda each: each.url)
    for name, document in (("spdx", spdx(source, packages)), ("cdx", cyclonedx(source, packages))):
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (target / f"muster-{source.version}.{name}.json").write_text(f"{text}\n", encoding="utf-8")


def python(lock: Path) -> Iterator[Package]:
    """Yield the Python packages of a lock file; their licences come from the packages that are installed here."""
    for name, version in _PIN.findall(lock.read_text(encoding="utf-8")):
        try:
            license_ = metadata.metadata(name).json.get("license_expression", "")
        except metadata.PackageNotFoundError:
            license_ = ""
        yield Package(name.lower(), version, "pypi", str(license_))


def scripts(lock: Path) -> Iterator[Package]:
    """Yield the packages of npm's lock file."""
    for path, each in json.loads(lock.read_bytes())["packages"].items():
        if path:
            digest = base64.b64decode(each["integrity"].removeprefix("sha512-")).hex()
            yield Package(path.removeprefix("node_modules/"), each["version"], "npm", each.get("license", ""), digest)


def debian(archive: Path) -> Iterator[Package]:
    """Yield Debian's packages of an image for each platform, from dpkg's list in the uppermost layer that has it."""
    with tarfile.open(archive) as image:
        (index,) = _blob(image, "index.json")["manifests"]
        for entry in _blob(image, _path(index))["manifests"]:
            status = ""
            for layer in _blob(image, _path(entry))["layers"]:
                with tarfile.open(fileobj=image.extractfile(_path(layer))) as files:
                    for file in (each for each in files if each.name.removeprefix("./") == _STATUS):
                        status = _text(files, file)
            yield from _installed(status)


def _path(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def _blob(image: tarfile.TarFile, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_text(image, image.getmember(name)))
    return content


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    return file.read().decode() if file else ""


def _installed(status: str) -> Iterator[Package]:
    for stanza in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        if fields.get("Status", "").endswith(" installed"):
            yield Package(fields["Package"], fields["Version"], "deb/debian")


def spdx(source: Source, packages: list[Package]) -> dict[str, Any]:
    """Return the SPDX document."""
    own = "SPDXRef-muster"
    names = [f"SPDXRef-Package-{number}" for number in range(1, len(packages) + 1)]
    kinds = ["DESCRIBES", *("DEPENDS_ON" for _ in packages)]
    ends = [("SPDXRef-DOCUMENT", own), *((own, name) for name in names)]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"muster-{source.version}",
        "documentNamespace": f"https://muster.dev/spdx/{source.version}/{_identity(source, packages)}",
        "creationInfo": {"created": _time(source), "creators": [f"Organization: {_SUPPLIER}", "Tool: make-dist"]},
        "packages": [
            _spdx_package(own, "muster", source.version, "Apache-2.0"),
            *(
                _spdx_package(name, each.name, each.version, each.license)
                | {"externalRefs": [_reference(each)]}
                | ({"checksums": [{"algorithm": "SHA512", "checksumValue": each.sha512}]} if each.sha512 else {})
                for name, each in zip(names, packages, strict=True)
            ),
        ],
        "relationships": [
            {"spdxElementId": start, "relationshipType": kind, "relatedSpdxElement": end}
            for kind, (start, end) in zip(kinds, ends, strict=True)
        ],
    }


def _spdx_package(identity: str, name: str, version: str, license_: str) -> dict[str, Any]:
    unknown = "NOASSERTION"
    return {
        "SPDXID": identity,
        "name": name,
        "versionInfo": version,
        "downloadLocation": unknown,
        "filesAnalyzed": False,
        "licenseConcluded": unknown,
        "licenseDeclared": license_ or unknown,
        "copyrightText": unknown,
    }


def _reference(package: Package) -> dict[str, str]:
    return {
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": package.url
    }  # fmt: skip


def cyclonedx(source: Source, packages: list[Package]) -> dict[str, Any]:
    """Return the CycloneDX document."""
    own = f"pkg:pypi/muster@{source.version}"
    muster = {"type": "application", "bom-ref": own, "name": "muster", "version": source.version, "purl": own}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{_identity(source, packages)}",
        "version": 1,
        "metadata": {
            "timestamp": _time(source),
            "component": muster | {"licenses": [{"expression": "Apache-2.0"}]},
            "supplier": {"name": _SUPPLIER},
        },
        "components": [
            {"type": "library", "bom-ref": each.url, "name": each.name, "version": each.version, "purl": each.url}
            | ({"licenses": [{"expression": each.license}]} if each.license else {})
            | ({"hashes": [{"alg": "SHA-512", "content": each.sha512}]} if each.sha512 else {})
            for each in packages
        ],
        "dependencies": [{"ref": own, "dependsOn": [each.url for each in packages]}],
    }


def _identity(source: Source, packages: list[Package]) -> uuid.UUID:
    """Return an identity of the document's content."""
    return uuid.uuid5(uuid.NAMESPACE_URL, " ".join([source.commit, source.version, *(each.url for each in packages)]))


def _time(source: Source) -> str:
    return datetime.fromtimestamp(source.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
