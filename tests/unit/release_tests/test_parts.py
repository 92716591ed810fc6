"""Parts of a release: archives, notes, versions, the image in the chart, provenance, checksums and signature."""

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from release import __main__ as command
from release import archives, chart, evidence, krew, manual, sbom
from release.notes import notes
from release.source import ROOT, ReleaseError, Source, version_of, write_version

EPOCH = 1_700_000_000
CHANGELOG = """\
# Changelog

## 1.1.0 (unreleased)

### Added

- A queue.

## 1.0.0 (2026-11-30)

- A gang.
"""


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """The files that have the version, and the chart's values, as an exported commit."""
    folder = tmp_path / "source"
    for name in (
        "pyproject.toml",
        "charts/muster/Chart.yaml",
        "charts/muster/values.yaml",
        "requirements.lock",
        "requirements-tracing.lock",
        "web/static/package-lock.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return Source(folder, "1.2.3", "c0ffee", EPOCH)


def test_archives_depend_on_content_only(tmp_path: Path) -> None:
    """The order of names, times and owners of files have no effect; programs stay executable."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o750)
    members: dict[str, bytes | Path] = {"b": b"data", "a/program": program}
    written = []
    for number, one in enumerate((members, dict(reversed(members.items())))):
        archives.write(tmp_path / f"{number}.tgz", one, EPOCH, compress=True)
        written.append((tmp_path / f"{number}.tgz").read_bytes())
        program.touch()
    assert written[0] == written[1]
    assert written[0][4:8] == bytes(4), "gzip's header has a time"
    with tarfile.open(tmp_path / "0.tgz") as archive:
        assert [(each.name, each.mode, each.mtime, each.uid) for each in archive] == [
            ("a/program", 0o755, EPOCH, 0),
            ("b", 0o644, EPOCH, 0),
        ]


def test_an_archive_of_another_tool_is_normalised(tmp_path: Path) -> None:
    """Two archives that differ in times have the same bytes afterwards."""
    written = []
    for time in (1.0, 2.0):
        folder = tmp_path / str(time)
        archive = tmp_path / f"{time}.tgz"
        with tarfile.open(archive, "w:gz") as made:
            member = tarfile.TarInfo("muster/file")
            member.mtime = time
            made.addfile(member)
        archives.normalise(archive, folder, EPOCH)
        written.append(archive.read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0])


@pytest.mark.parametrize(
    ("version", "text"),
    [("1.0.0", "- A gang."), ("1.1.0", "### Added\n\n- A queue."), ("2.0.0", "### Added\n\n- A queue.")],
)
def test_notes_are_the_section_of_the_version(version: str, text: str) -> None:
    """A version without a section has the changes that are not released."""
    assert notes(CHANGELOG, version) == f"# Muster {version}\n\n{text}\n"


def test_links_of_notes_lead_to_the_repository() -> None:
    """A page of a release is not beside the pages of the documentation."""
    changelog = "## 1.0.0 (2026-11-30)\n\n- A gang ([why](docs/why.md#gang), [semver](https://semver.org)).\n"
    text = notes(changelog, "1.0.0", "https://forge.example/team/muster/releases/download/v1.0.0")
    assert "[why](https://forge.example/team/muster/blob/v1.0.0/docs/why.md#gang)" in text
    assert "[semver](https://semver.org)" in text


def test_no_notes_are_an_error() -> None:
    """The message names the missing heading."""
    with pytest.raises(ReleaseError, match=r"under `## 2\.0\.0`"):
        notes("# Changelog\n\n## 1.0.0 (2026-11-30)\n\n- A gang.\n", "2.0.0")


def test_the_version_is_written_into_every_file(source: Source) -> None:
    """The package and the chart have it."""
    write_version(source.folder, "1.2.3-rc.1")
    assert version_of(source.folder) == "1.2.3-rc.1"
    written = yaml.safe_load((source.folder / "charts/muster/Chart.yaml").read_text(encoding="utf-8"))
    assert (written["version"], written["appVersion"]) == ("1.2.3-rc.1", "1.2.3-rc.1")


def test_the_commit_has_one_version() -> None:
    """The package and the chart in the repository agree."""
    written = yaml.safe_load((ROOT / "charts/muster/Chart.yaml").read_text(encoding="utf-8"))
    assert {written["version"], written["appVersion"]} == {version_of(ROOT)}


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0rc1", "1.0.0+local"])
def test_a_version_fits_packages_and_charts(source: Source, version: str) -> None:
    """Others are refused, with an example."""
    with pytest.raises(ReleaseError, match=r"it must be like 1\.2\.3"):
        write_version(source.folder, version)


@pytest.mark.parametrize("version", ["..", "../..", "1.2.3"])
def test_a_refused_release_removes_nothing(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder to which a wrong version leads, nor the files of an earlier build."""
    kept = tmp_path / "build/dist/1.2.3/SHA256SUMS"
    kept.parent.mkdir(parents=True)
    kept.touch()
    monkeypatch.setattr("sys.argv", ["dist", f"--version={version}", f"--output={tmp_path / 'build/dist'}"])
    monkeypatch.setattr("os.umask", Mock())
    monkeypatch.setattr(command, "export", Mock(side_effect=ReleaseError("not a version")))
    assert command.main() == "not a version"
    assert kept.exists()


def test_the_chart_has_the_image_by_digest(source: Source) -> None:
    """No other image in the values changes."""
    before = yaml.safe_load((source.folder / "charts/muster/values.yaml").read_text(encoding="utf-8"))
    chart.set_image(source, "registry.example.com/team", "sha256:abc")
    after = yaml.safe_load((source.folder / "charts/muster/values.yaml").read_text(encoding="utf-8"))
    assert after.pop("image") == before.pop("image") | {"registry": "registry.example.com/team", "digest": "sha256:abc"}
    assert after == before
    with pytest.raises(ReleaseError, match="must have one image"):
        chart.set_image(source, "", "sha256:abc")


def test_the_chart_describes_itself_to_artifact_hub(source: Source) -> None:
    """Its image by digest, its CRDs, and if it is a preview, beside the annotations of the repository."""
    crds = source.folder / "charts/muster/files/crds"
    crds.mkdir(parents=True)
    shutil.copyfile(ROOT / "charts/muster/files/crds/placements.muster.dev.yaml", crds / "placements.muster.dev.yaml")
    chart.annotate(source, "registry.example.com/team", "sha256:abc")
    written = yaml.safe_load((source.folder / "charts/muster/Chart.yaml").read_text(encoding="utf-8"))
    annotations = {name.partition("/")[2]: text for name, text in written["annotations"].items()}
    assert yaml.safe_load(annotations["images"]) == [
        {"name": "muster", "image": "registry.example.com/team/muster@sha256:abc"}
    ]
    (crd,) = yaml.safe_load(annotations["crds"])
    assert (crd["name"], crd["kind"], crd["version"]) == ("placements.muster.dev", "Placement", "v1alpha1")
    assert (annotations["license"], annotations["prerelease"]) == ("Apache-2.0", "false")


def test_the_chart_s_CRDs_take_little_of_a_secret(source: Source) -> None:  # noqa: N802 - a kind's name
    """Helm stores the files of a chart with its release: the same definitions, in less than a third of the bytes."""
    crds = source.folder / "charts/muster/files/crds"
    crds.mkdir(parents=True)
    before = shutil.copyfile(ROOT / "charts/muster/files/crds/jobs.batch.volcano.sh.yaml", crds / "jobs.yaml")
    size, definition = before.stat().st_size, yaml.safe_load(before.read_text(encoding="utf-8"))
    chart.compact(source)
    assert yaml.safe_load(before.read_text(encoding="utf-8")) == definition
    assert before.stat().st_size < size / 3


def test_the_chart_is_an_artefact_for_registries(tmp_path: Path) -> None:
    """As `helm push` makes it: the description is its configuration, and the package its layer."""
    packed = tmp_path / "muster-chart-1.2.3.tgz"
    packed.write_bytes(b"package")
    chart.artefact(packed, {"name": "muster"}, "registry.example.com/charts/muster:1.2.3", EPOCH)
    with tarfile.open(tmp_path / "muster-chart-1.2.3.oci.tar") as archive:
        files = {each.name: each for each in archive}

        def read(name: str) -> bytes:
            file = archive.extractfile(files[name])
            return file.read() if file else b""

        (entry,) = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(read(f"blobs/{entry['digest'].replace(':', '/')}"))
        (layer,) = manifest["layers"]
        assert read(f"blobs/{layer['digest'].replace(':', '/')}") == b"package"
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "registry.example.com/charts/muster:1.2.3"
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"


def test_the_manual_describes_every_command() -> None:
    """With its options; troff reads no line of a help text as a request."""
    text = manual.manual("1.2.3")
    assert text.startswith('.TH MUSTER 1 "" "Muster 1.2.3"\n.SH NAME\n')
    assert ".SH MUSTER QUEUE\n" in text
    assert ".SH MUSTER JOB RUN\n" in text
    assert "\\-h, \\-\\-help" in text
    requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".nf", ".fi"}


@pytest.mark.parametrize("shell", manual.COMPLETION)
def test_completion_calls_the_command(shell: str) -> None:
    """Names of objects come from the cluster, so the script asks the command."""
    assert f"_MUSTER_COMPLETE={shell}_complete" in manual.completion(shell)


def test_krew_installs_the_archive_by_its_hash(source: Source, tmp_path: Path) -> None:
    """The manifest has the address of the archive; without an address there is none."""
    target, wheel = tmp_path / "target", "muster-1.2.3-py3-none-any.whl"
    target.mkdir()
    (target / wheel).write_bytes(b"wheel")
    shutil.copyfile(ROOT / "LICENSE", source.folder / "LICENSE")
    krew.write(source, target, tmp_path, "")
    assert not (target / "krew.yaml").exists()
    krew.write(source, target, tmp_path, "https://forge.example/team/muster/releases/download/v1.2.3")
    archive = target / "kubectl-muster-1.2.3.tar.gz"
    spec = yaml.safe_load((target / "krew.yaml").read_text(encoding="utf-8"))["spec"]
    assert (spec["version"], spec["homepage"]) == ("v1.2.3", "https://forge.example/team/muster")
    assert {(each["uri"], each["sha256"]) for each in spec["platforms"]} == {
        (
            "https://forge.example/team/muster/releases/download/v1.2.3/kubectl-muster-1.2.3.tar.gz",
            hashlib.sha256(archive.read_bytes()).hexdigest(),
        )
    }
    with tarfile.open(archive) as opened:
        modes = {each.name: each.mode for each in opened}
    assert modes == {"LICENSE": 0o644, "kubectl-muster": 0o755, "requirements.lock": 0o644, wheel: 0o644}


def test_evidence_covers_every_file(source: Source, tmp_path: Path) -> None:
    """The provenance names files and sources by hash; the signed checksums also cover the provenance."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "crds.yaml").write_text("kind: List\n", encoding="utf-8")
    key = tmp_path / "key.pem"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key))
    evidence.provenance(source, target, {"image": "sha256:abc"}, "https://example.com/builder")
    evidence.sums(target)
    evidence.sign(target, key)
    statement = json.loads((target / evidence.PROVENANCE).read_bytes())
    assert statement["subject"] == [
        {"name": "crds.yaml", "digest": {"sha256": hashlib.sha256(b"kind: List\n").hexdigest()}}
    ]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {"version": "1.2.3", "image": "sha256:abc"}
    assert [each["name"] for each in definition["resolvedDependencies"]] == [
        "source",
        "requirements-tracing.lock",
        "requirements.lock",
    ]
    checked = subprocess.run(["sha256sum", "--check", evidence.SUMS], cwd=target, capture_output=True, check=True)
    assert checked.stdout.split() == [b"crds.yaml:", b"OK", b"provenance.intoto.json:", b"OK"]
    assert verified(target, key)
    (target / evidence.SUMS).write_text("changed", encoding="utf-8")
    assert not verified(target, key)


def test_cosign_reads_its_own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only it can decrypt them; nothing is sent to a transparency log."""
    program, key = tmp_path / "cosign", tmp_path / "cosign.key"
    program.write_text(
        '#!/bin/sh\nfor each; do case $each in --output-signature=*) echo "$@" > "${each#*=}";; esac; done\n'
    )
    program.chmod(0o755)
    key.write_text("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n", encoding="ascii")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    evidence.sign(tmp_path, key)
    arguments = (tmp_path / evidence.SIGNATURE).read_text(encoding="utf-8").split()
    assert arguments[0] == "sign-blob"
    assert {"--tlog-upload=false", f"--key={key}"} <= {*arguments}
    assert arguments[-1] == str(tmp_path / evidence.SUMS)


def verified(target: Path, key: Path) -> bool:
    """Return True if the signature is by the key: an ECDSA signature over SHA-256, as base64, as cosign's are."""
    signature, public = target.parent / "signature", target.parent / "public.pem"
    signature.write_bytes(base64.b64decode((target / evidence.SIGNATURE).read_bytes(), validate=True))
    openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
    command = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", signature, target / evidence.SUMS]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def openssl(*arguments: str) -> None:
    """Run openssl."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


STATUS = """\
Package: libc6
Status: install ok installed
Version: 2.36-9+deb12u1
Description: the C library
 with a line: more

Package: libstdc++6
Status: install ok installed
Version: 1:12.2.0-14

Package: gone
Status: deinstall ok config-files
Version: 1
"""


def test_the_bill_of_materials_lists_every_package(source: Source, tmp_path: Path) -> None:
    """Both documents have the packages of pip, of npm and of the image, and are the same for the same release."""
    layers = []
    for text in ("", STATUS):  # a later layer replaces the list of an earlier one
        archives.write(tmp_path / "layer", {"var/lib/dpkg/status": text.encode()}, EPOCH, compress=True)
        layers.append((tmp_path / "layer").read_bytes())
    archives.write(tmp_path / "muster-image-1.2.3.tar", image_of(layers), EPOCH)
    sbom.write(source, tmp_path)
    first = (tmp_path / "muster-1.2.3.cdx.json").read_bytes()
    sbom.write(source, tmp_path)
    assert (tmp_path / "muster-1.2.3.cdx.json").read_bytes() == first
    cyclonedx, spdx = (json.loads((tmp_path / f"muster-1.2.3.{name}.json").read_bytes()) for name in ("cdx", "spdx"))
    found = {each["purl"]: each for each in cyclonedx["components"]}
    assert {"pkg:deb/debian/libc6@2.36-9%2Bdeb12u1", "pkg:npm/htmx.org@2.0.11"} <= found.keys()
    assert "pkg:deb/debian/libstdc%2B%2B6@1:12.2.0-14" in found
    assert not any("gone" in url for url in found)
    assert sum(url.startswith("pkg:pypi/opentelemetry") for url in found) > 1
    (flask,) = (each for each in found.values() if each["name"] == "flask")
    assert flask["licenses"] == [{"expression": "BSD-3-Clause"}]
    references = [each["externalRefs"][0]["referenceLocator"] for each in spdx["packages"] if "externalRefs" in each]
    assert references == list(found)
    assert len(spdx["relationships"]) == len(found) + 1
    assert spdx["creationInfo"]["created"] == cyclonedx["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def image_of(layers: list[bytes]) -> dict[str, bytes | Path]:
    """Return the content of an OCI archive with these layers, for one platform."""
    members: dict[str, bytes | Path] = {}

    def add(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        members[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}"}

    manifest = json.dumps({"layers": [add(layer) for layer in layers]}).encode()
    index = json.dumps({"manifests": [add(manifest)]}).encode()
    return members | {"index.json": json.dumps({"manifests": [add(index)]}).encode()}
