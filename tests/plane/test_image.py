"""What the Dockerfile's first stage does, done without an engine: an environment that runs what the chart starts."""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from dockerfile import replay, stages

pytestmark = [pytest.mark.plane, pytest.mark.long]
EPOCH = 1_700_000_000


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base's Python: one with pip and no packages."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    return folder / "bin/python"


@pytest.fixture(scope="module")
def built(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the second stage copies."""
    return replay(tmp_path_factory.mktemp("image"), base, {"SOURCE_DATE_EPOCH": str(EPOCH)})


def content(folder: Path) -> dict[str, str]:
    """The hash of every file, links by where they lead."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("package", ["webhook", "extender", "controller"])
def test_it_runs_what_the_chart_starts(built: Path, tmp_path: Path, package: str) -> None:
    """With the final stage's variables, and nothing beside the environment."""
    (env,) = (one for one in stages()[-1] if one.name == "ENV")
    variables = dict(word.split("=") for word in env.words)
    variables |= {"PATH": f"{built}/bin:{os.defpath}", "HOME": str(tmp_path)}
    command = ["python", "-m", package, "--help"]
    result = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "--settings" in result.stdout
    assert not list(tmp_path.iterdir())


def test_its_command_line_is_the_wheels(built: Path) -> None:
    """The entry point of the image, with the version that is built."""
    (entry,) = (one.words for one in stages()[-1] if one.name == "ENTRYPOINT")
    result = subprocess.run([built / "bin" / entry[0], "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.split()[-1] == version("muster")


def test_it_has_no_build_tools(built: Path) -> None:
    """Neither pip nor setuptools, nor what pulls them in; bytecode is there, for the root is read-only."""
    packages = {path.name.partition("-")[0] for path in built.rglob("*.dist-info")}
    assert "muster" in packages
    assert not packages & {"pip", "setuptools", "wheel", "hypothesis", "pytest"}
    assert list(built.rglob("musterctl/__pycache__/*.pyc"))


def test_the_same_commit_gives_the_same_files(built: Path, base: Path, tmp_path: Path) -> None:
    """Bit for bit, with one time on all of them: what differs between two builds of a commit is not Muster's."""
    root = built.parents[1]
    aside = root.with_name("aside")
    root.rename(aside)
    try:
        root.mkdir()
        again = replay(root, base, {"SOURCE_DATE_EPOCH": str(EPOCH)})
        first, second = content(aside / "opt/muster"), content(again)
        assert first.keys() == second.keys()
        assert {name for name in first if first[name] != second[name]} == set()
        assert {int(path.lstat().st_mtime) for path in again.rglob("*")} == {EPOCH}
    finally:
        root.rename(tmp_path / "second")
        aside.rename(root)
