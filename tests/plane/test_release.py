"""`make dist` without an image: two clones of a commit give the same bytes, and complete ones."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from release.manual import COMPLETION, MANUAL
from release.source import ROOT, VENDORED

from muster.api.names import SYSTEM_NAMESPACE

pytestmark = [pytest.mark.plane, pytest.mark.long]
VERSION = "1.2.3-rc.1"
DIGEST = "sha256:" + "0123456789abcdef" * 4
ADDED = {"PKG-INFO", "setup.cfg", *VENDORED}
"""Files of the source distribution that are not in the repository, beside setuptools' own folder."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of two builds of this commit, from clones in different folders."""
    first, second = (release(tmp_path_factory.mktemp("clone") / name) for name in ("one", "another-name"))
    return first, second


def release(clone: Path) -> Path:
    """Return the folder with the files of a release of the checked-out commit."""
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    for name in VENDORED:  # the repository lacks them, and npm may be missing
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text("// a script\n", encoding="utf-8")
    command = [sys.executable, "-B", "-m", "release", f"--version={VERSION}", f"--image={DIGEST}"]
    variables = {**os.environ, "PYTHONPATH": f"{clone / '.ci'}:{clone}"}
    done = subprocess.run(command, cwd=clone, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return clone / "build/dist" / VERSION


def test_two_builds_have_the_same_bytes(built: tuple[Path, Path]) -> None:
    """No file contains the time, the folder or the user of the build."""
    first, second = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in built)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_the_source_distribution_has_every_file_of_the_commit(built: tuple[Path, Path]) -> None:
    """The tests and the tools are in it as well."""
    (archive,) = built[0].glob("muster-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {each.name.partition("/")[2] for each in opened}
    clone = built[0].parents[2]
    tracked = subprocess.run(["git", "ls-files"], cwd=clone, capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in names if not name.startswith("muster.egg-info/")} == {*tracked, *ADDED}


def test_manifests_have_the_image_by_digest(built: tuple[Path, Path]) -> None:
    """There is a file for each version of Kubernetes; it creates the namespace, and differs in kube-scheduler only."""
    files = sorted(built[0].glob("install-kubernetes-*.yaml"))
    assert len(files) > 1
    for file in files:
        objects = list(yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader))
        assert objects[0]["metadata"]["name"] == SYSTEM_NAMESPACE
        pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]
        images = {one["image"] for pod in pods for one in pod["containers"]}
        minor = file.stem.rpartition("-")[2]
        assert {image.rpartition(".")[0] for image in images - {f"muster@{DIGEST}"}} == {
            f"registry.k8s.io/kube-scheduler:v{minor}"
        }


def test_changes_that_are_not_committed_are_refused(built: tuple[Path, Path]) -> None:
    """A release has no other content than its commit."""
    clone = built[0].parents[2]
    (clone / "new").touch()
    done = subprocess.run(
        [sys.executable, "-B", "-m", "release"],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": f"{clone / '.ci'}:{clone}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "commit or remove 1 files, ?? new" in done.stderr


def test_the_plugin_installs_itself(built: tuple[Path, Path], tmp_path: Path) -> None:
    """`kubectl muster` of the archive runs with nothing of the repository, and has a manual page and completion."""
    (archive,) = built[0].glob("kubectl-muster-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "plugin", filter="data")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables |= {"XDG_DATA_HOME": str(tmp_path / "data"), "PYTHON": getattr(sys, "_base_executable", sys.executable)}
    done = [
        subprocess.run(
            [tmp_path / "plugin/kubectl-muster", *arguments], env=variables, capture_output=True, text=True, check=False
        )
        for arguments in (["--version"], ["features", "--maturity", "stable"])
    ]
    assert [each.returncode for each in done] == [0, 0], done
    assert done[0].stdout.split()[-1] == "1.2.3rc1"
    assert "gangs" in done[1].stdout
    assert "once" in done[0].stderr
    assert done[1].stderr == ""
    installed = tmp_path / "data/kubectl-muster" / VERSION
    assert [name for name in (MANUAL, *COMPLETION.values()) if not (installed / name).is_file()] == []
