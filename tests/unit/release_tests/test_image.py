"""The image of a release for several platforms, with a program in place of podman."""

import argparse
import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from release import image
from release.source import ReleaseError, Source

BASE = "docker.io/library/python@sha256:" + "0" * 64
ENGINE = """\
#!/usr/bin/env python3
import hashlib, json, pathlib, sys
options = dict(each[2:].split("=", 1) for each in sys.argv[2:] if each.startswith("--") and "=" in each)
if sys.argv[1] == "build":
    assert "--no-cache" in sys.argv and options["timestamp"] == "1700000000", sys.argv
    pathlib.Path(options["iidfile"]).write_text(options["platform"] + "\\n")
else:
    content = json.dumps({"layers": [], "of": sys.argv[-1]}).encode()
    digest = hashlib.sha256(content).hexdigest()
    folder = pathlib.Path(options["output"])
    (folder / "blobs/sha256").mkdir(parents=True)
    (folder / "blobs/sha256" / digest).write_bytes(content)
    entry = {"mediaType": "manifest", "digest": f"sha256:{digest}", "size": len(content), "annotations": {"a": "b"}}
    (folder / "index.json").write_text(json.dumps({"manifests": [entry]}))
"""


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An exported commit, of which the engine needs nothing."""
    (tmp_path / "source").mkdir()
    return Source(tmp_path / "source", "1.2.3", "c0ffee", 1_700_000_000)


def options(**changed: str) -> argparse.Namespace:
    """Return the options of a release."""
    given = {"base": BASE, "platforms": "linux/amd64,linux/arm64", "registry": "registry.example.com/team"}
    return argparse.Namespace(**{**given, **changed})


def test_the_archive_has_an_index_of_platforms(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is the only entry of the archive, has the returned digest, and names the image as the chart does."""
    engine = tmp_path / "bin/podman"
    engine.parent.mkdir()
    engine.write_text(ENGINE, encoding="utf-8")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", str(engine.parent), prepend=":")
    (tmp_path / "scratch").mkdir()
    digest = image.build(source, options(), tmp_path, tmp_path / "scratch")
    with tarfile.open(tmp_path / "muster-image-1.2.3.tar") as archive:
        opened = ((each.name, archive.extractfile(each)) for each in archive.getmembers())
        files = {name: file.read() for name, file in opened if file}
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == digest
    assert entry["annotations"]["io.containerd.image.name"] == "registry.example.com/team/muster:1.2.3"
    manifests = json.loads(files[f"blobs/{digest.replace(':', '/')}"])["manifests"]
    platforms = {
        each["platform"]["architecture"]: files[f"blobs/{each['digest'].replace(':', '/')}"] for each in manifests
    }
    assert {name: json.loads(text)["of"] for name, text in platforms.items()} == {
        "amd64": "linux/amd64",
        "arm64": "linux/arm64",
    }
    blobs = {name.rpartition("/")[2]: text for name, text in files.items() if name.startswith("blobs/")}
    assert [name for name, text in blobs.items() if hashlib.sha256(text).hexdigest() != name] == []


def test_the_base_has_a_digest(source: Source, tmp_path: Path) -> None:
    """A tag may lead to another image tomorrow."""
    with pytest.raises(ReleaseError, match="must be named by digest"):
        image.build(source, options(base="docker.io/library/python:3.11"), tmp_path, tmp_path)
